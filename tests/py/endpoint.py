"""A typical AG-UI endpoint in Python, for tests of remote agents.

    python endpoint.py [PORT]

Uses the package ag-ui-protocol alone: its models check the input, and its encoder writes the events. Stores nothing
between runs. Prints its URL when it listens, and exits when its standard input closes.
"""

import json
import os
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ag_ui.core import (
    BaseEvent,
    CustomEvent,
    Interrupt,
    MessagesSnapshotEvent,
    ReasoningEndEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    StepFinishedEvent,
    StepStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    TokenUsage,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from ag_ui.encoder import EventEncoder
from pydantic import ValidationError

# The number of responses that were sent to their end, and of those whose client disconnected.
counts = {"completed": 0, "disconnected": 0}


def text_message(run: RunAgentInput, text: str) -> Iterator[BaseEvent]:
    """Yields a text message in deltas of one word. A run has at most one: its id is derived from the run's id."""
    message_id = f"text-{run.run_id}"
    yield TextMessageStartEvent(message_id=message_id, role="assistant")
    for word in text.split(" "):
        yield TextMessageContentEvent(message_id=message_id, delta=word + " ")
    yield TextMessageEndEvent(message_id=message_id)


def tool_call(call_id: str, name: str, arguments: str) -> Iterator[BaseEvent]:
    yield ToolCallStartEvent(tool_call_id=call_id, tool_call_name=name)
    for start in range(0, len(arguments), 5):
        yield ToolCallArgsEvent(tool_call_id=call_id, delta=arguments[start : start + 5])
    yield ToolCallEndEvent(tool_call_id=call_id)


def weather(run: RunAgentInput) -> Iterator[BaseEvent]:
    """Yields a step, reasoning, a call of the endpoint's own tool with its result, state, and an answer."""
    asked = (run.state or {}).get("asked", 0)
    yield StepStartedEvent(step_name="look")
    yield ReasoningStartEvent(message_id=f"span-{run.run_id}")
    yield ReasoningMessageStartEvent(message_id=f"thought-{run.run_id}", role="reasoning")
    yield ReasoningMessageContentEvent(message_id=f"thought-{run.run_id}", delta="I have a tool for that.")
    yield ReasoningMessageEndEvent(message_id=f"thought-{run.run_id}")
    yield ReasoningEndEvent(message_id=f"span-{run.run_id}")
    call_id = f"call-{run.run_id}"
    yield from tool_call(call_id, "get_weather", '{"city":"Beijing"}')
    yield ToolCallResultEvent(message_id=f"result-{run.run_id}", tool_call_id=call_id, content="Sunny, 25°C")
    if asked:
        yield StateDeltaEvent(delta=[{"op": "replace", "path": "/asked", "value": asked + 1}])
    else:
        yield StateSnapshotEvent(snapshot={"asked": 1, "nothing": None})
    yield CustomEvent(name="acme.seen", value=None)
    yield StepFinishedEvent(step_name="look")
    yield from text_message(run, "It is sunny in Beijing.")


def draw(run: RunAgentInput, cities: list[str]) -> Iterator[BaseEvent]:
    """Draws an A2UI surface, if the server offers the tool for it. The server answers the call."""
    if "render_a2ui" not in {tool.name for tool in run.tools}:
        yield from text_message(run, "I cannot draw here.")
        return
    components = [
        {"id": "root", "component": "Column", "children": ["title", "rows", "more"]},
        {"id": "title", "component": "Text", "text": "Drawn in Python"},
        {"id": "rows", "component": "Column", "children": {"componentId": "row", "path": "/cities"}},
        {"id": "row", "component": "Text", "text": {"path": "name"}},
        {"id": "more", "component": "Button", "child": "label", "action": {"event": {"name": "more"}}},
        {"id": "label", "component": "Text", "text": "More cities"},
    ]
    data = {"cities": [{"name": city} for city in cities]}
    arguments = {"surfaceId": "cities", "components": components, "data": data}
    yield from tool_call(f"call-{run.run_id}", "render_a2ui", json.dumps(arguments))


def approve(run: RunAgentInput) -> Iterator[BaseEvent]:
    """Interrupts the run at a tool call, after the two snapshots. The resuming run sends the result of the call."""
    call_id = f"call-{run.run_id}"
    yield from tool_call(call_id, "send_mail", '{"to":"ada@example.com"}')
    call = {"id": call_id, "type": "function", "function": {"name": "send_mail", "arguments": '{"to":"ada@example.com"}'}}
    holder = {"id": call_id, "role": "assistant", "toolCalls": [call]}
    yield StateSnapshotEvent(snapshot=run.state or {})
    yield MessagesSnapshotEvent(messages=[*run.messages, holder])
    interrupt = Interrupt(id=call_id, reason="tool_call", message="Send it?", tool_call_id=call_id)
    yield run_finished(run, outcome=RunFinishedInterruptOutcome(interrupts=[interrupt]))


def resumed(run: RunAgentInput) -> Iterator[BaseEvent]:
    entry = run.resume[0]
    sent = entry.status == "resolved" and entry.payload["approved"]
    content = "sent" if sent else "not sent"
    yield ToolCallResultEvent(message_id=f"result-{run.run_id}", tool_call_id=entry.interrupt_id, content=content)
    yield from text_message(run, f"It was {content}.")


def run_finished(run: RunAgentInput, **more: Any) -> BaseEvent:
    return RunFinishedEvent(thread_id=run.thread_id, run_id=run.run_id, **more)


def answer(run: RunAgentInput, headers: dict[str, str]) -> Iterator[BaseEvent]:
    yield RunStartedEvent(thread_id=run.thread_id, run_id=run.run_id, protocol_version="1.0")
    last = run.messages[-1]
    if run.resume:
        yield from resumed(run)
    elif last.role == "tool" and 'performed action "more"' in str(last.content):
        yield from draw(run, ["Oslo", "Lima"])
    elif last.role == "tool":
        yield from text_message(run, f"You picked {last.content}.")
    else:
        text = last.content
        if "weather" in text:
            yield from weather(run)
        elif "draw" in text:
            yield from draw(run, ["Oslo"])
        elif "pick" in text:
            yield from tool_call(f"call-{run.run_id}", run.tools[0].name, "{}")
        elif "approve" in text:
            yield from approve(run)
            return
        elif "fail" in text:
            yield TextMessageStartEvent(message_id=f"text-{run.run_id}", role="assistant")
            usage = [TokenUsage(provider="acme", model="x", input_tokens=7)]
            yield RunErrorEvent(message="No tea.", code="no_tea", usage=usage)
            return
        elif "crash" in text:
            yield from list(text_message(run, "Oh"))[:2]
            raise RuntimeError("crashed, as it was asked to")
        elif "for ever" in text:
            yield TextMessageStartEvent(message_id=f"text-{run.run_id}", role="assistant")
            while True:
                yield TextMessageContentEvent(message_id=f"text-{run.run_id}", delta="x" * 1000)
        elif "who" in text:
            values = [headers.get(name) for name in ("x-tenant", "authorization", "cookie")]
            yield from text_message(run, " ".join(map(str, values)))
        elif "told" in text:
            yield from text_message(run, f"{counts['completed']} told, {counts['disconnected']} left")
        else:
            roles = ", ".join(message.role for message in run.messages)
            yield from text_message(run, f"{roles}; {run.state}")
    usage = [TokenUsage(provider="acme", model="x", input_tokens=len(run.messages), output_tokens=1)]
    yield run_finished(run, result={"python": True, "nothing": None}, usage=usage)


class Endpoint(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            run = RunAgentInput.model_validate_json(body)
        except ValidationError as error:
            self.send_error(422, explain=str(error))
            return
        encoder = EventEncoder(accept=self.headers["Accept"])
        self.send_response(200)
        self.send_header("Content-Type", encoder.get_content_type())
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            for event in answer(run, headers):
                self.chunk(encoder.encode(event))
            self.chunk("")
            counts["completed"] += 1
        except RuntimeError:
            self.close_connection = True
        except OSError:
            counts["disconnected"] += 1
            self.close_connection = True

    def chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def log_message(self, *_: Any) -> None:
        pass


def main() -> None:
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    server = ThreadingHTTPServer(("127.0.0.1", port), Endpoint)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}/agent", flush=True)
    # The test holds the other end of the pipe, which closes when the test ends.
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
