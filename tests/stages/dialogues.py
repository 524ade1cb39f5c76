"""Invented dialogues as refined turns: a few words a turn, everything else derived the same way each time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stages.model import Entities, Fact, Refined, RefinedTurn, Status, TurnKey

START = 1_767_225_600_000
"""2026-01-01T00:00:00Z."""
MINUTE = 60_000
DAY = 86_400_000


@dataclass(frozen=True, slots=True)
class Said:
    """One turn of a dialogue: what the person wrote, what came of it, and what it touched."""

    user: str
    answer: str = "Done."
    files: tuple[str, ...] = ()
    decided: str = ""
    facts: tuple[Fact, ...] = ()
    status: Status = "completed"
    origin: str = "user"
    symbols: tuple[str, ...] = ()


def session(
    session_id: str, said: Iterable[Said | str], *, day: int = 0, title: str = "", agent: str = "main"
) -> list[RefinedTurn]:
    """The turns of one session that began ``day`` days after START, two minutes apart."""
    return [
        turn(
            session_id,
            position,
            each if isinstance(each, Said) else Said(each),
            day=day,
            title=title,
            agent=agent,
        )
        for position, each in enumerate(said)
    ]


def turn(
    session_id: str, position: int, said: Said, *, day: int = 0, title: str = "", agent: str = "main"
) -> RefinedTurn:
    """One refined turn; its summary is the request and the first sentence of the answer."""
    at = START + day * DAY + position * 2 * MINUTE
    facts = list(said.facts)
    if said.decided:
        facts.append(Fact("decision", said.decided, "text"))
    facts += [Fact("changed", f"{path}: edited.", "tool call_0") for path in said.files]
    summary = (said.user.splitlines() or [""])[0][:140] if said.answer in ("", "Done.") else said.answer[:200]
    return RefinedTurn(
        key=TurnKey(session_id, agent, position, position, f"{session_id}-{position}"),
        origin=said.origin,
        status=said.status,
        timestamp=at,
        user_text=said.user,
        answer=said.answer,
        refined=Refined(
            summary=summary,
            facts=tuple(facts),
            decision=bool(said.decided),
            entities=Entities(files_written=said.files, symbols=said.symbols),
        ),
        ended_at=at + MINUTE,
        session_title=title or session_id,
    )


def numbers(turns: Sequence[RefinedTurn]) -> dict[str, list[int]]:
    """Turn numbers by session."""
    found: dict[str, list[int]] = {}
    for each in turns:
        found.setdefault(each.key.session_id, []).append(each.key.turn_id)
    return found
