"""Talks to a server as Microsoft's Agent Framework does: agent_framework_client.py URL

Prints one JSON object: for each conversation what the client made of the responses.
"""

import asyncio
import json
import sys
from typing import Any

from agent_framework import Agent, tool
from agent_framework_ag_ui import AGUIChatClient


@tool(approval_mode="never_require")
def get_weather(city: str) -> str:
    """Looks up the weather."""
    return f"Rain in {city}, 12°C"


async def text(endpoint: str) -> dict[str, Any]:
    """Two requests on one thread: the server keeps the history, so the second sends only what is new."""
    async with AGUIChatClient(endpoint=endpoint) as client:
        metadata = {"thread_id": "microsoft-text"}
        answers = [await client.get_response(said, options={"metadata": metadata}) for said in ("Hello", "count to 3")]
        return {"thread": "microsoft-text", "texts": [answer.text for answer in answers]}


async def tools(endpoint: str) -> dict[str, Any]:
    """The agent runs a tool of this program, and sends the result."""
    async with AGUIChatClient(endpoint=endpoint) as client:
        agent = Agent(name="assistant", client=client, tools=[get_weather])
        session = agent.create_session()
        options = {"metadata": {"thread_id": "microsoft-tools"}}
        answers = [
            await agent.run(said, session=session, options=options)
            for said in ("What's the weather like in Paris?", "Hello")
        ]
        return {"thread": "microsoft-tools", "texts": [answer.text for answer in answers]}


async def interrupts(endpoint: str) -> dict[str, Any]:
    """The server asks for an approval, and this program gives it."""
    async with AGUIChatClient(endpoint=endpoint) as client:
        metadata = {"thread_id": "microsoft-interrupts"}
        asked = await client.get_response("approve", options={"metadata": metadata})
        open_interrupts = asked.additional_properties["interrupts"]
        answers = [{"interruptId": it["id"], "payload": {"approved": True}} for it in open_interrupts]
        done = await client.get_response([], options={"metadata": metadata, "resume": answers})
        return {"thread": "microsoft-interrupts", "interrupts": open_interrupts, "texts": [done.text]}


async def main(endpoint: str) -> None:
    results = {task.__name__: await task(endpoint) for task in (text, tools, interrupts)}
    print(json.dumps(results))


asyncio.run(main(sys.argv[1]))
