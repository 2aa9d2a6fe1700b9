#!/usr/bin/env bash
# Writes the crates of the binaries as a CycloneDX document: scripts/sbom.sh OUT
#
# Needs cargo-cyclonedx (`cargo install cargo-cyclonedx`). Compiles nothing.
set -euo pipefail
out=$(mkdir -p "$1" && realpath "$1")
cd "$(dirname "$0")/.."

name=agui-server-v$(scripts/version.sh).cdx
cargo cyclonedx --format json --target all --features jemalloc,object-store,otel --override-filename "$name"
mv "$name.json" "$out/"
# It writes one for each crate of the workspace. The crates are in that of the command.
rm -f crates/*/"$name.json"
