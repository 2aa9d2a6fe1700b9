#!/usr/bin/env bash
# Prints the version of Cargo.toml: scripts/version.sh [TAG]
#
# With a tag such as v0.1.0, fails unless the tag names this version.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
if [ $# -gt 0 ] && [ "$1" != "v$version" ]; then
    echo "the tag is $1, but version in Cargo.toml is $version" >&2
    exit 1
fi
echo "$version"
