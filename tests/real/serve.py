"""Serves an app on a free port of loopback, prints its URL alone, and ends with the standard input.

From the import on, a connection to another address ends the program (`loopback.py`).
"""

import os
import sys
import threading

import loopback  # before all that may connect

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
