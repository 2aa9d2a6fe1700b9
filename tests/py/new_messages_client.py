"""Talks to a server as gentui 0.1 (PyPI) does: new_messages_client.py URL

gentui needs Python 3.12, and the tests run on 3.11, so this program sends the same requests with the same package,
ag-ui-protocol: only the new message, under a new id, with an empty state; answers to interrupts without a message.
Prints one JSON object: for each conversation what the client made of the responses.
"""

import json
import sys
import uuid
from typing import Any
from urllib.request import Request, urlopen

from ag_ui.core import Event, ResumeEntry, RunAgentInput, UserMessage
from pydantic import TypeAdapter

EVENT: TypeAdapter[Any] = TypeAdapter(Event)


def run(url: str, thread: str, text: str | None, answers: list[dict[str, Any]] | None = None) -> list[Any]:
    body = RunAgentInput(
        thread_id=thread,
        run_id=str(uuid.uuid4()),
        state={},
        messages=[UserMessage(id=str(uuid.uuid4()), role="user", content=text)] if text else [],
        tools=[],
        context=[],
        forwarded_props={},
        resume=[ResumeEntry.model_validate(answer) for answer in answers] if answers else None,
    ).model_dump(by_alias=True, exclude_none=True)
    headers = {"Accept": "text/event-stream", "Content-Type": "application/json"}
    with urlopen(Request(url, json.dumps(body).encode(), headers)) as response:
        lines = [line.decode().strip() for line in response]
    # A strict reading: an event that the models refuse ends this program.
    return [EVENT.validate_python(json.loads(line[5:])) for line in lines if line.startswith("data:")]


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


if __name__ == "__main__":
    print(json.dumps({each.__name__: each(sys.argv[1]) for each in (text, state, interrupts)}))
