#!/usr/bin/env bash
# Runs the fuzz targets: fuzz/run.sh [--total N] [--jobs N] [TARGET…]
#
#   --total N  time for all targets together, in seconds; 80 by default
#   --jobs N   targets that run at a time; 1 for each processor by default
#   --merge    instead of running, adds to the committed corpus the smallest inputs that cover more code
#
# Needs stable Rust and a C++ compiler, for libFuzzer. New inputs are kept in fuzz/target/corpus. An input that breaks
# a property is written to fuzz/artifacts; the last lines of the output name it.
set -euo pipefail
cd "$(dirname "$0")"

total=80 jobs=$(nproc) merge=''
while [[ "${1:-}" = --* ]]; do
    case $1 in
        --total) total=$2; shift ;;
        --jobs) jobs=$2; shift ;;
        --merge) merge=true ;;
        *) sed -n '2,9s/^# \{0,1\}//p' run.sh >&2; exit 2 ;;
    esac
    shift
done
targets=("$@")
((${#targets[@]})) || mapfile -t targets < <(sed -n 's|^path = "fuzz_targets/\(.*\)\.rs"$|\1|p' Cargo.toml)
((jobs <= ${#targets[@]})) || jobs=${#targets[@]}
seconds=$((total * jobs / ${#targets[@]}))

# The counters that libFuzzer reads, as `cargo fuzz` asks for them, but with flags of stable Rust. `--target` keeps the
# flags away from build scripts and macros.
triple=$(rustc -vV | sed -n 's/^host: //p')
export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares"
export CARGO_TARGET_DIR=${FUZZ_TARGET_DIR:-$PWD/target}
cargo build --release --target "$triple" "${targets[@]/#/--bin=}"
bin=$CARGO_TARGET_DIR/$triple/release

run() {
    local target=$1 new=$CARGO_TARGET_DIR/corpus/$1 dictionary=dictionaries/$1.dict
    mkdir -p "$new" "corpus/$target" artifacts
    if [ -n "$merge" ]; then
        "$bin/$target" -merge=1 -timeout=10 "corpus/$target" "$new" 2>&1 | tail -1
        return
    fi
    local options=(-max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=16384 -artifact_prefix=artifacts/$target-)
    options+=(-print_final_stats=1)
    [ ! -f "$dictionary" ] || options+=(-dict="$dictionary")
    local log=$CARGO_TARGET_DIR/$target.log
    if "$bin/$target" "${options[@]}" "$new" "corpus/$target" >"$log" 2>&1; then
        local stats
        stats=$(grep -E 'DONE|INITED' "$log" | tail -1 | sed 's/.*cov: \([0-9]*\) ft: \([0-9]*\).*/\1 edges, \2 features/')
        echo "$target: $stats, $(sed -n 's/^stat::number_of_executed_units: //p' "$log") inputs, $(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")/s"
    else
        tail -n 60 "$log"
        echo "$target: FAILED; again with $bin/$target $(sed -n 's/.*Test unit written to //p' "$log" | tail -1 | sed 's|^|fuzz/|')"
        return 1
    fi
}

failed=0 running=0
for target in "${targets[@]}"; do
    if ((running == jobs)); then
        wait -n || failed=1
        running=$((running - 1))
    fi
    run "$target" &
    running=$((running + 1))
done
while ((running)); do
    wait -n || failed=1
    running=$((running - 1))
done
exit "$failed"
