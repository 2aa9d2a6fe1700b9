"""Serves an app on a free port of loopback, prints its URL alone, and ends with the standard input.

From the import on, a connection to another address ends the program.
"""

import os
import sys
import threading


def refuse_other_addresses(event, arguments):
    if event == "socket.connect" and isinstance(address := arguments[1], tuple):
        if address[0] not in ("127.0.0.1", "::1"):
            print(f"refused a connection to {address}", file=sys.stderr)
            os._exit(1)


sys.addaudithook(refuse_other_addresses)
# The reader of the URL reads no other line.
sys.stdout = sys.stderr

import uvicorn


class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        port = self.servers[0].sockets[0].getsockname()[1]
        print(f"http://127.0.0.1:{port}", file=sys.__stdout__, flush=True)


def end_with_input():
    sys.stdin.read()
    os._exit(0)


def serve(app):
    threading.Thread(target=end_with_input, daemon=True).start()
    Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning")).run()
