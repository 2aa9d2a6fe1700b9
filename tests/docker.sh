#!/usr/bin/env bash
# Builds the Docker image and tests it: tests/docker.sh [FOLDER]
#
# FOLDER has the Dockerfile: this project, or the folder that scripts/image_context.sh has made.
#
# Uses the Docker engine if one responds. Otherwise it calls the script in AGUI_DOCKER_CHECK as
# `SCRIPT DIRECTORY COMMAND…`: that script builds the directory's Dockerfile and runs the command in the image, on
# the host's network, until the command ends. Either way takes several minutes, most of them for the build.
set -euo pipefail
folder=$(realpath "${1:-$(dirname "$0")/..}")
cd "$(dirname "$0")/.."

image=agui-server:test
config=/etc/agui-server/config.toml
key=key-$RANDOM$RANDOM
work=$(mktemp -d)
passed=0 failed=0 code=none

# This project's own Dockerfile is tested without optimizations: beside other checks on two cores, the dependencies alone
# took 20 minutes with them.
if grep -q '^ARG PROFILE=dist' "$folder/Dockerfile"; then
    mkdir "$work/context"
    cp -r "$folder"/{.dockerignore,Dockerfile,Cargo.toml,Cargo.lock,crates,src,config} "$work/context"
    sed -i 's/^ARG PROFILE=dist/&\nENV CARGO_PROFILE_DIST_OPT_LEVEL=0 CARGO_PROFILE_DIST_CODEGEN_UNITS=16/' "$work/context/Dockerfile"
    folder=$work/context
fi

check() { # check NAME COMMAND…
    if "${@:2}"; then
        passed=$((passed + 1)); echo "ok      $1"
    else
        failed=$((failed + 1)); echo "FAILED  $1"
    fi
}

# Below the ports that the kernel gives to outgoing connections (32768 and above).
free_port() {
    local port
    while port=$((20000 + RANDOM % 12000)); (: </dev/tcp/127.0.0.1/"$port") 2>/dev/null; do :; done
    echo "$port"
}

within() { # within SECONDS COMMAND…: repeats the command until it succeeds or the time is over
    local end=$((SECONDS + $1))
    until "${@:2}"; do
        ((SECONDS < end)) || return 1
        sleep 0.2
    done
}

run() { # run TEXT [CURL-OPTION…]: sends TEXT as a user message and prints the response
    curl -sN --max-time 60 "${@:2}" -H 'Content-Type: application/json' "$url/send-message" -d \
        '{"threadId":"of-'"${1%% *}"'","runId":"r","messages":[{"id":"m","role":"user","content":"'"$1"'"}]}'
}

# --- Checks ---------------------------------------------------------------------------------------

is_healthy() { curl -sf --max-time 2 -o /dev/null "$url/healthz"; }
is_refused() { [ "$(run hello -o /dev/null -w '%{http_code}' "$@")" = 401 ]; }
names_both_ways() { grep -q 'AGUI_API_KEY is not set' "$1" && grep -q 'AGUI_AUTH__MODE=none' "$1"; }
is_demo() {
    run hello -H "Authorization: Bearer $key" >"$work/hello"
    grep -q '"delta":"Hello"' "$work/hello" && tail -n 2 "$work/hello" | grep -q '"type":"RUN_FINISHED"'
}
keeps_the_demo() { curl -sf --max-time 5 -H "Authorization: Bearer $key" "$url/threads/of-hello" | grep -q '"content":"Hello! '; }
has_begun() { grep -q '"delta"' "$work/long"; }
ended_by_shutdown() { tail -n 2 "$work/long" | grep -q '"type":"RUN_ERROR".*"code":"server_shutdown"'; }

# The checks for both ways to run the image. The caller defines `stop` (stops the server, sets `code` to its exit
# code) and `again` (starts it again with the same volume).
try_server() {
    check "answers /healthz" within 30 is_healthy
    check "refuses a run without a key" is_refused
    check "refuses a run with a wrong key" is_refused -H 'Authorization: Bearer wrong'
    check "streams the demo to a client with the key" is_demo
    run 'count to 1000' -H "Authorization: Bearer $key" >"$work/long" &
    local long=$!
    check "streams a long run" within 10 has_begun
    stop
    wait "$long" || true
    check "ends the long run with a terminal event at shutdown" ended_by_shutdown
    check "exits with 0" [ "$code" = 0 ]
    again
    check "still has the thread after a restart" within 30 keeps_the_demo
}

# --- With a Docker engine -------------------------------------------------------------------------

