#!/usr/bin/env bash
# Packs a built binary: scripts/package.sh TARGET BINARY OUT
#
# OUT gets an archive, an npm package and a wheel of TARGET (a target of scripts/targets.json), and the npm package
# `agui-server`, which is the same for all targets. Compiles nothing. Needs GNU tar, Node, Python 3.11 and Cargo.
set -euo pipefail
target=$1 binary=$(realpath "$2") out=$(mkdir -p "$3" && realpath "$3")
cd "$(dirname "$0")/.."

name=agui-server-v$(scripts/version.sh)-$target
case $target in *windows*) program=agui-server.exe ;; *) program=agui-server ;; esac
# The same files make the same archive, whenever and by whom it is made.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 315532800) # or 1980, the first year of zip
export SOURCE_DATE_EPOCH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
install -D -m 0755 "$binary" "$work/$name/$program"
licenses=$work/$name/THIRD-PARTY-LICENSES.txt
node scripts/licenses.mjs "$licenses"
install -m 0644 LICENSE README.md "$work/$name/"
install -D -m 0644 -t "$work/$name/config" config/default.toml
# What default.toml names.
install -D -m 0644 -t "$work/$name/config/scripts" config/scripts/demo.toml
tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -c "$name" |
    gzip -n >"$out/$name.tar.gz"

node scripts/npm.mjs "$out"
node scripts/npm.mjs "$out" "$target" "$binary" "$licenses"
python3 scripts/wheel.py "$target" "$binary" "$licenses" "$out"
