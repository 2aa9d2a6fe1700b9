"""An MCP server whose calls are tasks, made with FastMCP, for tests/server/replicas: tasks_mcp.py PORT FILE

It appends what happens to its calls to the file.
"""

import asyncio
import sys
from datetime import timedelta

import mcp_types
from fastmcp import Context, FastMCP
from fastmcp.utilities.tasks import TaskConfig
from fastmcp_tasks import TasksExtension

port, record = int(sys.argv[1]), sys.argv[2]
mcp = FastMCP("tasks")
mcp.add_extension(TasksExtension())


def note(what: str) -> None:
    with open(record, "a") as file:
        file.write(f"{what}\n")


@mcp.tool(task=TaskConfig(mode="required", poll_interval=timedelta(milliseconds=200)))
async def crunch(ctx: Context, seconds: float) -> str:
    """Works for a while."""
    note("begin")
    try:
        for step in range(10):
            await ctx.report_progress(step, 10, f"step {step}")
            await asyncio.sleep(seconds / 10)
    except asyncio.CancelledError:
        note("cancelled")
        raise
    note("end")
    return "crunched"


def question(message: str) -> mcp_types.ElicitRequest:
    """Asks for one text."""
    schema = {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]}
    return mcp_types.ElicitRequest(
        params=mcp_types.ElicitRequestFormParams(message=message, requested_schema=schema)
    )


@mcp.tool(task=TaskConfig(mode="required", poll_interval=timedelta(milliseconds=200)))
async def choose(ctx: Context) -> str | mcp_types.InputRequiredResult:
    """Asks twice, within its task."""
    given = ctx.input_responses or {}
    if not given:
        note("asked")
        return mcp_types.InputRequiredResult(input_requests={"grain": question("Which grain?")})
    if "grain" in given:
        if given["grain"].action != "accept":
            return f"nothing: {given['grain'].action}"
        note("asked")
        grain = given["grain"].content["value"]
        return mcp_types.InputRequiredResult(
            input_requests={"amount": question(f"How much {grain}?")}, request_state=grain
        )
    note("ground")
    return f"{given['amount'].content['value']} of {ctx.request_state}"


@mcp.tool(task=True)
async def fail() -> str:
    """Fails."""
    raise ValueError("no grain")


mcp.run(transport="http", host="127.0.0.1", port=port, show_banner=False)