with_engine() {
    container='' volume=agui-server-test-$RANDOM$RANDOM
    trap '[ -z "$container" ] || docker rm -f "$container" >/dev/null || true
        docker volume rm -f "$volume" >/dev/null || true; rm -rf "$work"' EXIT
    docker build -t "$image" "$folder"
    docker image inspect -f 'image size: {{.Size}} bytes, user: {{.Config.User}}' "$image"
    timeout 30 docker run --rm "$image" >"$work/keyless" 2>&1 && echo 0 >"$work/code" || echo $? >"$work/code"
    check "without a key it does not start, and names both settings" names_both_ways "$work/keyless"
    check "without a key it exits with 2" [ "$(cat "$work/code")" = 2 ]

    # Read-only root file system: only the volume is writable.
    start() {
        container=$(docker run -d --read-only --cap-drop ALL --security-opt no-new-privileges \
            -v "$volume:/var/lib/agui-server" -p 127.0.0.1::8080 -e AGUI_API_KEY="$key" "$image")
        url=http://$(docker port "$container" 8080/tcp)
    }
    # A new container with the same volume.
    again() {
        docker rm "$container" >/dev/null
        start
    }
    start
    stop() {
        docker stop "$container" >/dev/null
        code=$(docker inspect -f '{{.State.ExitCode}}' "$container")
    }
    check "is not root" [ "$(docker exec "$container" id -u)" = 10001 ]
    check "its health check succeeds" within 15 docker exec "$container" agui-server health --config "$config"
    try_server
    ((failed == 0)) || docker logs "$container"
}

# --- Without an engine ----------------------------------------------------------------------------

# Prints the ids of the process's descendants, then its own if it is still running.
started_by() {
    local child
    for child in $(pgrep -P "$1"); do started_by "$child"; done
    [ ! -d "/proc/$1" ] || echo "$1"
}

is_server() { [ "$(cat "/proc/$1/comm" 2>/dev/null)" = agui-server ] && ! grep -qz health "/proc/$1/cmdline"; }

with_script() {
    local script=$1 port
    port=$(free_port)
    url=http://127.0.0.1:$port
    # Three starts: without a key; with a key, and a health check at the same time; with a key again.
    local command="agui-server --config $config; echo \"without a key: exit code \$?\"
        export AGUI_API_KEY=$key AGUI_SERVER__LISTEN=127.0.0.1:$port
        (for try in 1 2 3 4 5 6 7 8 9; do
            sleep 1; agui-server health --config $config && echo 'the health check succeeded' && break
        done) &
        agui-server --config $config; echo \"stopped: exit code \$?\"
        exec agui-server --config $config"
    bash "$script" "$folder" sh -c "$command" >"$work/log" 2>&1 </dev/null &
    builder=$!
    # shellcheck disable=SC2046 # one process id a word
    # `|| true`: with `set -e`, a `kill` without a process would become the script's exit code.
    trap 'kill $(started_by "$builder") 2>/dev/null || true; rm -rf "$work"' EXIT
    started() { is_healthy || ! kill -0 "$builder" 2>/dev/null; }
    echo "building; this takes several minutes"
    within 1800 started || true
    grep -E '^image +size:|^ +[^ ]*debian:bookworm-slim +[0-9]' "$work/log" || tail -n 30 "$work/log"
    grep -o '^user: [0-9:]*' "$work/log" || true
    local server=none
    find_server() {
        local pid
        server=none
        for pid in $(started_by "$builder"); do
            if is_server "$pid"; then server=$pid; fi
        done
        [ "$server" != none ]
    }
    has_stopped() { grep -q '^stopped: exit code' "$work/log"; }
    stop() {
        kill -TERM "$server"
        within 15 has_stopped || true
        code=$(sed -n 's/^stopped: exit code //p' "$work/log")
    }
    again() { within 10 find_server || true; }
    find_server || true
    check "without a key it does not start, and names both settings" names_both_ways "$work/log"
    check "without a key it exits with 2" grep -q 'without a key: exit code 2' "$work/log"
    check "is not root" grep -qE '^Uid:\s+10001\s+10001\s' "/proc/$server/status"
    check "its health check succeeds" within 15 grep -q 'the health check succeeded' "$work/log"
    try_server
    ((failed == 0)) || tail -n 50 "$work/log"
    # The script removes its files when the server ends.
    if kill -TERM "$server"; then wait "$builder" || true; fi
}

if docker info >/dev/null 2>&1; then
    with_engine
elif [ -f "${AGUI_DOCKER_CHECK:=../shared/docker/check.sh}" ]; then
    echo "no Docker engine responds; using $AGUI_DOCKER_CHECK"
    with_script "$AGUI_DOCKER_CHECK"
else
    echo "no Docker engine responds, and $AGUI_DOCKER_CHECK does not exist: start Docker, or set AGUI_DOCKER_CHECK" >&2
    exit 1
fi
echo "docker: $passed passed, $failed failed"
((failed == 0))
