#!/usr/bin/env python3
"""Lists the files and the types of all crates that one POST /send-message crosses, with the script agent and the memory store.

    cargo build && benches/request_path.py [--list]

The debug binary runs under callgrind (Debian: valgrind), which collects during one request, the second one. A file counts
if a function of it ran. A type counts if it is declared there and a function that ran names it, also as a parameter.
What the background does in that time (renewals of leases, signals) counts as well: two or three files.
"""
import collections
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARY = os.environ.get("AGUI_SERVER_BIN", ROOT / "target/debug/agui-server")
CONFIG = f"""
[server]
listen = "127.0.0.1:0"
[store]
url = "memory:"
[agents.demo]
kind = "script"
script = "{ROOT}/config/scripts/demo.toml"
"""
BODY = '{"threadId":"t%d","runId":"r%d","messages":[{"id":"m","role":"user","content":"hello"}],"tools":[],"context":[]}'


def collect(folder):
    """Returns the lines of callgrind's file on one request."""
    (folder / "c.toml").write_text(CONFIG)
    command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=callgrind.out", str(BINARY)]
    with open(folder / "log", "w") as log:
        server = subprocess.Popen([*command, "--config", "c.toml"], cwd=folder, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 120
        while not (found := re.search(r"listening on (http://\S+)", (folder / "log").read_text())):
            if time.monotonic() > deadline or server.poll() is not None:
                sys.exit((folder / "log").read_text())
            time.sleep(0.1)
        for number in (1, 2):
            if number == 2:
                subprocess.run(["callgrind_control", "-i", "on", str(server.pid)], check=True, stdout=subprocess.DEVNULL)
            data = (BODY % (number, number)).encode()
            request = urllib.request.Request(found[1] + "/send-message", data, {"Content-Type": "application/json"})
            events = urllib.request.urlopen(request, timeout=120).read()
            assert b"RUN_FINISHED" in events, events
        subprocess.run(["callgrind_control", "-i", "off", str(server.pid)], check=True, stdout=subprocess.DEVNULL)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()
    return (folder / "callgrind.out").read_text(errors="replace").splitlines()


def names(lines, keys, definitions):
    """Returns the names of callgrind's lines with these keys. A name is written once, after any of the keys `definitions`,
    and its number stands for it afterwards."""
    by_number, used = {}, set()
    for line in lines:
        if match := re.match(rf"({definitions})=\((\d+)\)(?: (.*))?$", line):
            if match[3]:
                by_number[match[2]] = match[3]
            if re.fullmatch(keys, match[1]):
                used.add(by_number[match[2]])
    return used


def main():
    with tempfile.TemporaryDirectory() as folder:
        lines = collect(pathlib.Path(folder))
    sources = {str(path.relative_to(ROOT)): path.read_text() for path in sorted(ROOT.glob("src/**/*.rs")) + sorted(ROOT.glob("crates/*/src/**/*.rs"))}
    ran = names(lines, "fl|fi|fe", "fl|fi|fe|cfi|cfl")
    files = {path for path in sources if any(name.endswith("/" + path) or name == path for name in ran)}
    code = [text.split("#[cfg(test)]\nmod tests")[0] for path, text in sources.items() if not path.endswith("tests.rs")]
    declared = {name for text in code for name in re.findall(r"\b(?:struct|enum|trait|type|union)\s+([A-Z]\w*)", text)}
    types = {}
    for function in names(lines, "fn|cfn", "fn|cfn"):
        for module, name in re.findall(r"(agui_[a-z]+(?:::[a-z0-9_]+)*)::([A-Z]\w*)", function):
            if name in declared:
                types[name] = module
    crate = lambda path: path.split("/")[1] if path.startswith("crates/") else "agui-server"
    by_room = lambda rooms: ", ".join(f"{room} {number}" for room, number in collections.Counter(rooms).most_common())
    print(f"{len(files)} files: {by_room(crate(path) for path in files)}")
    print(f"{len(types)} types: {by_room(module.split('::')[0].replace('_', '-') for module in types.values())}")
    if "--list" in sys.argv:
        print("\n".join(sorted(files) + sorted(f"{module}::{name}" for name, module in types.items())))


main()
