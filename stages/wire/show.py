"""One turn whole, for a person to read: every text, argument and result of its byte range, redacted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stages.wire import numbered, tools
from stages.wire.contract import Origin, Redact
from stages.wire.parts import (
    Json,
    count,
    joined,
    ms,
    obj,
    origin_name,
    parse,
    string,
    texts,
    turn_number,
    word,
)

Shown = dict[str, Any]

DEPTH = 100
"""Levels of a call's arguments that are shown; no tool nests them so deep."""
TOO_DEEP = "[nested too deep to show]"


def whole_turn(data: bytes, origin: Origin, redact: Redact, turn_id: int | None = None) -> list[Shown]:
    """The records of one turn from the bytes of its range (``Turn.start`` to ``Turn.end``), in file order.

    Each is a dict with ``kind`` and ``at`` (ms or None) and, by kind: ``prompt`` and ``steer`` ``{origin,
    text}``, ``step`` ``{number}``, ``text`` ``{text}``, ``call`` ``{id, name, args}``, ``result`` ``{id,
    result, text}``, ``compaction`` ``{text}``, ``end`` ``{status, error}``. Thinking and images are left out;
    so are arguments and results of our own calls. With ``turn_id`` only what that turn wrote: another process
    may have interleaved its own. Corrupt lines are passed over.
    """
    reader = _Reader(redact, turn_id)
    for line in data.split(b"\n"):
        record = parse(line) if line.strip() else None
        if type(record) is dict:
            reader.read(record)
    return reader.shown


