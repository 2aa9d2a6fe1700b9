"""A server as AG-UI's quickstart for Python has it, for the table of docs/speed.md.

    pip install fastapi==0.165.0 "uvicorn[standard]==0.54.0" ag-ui-protocol==1.0.0
    python server.py PORT

`forwardedProps` controls the agent as in examples/bench.rs. Stores nothing.
"""

import asyncio
import sys
from collections.abc import AsyncIterator

import uvicorn
from ag_ui.core import (
    BaseEvent,
    RunAgentInput,
    RunFinishedEvent,
    RunStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
)
from ag_ui.encoder import EventEncoder
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse

app = FastAPI()


async def bench(run: RunAgentInput) -> AsyncIterator[BaseEvent]:
    props = run.forwarded_props or {}
    yield RunStartedEvent(thread_id=run.thread_id, run_id=run.run_id)
    yield TextMessageStartEvent(message_id="m", role="assistant")
    for number in range(props.get("n", 10)):
        if props.get("mode") == "yield":
            await asyncio.sleep(0)
        if props.get("mode") == "sleep":
            await asyncio.sleep(props.get("delayUs", 0) / 1e6)
        yield TextMessageContentEvent(message_id="m", delta=f"token number {number:06} ")
    yield TextMessageEndEvent(message_id="m")
    yield RunFinishedEvent(thread_id=run.thread_id, run_id=run.run_id)


@app.post("/send-message")
async def send_message(run: RunAgentInput, request: Request) -> StreamingResponse:
    encoder = EventEncoder(accept=request.headers.get("accept"))

    async def encoded() -> AsyncIterator[str]:
        async for event in bench(run):
            yield encoder.encode(event)

    return StreamingResponse(encoded(), media_type=encoder.get_content_type())


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
