"""Turns of kimi-code wires: what opens, steers and ends one, and messages (WIRE §4.1, §4.2, §5)."""

from __future__ import annotations

from typing import Any, cast

from stages.model import Copied, Status
from stages.wire import caps
from stages.wire.contract import Origin, Redact
from stages.wire.fold import Fold
from stages.wire.openers import Opener, opener_of
from stages.wire.parts import (
    Json,
    count,
    is_anchor,
    is_human,
    joined,
    ms,
    obj,
    origin_name,
    parse,
    string,
    texts,
    turn_number,
    user_text,
    without_system,
    word,
)
from stages.wire.skipping import ENDED, IDLE, OPEN
from stages.wire.turns import OpenStep, OpenTurn

_ENDINGS = ("completed", "cancelled", "failed", "blocked")
_NOT_OPENERS = frozenset({"hook_result", "shell_command", "compaction_summary"})


class CodeTurns(Fold):
    """The part of the splitter that knows turns and messages. ``line``: number of the line being read."""

    def __init__(self, origin: Origin, redact: Redact) -> None:
        super().__init__(origin, redact)
        self.kinds = IDLE
        self.line = 0
        self.steps: dict[str, OpenStep] = {}
        """Running steps by uuid."""
        self.v2 = False
        self.started = False
        """A turn record or a step has been seen: before it, a btw wire is its parent's (WIRE §7)."""
        self.broken = False
        """Something came after the last turn's end that is not its own: later lines are not its either."""
        self.steer: Opener | None = None
        self.message: Opener | None = None
        self.unmatched = 0
        """Steers whose message has not been written yet (v1, v2 up to 0.42: the steer comes first)."""
        self.import_over = not origin.imported
        self.import_at: int | None = None

    def _break(self) -> None:
        self.broken = True
        self._mode()

    def _mode(self) -> None:
        turn = self.cur
        if turn is None:
            self.kinds = IDLE
        elif turn.live:
            self.kinds = OPEN
        else:
            self.kinds = IDLE if self.broken else ENDED

    def _touch_current(self, record: Json) -> None:
        """A record inside the current turn, or in its tail."""
        if self.cur is not None and self.kinds is not IDLE:
            self.touch(self.cur, self.line, ms(record.get("time")))

    # --- turns ---------------------------------------------------------------------------------------------

    def _prompt(self, record: Json) -> None:
        self.v2 = self.v2 or "agentId" in record
        opener = opener_of(
            record.get("input"),
            obj(record.get("origin")),
            self.line,
            self.offset(self.line),
            ms(record.get("time")),
        )
        opener.turn_id = turn_number(record.get("turnId"))
        opener.prompt_id = word(record.get("promptId")) or None
        self._open(opener)

    def _open(self, opener: Opener) -> OpenTurn:
        opener.prepare(self.redact)
        turn = opener.turn(self.position, self.v2 or opener.turn_id is not None)
        self._note_import(turn)
        self.broken = False
        self.open_turn(turn)
        self._settled()
        self._mode()
        return turn

    def _settled(self) -> None:
        self.started = True
        self.steer = self.message = None
        self.unmatched = 0
        self.steps = (
            {uuid: step for uuid, step in self.steps.items() if step.turn in self.live} if self.steps else {}
        )

    def _note_import(self, turn: OpenTurn) -> None:
        """A turn that ``kimi migrate`` wrote has no ids and the time of all others; the first other one and
        all after it were added after the import (WIRE §7, §9)."""
        if self.import_over:
            return
        if self.position == 0:
            self.import_at = turn.started_at
        same_time = turn.started_at is None or turn.started_at == self.import_at
        if turn.turn_id is None and turn.prompt_id is None and same_time:
            turn.copied = True
        else:
            self._end_import(self.position)

    def _end_import(self, before: int) -> None:
        self.import_over = True
        self._changes.append(Copied(before))

    def _ended(self, record: Json) -> None:
        self.v2 = True
        at = ms(record.get("time"))
        turn = self._turn_to_end(turn_number(record.get("turnId")), at, count(record.get("durationMs")))
        if turn is None:
            self.counts["orphan-end"] += 1
            return
        error = obj(record.get("error"))
        if message := string(error.get("message")):
            turn.error = caps.clip(message, caps.ERROR, 0, self.redact)
        reason = record.get("reason")
        status = cast(Status, reason) if reason in _ENDINGS else ("failed" if error else "completed")
        self.touch(turn, self.line, at)
        self.end_turn(turn, status, at)
        self._mode()

    def _turn_to_end(self, number: int | None, at: int | None, duration: int) -> OpenTurn | None:
        cur = self.cur
        if cur is not None and cur.live and (cur.turn_id is None or number is None):
            if cur.turn_id is None and number is not None:
                self.set_id(cur, number)
            return cur
        twins = [turn for turn in self.live if turn.live and turn.turn_id == number]
        if len(twins) < 2 or at is None:
            return twins[-1] if twins else None
        return min(twins, key=lambda turn: abs((turn.started_at or 0) - (at - duration)))

    def _cancel(self, record: Json) -> None:
        number = turn_number(record.get("turnId"))
        if record.get("target") == "queued" and number is not None:
            self.next_id = max(self.next_id, number + 1)
        self._touch_current(record)

    def _steered(self, record: Json) -> None:
        origin = obj(record.get("origin"))
        at = ms(record.get("time"))
        number = turn_number(record.get("turnId"))
        turn = self.cur if self.cur is not None and self.cur.live else None
        if number is not None:
            turn = next((t for t in reversed(self.live) if t.live and t.turn_id == number), turn)
        opener = opener_of(record.get("input"), origin, self.line, self.offset(self.line), at)
        human = is_human(origin) and origin.get("kind") != "retry"
        if turn is not None:
            self.sync()
            opener.remember(turn, self.end_of(turn))
            if not turn.steps and not human and turn.origin == origin_name(origin):
                opener.steer = False  # v2 up to 0.38 repeats an engine turn's prompt as a steer (WIRE §5)
            else:
                kept = (
                    user_text(record.get("input"), origin)
                    if human or "skillName" in origin
                    else joined(record.get("input"))
                )
                self.add_steer(
                    turn, caps.clip(kept, *caps.STEER, self.redact), origin_name(origin), human, at
                )
                if not word(record.get("messageId")):
                    self.unmatched += 1
            self.touch(turn, self.line, at)
        elif self.kinds is ENDED:
            self._break()
        if number is None and not word(record.get("messageId")):
            self.steer = opener

    # --- messages ------------------------------------------------------------------------------------------

    def _append_message(self, record: Json) -> None:
        if self.origin.context_copied and not self.started:
            return
        message = obj(record.get("message"))
        origin = obj(message.get("origin"))
        role = message.get("role")
        kind = origin.get("kind")
        if kind == "injection":
            self._touch_current(record)
        elif kind in _NOT_OPENERS if type(kind) is str else False:
            if kind == "shell_command" and self.kinds is ENDED:
                self._break()
        elif role == "user":
            self._user_message(record, message, origin)
        elif role == "assistant":
            self._assistant_message(record, message)
        elif role == "tool":
            self._tool_message(record, message)

    def _user_message(self, record: Json, message: Json, origin: Json) -> None:
        at = ms(record.get("time"))
        turn = self.cur
        if turn is not None and self._is_own(turn, word(message.get("id"))):
            turn.message_seen = True
            self.touch(turn, self.line, at)
            if is_anchor(origin):
                self.anchors.append([turn.position, 1, 0, 0, self.line])
            return
        opener = opener_of(message.get("content"), origin, self.line, self.offset(self.line), at)
        if is_anchor(origin):
            if not self.started and (self.origin.imported or not origin):
                self._opened_by_message(opener)
                return
            self._anchor()
        if turn is not None and turn.live:
            self.sync()
            opener.remember(turn, self.end_of(turn))
            self.touch(turn, self.line, at)
        elif self.kinds is ENDED:
            self._break()
        if origin.get("inTurn") is not True:
            self.message = opener

    @staticmethod
    def _is_own(turn: OpenTurn, message_id: str) -> bool:
        if not turn.live or turn.message_seen or turn.steps:
            return False
        return turn.prompt_id is None or turn.prompt_id == message_id

    def _anchor(self) -> None:
        place = self.here()
        if not place[1]:
            place[3] = max(0, place[3] - self.unmatched)
            self.unmatched = max(0, self.unmatched - 1)
        self.anchors.append([*place, self.line])

    def _opened_by_message(self, opener: Opener) -> None:
        """Imports of 0.38 have neither ``turn.*`` nor loop events: their prompts open turns (WIRE §9.10)."""
        turn = self._open(opener)
        self.started = False
        turn.message_seen = True
        self.anchors.append([turn.position, 1, 0, 0, self.line])

    def _assistant_message(self, record: Json, message: Json) -> None:
        """Imports and 1.0 files: a whole response in one message (WIRE §7)."""
        turn = self.cur
        if turn is None or not turn.live or turn.by_loop:
            return
        step = turn.add_step(len(turn.steps) + 1, "")
        for text in texts(message.get("content")):
            if text:
                self.add_part(turn, step, text)
        calls = message.get("toolCalls")
        for item in calls if type(calls) is list else ():
            call = obj(item)
            function = obj(call.get("function"))
            name = word(call.get("name")) or word(function.get("name"))
            args = call.get("arguments", call.get("args", function.get("arguments")))
            if call_id := word(call.get("id")):
                self.start_call(turn, step, call_id, name, _arguments(args), {})
        self.touch(turn, self.line, ms(record.get("time")))

    def _tool_message(self, record: Json, message: Json) -> None:
        found = self.waiting_call(word(message.get("toolCallId")))
        if found is None or found[0].by_loop:
            return
        turn, call = found
        output = joined(message.get("content"))
        failed = message.get("isError") is True or output.startswith("<system>ERROR")
        self.finish_call(turn, call, without_system(output), failed=failed, duration=None)
        self.touch(turn, self.line, ms(record.get("time")))


def _arguments(value: Any) -> Any:
    """Arguments as an object: the 1.0 form holds them as JSON text (WIRE §1)."""
    if type(value) is str:
        parsed = parse(value.encode("utf-8", "replace"))
        return parsed if type(parsed) is dict else value
    return value