class _Reader:
    def __init__(self, redact: Redact, turn_id: int | None) -> None:
        self.shown: list[Shown] = []
        self.redact = redact
        self.turn_id = turn_id
        self.own = tools.Own()
        self.own_calls: set[str] = set()
        self.foreign: set[str] = set()
        self.opened = False

    def add(self, kind: str, at: int | None, **fields: Any) -> None:
        self.shown.append({"kind": kind, "at": at, **fields})

    def read(self, record: Json) -> None:
        """Take one record of either dialect."""
        kind = record.get("type")
        if kind is None and "message" in record and record.get("kind") != "event":
            message = obj(record.get("message"))
            self._cli(string(message.get("type")), obj(message.get("payload")), ms(record.get("timestamp")))
        elif type(kind) is str and not kind.startswith(("agent.", "human.")):
            self._code(kind, record, ms(record.get("time")))

    # --- kimi-code -----------------------------------------------------------------------------------------

    def _code(self, kind: str, record: Json, at: int | None) -> None:
        if kind == "context.append_loop_event":
            self._event(obj(record.get("event")), at)
        elif kind == "context.append_message":
            self._message(obj(record.get("message")), at)
        elif self._is_foreign(record.get("turnId")):
            return
        elif kind in ("turn.prompt", "turn.steer"):
            opening = not self.opened
            self.opened = True
            text = self.redact(joined(record.get("input")))
            self.add(
                "prompt" if opening else "steer", at, origin=origin_name(obj(record.get("origin"))), text=text
            )
        elif kind == "context.apply_compaction":
            summary = record.get("summary")
            text = joined(obj(summary).get("content")) if type(summary) is dict else string(summary)
            self.add("compaction", at, text=self.redact(text or string(record.get("contextSummary"))))
        elif kind == "turn.ended":
            error = self.redact(string(obj(record.get("error")).get("message")))
            self.add("end", at, status=word(record.get("reason")), error=error)

    def _is_foreign(self, number: Any) -> bool:
        number = turn_number(number)
        return self.turn_id is not None and number is not None and number != self.turn_id

    def _message(self, message: Json, at: int | None) -> None:
        role = message.get("role")
        if role == "user" and not self.opened:
            self.opened = True
            origin = obj(message.get("origin"))
            self.add(
                "prompt", at, origin=origin_name(origin), text=self.redact(joined(message.get("content")))
            )
        elif role == "assistant":
            for text in texts(message.get("content")):
                self.add("text", at, text=self.redact(text))
            calls = message.get("toolCalls")
            for item in calls if type(calls) is list else ():
                function = obj(obj(item).get("function")) or obj(item)
                self._call(at, obj(item).get("id"), function.get("name"), function.get("arguments"))
        elif role == "tool":
            failed = message.get("isError") is True
            self._result(at, message.get("toolCallId"), joined(message.get("content")), failed)

    def _event(self, event: Json, at: int | None) -> None:
        kind = event.get("type")
        if self._is_foreign(event.get("turnId")):
            if kind == "tool.call":
                self.foreign.add(word(event.get("toolCallId")))
            return
        if kind == "step.begin":
            self.add("step", at, number=count(event.get("step")))
        elif kind == "content.part":
            part = obj(event.get("part"))
            if part.get("type") == "text" and string(part.get("text")):
                self.add("text", at, text=self.redact(string(part.get("text"))))
        elif kind == "tool.call":
            self._call(at, event.get("toolCallId"), event.get("name"), event.get("args"))
        elif kind == "tool.result" and word(event.get("toolCallId")) not in self.foreign:
            result = obj(event.get("result"))
            output = joined(result.get("output"))
            self._result(at, event.get("toolCallId"), output, result.get("isError") is True)

    def _call(self, at: int | None, call_id: Any, name: Any, args: Any) -> None:
        name = word(name)
        if self.own.owns(name):
            self.own_calls.add(word(call_id))
            self.add("call", at, id=word(call_id), name=name, args={})
            return
        if type(args) is str:
            parsed = parse(args.encode("utf-8", "replace"))
            args = parsed if type(parsed) is dict else args
        self.add("call", at, id=word(call_id), name=name, args=_redacted(args, self.redact))

    def _result(self, at: int | None, call_id: Any, output: str, failed: bool) -> None:
        own = word(call_id) in self.own_calls
        text = "" if own else numbered.redacted(output, self.redact)
        self.add("result", at, id=word(call_id), result="error" if failed else "ok", text=text)

    # --- kimi-cli ------------------------------------------------------------------------------------------

    def _cli(self, kind: str, payload: Json, at: int | None) -> None:
        if kind in ("TurnBegin", "SteerInput"):
            opening = kind == "TurnBegin"
            text = self.redact(joined(payload.get("user_input")))
            self.add("prompt" if opening else "steer", at, origin="user", text=text)
        elif kind == "StepBegin":
            self.add("step", at, number=count(payload.get("n")))
        elif kind == "ContentPart" and payload.get("type") == "text":
            self.add("text", at, text=self.redact(string(payload.get("text"))))
        elif kind == "ToolCall":
            function = obj(payload.get("function"))
            self._call(at, payload.get("id"), function.get("name"), string(function.get("arguments")))
        elif kind == "ToolResult":
            value = obj(payload.get("return_value"))
            output = "\n".join(filter(None, (joined(value.get("output")), string(value.get("message")))))
            self._result(at, payload.get("tool_call_id"), output, value.get("is_error") is True)
        elif kind == "TurnEnd":
            self.add("end", at, status="completed", error="")


def _redacted(value: Any, redact: Redact, room: int = DEPTH) -> Any:
    """JSON with every text redacted, names too; a value is shown to the redactor together with its name.

    What is nested deeper than ``room`` is left out with a note: writers of JSON stop at a depth of their own.
    """
    if type(value) is str:
        return redact(value)
    if type(value) not in (list, dict):
        return value
    if not room:
        return TOO_DEEP
    if type(value) is list:
        return [_redacted(item, redact, room - 1) for item in value]
    return dict(_members(value, redact, room - 1))


def _members(value: Json, redact: Redact, room: int) -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        name = redact(key)
        if type(item) is not str:
            yield name, _redacted(item, redact, room)
            continue
        lead = f'"{key}": "'
        together = redact(f'{lead}{item}"')
        if together.startswith(lead) and together.endswith('"'):
            yield name, together[len(lead) : -1]
        else:
            yield name, redact(item)
