#!/usr/bin/env bash
# Writes the SHA-256 sums of a folder's files into the folder: scripts/checksums.sh OUT
#
# `sha256sum --check SHA256SUMS` compares them.
set -euo pipefail
cd "$1"
export LC_ALL=C
find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs -d '\n' sha256sum >SHA256SUMS
