#!/usr/bin/env bash
# Compiles the binary of one target: scripts/build.sh TARGET OUT
#
# Writes OUT/TARGET/agui-server, or agui-server.exe for Windows. Linux targets need cargo-zigbuild and zig
# (`pip install cargo-zigbuild ziglang`), others a machine of their own system.
set -euo pipefail
target=$1 out=$(mkdir -p "$2" && realpath "$2")
cd "$(dirname "$0")/.."

export CARGO_PROFILE_DIST_STRIP=symbols
features=jemalloc,object-store,otel program=agui-server
case $target in
    # The C library that a binary needs at least: that of Debian 10 and RHEL 8.
    *-linux-gnu) build=(zigbuild --target "$target.2.28") ;;
    *-linux-musl) build=(zigbuild --target "$target") ;;
    # jemalloc is not built by Microsoft's compiler.
    *-windows-msvc) build=(build --target "$target") features=object-store,otel program=agui-server.exe ;;
    *) build=(build --target "$target") ;;
esac
# For kernels with pages of 64 KiB, too.
case $target in aarch64-*-linux-*) export JEMALLOC_SYS_WITH_LG_PAGE=16 ;; esac
cargo "${build[@]}" --locked --profile dist --features "$features" --bin agui-server

mkdir -p "$out/$target"
cp "${CARGO_TARGET_DIR:-target}/$target/dist/$program" "$out/$target/"
