"""The wire of Kimi Code, protocols 1.0 to 1.5, engines v1 and v2 up to CLI 2.1.0, and migrated mixes (WIRE §1–§9).

The version in line 1 says little: every record is taken for what it is. Most bytes are skipped on the first
bytes of their line (``stages.wire.skipping``); what is left is parsed and dispatched on its ``type``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

from stages.model import Change, Chunk, Copied, Status
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
from stages.wire.skipping import BETWEEN, BREAK, ENDED, IDLE, NOISE, OPEN, TAIL, TELLING, UNDO, USAGE
from stages.wire.turns import OpenStep, OpenTurn

_TIME = re.compile(rb'"time":(\d{13,14})\}\s*$')
_MODEL = re.compile(rb'\{"type":"usage\.record",(?:"agentId":"[^"\\]*",)?"model":"([^"\\]{1,200})"')
_ENDINGS = ("completed", "cancelled", "failed", "blocked")
_NOT_OPENERS = frozenset({"hook_result", "shell_command", "compaction_summary"})


class KimiCode(Fold):
    """Splitter of one kimi-code wire."""

    dialect = "kimi-code"

    def __init__(self, origin: Origin, redact: Redact) -> None:
        super().__init__(origin, redact)
        self.kinds = IDLE
        self.line = 0
        self.steps: dict[str, OpenStep] = {}
        self.v2 = False
        self.started = False
        """A turn record or a step has been seen: what comes before, in a btw wire, is its parent's (WIRE §7)."""
        self.broken = False
        """Something came after the last turn's end that is not its own: later lines are not its either."""
        self.steer: Opener | None = None
        self.message: Opener | None = None
        self.unmatched = 0
        """Steers whose message has not been written yet (v1, v2 up to 0.42: the steer comes first)."""
        self.import_over = not origin.imported
        self.import_at: int | None = None
        self.usage = b"\0"
        self.handlers: dict[str, Callable[[Json], None]] = {
            "context.append_loop_event": self._loop_event,
            "context.append_message": self._append_message,
            "context.apply_compaction": self._apply_compaction,
            "context.clear": self._clear,
            "context.undo": self._undo,
            "forked": self._forked,
            "mcp.tools_discovered": self.own.learn,
            "metadata": self._metadata,
            "subagent.cancelled": self._about_agent,
            "subagent.completed": self._about_agent,
            "subagent.failed": self._about_agent,
            "subagent.spawned": self._spawned,
            "subagent.started": self._about_agent,
            "task.started": self._task_started,
            "task.terminated": self._task_terminated,
            "turn.cancel": self._cancel,
            "turn.ended": self._ended,
            "turn.prompt": self._prompt,
            "turn.steer": self._steered,
        }
        self.events: dict[str, Callable[[Json, int | None], None]] = {
            "content.part": self._content_part,
            "step.begin": self._step_begin,
            "step.end": self._step_end,
            "tool.call": self._tool_call,
            "tool.result": self._tool_result,
        }

    # --- lines ---------------------------------------------------------------------------------------------

    def feed(self, chunk: Chunk) -> list[Change]:
        lines = self.begin_chunk(chunk)
        kinds = self.kinds
        noise = 0
        for number, line in enumerate(lines, self.line0):
            kind = kinds.get(line[9:18])
            if kind is not None:
                if kind == USAGE:
                    if not line.startswith(self.usage):
                        self._usage(line)
                    kind = NOISE if kinds is OPEN else BETWEEN
                if line[-1] != 125:
                    self.counts["corrupt-line"] += 1
                    continue
                if kind == NOISE:
                    noise = number
                    continue
                if kind == BETWEEN:
                    continue
                if kind < TELLING:
                    self._after_end(kind, number, line)
                    kinds = self.kinds
                    continue
                if (kind == UNDO and line[18:19] != b"n") or (
                    kind == TELLING and b'"bootstrap_workspace"' not in line
                ):
                    continue
            elif (
                line[9:18] == b"context.a"
                and line.find(b'"part":{"type":"th', 100, 500) > 0
                and line[-1] == 125
            ):
                noise = number if kinds is OPEN else 0
                continue
            if not line.startswith(b'{"type":"'):
                if line.endswith(b'"kind":"event"}') and line.startswith(b'{"'):
                    noise = number if kinds is OPEN else 0
                    continue
                if not line.strip():
                    continue
            self.noise, self.line = noise, number
            self._record(line)
            kinds = self.kinds
        self.noise = noise
        return self.end_chunk()

    def is_timed_noise(self, line: bytes) -> bool:
        return OPEN.get(line[9:18]) in (NOISE, USAGE) or line.startswith(
            b'{"type":"context.append_loop_event"'
        )

    def _record(self, line: bytes) -> None:
        record = parse(line)
        if type(record) is not dict:
            self.counts["corrupt-line" if record is None else "not-object"] += 1
            return
        kind = record.get("type")
        handler = self.handlers.get(kind) if type(kind) is str else None
        if handler is not None:
            handler(record)
        elif type(kind) is str and (kind.startswith(("agent.", "human.")) or kind[:9].encode() in OPEN):
            return
        else:
            self.count_unknown(kind)
            if self.cur is not None and self.cur.live:
                self.touch(self.cur, self.line, ms(record.get("time")))

    def _after_end(self, kind: int, number: int, line: bytes) -> None:
        if kind == TAIL and self.cur is not None:
            match = _TIME.search(line, max(0, len(line) - 40))
            self.touch(self.cur, number, int(match[1]) if match else None)
        elif kind == BREAK:
            self._break()

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

    def _usage(self, line: bytes) -> None:
        match = _MODEL.match(line)
        if match is None:
            return
        self.usage = match[0]
        self.model = word(match[1].decode("utf-8", "replace"))
        if self.cur is not None and self.cur.live:
            self.cur.model = self.model
            self.cur.dirty = True

    def _metadata(self, record: Json) -> None:
        for key in ("cli_version", "cliVersion", "app_version", "appVersion", "kimi_version"):
            if value := word(record.get(key)):
                self.cli_version = value

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
        """A turn that ``kimi migrate`` wrote has no ids and the time of all others; the first other one, and all
        after it, were added after the import (WIRE §7, §9)."""
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
            opener.remember(turn)
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
            opener.remember(turn)
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
        """Imports of 0.38 have neither ``turn.*`` nor loop events: their prompts open the turns (WIRE §9.10)."""
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

    # --- loop events ---------------------------------------------------------------------------------------

    def _loop_event(self, record: Json) -> None:
        event = record.get("event")
        if type(event) is not dict:
            self.count_unknown("context.append_loop_event")
            return
        kind = event.get("type")
        handler = self.events.get(kind) if type(kind) is str else None
        if handler is None:
            self.count_unknown(kind)
            return
        handler(event, ms(record.get("time")))

    def _step_begin(self, event: Json, at: int | None) -> None:
        number = turn_number(event.get("turnId"))
        turn = self._turn_of_step(number)
        if turn is None:
            turn = self._continue(number, at)
        else:
            self._settled()
        if turn.copied and not self.import_over:
            turn.copied = False
            self._end_import(turn.position)
        uuid = word(event.get("uuid"))
        step = turn.add_step(count(event.get("step")) or len(turn.steps) + 1, uuid)
        turn.by_loop = True
        if uuid:
            self.steps[uuid] = step
        self.touch(turn, self.line, at)

    def _turn_of_step(self, number: int | None) -> OpenTurn | None:
        """The open turn with this id; among twins, the one that waits for its first step (WIRE §9.4, §9.6)."""
        cur = self.cur
        if cur is not None and cur.live and (cur.turn_id is None or number is None):
            if cur.turn_id is None and number is not None:
                self.set_id(cur, number)
            return cur
        twins = [turn for turn in self.live if turn.turn_id == number and turn.live]
        if len(twins) == 1:
            return twins[0]
        if not twins:
            if self.steer is None and self.message is None:
                return next((turn for turn in reversed(self.live) if turn.turn_id == number), None)
            return None
        waiting = [turn for turn in twins if turn.message_seen and not turn.steps]
        return waiting[0] if waiting else min(twins, key=lambda turn: turn.last_line)

    def _continue(self, number: int | None, at: int | None) -> OpenTurn:
        """Open the turn that a step without an open turn belongs to: v1's continuations, tasks and cron jobs."""
        opener = (
            self.steer
            or self.message
            or Opener("unknown", "", None, "", self.line, self.offset(self.line), at)
        )
        old = self.cur
        if old is not None and opener.of == old.position:
            if opener is self.steer and opener.steer and old.steers:
                old.steers.pop()
            self.sync()
            old.last_line, old.last_at = opener.before_line, opener.before_at
            self.noise = 0
            old.dirty = True
        opener.turn_id = number
        for anchor in self.anchors:
            if anchor[4] >= opener.line:
                anchor[:4] = [self.position, 1, 0, 0]
        return self._open(opener)

    def _step_for(self, event: Json) -> OpenStep | None:
        uuid = event.get("stepUuid")
        step = self.steps.get(uuid) if type(uuid) is str else None
        if step is not None:
            return step
        number = turn_number(event.get("turnId"))
        turn = self.cur
        if number is not None and (turn is None or turn.turn_id != number):
            turn = next((t for t in reversed(self.live) if t.turn_id == number), turn)
        if turn is None:
            return None
        wanted = event.get("step")
        return next((s for s in reversed(turn.steps) if s.number == wanted), None) or (
            turn.steps[-1] if turn.steps else turn.add_step(count(wanted) or 1, "")
        )

    def _content_part(self, event: Json, at: int | None) -> None:
        step = self._step_for(event)
        if step is None or step.turn is None:
            return
        part = event.get("part")
        if type(part) is dict and part.get("type") == "text":
            text = part.get("text")
            if type(text) is str and text:
                self.add_part(step.turn, step, text)
        self.touch(step.turn, self.line, at)

    def _tool_call(self, event: Json, at: int | None) -> None:
        step = self._step_for(event)
        if step is None or step.turn is None:
            return
        call_id = word(event.get("toolCallId"))
        self.start_call(
            step.turn,
            step,
            call_id,
            word(event.get("name")),
            event.get("args", {}),
            obj(event.get("display")),
        )
        self.touch(step.turn, self.line, at)

    def _tool_result(self, event: Json, at: int | None) -> None:
        found = self.waiting_call(word(event.get("toolCallId")))
        if found is None:
            self.counts["orphan-result"] += 1
            if self.cur is not None and self.cur.live:
                self.touch(self.cur, self.line, at)
            return
        turn, call = found
        result = obj(event.get("result"))
        duration = result.get("durationMs")
        self.finish_call(
            turn,
            call,
            without_system(joined(result.get("output"))),
            failed=result.get("isError") is True,
            duration=count(duration) if duration is not None else None,
        )
        self.touch(turn, self.line, at)

    def _step_end(self, event: Json, at: int | None) -> None:
        uuid = word(event.get("uuid"))
        step = self.steps.pop(uuid, None) or self._step_for(event)
        if step is None or step.turn is None:
            return
        turn = step.turn
        step.finish = word(event.get("finishReason"))
        step.uuid = ""
        usage = event.get("usage")
        if type(usage) is dict:
            turn.tokens_in += count(usage.get("inputOther"))
            turn.tokens_in += count(usage.get("inputCacheRead")) + count(usage.get("inputCacheCreation"))
            turn.tokens_out += count(usage.get("output"))
        turn.dirty = True
        self.touch(turn, self.line, at)

    # --- the past, and other files -------------------------------------------------------------------------

    def _undo(self, record: Json) -> None:
        if self.kinds is ENDED:
            self._break()
        self.undo(
            count(record.get("count")), ms(record.get("time")), v1=not self.v2 and "agentId" not in record
        )

    def _clear(self, record: Json) -> None:
        self.build_wall()

    def _apply_compaction(self, record: Json) -> None:
        """Three shapes (WIRE §6); without ``keptUserMessageCount`` the tail of the context stays behind the summary."""
        if self.kinds is ENDED:
            self._break()
        summary = record.get("summary")
        text = joined(obj(summary).get("content")) if type(summary) is dict else string(summary)
        text = text or string(record.get("contextSummary"))
        if text:
            self.add_compaction(text)
        tail = record.get("legacyTail") is True or "keptUserMessageCount" not in record
        self.build_wall(self.here()[0] if tail else None)

    def _forked(self, record: Json) -> None:
        self.mark_copied()
        self.import_over = True
        self._mode()

    def _spawned(self, record: Json) -> None:
        self._link(record.get("parentToolCallId"), record.get("subagentId"))
        self._touch_current(record)

    def _about_agent(self, record: Json) -> None:
        self._touch_current(record)

    def _task_started(self, record: Json) -> None:
        info = obj(record.get("info"))
        self._link(info.get("parentToolCallId"), info.get("agentId"))
        self._touch_current(record)

    def _task_terminated(self, record: Json) -> None:
        """A background agent's end belongs to the turn that called it, a process's end to none (WIRE §7)."""
        if self.kinds is OPEN or obj(record.get("info")).get("kind") == "agent":
            self._touch_current(record)
        elif self.kinds is ENDED:
            self._break()

    def _link(self, call_id: Any, agent_id: Any) -> None:
        found = self.find_call(word(call_id)) if word(call_id) and word(agent_id) else None
        if found is not None:
            self.spawn(*found, word(agent_id))

    # --- saved state ---------------------------------------------------------------------------------------

    def more_state(self) -> Json:
        return {
            "v2": self.v2,
            "started": self.started,
            "broken": self.broken,
            "steer": self.steer.dump(self.redact) if self.steer else None,
            "message": self.message.dump(self.redact) if self.message else None,
            "unmatched": self.unmatched,
            "import": [self.import_over, self.import_at],
        }

    def load_more(self, more: Json) -> None:
        self.v2, self.started, self.broken = more["v2"], more["started"], more["broken"]
        self.steer = Opener.load(more["steer"]) if more["steer"] else None
        self.message = Opener.load(more["message"]) if more["message"] else None
        self.unmatched = more["unmatched"]
        self.import_over, self.import_at = more["import"]
        self.steps = {step.uuid: step for turn in self.live for step in turn.steps if step.uuid}
        self.handlers["mcp.tools_discovered"] = self.own.learn
        self._mode()


def _arguments(value: Any) -> Any:
    """Arguments as an object: the 1.0 form holds them as JSON text (WIRE §1)."""
    if type(value) is str:
        parsed = parse(value.encode("utf-8", "replace"))
        return parsed if type(parsed) is dict else value
    return value
