"""An MCP server made with the official SDK, of either line, for tests/tools/mcp_python.rs: sdk_mcp.py stdio | http PORT | json PORT"""

import asyncio
import sys

from pydantic import BaseModel

try:
    from mcp.server.mcpserver import Context, MCPServer
    from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult
except ImportError:  # mcp 1
    from mcp.server.fastmcp import Context, FastMCP as MCPServer

    InputRequiredResult = None

mode = sys.argv[1]
port = int(sys.argv[2]) if mode != "stdio" else 0
http = {"host": "127.0.0.1", "port": port}
mcp = MCPServer("python") if InputRequiredResult or mode == "stdio" else MCPServer("python", json_response=mode == "json", **http)


class Who(BaseModel):
    name: str


@mcp.tool()
async def echo(text: str) -> str:
    return text


@mcp.tool()
async def steps(count: int, ctx: Context) -> str:
    for step in range(count):
        await asyncio.sleep(0.02)
        await ctx.report_progress(step + 1, count)
    return "done"


if InputRequiredResult:

    @mcp.tool()
    async def greet(ctx: Context) -> str | InputRequiredResult:
        given = (ctx.input_responses or {}).get("who")
        if given is None:
            schema = Who.model_json_schema()
            params = ElicitRequestFormParams(message="Who is there?", requested_schema=schema)
            return InputRequiredResult(input_requests={"who": ElicitRequest(params=params)}, request_state="asked")
        return f"Hello {given.content['name']}, {ctx.request_state}"

else:

    @mcp.tool()
    async def greet(ctx: Context) -> str:
        given = await ctx.elicit("Who is there?", Who)
        return f"Hello {given.data.name}"


if mode == "stdio":
    mcp.run()
elif InputRequiredResult:
    mcp.run("streamable-http", json_response=mode == "json", **http)
else:
    mcp.run("streamable-http")
