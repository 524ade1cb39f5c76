"""Turns made by hand for refining: one line a call, as the splitter would give them."""

from __future__ import annotations

import orjson

from stages.model import FileTouch, Op, Result, Status, Step, ToolCall, Turn

CWD = "/home/dev/proj"


def turn(
    asked: str, *steps: Step, status: Status = "completed", error: str = "", origin: str = "user"
) -> Turn:
    """A turn of a person (or, with another origin, of the engine) with these steps."""
    return Turn(
        position=0,
        turn_id=0,
        origin=origin,
        opening_text=asked,
        user_text=asked if origin == "user" else None,
        steps=steps,
        status=status,
        error=error,
    )


def step(*parts: str | ToolCall) -> Step:
    """A step with these texts and calls."""
    return Step(
        1,
        tuple(part for part in parts if isinstance(part, str)),
        tuple(part for part in parts if isinstance(part, ToolCall)),
    )


def _json(**args: object) -> str:
    return orjson.dumps(args).decode()


def _file(call_id: str, name: str, path: str, op: Op, error: str, args: str) -> ToolCall:
    touch = (FileTouch(path, op, call_id),)
    return ToolCall(call_id, name, args, "error" if error else "ok", error=error, files=touch)


def read(path: str, *, call_id: str = "call_r", error: str = "") -> ToolCall:
    """A Read call."""
    return _file(call_id, "Read", path, "read", error, _json(path=path))


def write(path: str, content: str, *, call_id: str = "call_w", error: str = "") -> ToolCall:
    """A Write call."""
    return _file(call_id, "Write", path, "write", error, _json(path=path, content=content))


def edit(path: str, old: str, new: str, *, call_id: str = "call_e", error: str = "") -> ToolCall:
    """An Edit call."""
    args = _json(path=path, old_string=old, new_string=new)
    return _file(call_id, "Edit", path, "edit", error, args)


def bash(command: str, *, output: str = "", error: str = "", call_id: str = "call_b") -> ToolCall:
    """A Bash call; with ``error`` a failed one."""
    result: Result = "error" if error else "ok"
    return ToolCall(
        call_id, "Bash", _json(command=command), result, error=error, outcome=output, command=command
    )  # fmt: skip


def tool(
    name: str,
    *,
    error: str = "",
    outcome: str = "",
    call_id: str = "call_t",
    own: bool = False,
    **args: object,
) -> ToolCall:
    """Any other call."""
    return ToolCall(
        call_id, name, _json(**args), "error" if error else "ok", error=error, outcome=outcome, own=own
    )
