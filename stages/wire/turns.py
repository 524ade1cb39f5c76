"""A turn while it grows: bounded, redacted on the way in, frozen into ``stages.model.Turn`` at its end."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from stages.model import Cut, FileTouch, Op, Result, Status, Steer, Step, ToolCall, Turn
from stages.wire import caps


@dataclass(slots=True, eq=False)
class OpenCall:
    """A tool call that may still get its result."""

    id: str
    name: str
    args: str = "{}"
    command: str = ""
    touch: tuple[str, Op] | None = None
    own: bool = False
    result: Result | None = None
    error: str = ""
    outcome: str = ""
    agents: list[str] = field(default_factory=list)
    duration_ms: int | None = None
    started_at: int | None = None

    def freeze(self) -> ToolCall:
        files: tuple[FileTouch, ...] = ()
        if self.touch is not None and (self.result == "ok" or self.touch[1] == "read"):
            files = (FileTouch(self.touch[0], self.touch[1], self.id),)
        return ToolCall(
            self.id,
            self.name,
            self.args,
            self.result,
            self.error,
            self.outcome,
            self.command,
            files,
            tuple(self.agents),
            self.duration_ms,
            self.own,
        )

    def dump(self) -> list[Any]:
        return [getattr(self, name) for name in _CALL_FIELDS]

    @classmethod
    def load(cls, row: list[Any]) -> OpenCall:
        call = cls(*row)
        call.touch = None if call.touch is None else (call.touch[0], call.touch[1])
        return call


@dataclass(slots=True, eq=False)
class OpenStep:
    """``parts`` are ``[serial, text]``: the part's ordinal in the turn (see ``OpenTurn.add_text``)."""

    number: int
    parts: list[tuple[int, str]] = field(default_factory=list)
    calls: list[OpenCall] = field(default_factory=list)
    finish: str = ""
    uuid: str = ""
    turn: OpenTurn | None = None

    def freeze(self) -> Step:
        texts = tuple(text for _, text in self.parts)
        return Step(self.number, texts, tuple(call.freeze() for call in self.calls), self.finish)


