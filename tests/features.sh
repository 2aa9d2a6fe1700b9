#!/usr/bin/env bash
# Checks each package of the workspace alone, without features and with each one: tests/features.sh [PACKAGE…]
#
# A crate is published alone, so its manifest has to name all that it needs: together with others, one member has the
# features that another one asks for. `cargo hack` names no package, and then Cargo takes all `default-members`.
set -euo pipefail
cd "$(dirname "$0")/.."

# `full` is what the tests are built with, and jemalloc a build of C. `schema` and `testing` are for dev-dependencies:
# `cargo clippy --workspace --all-targets` has them.
list='const skipped = ["default", "full", "jemalloc", "schema", "testing"], [, ...wanted] = process.argv;
    const { packages } = JSON.parse(require("fs").readFileSync(0));
    const line = ({ name, features }) => ["", ...Object.keys(features).filter((it) => !skipped.includes(it))].map((it) => `${name} ${it}`);
    packages.filter(({ name }) => wanted.length === 0 || wanted.includes(name)).flatMap(line).join("\n")'
lines=$(cargo metadata --locked --no-deps --format-version 1 | node -p "$list" "$@")

failed=()
while read -r package feature; do
    echo "--- $package ${feature:-without features}"
    # clippy, because it refuses warnings in the workspace alone: with RUSTFLAGS, all dependencies would be built again.
    cargo clippy --quiet --locked --package "$package" --no-default-features ${feature:+--features "$feature"} -- -D warnings </dev/null ||
        failed+=("$package ${feature:-without features}")
done <<<"$lines"
((${#failed[@]} == 0)) || { printf 'FAILED: %s\n' "${failed[@]}"; exit 1; }
