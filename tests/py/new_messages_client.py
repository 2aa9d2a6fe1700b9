"""Talks to a server as gentui 0.1 (PyPI) does: new_messages_client.py URL

gentui needs Python 3.12, and the tests run on 3.11, so this program sends the same requests with the same package,
ag-ui-protocol: only the new message, under a new id, with an empty state; answers to interrupts without a message. That package
has models and no client, so what else a Python program does with it is here as well: tools, pictures, a stream that breaks.
Prints one JSON object: for each conversation what the client made of the responses.
"""

import base64
import json
import sys
import uuid
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.request import Request, urlopen

from ag_ui.core import DataSource, Event, ImagePart, ResumeEntry, RunAgentInput, TextPart, Tool, ToolMessage, UserMessage
from pydantic import TypeAdapter

EVENT: TypeAdapter[Any] = TypeAdapter(Event)

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
# So long that the server keeps it as a file.
PNG = base64.b64decode(PIXEL) + bytes(8192)


def new_id() -> str:
    return str(uuid.uuid4())


def request(url: str, thread: str, messages: list[Any], **more: Any) -> Request:
    members = {"state": {}, "tools": [], "context": [], "forwarded_props": {}, **more}
    body = RunAgentInput(thread_id=thread, run_id=new_id(), messages=messages, **members)
    headers = {"Accept": "text/event-stream", "Content-Type": "application/json"}
    return Request(url, json.dumps(body.model_dump(by_alias=True, exclude_none=True)).encode(), headers)


def read(lines: Iterable[bytes]) -> Iterator[Any]:
    """Reads events strictly: one that the models refuse ends this program."""
    for line in lines:
        if line.startswith(b"data:"):
            yield EVENT.validate_python(json.loads(line[5:]))


def send(url: str, thread: str, messages: list[Any], **more: Any) -> list[Any]:
    with urlopen(request(url, thread, messages, **more)) as response:
        return list(read(response))


def run(url: str, thread: str, text: str | None, answers: list[dict[str, Any]] | None = None) -> list[Any]:
    messages = [UserMessage(id=new_id(), role="user", content=text)] if text else []
    return send(url, thread, messages, resume=[ResumeEntry.model_validate(it) for it in answers] if answers else None)


def text_of(events: list[Any]) -> str:
    return "".join(event.delta for event in events if event.type == "TEXT_MESSAGE_CONTENT")


def snapshots_of(events: list[Any], kind: str) -> list[Any]:
    return [event.model_dump(by_alias=True, exclude_none=True, mode="json") for event in events if event.type == kind]


def text(url: str) -> dict[str, Any]:
    runs = [run(url, "gentui-text", said) for said in ("Hello", "count to 3")]
    received = snapshots_of(runs[1], "MESSAGES_SNAPSHOT")[-1]["messages"]
    return {"thread": "gentui-text", "texts": [text_of(events) for events in runs], "received": received}


def state(url: str) -> dict[str, Any]:
    runs = [run(url, "gentui-state", said) for said in ("plan a trip", "Hello")]
    return {"thread": "gentui-state", "states": snapshots_of(runs[1], "STATE_SNAPSHOT")}


def interrupts(url: str) -> dict[str, Any]:
    asked = run(url, "gentui-interrupts", "approve")[-1].outcome.interrupts
    answers = [{"interruptId": it.id, "status": "resolved", "payload": {"approved": True}} for it in asked]
    done = run(url, "gentui-interrupts", None, answers)
    return {"thread": "gentui-interrupts", "texts": [text_of(done)], "outcome": done[-1].outcome.type}


def tools(url: str) -> dict[str, Any]:
    """This program runs the tool that it offers."""
    schema = {"type": "object", "properties": {"keyword": {"type": "string"}}}
    offered = [Tool(name="search_local_files", description="Searches files", parameters=schema)]
    question = UserMessage(id=new_id(), role="user", content="search for report files locally")
    asked = send(url, "python-tools", [question], tools=offered)
    call = next(event.tool_call_id for event in asked if event.type == "TOOL_CALL_START")
    arguments = "".join(event.delta for event in asked if event.type == "TOOL_CALL_ARGS")
    result = ToolMessage(id=new_id(), role="tool", tool_call_id=call, content='["a.txt", "b.txt"]')
    done = send(url, "python-tools", [result], tools=offered)
    return {"thread": "python-tools", "arguments": arguments, "texts": [text_of(done)]}


def picture(url: str) -> dict[str, Any]:
    """A picture is sent, and comes back in the snapshot of the next run."""
    image = ImagePart(type="image", source=DataSource(type="data", value=base64.b64encode(PNG).decode(), mime_type="image/png"))
    parts = [TextPart(type="text", text="Hello"), image]
    first = send(url, "python-picture", [UserMessage(id=new_id(), role="user", content=parts)])
    received = snapshots_of(run(url, "python-picture", "Hello"), "MESSAGES_SNAPSHOT")[-1]["messages"]
    with urlopen(received[0]["content"][1]["source"]["value"]) as response:
        is_same = response.read() == PNG
    return {"thread": "python-picture", "texts": [text_of(first)], "is_same": is_same}


def cut(url: str) -> dict[str, Any]:
    """The connection breaks within a run; the same request with the number of the last event brings the rest."""
    question = UserMessage(id=new_id(), role="user", content="count to 40")
    sent = request(url, "python-cut", [question], forwarded_props={"onDisconnect": "continue"})
    last, had = b"", []
    with urlopen(sent) as response:
        for line in response:
            if line.startswith(b"id:"):
                last = line[3:].strip()
            had.extend(read([line]))
            if len(had) == 5:
                break
    sent.add_header("Last-Event-ID", last.decode())
    with urlopen(sent) as response:
        rest = list(read(response))
    return {"thread": "python-cut", "texts": [text_of(had), text_of(had + rest)]}


if __name__ == "__main__":
    conversations = (text, state, interrupts, tools, picture, cut)
    print(json.dumps({each.__name__: each(sys.argv[1]) for each in conversations}))
