"""Single records of every engine as JSON lines, for hand-made wires in tests."""

from __future__ import annotations

import json
from typing import Any

T0 = 1_796_033_700_000


def line(record: Any) -> bytes:
    """One record as kimi-code writes it: no spaces, non-ASCII raw."""
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def wire(*records: Any) -> bytes:
    """Records as a file; bytes are taken as whole lines."""
    return b"".join(record if isinstance(record, bytes) else line(record) for record in records)


def text(*texts: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": each} for each in texts]


def meta(version: str = "1.5") -> dict[str, Any]:
    return {"type": "metadata", "protocol_version": version, "created_at": T0}


class V1:
    """Records of the v1 engine: no agent ids, no turn ids on ``turn.*``, no end records."""

    def __init__(self) -> None:
        self.at = T0
        self.uuids = 0

    def _stamp(self, kind: str, **fields: Any) -> dict[str, Any]:
        self.at += 10
        return {"type": kind, **fields, "time": self.at}

    def prompt(self, words: str | list[Any], *, kind: str | None = "user", **more: Any) -> dict[str, Any]:
        parts = text(words) if isinstance(words, str) else words
        origin = {"origin": {"kind": kind}} if kind else {}
        return self._stamp("turn.prompt", **{"input": parts, **origin, **more})

    def steer(self, words: str, *, kind: str = "user", **more: Any) -> dict[str, Any]:
        return self._stamp("turn.steer", **{"input": text(words), "origin": {"kind": kind}, **more})

    def message(
        self, words: str | list[Any], *, origin: dict[str, Any] | None = None, role: str = "user", **more: Any
    ) -> dict[str, Any]:
        parts = text(words) if isinstance(words, str) else words
        message = {"role": role, "content": parts, "toolCalls": [], **more}
        if origin is not None:
            message["origin"] = origin
        return self._stamp("context.append_message", message=message)

    def typed(self, words: str, **more: Any) -> dict[str, Any]:
        return self.message(words, origin={"kind": "user"}, **more)

    def event(self, **fields: Any) -> dict[str, Any]:
        return self._stamp("context.append_loop_event", event=fields)

    def begin(self, turn: int, step: int = 1) -> dict[str, Any]:
        self.uuids += 1
        return self.event(type="step.begin", uuid=f"step-{self.uuids}", turnId=str(turn), step=step)

    def _in_step(self, kind: str, turn: int, step: int, **fields: Any) -> dict[str, Any]:
        where = {
            "uuid": f"event-{self.uuids}",
            "turnId": str(turn),
            "step": step,
            "stepUuid": f"step-{self.uuids}",
        }
        return self.event(type=kind, **where, **fields)

    def say(self, turn: int, words: str, step: int = 1) -> dict[str, Any]:
        return self._in_step("content.part", turn, step, part={"type": "text", "text": words})

    def think(self, turn: int, words: str, step: int = 1) -> dict[str, Any]:
        return self._in_step("content.part", turn, step, part={"type": "think", "think": words})

    def call(
        self, turn: int, call_id: str, name: str, args: Any, step: int = 1, **more: Any
    ) -> dict[str, Any]:
        return self._in_step("tool.call", turn, step, toolCallId=call_id, name=name, args=args, **more)

    def result(self, call_id: str, output: Any, **more: Any) -> dict[str, Any]:
        return self.event(
            type="tool.result", parentUuid=call_id, toolCallId=call_id, result={"output": output, **more}
        )

    def end(self, turn: int, step: int = 1, finish: str = "end_turn") -> dict[str, Any]:
        usage = {"inputOther": 100, "output": 20, "inputCacheRead": 5, "inputCacheCreation": 1}
        where = {"uuid": f"step-{self.uuids}", "turnId": str(turn), "step": step}
        return self.event(type="step.end", **where, finishReason=finish, usage=usage)

    def answer(self, turn: int, words: str, step: int = 1) -> list[dict[str, Any]]:
        """A whole step that says something."""
        return [self.begin(turn, step), self.say(turn, words, step), self.end(turn, step)]

    def undo(self, count: int) -> dict[str, Any]:
        return self._stamp("context.undo", count=count)

    def clear(self) -> dict[str, Any]:
        return self._stamp("context.clear")

    def compaction(self, **fields: Any) -> dict[str, Any]:
        return self._stamp("context.apply_compaction", **fields)

    def other(self, kind: str, **fields: Any) -> dict[str, Any]:
        return self._stamp(kind, **fields)


class V2(V1):
    """Records of the v2 engine since 0.43: agent ids, turn ids, end records."""

    def _stamp(self, kind: str, **fields: Any) -> dict[str, Any]:
        return super()._stamp(kind, agentId="main", **fields)

    def opened(self, turn: int, words: str, **more: Any) -> list[dict[str, Any]]:
        """A typed prompt with its message."""
        prompt_id = f"msg_{turn}_{words[:8]}"
        return [
            self.prompt(words, promptId=prompt_id, turnId=turn, **more),
            self.typed(words, id=prompt_id),
        ]

    def ended(self, turn: int, reason: str = "completed", **more: Any) -> dict[str, Any]:
        return self._stamp("turn.ended", turnId=turn, reason=reason, **more)

    def turn(self, turn: int, words: str, answer: str) -> list[dict[str, Any]]:
        """A whole turn of one step."""
        return [*self.opened(turn, words), *self.answer(turn, answer), self.ended(turn)]


def cli(kind: str, at: float = T0 / 1000, **payload: Any) -> bytes:
    """A record of kimi-cli, with Python's spacing."""
    record = {"timestamp": at, "message": {"type": kind, "payload": payload}}
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def cli_meta(version: str = "1.10") -> bytes:
    return json.dumps({"type": "metadata", "protocol_version": version}).encode() + b"\n"
