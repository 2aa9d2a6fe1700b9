#!/usr/bin/env bash
# Makes the folder that the image of a release is built from: scripts/image_context.sh BINARIES OUT
#
# BINARIES has TARGET/agui-server for each target of scripts/targets.json with an `image`; a missing one is left out.
# Then: docker buildx build --platform linux/amd64,linux/arm64 OUT
set -euo pipefail
binaries=$(realpath "$1") out=$(mkdir -p "$2" && realpath "$2")
cd "$(dirname "$0")/.."

node -p 'require("./scripts/targets.json").filter((it) => it.image).map((it) => `${it.target} ${it.image}`).join("\n")' |
    while read -r target processor; do
        [ ! -e "$binaries/$target" ] || install -D -m 0755 "$binaries/$target/agui-server" "$out/$processor/agui-server"
    done
cp deploy/Dockerfile.release "$out/Dockerfile"
install -D -m 0644 config/docker.toml "$out/etc/agui-server/config.toml"
cp -r config/scripts "$out/etc/agui-server/"
mkdir -p "$out/share/doc/agui-server"
node scripts/licenses.mjs "$out/share/doc/agui-server/THIRD-PARTY-LICENSES.txt"
# An empty folder, which gets its owner in the image.
mkdir -p "$out/lib/agui-server"
