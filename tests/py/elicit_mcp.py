"""An MCP server made with FastMCP whose tool asks while it runs, for tests/tools/mcp_python.rs: elicit_mcp.py http PORT"""

import sys

from fastmcp import Context, FastMCP

mcp = FastMCP("elicit")
calls = 0


@mcp.tool
async def book(ctx: Context) -> str:
    global calls
    calls += 1
    given = await ctx.elicit("Which day?", response_type=str)
    return given.action


@mcp.tool
async def count() -> int:
    return calls


mcp.run(transport="http", host="127.0.0.1", port=int(sys.argv[2]), show_banner=False)
