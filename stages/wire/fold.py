"""The fold that the dialects share: turns in memory, undo, copies, sub-agents, changes, saved state.

A dialect turns lines into calls of these methods. Lines are numbered from 1 in the file; a turn's byte range
is worked out from its lines when the chunk is done. Turns leave memory when nothing can still belong to them.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import accumulate
from typing import Any

import orjson

from stages.model import Change, Chunk, Copied, Cut, Op, Spawned, Status, Steer, Truncate, Undo, Upsert
from stages.wire import caps, tools
from stages.wire.contract import Origin, Redact
from stages.wire.parts import Json
from stages.wire.turns import OpenCall, OpenStep, OpenTurn

LINGER = 2
"""For how many more turns an unfinished turn is kept: another process may still be writing it (WIRE §9.6)."""
VERSION = 2
"""Of the saved state; another one is not resumed."""

_TIME = re.compile(rb'"time":(\d{13,14})\}\s*$')
_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


class StateMismatch(ValueError):
    """A saved state that this version cannot go on from: read the wire from its start."""


class Fold:
    """State of one wire's fold. Dialects call ``begin_chunk``, record methods, then ``end_chunk``."""

    dialect = ""

    def __init__(self, origin: Origin, redact: Redact) -> None:
        self.origin = origin
        self.redact = redact
        self.counts: Counter[str] = Counter()
        self.live: list[OpenTurn] = []
        self.cur: OpenTurn | None = None
        self.position = 0
        self.next_id = 0
        self.line0 = 1
        self.own = tools.Own()
        self.cli_version = ""
        self.model = ""
        self.anchors: list[list[int]] = []
        self.wall: list[int] = [0, 1, 0, 0]
        self.undone: list[list[int]] = []
        self.compactions: list[str] = []
        self.calls: dict[str, list[tuple[OpenTurn, OpenCall]]] = {}
        self.noise = 0
        self.paths: dict[str, str] = {}
        """Paths seen, redacted: the same few come again and again."""
        self._changes: list[Change] = []
        self._done: list[OpenTurn] = []
        self._lines: list[bytes] = []
        self._ends: list[int] | None = None
        self._base = 0

    # --- chunks --------------------------------------------------------------------------------------------

    def begin_chunk(self, chunk: Chunk) -> list[bytes]:
        """The chunk's lines, without their ends."""
        self.line0 += sum(number for _, number in chunk.skipped)
        lines = chunk.data.split(b"\n")
        if not lines[-1]:
            lines.pop()
        self._lines, self._ends, self._base = lines, None, chunk.start
        if b"\r" in chunk.data:
            return [line.removesuffix(b"\r") for line in lines]
        return lines

    def end_chunk(self) -> list[Change]:
        """Settle byte ranges; the changes of this chunk: turns that ended or were closed, then the marks."""
        self.sync()
        reported = []
        for turn in (*self._done, *self.live):
            self._settle(turn)
            if turn.status is None and not turn.closed:
                continue
            if turn.dirty or turn.reported != turn.last_line:
                turn.dirty, turn.reported = False, turn.last_line
                reported.append(turn)
        reported.sort(key=lambda turn: turn.position)
        changes: list[Change] = [self._upsert(turn) for turn in reported]
        changes += self._changes
        self._changes, self._done = [], []
        self.line0 += len(self._lines)
        self._lines, self._ends, self.noise = [], None, 0
        return changes

    def provisional(self) -> list[Change]:
        """The turns that ``feed`` has not reported because they can still grow, as they stand."""
        return [self._upsert(turn) for turn in self.live if turn.status is None and not turn.closed]

    def _upsert(self, turn: OpenTurn) -> Upsert:
        return Upsert(turn.freeze(cli_version=self.cli_version, next_id=self.next_id))

    def offset(self, line: int) -> int:
        """Byte offset of a line of this chunk."""
        index = line - self.line0
        if self._ends is None:
            self._ends = list(accumulate(map(len, self._lines)))
        return self._base + index + (self._ends[index - 1] if index else 0)

    def _settle(self, turn: OpenTurn) -> None:
        if self._lines:
            turn.end = self.end_of(turn)

    def end_of(self, turn: OpenTurn) -> int:
        """Byte offset after the turn's last line so far."""
        if turn.last_line < self.line0:
            return turn.end
        return self.offset(turn.last_line) + len(self._lines[turn.last_line - self.line0]) + 1

    def touch(self, turn: OpenTurn, line: int, at: int | None) -> None:
        """``line`` belongs to ``turn``."""
        if at is None:
            self.sync()
        else:
            turn.last_at = at
        turn.last_line = line

    def sync(self) -> None:
        """Let the last skipped line inside the current turn count as its last line."""
        turn = self.cur
        if turn is None or not turn.live or self.noise <= turn.last_line:
            return
        for line in range(self.noise, max(turn.last_line, self.line0 - 1), -1):
            text = self._lines[line - self.line0]
            if self.is_timed_noise(text) and (match := _TIME.search(text, max(0, len(text) - 40))):
                turn.last_at = int(match[1])
                break
        turn.last_line = self.noise

    def is_timed_noise(self, line: bytes) -> bool:
        """Whether a skipped line ends with the time it was written (not the journal's, WIRE §3)."""
        return False

    # --- turns ---------------------------------------------------------------------------------------------

    def open_turn(self, turn: OpenTurn) -> None:
        """``turn`` is the current one from now on; the one before it is closed."""
        self.close_current()
        turn.compactions, self.compactions = self.compactions, []
        turn.model = self.model
        self.position += 1
        if turn.turn_id is not None:
            self.next_id = max(self.next_id, turn.turn_id + 1)
        self.cur = turn
        self.live.append(turn)
        self._forget(turn.position)

    def close_current(self) -> None:
        """Nothing more is expected of the current turn. Without an id it takes the next one (WIRE §5)."""
        turn = self.cur
        if turn is None:
            return
        self.sync()
        if not turn.closed:
            turn.closed = turn.dirty = True
        if turn.turn_id is None:
            self.set_id(turn, self.next_id)
        self.cur = None

    def set_id(self, turn: OpenTurn, number: int) -> None:
        turn.turn_id = number
        turn.dirty = True
        self.next_id = max(self.next_id, number + 1)

    def _forget(self, newest: int) -> None:
        """Drop closed turns; keep unfinished ones of v2 engines a little longer, for their second writer."""
        for turn in self.live[:]:
            if not turn.closed or (turn.status is None and turn.v2 and newest - turn.position <= LINGER):
                continue
            self.live.remove(turn)
            self._done.append(turn)
            for step in turn.steps:
                for call in step.calls:
                    if call.result is None:
                        self._forget_call(call)

    def _forget_call(self, call: OpenCall) -> None:
        waiting = self.calls.get(call.id)
        if waiting and waiting[0][1] is call and len(waiting) == 1:
            del self.calls[call.id]
        elif waiting:
            waiting[:] = [entry for entry in waiting if entry[1] is not call]
            if not waiting:
                del self.calls[call.id]

    def end_turn(self, turn: OpenTurn, status: Status, at: int | None) -> None:
        turn.status, turn.ended_at, turn.dirty = status, at, True

    def add_steer(self, turn: OpenTurn, text: str, origin: str, human: bool, at: int | None) -> Steer:
        steer = Steer(text if len(turn.steers) < caps.STEERS else "", origin, human, at, len(turn.steps))
        turn.steers.append(steer)
        turn.dirty = True
        return steer

    def add_part(self, turn: OpenTurn, step: OpenStep, text: str) -> None:
        """Keep a text of a response; a turn's first parts and its last ones (see ``OpenTurn.add_text``)."""
        if turn.tail_from < 0 and turn.head_weight + caps.weight(text) <= caps.AGENT_HEAD:
            turn.add_text(step, self.redact(text))
        else:
            turn.add_text(step, caps.clip(text, *caps.AGENT_PART, self.redact))

    def add_compaction(self, summary: str) -> None:
        """Note a compaction in the current turn while it runs, else for the next one."""
        summary = caps.clip(summary, *caps.COMPACTION, self.redact)
        turn = self.cur
        noted = turn.compactions if turn is not None and turn.live else self.compactions
        noted.append(summary)
        del noted[: -caps.COMPACTIONS]
        if turn is not None:
            turn.dirty = True

    # --- calls ---------------------------------------------------------------------------------------------

    def start_call(
        self, turn: OpenTurn, step: OpenStep, call_id: str, name: str, args: Any, display: Json
    ) -> OpenCall:
        """A call with its arguments; ``args`` that are no object are kept as they are."""
        call = OpenCall(call_id, name)
        self.fill_call(turn, call, args, display)
        self.keep_call(turn, step, call)
        return call

    def keep_call(self, turn: OpenTurn, step: OpenStep, call: OpenCall) -> None:
        if turn.add_call(step, call):
            self.calls.setdefault(call.id, []).append((turn, call))
        else:
            self.counts["turn-too-long"] += 1

    def fill_call(self, turn: OpenTurn, call: OpenCall, args: Any, display: Json) -> None:
        call.own = self.own.owns(call.name)
        if call.own:
            return
        call.args, call.command = tools.compact(call.name, args, room=turn.room, redact=self.redact)
        self.touch_file(
            call, tools.touch_of(call.name, args if type(args) is dict else {}, display, self.origin.cwd)
        )

    def touch_file(self, call: OpenCall, touch: tuple[str, Op] | None) -> None:
        if touch is not None:
            path = self.paths.get(touch[0])
            if path is None:
                path = self.paths[touch[0]] = self.redact(touch[0])
                if len(self.paths) > caps.PATHS:
                    self.paths.clear()
            call.touch = (path, touch[1])

    def waiting_call(self, call_id: str) -> tuple[OpenTurn, OpenCall] | None:
        """The latest call of this id that has no result yet (WIRE §4.3)."""
        waiting = self.calls.get(call_id)
        return waiting[-1] if waiting else None

    def finish_call(
        self, turn: OpenTurn, call: OpenCall, output: str, *, failed: bool, duration: int | None
    ) -> None:
        self._forget_call(call)
        call.result = "error" if failed else "ok"
        call.duration_ms = duration
        turn.dirty = True
        if call.name in tools.AGENTS:
            for agent_id in tools.agents_in(output):
                self.spawn(turn, call, agent_id)
        if call.own or not output:
            return
        if failed:
            cap = caps.ERROR if turn.room == "full" else caps.ERROR_SHORT
            call.error = tools.decisive(output, self.redact, cap)
            turn.actions += caps.weight(call.error)
        elif turn.room != "none" and (call.name in tools.COMMANDS or call.name in tools.ANSWERS):
            call.outcome = tools.last_lines(output, self.redact)
            turn.actions += caps.weight(call.outcome)

    def spawn(self, turn: OpenTurn, call: OpenCall, agent_id: str) -> None:
        """``call`` started a sub-agent, or went on with one (WIRE §7)."""
        if agent_id in call.agents or len(call.agents) >= caps.TOUCHES:
            return
        call.agents.append(agent_id)
        turn.dirty = True
        self._changes.append(Spawned(agent_id, turn.position, call.id))

    def find_call(self, call_id: str) -> tuple[OpenTurn, OpenCall] | None:
        """The latest call of this id in memory, with or without a result."""
        if found := self.waiting_call(call_id):
            return found
        for turn in reversed(self.live):
            for step in reversed(turn.steps):
                for call in reversed(step.calls):
                    if call.id == call_id:
                        return turn, call
        return None

    # --- the past ------------------------------------------------------------------------------------------

    def here(self) -> list[int]:
        """Now, as a place to cut at: ``[position, whole turn?, steps, steers]``."""
        turn = self.cur
        if turn is None or not turn.live:
            return [self.position, 1, 0, 0]
        return [turn.position, 0, len(turn.steps), len(turn.steers)]

    def build_wall(self, keep_from: int | None = None) -> None:
        """A compaction or a clear: no undo reaches behind it, but for anchors at ``keep_from`` and later."""
        self.anchors = [a for a in self.anchors if keep_from is not None and a[0] >= keep_from]
        self.wall = self.here() if keep_from is None else [keep_from, 1, 0, 0]

    def undo(self, number: int, at: int | None, *, v1: bool) -> None:
        """Take back the last ``number`` anchors and all behind them (WIRE §6)."""
        if number <= 0:
            return
        if number <= len(self.anchors):
            place = self.anchors[-number]
            del self.anchors[-number:]
        elif v1:
            place, self.anchors = self.wall, []
        else:
            self.counts["undo-ignored"] += 1
            return
        position, whole, steps, steers = place[:4]
        if not whole and not self._is_undone(position):
            self._truncate(position, Cut(steps, steers, at))
        first = position if whole else position + 1
        gone = tuple(p for p in range(first, self.position) if not self._is_undone(p))
        self.undone = [[a, min(b, first)] for a, b in self.undone if a < first]
        if first < self.position:
            self.undone.append([first, self.position])
        if gone:
            self._changes.append(Undo(gone, at))
        for turn in (*self.live, *self._done):
            if turn.position in gone:
                turn.undone, turn.undone_at, turn.dirty = True, at, True

    def _is_undone(self, position: int) -> bool:
        return any(a <= position < b for a, b in self.undone)

    def _truncate(self, position: int, cut: Cut) -> None:
        self._changes.append(Truncate(position, cut))
        for turn in (*self.live, *self._done):
            if turn.position == position:
                turn.cut, turn.dirty = (cut.steps, cut.steers, cut.at), True

    def mark_copied(self) -> None:
        """All turns so far are copies from another session (WIRE §7)."""
        self.close_current()
        self._changes.append(Copied(self.position))
        for turn in (*self.live, *self._done):
            turn.copied = turn.dirty = True

    def count_unknown(self, kind: object) -> None:
        """Count a record of a type nobody knows, by name while there are few of them."""
        name = kind if type(kind) is str and _NAME.fullmatch(kind) else "?"
        key = f"unknown:{name}"
        if (
            key not in self.counts
            and sum(k.startswith("unknown:") for k in self.counts) >= caps.UNKNOWN_TYPES
        ):
            key = "unknown:…"
        self.counts[key] += 1

    # --- saved state ---------------------------------------------------------------------------------------

    def more_state(self) -> Json:
        """What the dialect keeps besides."""
        return {}

    def load_more(self, more: Json) -> None:
        """The reverse of ``more_state``."""

    def state(self) -> bytes:
        return orjson.dumps(
            {
                "v": VERSION,
                "dialect": self.dialect,
                "line": self.line0,
                "position": self.position,
                "next": self.next_id,
                "cur": self.live.index(self.cur) if self.cur is not None else None,
                "turns": [turn.dump() for turn in self.live],
                "anchors": self.anchors,
                "wall": self.wall,
                "undone": self.undone,
                "compactions": self.compactions,
                "own": sorted(self.own.servers),
                "cli": self.cli_version,
                "model": self.model,
                "more": self.more_state(),
            }
        )

    def load(self, saved: Json) -> None:
        """Go on from a state. Raises ``StateMismatch``."""
        try:
            self.line0, self.position, self.next_id = saved["line"], saved["position"], saved["next"]
            self.live = [OpenTurn.load(row) for row in saved["turns"]]
            self.cur = None if saved["cur"] is None else self.live[saved["cur"]]
            self.anchors, self.wall, self.undone = saved["anchors"], saved["wall"], saved["undone"]
            self.compactions, self.own = saved["compactions"], tools.Own(saved["own"])
            self.cli_version, self.model = saved["cli"], saved["model"]
            self.load_more(saved["more"])
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise StateMismatch(f"saved splitter state cannot be read: {error}") from error
        for turn in self.live:
            for step in turn.steps:
                for call in step.calls:
                    if call.result is None:
                        self.calls.setdefault(call.id, []).append((turn, call))
