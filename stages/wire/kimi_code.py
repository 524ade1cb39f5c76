"""The wire of Kimi Code: protocols 1.0 to 1.5 of engines v1 and v2 (up to CLI 2.1.0), mixes too (WIRE §1–§9).

The version in line 1 says little: every record is taken for what it is. Most bytes are skipped on the first
bytes of their line (``stages.wire.skipping``); what is left is parsed and dispatched on its ``type``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from stages.model import Change, Chunk
from stages.wire.contract import Origin, Redact
from stages.wire.kimi_code_steps import LOOP_EVENT, CodeSteps
from stages.wire.openers import Opener
from stages.wire.parts import Json, count, joined, ms, obj, parse, string, word
from stages.wire.skipping import BETWEEN, BREAK, ENDED, NOISE, OPEN, TAIL, TELLING, UNDO, USAGE

_TIME = re.compile(rb'"time":(\d{13,14})\}\s*$')
_MODEL = re.compile(rb'\{"type":"usage\.record",(?:"agentId":"[^"\\]*",)?"model":"([^"\\]{1,200})"')


class KimiCode(CodeSteps):
    """Splitter of one kimi-code wire."""

    dialect = "kimi-code"

    def __init__(self, origin: Origin, redact: Redact) -> None:
        super().__init__(origin, redact)
        self.usage = b"\0"
        """How a ``usage.record`` begins that names the model known already."""
        self.loop = b"\0"
        """How a loop event begins, up to its type, in the lines just read."""
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

    # --- lines ---------------------------------------------------------------------------------------------

    def feed(self, chunk: Chunk) -> list[Change]:
        lines = self.begin_chunk(chunk)
        kinds, shortcuts, loop = self.kinds, self.shortcuts, self.loop
        at, until = len(loop), len(loop) + 6
        noise = 0
        for number, line in enumerate(lines, self.line0):
            key = line[9:18]
            if (kind := kinds.get(key)) is not None:
                if kind == NOISE and line[-1] == 125:
                    noise = number
                    continue
                if kind == BETWEEN and line[-1] == 125:
                    continue
                if kind == USAGE and line.startswith(self.usage) and line[-1] == 125:
                    noise = number
                    continue
                self.noise, self.line = noise, number
                if self._skip(kind, line):
                    noise, kinds = self.noise, self.kinds
                    continue
            elif key == b"context.a":
                if not line.startswith(loop):
                    self.loop = loop = self._loop_prefix(line)
                    at, until = len(loop), len(loop) + 6
                event = line[at:until]
                if event == b"conten" and line.find(b'"part":{"type":"think', until, until + 400) > 0:
                    if line[-1] == 125:
                        noise = number
                        continue
                elif (shortcut := shortcuts.get(event)) is not None:
                    self.noise, self.line = noise, number
                    if shortcut(line, at):
                        continue
            elif (
                line.endswith(b'"kind":"event"}')
                and line.startswith(b'{"')
                and not line.startswith(b'{"type":"')
            ):
                noise = number
                continue
            elif not line.strip():
                continue
            self.noise, self.line = noise, number
            self._record(line)
            kinds = self.kinds
        self.noise = noise
        return self.end_chunk()

    def _skip(self, kind: int, line: bytes) -> bool:
        """The rarer reasons to skip a line unparsed (WIRE §8); true if it has been dealt with."""
        if line[-1] != 125:
            self.counts["corrupt-line"] += 1
        elif kind == USAGE:
            self._usage(line)
            self.noise = self.line
        elif kind == TAIL:
            match = _TIME.search(line, max(0, len(line) - 40))
            if self.cur is not None:
                self.touch(self.cur, self.line, int(match[1]) if match else None)
        elif kind == BREAK:
            self._break()
        else:
            return (kind == UNDO and line[18:19] != b"n") or (
                kind == TELLING and b'"bootstrap_workspace"' not in line
            )
        return True

    @staticmethod
    def _loop_prefix(line: bytes) -> bytes:
        match = LOOP_EVENT.match(line)
        return match[0] if match else b"\0"

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
        """Three shapes (WIRE §6). Without ``keptUserMessageCount`` a tail stays behind the summary."""
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
