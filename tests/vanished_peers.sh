#!/usr/bin/env bash
# Measures how long runs stay when the packets of their clients are dropped: 20 streams with an event each second, and 20
# silent ones. It needs root, iptables and ss, runs in a network namespace of its own, and takes at most $1 seconds (90).
#     cargo build && sudo tests/vanished_peers.sh
set -euo pipefail
if [ -z "${IN_NAMESPACE:-}" ]; then
    IN_NAMESPACE=1 exec unshare -n "$0" "$@"
fi
limit=${1:-90}
binary=${AGUI_SERVER_BINARY:-$(dirname "$0")/../target/debug/agui-server}
folder=$(mktemp -d)
ip link set lo up
cat >"$folder/load.toml" <<'SCRIPT'
[[answer]]
when.user = "busy"
play = [{ count = "1000", most = 1000, every_ms = 1000 }]
[[answer]]
play = [{ text = "One moment" }, { wait_ms = 600000 }]
SCRIPT
printf '[server]\nlisten = "127.0.0.1:8080"\ndata_dir = "%s"\n[agents.load]\nkind = "script"\nscript = "load.toml"\n' "$folder" \
    >"$folder/config.toml"
"$binary" --config "$folder/config.toml" 2>"$folder/log" &
server=$!
trap 'kill -KILL $server; wait $server 2>/dev/null || true; rm -r "$folder"' EXIT
until curl -s --max-time 1 http://127.0.0.1:8080/healthz >/dev/null; do sleep 0.1; done
clients=()
for number in $(seq 40); do
    text=$([ $((number % 2)) = 0 ] && echo busy || echo idle)
    curl -sN http://127.0.0.1:8080/send-message -H 'content-type: application/json' -o /dev/null \
        -d '{"threadId":"t'"$number"'","runId":"r","messages":[{"id":"m","role":"user","content":"'$text'"}]}' &
    clients+=($!)
done
sleep 3
streams() { ss -Htn state established sport = :8080 | wc -l; }
echo "streams: $(streams)"
iptables -A INPUT -p tcp --sport 8080 -j DROP
iptables -A INPUT -p tcp --dport 8080 -j DROP
started=$SECONDS
while [ $((SECONDS - started)) -lt "$limit" ] && [ "$(streams)" -gt 0 ]; do
    sleep 5
    echo "after $((SECONDS - started)) s: $(streams) streams"
done
kill "${clients[@]}" 2>/dev/null || true
ended=$(grep -c 'outcome=' "$folder/log" || true)
echo "runs that ended, by the log: $ended"
[ "$(streams)" = 0 ]
