#!/usr/bin/env bash
# Passes or fails this server: tests/run.sh [--docker] [--soak]
#
#   --docker  also builds the Docker image and tries it (with an engine, or see tests/docker.sh); in CI always
#   --soak    the property tests with a hundred times as many cases
#
# On a Debian machine with Rust and Node it installs what else is needed: Debian packages as root or with
# sudo, npm packages by the lock file, Python packages into tests/.venv. The suites need no network.
# What could not be tried is said at the end; with CI=true that is a failure, too.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

docker=${CI:-} soak=''
for option in "$@"; do
    case $option in
        --docker) docker=true ;;
        --soak) soak=true ;;
        *) sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done

target=${CARGO_TARGET_DIR:-$PWD/target}
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-auto}
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
failed=() skipped=()

# --- Running a step -------------------------------------------------------------------------------

# step NAME COMMAND…: runs it, says how long it took, and remembers if it failed.
step() {
    local name=$1 begin=$SECONDS code=0
    shift
    printf '\n=== %s\n' "$name"
    "$@" || code=$?
    if ((code)); then
        failed+=("$name")
        printf '=== %s: FAILED after %s s\n' "$name" $((SECONDS - begin))
    else
        printf '=== %s: ok, %s s\n' "$name" $((SECONDS - begin))
    fi
    return "$code"
}

skip() { # skip NAME WHY
    skipped+=("$1: $2")
    printf '\n=== %s: skipped, %s\n' "$1" "$2"
}

declare -A started
# start NAME COMMAND…: runs it beside what follows; `finish NAME` prints what it said.
start() {
    local name=$1
    shift
    "$@" >"$logs/$name" 2>&1 </dev/null &
    started[$name]=$!
}
finished() { wait "${started[$1]}"; local code=$?; cat "$logs/$1"; return "$code"; }
finish() { step "$1" finished "$1"; }

# --- What is needed -------------------------------------------------------------------------------

tools() {
    local packages=()
    command -v cc >/dev/null || packages+=(gcc libc6-dev)
    command -v make >/dev/null || packages+=(make)
    command -v kill >/dev/null && [ -x /bin/kill ] || packages+=(procps)
    command -v python3 >/dev/null || packages+=(python3)
    python3 -c 'import venv, ensurepip' 2>/dev/null || packages+=(python3-venv)
    # Its programs are not in PATH. A server that the package starts is not used: tests start their own.
    ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || command -v postgres >/dev/null || packages+=(postgresql)
    command -v bwrap >/dev/null || packages+=(bubblewrap)
    [ -z "$docker" ] || command -v curl >/dev/null || packages+=(curl)
    if ((${#packages[@]})); then
        local root=()
        [ "$(id -u)" = 0 ] || root=(sudo)
        echo "installing ${packages[*]}"
        "${root[@]}" apt-get update -qq && "${root[@]}" apt-get install -y -qq "${packages[@]}" || return
    fi
    if ! cargo --version || ! node --version || ! npm --version; then
        echo "Rust (see rust-version in Cargo.toml) and Node 20 with npm are needed: https://rustup.rs, https://nodejs.org"
        return 1
    fi
    if (($(node -p 'process.versions.node.split(".")[0]') < 20)); then
        echo "Node 20 or later is needed"
        return 1
    fi
    { cargo fmt --version && cargo clippy --version; } >/dev/null 2>&1 || rustup component add rustfmt clippy
}

# Installed once for each version of what asks for it.
npm_packages() {
    local stamp=tests/js/node_modules/.installed
    cmp -s tests/js/package-lock.json "$stamp" ||
        { npm --prefix tests/js ci --no-audit --no-fund && cp tests/js/package-lock.json "$stamp"; }
}

python_packages() {
    local stamp=tests/.venv/installed
    cmp -s tests/py/requirements.txt "$stamp" ||
        { python3 -m venv --clear tests/.venv &&
            tests/.venv/bin/pip install -q --disable-pip-version-check -r tests/py/requirements.txt &&
            cp tests/py/requirements.txt "$stamp"; }
}

# --- The suites -----------------------------------------------------------------------------------

# A machine, a container above all, may forbid what a sandbox is made of.
can_isolate() { bwrap --unshare-net --unshare-pid --ro-bind / / --proc /proc true; }

rust_tests() {
    [ -z "$soak" ] || export PROPTEST_CASES=25600
    cargo test --locked
}

real_clients() {
    AGUI_SERVER_BIN=$target/debug/agui-server AGUI_CORPUS=$target/tmp/corpus node --test tests/js
}

python_models() {
    AGUI_SERVER_BIN=$target/debug/agui-server node tests/js/run.mjs "$target/tmp/captured" &&
        tests/.venv/bin/python tests/py/validate.py "$target/tmp/captured" "$target/tmp/corpus"
}

documentation() { RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps; }

if ! step 'what is needed' tools; then
    exit 1
fi
start 'npm packages' npm_packages
start 'Python packages' python_packages
step 'format' cargo fmt --check
step 'build' cargo test --locked --no-run
# The Rust tests start an MCP server of npm's.
npm=''
finish 'npm packages' && npm=true
if ! why=$(can_isolate 2>&1); then
    # Said, and no failure: there a server with a sandbox does not start either, which is tested.
    forbidden="the tests of the sandbox, for commands cannot be isolated here: $why"
    export AGUI_SKIP_SANDBOX=1
fi
step 'Rust tests' rust_tests
finish 'Python packages' && start 'the Python models' python_models
# After the Python packages: one of the suites has an agent that is written in Python.
[ -n "$npm" ] && start 'the npm clients' real_clients
step 'clippy' cargo clippy --locked --all-targets -- -D warnings
step 'documentation' documentation
for suite in 'the npm clients' 'the Python models'; do
    if [ -n "${started[$suite]:-}" ]; then finish "$suite"; fi
done
if [ -z "$docker" ]; then
    skip 'the Docker image' 'it takes some minutes: --docker'
elif ! docker info >/dev/null 2>&1 && [ ! -f "${AGUI_DOCKER_CHECK:-../shared/docker/check.sh}" ]; then
    skip 'the Docker image' 'no Docker engine answers'
else
    step 'the Docker image' tests/docker.sh
fi

# --- What came of it ------------------------------------------------------------------------------

printf '\n%s s in all\n' "$SECONDS"
((${#skipped[@]})) && printf 'skipped: %s\n' "${skipped[@]}"
[ -z "${forbidden:-}" ] || printf 'left out: %s\n' "$forbidden"
((${#failed[@]})) && printf 'FAILED: %s\n' "${failed[@]}"
[ "${CI:-}" = true ] && ((${#skipped[@]})) && exit 1
((${#failed[@]} == 0)) && echo 'all passed'
