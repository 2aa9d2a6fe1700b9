"""Talks to a server with OpenAI's SDK: openai_client.py URL

URL ends with `/v1`. Prints one JSON object: for each conversation what the SDK made of the responses.
"""

import json
import sys
from typing import Any

from openai import APIError, NotFoundError, OpenAI, UnprocessableEntityError

SEARCH: Any = {
    "type": "function",
    "function": {
        "name": "search_local_files",
        "description": "Searches for files.",
        "parameters": {"type": "object", "properties": {"keyword": {"type": "string"}}},
    },
}


def asking(content: str) -> list[Any]:
    return [{"role": "user", "content": content}]


def text(client: OpenAI) -> dict[str, Any]:
    whole = client.chat.completions.create(model="demo", messages=asking("count to 3"))
    chunks = list(
        client.chat.completions.create(
            model="demo", messages=asking("count to 3"), stream=True, stream_options={"include_usage": True}
        )
    )
    pieces = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    return {
        "whole": whole.choices[0].message.content,
        "streamed": "".join(pieces),
        "role": chunks[0].choices[0].delta.role,
        "last": len(chunks[-1].choices),
    }


def tools(client: OpenAI) -> dict[str, Any]:
    messages = asking("search for report files locally")
    with client.chat.completions.stream(model="demo", messages=messages, tools=[SEARCH]) as stream:
        asked = stream.get_final_completion().choices[0]
    call = asked.message.tool_calls[0]
    messages.append(asked.message.model_dump(exclude_none=True, include={"role", "content", "tool_calls"}))
    messages.append({"role": "tool", "tool_call_id": call.id, "content": '["report.txt"]'})
    answered = client.chat.completions.create(model="demo", messages=messages, tools=[SEARCH])
    return {
        "reason": asked.finish_reason,
        "call": [call.function.name, json.loads(call.function.arguments)],
        "answer": answered.choices[0].message.content,
    }


def errors(client: OpenAI) -> dict[str, Any]:
    result: dict[str, Any] = {}
    try:
        client.models.retrieve("other")
    except NotFoundError as error:
        result["unknown"] = error.code
    try:
        client.chat.completions.create(model="demo", messages=asking("approve"))
    except UnprocessableEntityError as error:
        result["approval"] = error.code
    try:
        list(client.chat.completions.create(model="demo", messages=asking("fail"), stream=True))
    except APIError as error:
        result["failure"] = error.message
    return result


def main() -> None:
    client = OpenAI(base_url=sys.argv[1], api_key="none is needed")
    results = {"models": [model.id for model in client.models.list()]}
    for conversation in (text, tools, errors):
        results[conversation.__name__] = conversation(client)
    print(json.dumps(results))


main()
