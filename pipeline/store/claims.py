"""What the compatible server claims about turns: its table ``refined_turns``, only ever read.

Its turn numbers count prompt lines and drift, so a claim is no turn of ours: where the wire exists, turns are
refined from it. Where the wire is gone the claims are the only record, and are shown as claims.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from pipeline.store.database import Database
from stages.tokens import STOP_WORDS, tokens

TABLE = "refined_turns"
READ_MOST = 20_000
"""Rows that are looked through for a query."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One row. ``turn_id`` is the other server's number, ``timestamp`` its text."""

    session_id: str
    turn_id: int
    timestamp: str
    summary: str
    facts: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join([self.summary, *self.facts])


async def claim_of(database: Database, session_id: str, turn_id: int) -> Claim | None:
    """What is claimed of one turn; ``None`` without the table or the row."""
    if not await _there(database):
        return None
    row = await database.row(
        f"SELECT session_id, turn_id, timestamp, summary, facts FROM {TABLE} WHERE session_id=? AND turn_id=?",
        (session_id, turn_id),
    )
    return None if row is None else _claim(row)


async def find_claims(
    database: Database, query: str, known: Iterable[str], limit: int
) -> tuple[Sequence[Claim], int]:
    """Claims about sessions that are not ``known`` and hold words of the query, the best first; and how many do."""
    wanted = [term for term in tokens(query) if term not in STOP_WORDS]
    if not wanted or not await _there(database):
        return (), 0
    here = set(known)
    rows = await database.rows(
        f"SELECT session_id, turn_id, timestamp, summary, facts FROM {TABLE} ORDER BY timestamp DESC LIMIT ?",
        (READ_MOST,),
    )
    scored = []
    for claim in (_claim(row) for row in rows if row[0] not in here):
        held = len(set(wanted) & set(tokens(claim.text)))
        if held:
            scored.append((held, claim))
    scored.sort(key=lambda each: -each[0])
    return [claim for _, claim in scored[:limit]], len(scored)


async def _there(database: Database) -> bool:
    found = await database.rows("SELECT 1 FROM sqlite_master WHERE type='table' AND name=?", (TABLE,))
    return bool(found)


def _claim(row: Sequence[Any]) -> Claim:
    return Claim(str(row[0]), int(row[1]), str(row[2] or ""), str(row[3] or ""), _texts(row[4]))


def _texts(value: object) -> tuple[str, ...]:
    """The facts' texts, whatever shape the JSON has."""
    try:
        found = orjson.loads(value) if isinstance(value, str | bytes) else []
    except orjson.JSONDecodeError:
        return ()
    if not isinstance(found, list):
        return ()
    texts = (each.get("text", "") if isinstance(each, dict) else each for each in found)
    return tuple(text for text in texts if isinstance(text, str) and text)
