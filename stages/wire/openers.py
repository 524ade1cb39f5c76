"""What opens a turn, or may turn out to have opened one (WIRE §5, §9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stages.wire import caps
from stages.wire.contract import Redact
from stages.wire.parts import Json, is_human, joined, origin_name, user_text
from stages.wire.turns import OpenTurn, opener_digest


@dataclass(slots=True)
class Opener:
    """An opening record. ``raw`` holds its parts and origin until ``prepare``: most candidates open nothing.

    ``of`` and ``before_…``: the turn it would otherwise belong to, and where that one would end without it.
    ``steer``: it was noted as a steer of that turn.
    """

    origin: str
    opening_text: str
    user_text: str | None
    digest: str
    line: int
    start: int
    at: int | None
    turn_id: int | None = None
    prompt_id: str | None = None
    of: int = -1
    before_line: int = 0
    before_end: int = 0
    before_at: int | None = None
    steer: bool = True
    raw: tuple[Any, Json] | None = None

    def prepare(self, redact: Redact) -> None:
        """Read the texts: a person's without noise, an engine's as it is."""
        if self.raw is None:
            return
        parts, origin = self.raw
        self.raw = None
        text = joined(parts)
        self.digest = opener_digest(self.origin, self.prompt_id, text)
        if is_human(origin):
            self.user_text = caps.clip(user_text(parts, origin), *caps.PROMPT, redact)
            self.opening_text = self.user_text
        else:
            self.opening_text = caps.clip(text, *caps.PROMPT, redact)

    def remember(self, turn: OpenTurn, end: int) -> None:
        """It is ``turn``'s, which so far ended at ``end``, unless it turns out to have opened another."""
        self.of, self.before_line, self.before_end, self.before_at = (
            turn.position,
            turn.last_line,
            end,
            turn.last_at,
        )

    def turn(self, position: int, v2: bool) -> OpenTurn:
        return OpenTurn(
            position=position,
            turn_id=self.turn_id,
            origin=self.origin,
            opening_text=self.opening_text,
            user_text=self.user_text,
            prompt_id=self.prompt_id,
            started_at=self.at,
            start=self.start,
            first_line=self.line,
            last_line=self.line,
            last_at=self.at,
            opener_digest=self.digest,
            v2=v2,
        )

    def dump(self, redact: Redact) -> list[Any]:
        self.prepare(redact)
        return [getattr(self, name) for name in _FIELDS]

    @classmethod
    def load(cls, row: list[Any]) -> Opener:
        return cls(*row)


_FIELDS = tuple(name for name in Opener.__dataclass_fields__ if name != "raw")


def opener_of(parts: Any, origin: Json, line: int, start: int, at: int | None) -> Opener:
    return Opener(origin_name(origin), "", None, "", line, start, at, raw=(parts, origin))