@dataclass(slots=True, eq=False)
class OpenTurn:
    """All that is kept of one turn. ``last_line`` counts in the file; ``end`` is set when a chunk is done."""

    position: int
    turn_id: int | None
    origin: str
    opening_text: str
    user_text: str | None
    prompt_id: str | None
    started_at: int | None
    start: int
    first_line: int
    last_line: int
    end: int = 0
    last_at: int | None = None
    opener_digest: str = ""
    v2: bool = False
    """Opened in a region whose turns get a ``turn.ended`` (WIRE §9.8)."""
    status: Status | None = None
    """How its end record says it ended; ``None`` without one."""
    closed: bool = False
    """Another opener came: nothing is expected any more."""
    ended_at: int | None = None
    error: str = ""
    model: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    message_seen: bool = False
    by_loop: bool = False
    """Has steps from loop events (not only from imported messages)."""
    copied: bool = False
    undone: bool = False
    undone_at: int | None = None
    cut: tuple[int, int, int | None] | None = None
    compactions: list[str] = field(default_factory=list)
    steers: list[Steer] = field(default_factory=list)
    steps: list[OpenStep] = field(default_factory=list)
    # What has been spent of the caps.
    serial: int = 0
    head_weight: int = 0
    tail_weight: int = 0
    tail_from: int = -1
    tail_step: int = 0
    dropped: int = 0
    actions: int = 0
    calls: int = 0
    dirty: bool = True
    reported: int = 0
    """``last_line`` when it was last reported."""

    def add_step(self, number: int, uuid: str) -> OpenStep:
        """A new step, or the last one again once ``caps.STEPS`` are there."""
        if len(self.steps) >= caps.STEPS:
            step = self.steps[-1]
            step.uuid = uuid
        else:
            step = OpenStep(number, uuid=uuid, turn=self)
            self.steps.append(step)
        self.dirty = True
        return step

    def add_text(self, step: OpenStep, text: str) -> None:
        """Keep a part. The first ``AGENT_HEAD`` characters of a turn stay; of the rest the last ones."""
        self.dirty = True
        size = caps.weight(text)
        serial = self.serial
        self.serial += 1
        if self.tail_from < 0 and self.head_weight + size <= caps.AGENT_HEAD:
            self.head_weight += size
            step.parts.append((serial, text))
            return
        if self.tail_from < 0:
            self.tail_from = serial
        self.tail_weight += size
        step.parts.append((serial, text))
        while self.tail_weight > caps.AGENT_TAIL:
            dropped = self._drop_oldest_of_tail(serial)
            if not dropped:
                break
            self.tail_weight -= dropped

    def _drop_oldest_of_tail(self, newest: int) -> int:
        for n in range(self.tail_step, len(self.steps)):
            parts = self.steps[n].parts
            i = next((i for i, part in enumerate(parts) if part[0] >= self.tail_from), None)
            if i is None:
                continue
            serial, text = parts[i]
            if serial == newest:
                return 0
            del parts[i]
            self.tail_step = n
            self.tail_from = serial + 1
            self.dropped += len(text)
            return caps.weight(text)
        return 0

    def add_call(self, step: OpenStep, call: OpenCall) -> bool:
        """Keep a call; false once ``caps.CALLS`` are there."""
        if self.calls >= caps.CALLS:
            return False
        self.calls += 1
        self.actions += caps.weight(call.args) + caps.weight(call.command)
        step.calls.append(call)
        self.dirty = True
        return True

    @property
    def room(self) -> caps.Room:
        """How much may be kept of the next call."""
        if self.actions <= caps.ACTIONS:
            return "full"
        return "short" if self.actions <= caps.ACTIONS_SHORT else "none"

    @property
    def live(self) -> bool:
        """Without an end record: records may still belong to it."""
        return self.status is None

    def implied_status(self) -> Status:
        """How a turn without an end record ended (WIRE §9.8)."""
        if self.status is not None:
            return self.status
        if self.by_loop:
            return "completed" if not self.v2 and self.steps[-1].finish == "end_turn" else "unfinished"
        said = any(step.parts or step.calls for step in self.steps)
        return "completed" if said else "unfinished"

    def freeze(self, *, cli_version: str, next_id: int) -> Turn:
        status = self.implied_status()
        turn_id = next_id if self.turn_id is None else self.turn_id
        duration = None
        if self.ended_at is not None and self.started_at is not None:
            duration = max(0, self.ended_at - self.started_at)
        return Turn(
            position=self.position,
            turn_id=turn_id,
            origin=self.origin,
            opening_text=self.opening_text,
            user_text=self.user_text,
            prompt_id=self.prompt_id,
            steps=self._steps(),
            steers=tuple(self.steers),
            status=status,
            open=status == "unfinished" and self.status is None and not self.closed,
            error=self.error,
            compactions=tuple(self.compactions),
            started_at=self.started_at,
            ended_at=self.ended_at,
            last_at=self.last_at,
            duration_ms=duration,
            model=self.model,
            cli_version=cli_version,
            tokens_in=self.tokens_in,
            tokens_out=self.tokens_out,
            start=self.start,
            end=self.end,
            lines=(self.first_line, self.last_line),
            opener_digest=self.opener_digest,
            copied=self.copied,
            undone=self.undone,
            undone_at=self.undone_at,
            cut=None if self.cut is None else Cut(*self.cut),
        )

    def _steps(self) -> tuple[Step, ...]:
        steps = [step.freeze() for step in self.steps]
        if self.dropped:
            note = f"…[{self.dropped} characters left out]…"
            for i, step in enumerate(self.steps):
                if step.parts and step.parts[-1][0] >= self.tail_from:
                    at = next(n for n, part in enumerate(step.parts) if part[0] >= self.tail_from)
                    texts = (*steps[i].texts[:at], note, *steps[i].texts[at:])
                    steps[i] = Step(steps[i].number, texts, steps[i].tools, steps[i].finish)
                    break
        return tuple(steps)

    def dump(self) -> list[Any]:
        """As JSON values, for the saved state."""
        row: list[Any] = [getattr(self, name) for name in _TURN_FIELDS]
        steers = [[s.text, s.origin, s.human, s.at, s.after_step] for s in self.steers]
        steps = [
            [step.number, step.parts, [call.dump() for call in step.calls], step.finish, step.uuid]
            for step in self.steps
        ]
        return [row, steers, steps]

    @classmethod
    def load(cls, dumped: list[Any]) -> OpenTurn:
        row, steers, steps = dumped
        turn = cls(**dict(zip(_TURN_FIELDS, row, strict=True)))
        turn.cut = None if turn.cut is None else (turn.cut[0], turn.cut[1], turn.cut[2])
        turn.steers = [Steer(*steer) for steer in steers]
        turn.steps = [
            OpenStep(
                number,
                [(n, text) for n, text in parts],
                [OpenCall.load(call) for call in calls],
                finish,
                uuid,
                turn,
            )
            for number, parts, calls, finish, uuid in steps
        ]
        return turn


_CALL_FIELDS = tuple(OpenCall.__dataclass_fields__)
_TURN_FIELDS = tuple(name for name in OpenTurn.__dataclass_fields__ if name not in ("steers", "steps"))


def opener_digest(origin: str, prompt_id: str | None, text: str) -> str:
    """Sixteen hex digits of what opened a turn: of the raw text, so new redaction rules do not change it."""
    digest = hashlib.blake2b(digest_size=8)
    for part in (origin, prompt_id or "", text):
        digest.update(part.encode("utf-8", "replace"))
        digest.update(b"\0")
    return digest.hexdigest()
