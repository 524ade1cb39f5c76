"""What background work has not looked at yet: new turns since its last whole round, and which of them come first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import orjson

from pipeline.store import codec, files
from pipeline.store.database import Database
from pipeline.store.turns import bodies
from stages.refine import REFINER_VERSION

SEEN = "background"
"""The store's note of what a whole round has looked at."""


async def not_looked_at(database: Database) -> tuple[set[int], str]:
    """Closed shown contents that no whole round has looked at, and the note to keep once one has.

    Ids of contents only grow, so one number tells; turns that were open then are noted one by one. Another refiner
    makes everything new.
    """
    noted = orjson.loads(await database.meta(SEEN) or "{}")
    if noted.get("refiner") != REFINER_VERSION:
        noted = {}
    since = noted.get("seen", 0)
    rows = [
        *await database.rows(f"{_SHOWN} WHERE c.id>?", (since,)),
        *await _rows_of(database, noted.get("open", [])),
    ]
    note = {
        "seen": max((row[0] for row in rows), default=since),
        "open": sorted(row[0] for row in rows if row[1]),
        "refiner": REFINER_VERSION,
    }
    note["seen"] = max(note["seen"], since)
    return {row[0] for row in rows if not row[1]}, orjson.dumps(note).decode()


_SHOWN = "SELECT c.id, o.open FROM content c JOIN occurrence o ON o.id=c.shown"


async def _rows_of(database: Database, ids: Iterable[int]) -> list[Any]:
    return [row for one in ids for row in await database.rows(f"{_SHOWN} WHERE c.id=?", (one,))]


async def before_compaction(database: Database, found: set[int]) -> set[int]:
    """Of these contents those of sessions that compacted their context in one of them, up to it."""
    texts = await bodies(database, sorted(found))
    kept: set[int] = set()
    for content_id, body in texts.items():
        if not codec.unpack(body).compactions:
            continue
        rows = await database.rows(
            "SELECT o.content_id FROM occurrence c JOIN occurrence o ON o.session_id=c.session_id"
            " AND o.agent_id=c.agent_id AND o.position<=c.position WHERE c.content_id=?",
            (content_id,),
        )
        kept.update(row[0] for row in rows)
    return kept & found


def searched(folder: Path) -> list[tuple[str, int]]:
    """``(session, turn)`` of the best hits of every kept search."""
    found: list[tuple[str, int]] = []
    for path in sorted(folder.glob("search-*.json")):
        view = files.read_json(path)
        clusters = view.get("clusters") if isinstance(view, dict) else None
        found += [
            (str(cluster.get("sessionId")), cluster["hitTurnId"])
            for cluster in (clusters if isinstance(clusters, list) else [])
            if isinstance(cluster, dict) and isinstance(cluster.get("hitTurnId"), int)
        ]
    return found


async def latest(database: Database, limit: int | None) -> Sequence[int]:
    """Ids of shown, closed contents, the latest first."""
    rows = await database.rows(
        "SELECT c.id FROM content c JOIN occurrence o ON o.id=c.shown WHERE o.open=0"
        " ORDER BY coalesce(o.started_at, 0) DESC, c.id DESC LIMIT ?",
        (-1 if limit is None else limit,),
    )
    return [row[0] for row in rows]


async def unrefined_count(database: Database) -> int:
    """How many shown, closed turns have no refined record of this version."""
    row = await database.row(
        "SELECT count(*) FROM content c JOIN occurrence o ON o.id=c.shown LEFT JOIN refined r ON r.content_id=c.id"
        " WHERE o.open=0 AND (r.version IS NULL OR r.version<>?)",
        (REFINER_VERSION,),
    )
    return int(row[0])
