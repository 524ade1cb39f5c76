"""The wire of kimi-cli (``~/.kimi``): timestamped messages, turns without ids (WIRE §11)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from stages.model import Change, Chunk
from stages.wire import caps
from stages.wire.contract import Origin, Redact
from stages.wire.fold import Fold
from stages.wire.openers import opener_of
from stages.wire.parts import Json, clean, count, joined, ms, obj, parse, string, texts, word
from stages.wire.turns import OpenCall, OpenStep, OpenTurn

_TYPE = re.compile(rb'\{"timestamp": [0-9.eE+-]+, "message": \{"type": "(\w+)"')
_NESTED = re.compile(
    rb'\{"timestamp": [0-9.eE+-]+, "message": \{"type": "SubagentEvent", "payload": \{'
    rb'"(?:parent|task)_tool_call_id": "([^"\\]*)"(?:, "agent_id": "([^"\\]*)")?'
)
_NOISE = frozenset(
    b"ApprovalRequest ApprovalResponse ApprovalRequestResolved BtwBegin BtwEnd CompactionBegin CompactionEnd"
    b" HookRequest HookResolved HookTriggered MCPLoadingBegin MCPLoadingEnd MCPStatusSnapshot Notification"
    b" PlanDisplay QuestionRequest ToolCallRequest".split()
)
_WITHOUT_END = (1, 2)
"""Before this protocol version no turn has an end record."""
_FRAGMENTS = 1_000_000


class KimiCli(Fold):
    """Splitter of one kimi-cli wire."""

    dialect = "kimi-cli"

    def __init__(self, origin: Origin, redact: Redact) -> None:
        super().__init__(origin, redact)
        self.line = 0
        self.protocol = (1, 1)
        self.ends_seen = False
        self.interrupted = False
        self.fragment: tuple[OpenTurn, OpenCall, str] | None = None
        self.linked: set[tuple[str, str]] = set()
        self.handlers: dict[str, Callable[[Json, int | None], None]] = {
            "ContentPart": self._content_part,
            "StatusUpdate": self._status_update,
            "SteerInput": self._steer_input,
            "StepBegin": self._step_begin,
            "StepInterrupted": self._step_interrupted,
            "StepRetry": self._step_retry,
            "SubagentEvent": self._subagent_event,
            "ToolCall": self._tool_call,
            "ToolCallPart": self._tool_call_part,
            "ToolResult": self._tool_result,
            "TurnBegin": self._turn_begin,
            "TurnEnd": self._turn_end,
        }

    # --- lines ---------------------------------------------------------------------------------------------

    def feed(self, chunk: Chunk) -> list[Change]:
        for number, line in enumerate(self.begin_chunk(chunk), self.line0):
            match = _TYPE.match(line)
            if match is not None and line.endswith(b"}}}"):
                if match[1] in _NOISE or (match[1] == b"SubagentEvent" and self._known_link(line)):
                    self.noise = number
                    continue
            elif not line.strip():
                continue
            self.line = number
            self._record(line)
        return self.end_chunk()

    def is_timed_noise(self, line: bytes) -> bool:
        return False

    def sync(self) -> None:
        """Skipped lines inside a turn carry their time in front."""
        turn = self.cur
        if turn is not None and turn.live and self.noise > turn.last_line:
            number = self._lines[self.noise - self.line0][14:].split(b",", 1)[0]
            turn.last_line = self.noise
            try:
                turn.last_at = ms(float(number)) or turn.last_at
            except ValueError:
                return

    def _known_link(self, line: bytes) -> bool:
        """Sub-agents write their own wires; the copies here only tell which call started them."""
        match = _NESTED.match(line)
        return match is not None and (
            match[2] is None or (match[1].decode(), match[2].decode()) in self.linked
        )

    def _record(self, line: bytes) -> None:
        record = parse(line)
        if type(record) is not dict:
            self.counts["corrupt-line" if record is None else "not-object"] += 1
            return
        if record.get("type") == "metadata":
            self._metadata(record)
            return
        message = obj(record.get("message"))
        kind = message.get("type")
        handler = self.handlers.get(kind) if type(kind) is str else None
        if handler is not None:
            if kind != "ToolCallPart":
                self._end_fragment()
            handler(obj(message.get("payload")), ms(record.get("timestamp")))
        elif type(kind) is not str or kind.encode("utf-8", "replace") not in _NOISE:
            self.count_unknown(kind)

    def _metadata(self, record: Json) -> None:
        numbers = string(record.get("protocol_version")).split(".")
        if len(numbers) == 2 and all(n.isascii() and n.isdecimal() and len(n) < 6 for n in numbers):
            self.protocol = (int(numbers[0]), int(numbers[1]))

    # --- turns ---------------------------------------------------------------------------------------------

    def _turn_begin(self, payload: Json, at: int | None) -> None:
        opener = opener_of(payload.get("user_input"), {}, self.line, self.offset(self.line), at)
        opener.turn_id = self.position
        opener.prepare(self.redact)
        self._imply_end()
        self.open_turn(opener.turn(self.position, v2=True))
        self.interrupted = False

    def _imply_end(self) -> None:
        """Before protocol 1.2 turns had no end record: one that has an answer was complete."""
        turn = self.cur
        if turn is None or not turn.live:
            return
        self.sync()
        if self._is_complete(turn):
            turn.status = "completed"

    def _is_complete(self, turn: OpenTurn) -> bool:
        old = not self.ends_seen and self.protocol < _WITHOUT_END
        return old and not self.interrupted and bool(turn.steps) and bool(turn.steps[-1].parts)

    def _turn_end(self, payload: Json, at: int | None) -> None:
        self.ends_seen = True
        turn = self.cur
        if turn is None or not turn.live:
            self.counts["orphan-end"] += 1
            return
        self.touch(turn, self.line, at)
        self.end_turn(turn, "cancelled" if self.interrupted else "completed", at)

    def _steer_input(self, payload: Json, at: int | None) -> None:
        turn = self._turn()
        if turn is None:
            return
        text = clean(texts(payload.get("user_input")))
        self.add_steer(turn, caps.clip(text, *caps.STEER, self.redact), "user", True, at)
        self.touch(turn, self.line, at)

    def _turn(self) -> OpenTurn | None:
        return self.cur if self.cur is not None and self.cur.live else None

    def _step(self) -> OpenStep | None:
        """The running step; soul commands answer without one (WIRE §11)."""
        turn = self._turn()
        if turn is None:
            return None
        return turn.steps[-1] if turn.steps else turn.add_step(1, "")

    def _step_begin(self, payload: Json, at: int | None) -> None:
        if (turn := self._turn()) is not None:
            turn.add_step(count(payload.get("n")) or len(turn.steps) + 1, "")
            turn.by_loop = True
            self.interrupted = False
            self.touch(turn, self.line, at)

    def _step_interrupted(self, payload: Json, at: int | None) -> None:
        self._mark_step("interrupted", at)
        self.interrupted = True

    def _step_retry(self, payload: Json, at: int | None) -> None:
        self._mark_step("error", at)

    def _mark_step(self, finish: str, at: int | None) -> None:
        if (turn := self._turn()) is not None:
            if turn.steps:
                turn.steps[-1].finish = finish
                turn.dirty = True
            self.touch(turn, self.line, at)

    def _content_part(self, payload: Json, at: int | None) -> None:
        step = self._step()
        if step is None or step.turn is None:
            return
        text = payload.get("text")
        if payload.get("type") == "text" and type(text) is str and text:
            self.add_part(step.turn, step, text)
        self.touch(step.turn, self.line, at)

    def _status_update(self, payload: Json, at: int | None) -> None:
        turn = self._turn()
        if turn is None:
            return
        usage = obj(payload.get("token_usage"))
        turn.tokens_in += count(usage.get("input_other")) + count(usage.get("input_cache_read"))
        turn.tokens_in += count(usage.get("input_cache_creation"))
        turn.tokens_out += count(usage.get("output"))
        turn.dirty = True
        self.touch(turn, self.line, at)

    # --- calls ---------------------------------------------------------------------------------------------

    def _tool_call(self, payload: Json, at: int | None) -> None:
        step = self._step()
        if step is None or step.turn is None:
            return
        function = obj(payload.get("function"))
        raw = string(function.get("arguments"))
        call = self.start_call(
            step.turn, step, word(payload.get("id")), word(function.get("name")), _arguments(raw), {}
        )
        self.fragment = (step.turn, call, raw)
        self.touch(step.turn, self.line, at)

    def _tool_call_part(self, payload: Json, at: int | None) -> None:
        """A fragment of the last call's arguments."""
        if self.fragment is None:
            self.counts["orphan-fragment"] += 1
            return
        turn, call, raw = self.fragment
        if len(raw) < _FRAGMENTS:
            self.fragment = (turn, call, raw + string(payload.get("arguments_part")))
        self.touch(turn, self.line, at)

    def _end_fragment(self) -> None:
        if self.fragment is None:
            return
        turn, call, raw = self.fragment
        self.fragment = None
        if raw:
            turn.dirty = True
            self.fill_call(turn, call, _arguments(raw), {})

    def _tool_result(self, payload: Json, at: int | None) -> None:
        found = self.waiting_call(word(payload.get("tool_call_id")))
        if found is None:
            self.counts["orphan-result"] += 1
            return
        turn, call = found
        value = obj(payload.get("return_value"))
        output = joined(value.get("output"))
        failed = value.get("is_error") is True
        if failed and (message := string(value.get("message"))) and message not in output:
            output = f"{output.rstrip()}\n{message}" if output.strip() else message
        self.finish_call(turn, call, output, failed=failed, duration=None)
        self.touch(turn, self.line, at)

    def _subagent_event(self, payload: Json, at: int | None) -> None:
        call_id = word(payload.get("parent_tool_call_id")) or word(payload.get("task_tool_call_id"))
        agent_id = word(payload.get("agent_id"))
        if (turn := self._turn()) is not None:
            self.touch(turn, self.line, at)
        if not call_id or not agent_id or len(self.linked) >= caps.CALLS:
            return
        self.linked.add((call_id, agent_id))
        if found := self.find_call(call_id):
            self.spawn(*found, agent_id)

    # --- saved state ---------------------------------------------------------------------------------------

    def provisional(self) -> list[Change]:
        return super().provisional()

    def more_state(self) -> Json:
        """An unfinished call's raw arguments are saved redacted, like all else."""
        fragment = None
        if self.fragment is not None and self.cur is not None:
            fragment = [self.fragment[1].id, self.redact(self.fragment[2])]
        return {
            "protocol": self.protocol,
            "ends_seen": self.ends_seen,
            "interrupted": self.interrupted,
            "fragment": fragment,
        }

    def load_more(self, more: Json) -> None:
        self.protocol = (more["protocol"][0], more["protocol"][1])
        self.ends_seen, self.interrupted = more["ends_seen"], more["interrupted"]
        if more["fragment"] is not None and (found := self.find_call(more["fragment"][0])):
            self.fragment = (*found, more["fragment"][1])


def _arguments(raw: str) -> Any:
    """The value of an arguments text; what is no JSON is kept as text."""
    if not raw:
        return {}
    value = parse(raw.encode("utf-8", "replace"))
    return raw if value is None else value
