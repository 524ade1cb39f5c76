"""A second, independent look at a wire: which files its tools wrote and which calls failed, by turn number.

Reads the JSON lines directly (wire format notes §4, §5), shares no code with the splitter, and understands
only ordinary sessions of kimi-code 0.40 and later: one prompt, one turn.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

WRITERS = {"Write", "Edit", "WriteFile", "StrReplaceFile"}


@dataclass(slots=True)
class RawTurn:
    """What the wire shows of one turn: paths written by file tools, failed and good calls."""

    number: int
    written: set[str] = field(default_factory=set)
    failed: int = 0
    calls: int = 0


def raw_turns(wire: Path, cwd: str | None) -> list[RawTurn]:
    """The turns of a wire in order of their prompts; later prompts of one number are turns of their own."""
    turns: list[RawTurn] = []
    by_number: dict[int, RawTurn] = {}
    calls: dict[str, tuple[RawTurn, str]] = {}
    for line in wire.read_bytes().split(b"\n"):
        if not line.startswith(b'{"type"'):
            continue
        record = json.loads(line)
        if record["type"] == "turn.prompt":
            turns.append(RawTurn(record.get("turnId", len(turns))))
            by_number[turns[-1].number] = turns[-1]
        event = record.get("event") or {}
        if event.get("type") == "tool.call":
            turn = by_number.get(int(event.get("turnId", -1)))
            if turn is not None:
                turn.calls += 1
                calls[event["toolCallId"]] = (turn, _path(event, cwd))
        elif event.get("type") == "tool.result" and event["toolCallId"] in calls:
            turn, path = calls.pop(event["toolCallId"])
            if event["result"].get("isError"):
                turn.failed += 1
            elif path:
                turn.written.add(path)
    return turns


def _path(event: dict[str, object], cwd: str | None) -> str:
    args, display = event.get("args"), event.get("display")
    if event.get("name") not in WRITERS or not isinstance(args, dict):
        return ""
    path = (display.get("path") if isinstance(display, dict) else None) or args.get("path") or ""
    below = cwd and PurePosixPath(path).is_relative_to(cwd)
    return str(PurePosixPath(path).relative_to(cwd)) if below and cwd else str(path)
