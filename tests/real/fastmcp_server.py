"""An MCP server made with FastMCP: fastmcp_server.py [PORT]. Over stdio without a port. The tool `die` ends the process."""

import os
import sys

import loopback  # before all that may connect

from fastmcp import FastMCP
from fastmcp.exceptions import ToolError

server = FastMCP("real")


@server.tool
def add(a: int, b: int = 1) -> int:
    """Adds two numbers."""
    return a + b


@server.tool
def fail() -> str:
    """Fails."""
    raise ToolError("the shelf is empty")


@server.tool
def die() -> str:
    """Ends the server during the call."""
    os._exit(1)


if len(sys.argv) > 1:
    server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False)
else:
    server.run(show_banner=False)
