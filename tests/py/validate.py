"""Checks events of agui-server against the models of the Python package ag-ui-protocol.

    python validate.py CAPTURED_FOLDER CORPUS_FOLDER

CAPTURED_FOLDER is written by `node run.mjs` in tests/js, CORPUS_FOLDER by `cargo test --test rooms protocol::corpus`. A model
must accept each event, declare all its members, and serialize to the same JSON. Prints the problems, and exits with 1
if there are any.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ag_ui.core import Event
from pydantic import BaseModel, TypeAdapter, ValidationError

EVENTS: TypeAdapter[BaseModel] = TypeAdapter(Event)


def problems_of(text: str) -> Iterator[str]:
    """Yields the problems of one event, given as JSON."""
    try:
        event = EVENTS.validate_json(text)
    except ValidationError as error:
        for issue in error.errors(include_url=False, include_input=False):
            yield f"/{'/'.join(map(str, issue['loc']))}: {issue['msg']}"
        return
    # The models keep undeclared members, so the comparison below does not find them.
    yield from (f"{path}: the model has no such member" for path in unknown_members(event, ""))
    sent = json.loads(text)
    # exclude_none=True would also drop a required null, as in CUSTOM.value. The package's serializer, which runs here,
    # leaves out optional members only.
    returned = json.loads(event.model_dump_json(by_alias=True))
    if not same(returned, sent):
        yield f"came back as {json.dumps(returned, ensure_ascii=False)}"


def unknown_members(value: Any, path: str) -> Iterator[str]:
    """Yields the paths of members that no model declares. Plain dicts are open JSON, where any member is allowed."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from unknown_members(item, f"{path}/{index}")
    elif isinstance(value, BaseModel):
        yield from (f"{path}/{name}" for name in value.model_extra or ())
        for name in type(value).model_fields:
            yield from unknown_members(getattr(value, name), f"{path}/{name}")


def same(one: Any, other: Any) -> bool:
    """Compares two JSON values. Python's == is not enough: True == 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)


def captured(folder: Path) -> Iterator[tuple[str, str]]:
    """Yields the events of captured runs, each with its file and line."""
    for file in sorted(folder.glob("*.jsonl")):
        # splitlines() would also split at U+2028 and others, which JSON strings may contain unescaped.
        lines = file.read_text(encoding="utf-8").split("\n")
        yield from ((f"{file.name}:{number}", line) for number, line in enumerate(lines, 1) if line)


def corpus(folder: Path) -> Iterator[tuple[str, str]]:
    """Yields the events of the corpus, single events and those of streams, each with a name."""
    for case in json.loads((folder / "events.json").read_text(encoding="utf-8")):
        yield f"event {case['name']}", json.dumps(case["json"])
    for case in json.loads((folder / "streams.json").read_text(encoding="utf-8")):
        for index, event in enumerate(case["events"]):
            yield f"stream {case['name']}, event {index}", json.dumps(event)


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    folders = {"captured": (captured, "node run.mjs"), "corpus": (corpus, "cargo test --test rooms protocol::corpus")}
    problems: list[str] = []
    for (name, (read, writer)), argument in zip(folders.items(), arguments, strict=True):
        count = 0
        try:
            for count, (place, text) in enumerate(read(Path(argument)), 1):
                problems.extend(f"{place}: {problem}\n    {text}" for problem in problems_of(text))
        except OSError as error:
            problems.append(f"{name}: {error} (`{writer}` writes it)")
        else:
            # An empty folder means that the writer did not run.
            if count == 0:
                problems.append(f"{name}: no events in {argument} (`{writer}` writes them)")
        print(f"{name}: {count} events checked")
    print("\n".join(problems) or "no problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
