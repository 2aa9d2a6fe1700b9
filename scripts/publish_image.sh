#!/usr/bin/env bash
# Builds the image of a release for both processors, and pushes it: scripts/publish_image.sh CONTEXT IMAGE
#
# CONTEXT is the folder that scripts/image_context.sh has made; IMAGE a name without a tag, such as
# ghcr.io/agui-server/agui-server. Needs a login at the registry.
set -euo pipefail
context=$1 image=$2
version=$("$(dirname "$0")/version.sh")

tags=(--tag "$image:$version")
# A version such as 0.2.0-rc.1 is for those who ask for it.
case $version in *-*) ;; *) tags+=(--tag "$image:latest") ;; esac
# The usual builder makes images of one processor only.
docker buildx create --name agui-server-release --driver docker-container >/dev/null
docker buildx build --builder agui-server-release --platform linux/amd64,linux/arm64 \
    --provenance mode=max --sbom true --push "${tags[@]}" "$context"
