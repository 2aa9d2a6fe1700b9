"""From the import on, a connection to an address outside loopback ends the program."""

import os
import sys


def refuse_other_addresses(event, arguments):
    if event == "socket.connect" and isinstance(address := arguments[1], tuple):
        if address[0] not in ("127.0.0.1", "::1"):
            print(f"refused a connection to {address}", file=sys.stderr)
            os._exit(1)


sys.addaudithook(refuse_other_addresses)
