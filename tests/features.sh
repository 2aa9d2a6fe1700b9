#!/usr/bin/env bash
# Checks each package of the workspace alone, and with each feature alone that a program asks for: tests/features.sh [PACKAGE…]
#
# A crate is published alone, so its manifest has to name all that it needs: together with others, one member has the
# features that another one asks for. `cargo hack` names no package, and then Cargo takes all `default-members`.
# The features of the crates that promise nothing are checked with the server's, which ask for them.
set -euo pipefail
cd "$(dirname "$0")/.."

# `full` is what the tests are built with, and jemalloc a build of C. `schema` and `testing` are for dev-dependencies:
# `cargo clippy --workspace --all-targets` has them.
list='const skipped = ["default", "full", "jemalloc", "schema", "testing"], [, ...wanted] = process.argv;
    const faces = ["agui-server", "agui-protocol", "agui-store"];
    const { packages } = JSON.parse(require("fs").readFileSync(0));
    const checked = ({ name, features }) => [...faces, ...wanted].includes(name) ? Object.keys(features).filter((feature) => !skipped.includes(feature)) : [];
    const line = (it) => ["", ...checked(it)].map((feature) => `${it.name} ${feature}`);
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
