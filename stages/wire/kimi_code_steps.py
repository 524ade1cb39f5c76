"""Steps of kimi-code wires: responses, tool calls and their results (WIRE §4.3).

Three records in four are loop events, so the most frequent ones are read by patterns on their raw bytes where
those prove to be what the engine writes; everything else is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from stages.wire import caps, tools
from stages.wire.contract import Origin, Redact
from stages.wire.kimi_code_turns import CodeTurns
from stages.wire.openers import Opener
from stages.wire.parts import Json, count, joined, ms, obj, parse, turn_number, without_system, word
from stages.wire.turns import OpenCall, OpenStep, OpenTurn

LOOP_EVENT = re.compile(rb'\{"type":"context\.append_loop_event",(?:"agentId":"[^"\\]*",)?"event":\{"type":"')
_ID = rb'"([^"\\]{1,200})"'
_STEP_BEGIN = re.compile(
    rb'step\.begin","uuid":' + _ID + rb',"turnId":"(\d{1,15})","step":(\d{1,9})\},"time":(\d{13})\}$'
)
_STEP_END = re.compile(
    rb'step\.end","uuid":' + _ID + rb',"turnId":"\d{1,15}","step":\d{1,9},"finishReason":"(\w{1,40})"'
    rb'(?:,"usage":\{"inputOther":(\d{1,15}),"output":(\d{1,15}),"inputCacheRead":(\d{1,15})'
    rb',"inputCacheCreation":(\d{1,15})\})?[,}]'
)
_CONTENT_PART = re.compile(
    rb'content\.part","uuid":"[^"\\]*","turnId":"\d{1,15}","step":\d{1,9},"stepUuid":'
    + _ID
    + rb',"part":\{"type":"text","text":"'
)
_TOOL_CALL = re.compile(
    rb'tool\.call","uuid":"[^"\\]*","turnId":"\d{1,15}","step":\d{1,9},"stepUuid":'
    + _ID
    + rb',"toolCallId":'
    + _ID
    + rb',"name":'
    + _ID
    + rb',"args":\{'
)
_DISPLAY = b',"display":{"kind":"'
_FILE_IO = re.compile(rb'file_io","operation":"(\w+)","path":"([^"\\]*)"')


class CodeSteps(CodeTurns):
    """The part of the splitter that knows steps."""

    def __init__(self, origin: Origin, redact: Redact) -> None:
        super().__init__(origin, redact)
        self.events: dict[str, Callable[[Json, int | None], None]] = {
            "content.part": self._content_part,
            "step.begin": self._step_begin,
            "step.end": self._step_end,
            "tool.call": self._tool_call,
            "tool.result": self._tool_result,
        }
        self.shortcuts: dict[bytes, Callable[[bytes, int], bool]] = {
            b"step.b": self._short_step_begin,
            b"step.e": self._short_step_end,
            b"conten": self._short_content_part,
            b"tool.c": self._short_tool_call,
        }

    # --- shortcuts -----------------------------------------------------------------------------------------
    # Each reads ``line`` from ``start`` (the event's type) and is true if that was all; if false, nothing has
    # been done and the line has to be parsed. A quote inside a JSON string is escaped, so a pattern that ends
    # on bare quotes and braces cannot match inside one.

    def _short_step_begin(self, line: bytes, start: int) -> bool:
        turn = self.cur
        if (
            turn is None
            or len(self.live) != 1
            or turn.status is not None
            or turn.turn_id is None
            or turn.copied
            or len(self.steps) > caps.STEPS
        ):
            return False
        match = _STEP_BEGIN.match(line, start)
        if match is None or int(match[2]) != turn.turn_id:
            return False
        if self.steer is not None or self.message is not None or self.unmatched:
            self._settled()
        uuid = match[1].decode("utf-8", "replace")
        self.steps[uuid] = turn.add_step(int(match[3]) or len(turn.steps) + 1, uuid)
        turn.by_loop = True
        turn.last_line, turn.last_at = self.line, int(match[4])
        return True

    def _short_step_end(self, line: bytes, start: int) -> bool:
        match = _STEP_END.match(line, start)
        if match is None or line[-21:-14] != b'"time":' or not line[-14:-1].isdigit() or line[-1] != 125:
            return False
        step = self.steps.pop(match[1].decode("utf-8", "replace"), None)
        if step is None or step.turn is None:
            return False
        turn = step.turn
        step.finish, step.uuid = match[2].decode(), ""
        if match[3] is not None:
            turn.tokens_in += int(match[3]) + int(match[5]) + int(match[6])
            turn.tokens_out += int(match[4])
        turn.dirty = True
        turn.last_line, turn.last_at = self.line, int(line[-14:-1])
        return True

    def _short_content_part(self, line: bytes, start: int) -> bool:
        if line[-25:-14] != b'"}},"time":' or not line[-14:-1].isdigit() or line[-1] != 125:
            return False
        match = _CONTENT_PART.match(line, start)
        if match is None:
            return False
        step = self.steps.get(match[1].decode("utf-8", "replace"))
        text = parse(line[match.end() - 1 : -24])
        if step is None or step.turn is None or type(text) is not str or not text:
            return False
        self.add_part(step.turn, step, text)
        step.turn.last_line, step.turn.last_at = self.line, int(line[-14:-1])
        return True

    def _short_tool_call(self, line: bytes, start: int) -> bool:
        """A call that runs no command, with its arguments taken as they stand in the line."""
        if line[-21:-14] != b'"time":' or not line[-14:-1].isdigit() or line[-1] != 125:
            return False
        match = _TOOL_CALL.match(line, start)
        end = line.find(_DISPLAY, match.end()) if match is not None else -1
        if match is None or end < 0 or line[end - 1] != 125 or line.find(b'{"type":"', match.end()) > 0:
            return False
        name = match[3].decode("utf-8", "replace")
        step = self.steps.get(match[1].decode("utf-8", "replace"))
        file = _FILE_IO.match(line, end + len(_DISPLAY))
        if step is None or step.turn is None or file is None or name in tools.COMMANDS or self.own.owns(name):
            return False
        try:
            args, path = line[match.end() - 1 : end].decode(), file[2].decode()
        except UnicodeDecodeError:
            return False
        turn = step.turn
        call = OpenCall(match[2].decode("utf-8", "replace"), name)
        call.args = tools.compact_text(args, room=turn.room, redact=self.redact)
        self.touch_file(call, tools.displayed_touch(file[1].decode(), path, self.origin.cwd))
        self.keep_call(turn, step, call)
        turn.last_line, turn.last_at = self.line, int(line[-14:-1])
        return True

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
            if len(self.steps) > caps.STEPS:
                self.steps.clear()
            self.steps[uuid] = step
        self.touch(turn, self.line, at)

    def _turn_of_step(self, number: int | None) -> OpenTurn | None:
        """The open turn with this id; of twins, the one that waits for its first step (WIRE §9.4, §9.6)."""
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
        """Open the turn of a step that belongs to no open turn: v1's continuations, tasks and cron jobs."""
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
            old.last_line, old.end, old.last_at = opener.before_line, opener.before_end, opener.before_at
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
        failed = result.get("isError") is True
        output = ""
        if failed or call.name in tools.TELLING_OUTPUT:
            output = without_system(joined(result.get("output")))
        self.finish_call(
            turn, call, output, failed=failed, duration=None if duration is None else count(duration)
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
