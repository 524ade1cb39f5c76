"""Turns in the store: a batch's rows and its checkpoint in one transaction, and reading them back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipeline import fold
from pipeline.fold import FIELDS, FoldBatch, PackedTurn
from pipeline.store import codec
from pipeline.store.database import Database
from pipeline.store.sources import Source
from stages.model import Copied, Spawned, Truncate, Turn, Undo
from stages.split import apply_truncate

# Live: not undone, not refused by a hook, and not a copied prefix whose original is live here. A fork made
# before
# an undo keeps its turns alive; a fork or import whose source is gone stands for it (design: Identity).
_LIVE = """o.undone=0 AND o.status<>'blocked' AND (o.copied=0 OR NOT EXISTS(
    SELECT 1 FROM occurrence p WHERE p.opener_digest=o.opener_digest AND p.copied=0 AND p.undone=0
        AND p.id<>o.id AND p.agent_id=o.agent_id
        AND p.session_id IN (SELECT coalesce(s.forked_from, '') FROM session s WHERE s.session_id=o.session_id
            UNION ALL SELECT coalesce(s.imported_from, '') FROM session s WHERE s.session_id=o.session_id)))"""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One turn of one agent's wire, as stored. ``content_id`` leads to its texts."""

    id: int
    session_id: str
    agent_id: str
    position: int
    turn_id: int
    content_id: int
    opener_digest: str
    prompt_id: str | None
    origin: str
    status: str
    open: bool
    copied: bool
    undone: bool
    undone_at: int | None
    started_at: int | None
    ended_at: int | None
    last_at: int | None
    start: int
    end: int
    line_first: int
    line_last: int


OCCURRENCE = (
    "id, session_id, agent_id, position, turn_id, content_id, opener_digest, prompt_id, origin, status, open, copied,"
    " undone, undone_at, started_at, ended_at, last_at, start, end, line_first, line_last"
)


def occurrence(row: Sequence[Any]) -> Occurrence:
    """The record of a row selected with ``OCCURRENCE``."""
    values = list(row[:21])
    values[10:13] = map(bool, row[10:13])
    return Occurrence(*values)


async def apply_batches(database: Database, batches: Sequence[tuple[Source, FoldBatch]], *, now: int) -> None:
    """Store the turns and marks of batches, of different wires; call inside the transaction that also moves their
    checkpoints.
    """
    ids = await put_contents(database, [packed for _, batch in batches for packed in batch.turns])
    touched = set(ids.values())
    for source, batch in batches:
        touched |= await _replaced(database, source, batch.turns)
        place = (source.id, source.session_id, source.agent_id)
        await database.executemany(
            _PUT,
            [(*place, ids[turn.digest], source.generation, now, *turn.fields) for turn in batch.turns],
        )
        for mark in batch.marks:
            touched |= await _mark(database, source, mark)
    await settle(database, touched)


_PUT = f"""INSERT INTO occurrence(source_id, session_id, agent_id, content_id, generation, seen_at, {", ".join(FIELDS)})
    VALUES({",".join("?" * (6 + len(FIELDS)))})
    ON CONFLICT(session_id, agent_id, position) DO UPDATE SET source_id=excluded.source_id,
        turn_id=excluded.turn_id, content_id=excluded.content_id, opener_digest=excluded.opener_digest,
        prompt_id=excluded.prompt_id, origin=excluded.origin, status=excluded.status, open=excluded.open,
        copied=excluded.copied, undone=excluded.undone, undone_at=excluded.undone_at,
        started_at=excluded.started_at, ended_at=excluded.ended_at, last_at=excluded.last_at,
        start=excluded.start, end=excluded.end, line_first=excluded.line_first, line_last=excluded.line_last,
        generation=excluded.generation"""


async def drop_old_generation(database: Database, source: Source) -> None:
    """After a reread from 0: turns that the rewritten file no longer has are gone."""
    rows = await database.rows(
        "SELECT content_id FROM occurrence WHERE session_id=? AND agent_id=? AND generation<>?",
        (source.session_id, source.agent_id, source.generation),
    )
    if rows:
        await database.execute(
            "DELETE FROM occurrence WHERE session_id=? AND agent_id=? AND generation<>?",
            (source.session_id, source.agent_id, source.generation),
        )
        await settle(database, {row[0] for row in rows})


async def settle(database: Database, content_ids: Iterable[int]) -> None:
    """Choose anew which occurrence shows each content, and drop contents that no wire holds any more.

    Contents that share an opener with a touched one are settled too: an original may have come or gone.
    """
    ids = list(content_ids)
    if not ids:
        return
    await database.execute("CREATE TEMP TABLE IF NOT EXISTS touched(id INTEGER PRIMARY KEY)")
    await database.execute("DELETE FROM touched")
    await database.executemany("INSERT OR IGNORE INTO touched VALUES(?)", [(i,) for i in ids])
    await database.execute(
        """INSERT OR IGNORE INTO touched SELECT q.content_id FROM occurrence o JOIN occurrence q
           ON q.opener_digest=o.opener_digest AND (q.copied=1 OR o.copied=1)
           WHERE o.content_id IN (SELECT id FROM touched)"""
    )
    await database.execute(
        f"""UPDATE content SET shown=(SELECT o.id FROM occurrence o WHERE o.content_id=content.id AND {_LIVE}
            ORDER BY o.copied, o.started_at,
                (SELECT coalesce(s.created_at, s.updated_at) FROM session s WHERE s.session_id=o.session_id),
                o.session_id, o.agent_id, o.position LIMIT 1)
            WHERE id IN (SELECT id FROM touched)"""
    )
    dead = [
        (row[0],)
        for row in await database.rows(
            "SELECT id FROM touched WHERE NOT EXISTS(SELECT 1 FROM occurrence o WHERE o.content_id=touched.id)"
        )
    ]
    if dead:
        from pipeline.store.refined import drop_refined  # its records hang on ours; reading needs this module

        await drop_refined(database, [row[0] for row in dead])
        await database.executemany("DELETE FROM content WHERE id=?", dead)


async def put_contents(database: Database, turns: Sequence[PackedTurn]) -> dict[bytes, int]:
    """Content ids by digest; new contents are inserted with their index rows."""
    fresh = {packed.digest: packed for packed in turns}
    ids: dict[bytes, int] = {}
    digests = list(fresh)
    for begin in range(0, len(digests), 500):
        some = digests[begin : begin + 500]
        marks = ",".join("?" * len(some))
        for row in await database.rows(f"SELECT digest, id FROM content WHERE digest IN ({marks})", some):
            ids[row[0]] = row[1]
            fresh.pop(row[0], None)
    if fresh:
        # Ids are allotted here, under the write lock, so that contents and index rows go in two statements.
        row = await database.row("SELECT seq FROM sqlite_sequence WHERE name='content'")
        first = (row[0] if row else 0) + 1
        numbered = list(enumerate(fresh.values(), first))
        ids.update((packed.digest, number) for number, packed in numbered)
        await database.executemany(
            "INSERT INTO content(id, digest, body) VALUES(?,?,?)",
            [(n, p.digest, p.body) for n, p in numbered],
        )
        await database.executemany(
            "INSERT INTO turn_fts(rowid, user, agent, actions, errors) VALUES(?,?,?,?,?)",
            [(n, *p.tokens) for n, p in numbered],
        )
    return ids


async def _replaced(database: Database, source: Source, turns: Sequence[PackedTurn]) -> set[int]:
    """Contents that these positions had before: they may lose their last occurrence."""
    if not turns:
        return set()
    low = min(packed.position for packed in turns)
    rows = await database.rows(
        "SELECT content_id FROM occurrence WHERE session_id=? AND agent_id=? AND position>=?",
        (source.session_id, source.agent_id, low),
    )
    return {row[0] for row in rows}


async def _mark(database: Database, source: Source, mark: Undo | Truncate | Copied | Spawned) -> set[int]:
    """Apply one change to turns stored earlier; returns the contents it concerns."""
    match mark:
        case Undo(positions, at):
            await database.executemany(
                "UPDATE occurrence SET undone=1, undone_at=? WHERE session_id=? AND agent_id=? AND position=?",
                [(at, source.session_id, source.agent_id, position) for position in positions],
            )
            return await _content_of(database, source, min(positions), max(positions) + 1)
        case Copied(before):
            await database.execute(
                "UPDATE occurrence SET copied=1 WHERE session_id=? AND agent_id=? AND position<?",
                (source.session_id, source.agent_id, before),
            )
            return await _content_of(database, source, 0, before)
        case Spawned(agent_id, position, call_id):
            await database.execute(
                "INSERT OR IGNORE INTO spawn VALUES(?,?,?,?,?)",
                (source.session_id, agent_id, source.agent_id, position, call_id),
            )
            return set()
        case Truncate(position, _):
            return await _truncate(database, source, position, mark)


async def _content_of(database: Database, source: Source, low: int, high: int) -> set[int]:
    rows = await database.rows(
        "SELECT content_id FROM occurrence WHERE session_id=? AND agent_id=? AND position>=? AND position<?",
        (source.session_id, source.agent_id, low, high),
    )
    return {row[0] for row in rows}


async def _truncate(database: Database, source: Source, position: int, mark: Truncate) -> set[int]:
    """A stored turn lost its end: its content becomes another one."""
    row = await database.row(
        f"SELECT {', '.join('o.' + c for c in OCCURRENCE.split(', '))}, c.body FROM occurrence o"
        " JOIN content c ON c.id=o.content_id WHERE o.session_id=? AND o.agent_id=? AND o.position=?",
        (source.session_id, source.agent_id, position),
    )
    if row is None:
        return set()
    old = occurrence(row)
    packed = fold.pack(apply_truncate(unpack(row[21], old), mark), database.dictionary)
    ids = await put_contents(database, [packed])
    await database.execute("UPDATE occurrence SET content_id=? WHERE id=?", (ids[packed.digest], old.id))
    return {old.content_id, ids[packed.digest]}


def unpack(body: bytes, place: Occurrence) -> Turn:
    """The whole turn record: its content in the place of one occurrence."""
    return replace(
        codec.unpack(body),
        position=place.position,
        turn_id=place.turn_id,
        last_at=place.last_at,
        start=place.start,
        end=place.end,
        lines=(place.line_first, place.line_last),
        copied=place.copied,
        undone=place.undone,
        undone_at=place.undone_at,
    )


async def find(
    database: Database,
    session_id: str,
    *,
    agent_id: str = "main",
    turn_id: int | None = None,
    position: int | None = None,
) -> list[Occurrence]:
    """All turns that a reference names: by engine number (twins share it) or by position; all of the agent
    without.
    """
    sql = f"SELECT {OCCURRENCE} FROM occurrence WHERE session_id=? AND agent_id=?"
    parameters: list[Any] = [session_id, agent_id]
    for column, value in (("turn_id", turn_id), ("position", position)):
        if value is not None:
            sql += f" AND {column}=?"
            parameters.append(value)
    return [occurrence(row) for row in await database.rows(sql + " ORDER BY position", parameters)]


async def bodies(database: Database, content_ids: Sequence[int]) -> dict[int, bytes]:
    """Compressed bodies by content id; ids that are gone are left out."""
    found: dict[int, bytes] = {}
    for begin in range(0, len(content_ids), 500):
        some = content_ids[begin : begin + 500]
        marks = ",".join("?" * len(some))
        found.update(
            (row[0], row[1])
            for row in await database.rows(f"SELECT id, body FROM content WHERE id IN ({marks})", some)
        )
    return found


_REFINED = (
    "SELECT c.digest, r.version, r.decision, r.body FROM refined r JOIN content c ON c.id=r.content_id"
    " WHERE c.shown IS NOT NULL ORDER BY 1"
)


async def fingerprint(database: Database) -> str:
    """Digest of the store's logical content, free of row ids, clocks and order of work (tests, `doctor`).

    What was refined counts as far as it is shown: a turn may have been refined before it was undone.
    """
    digest = hashlib.sha256()
    for sql in (
        "SELECT o.session_id, o.agent_id, o.position, o.turn_id, c.digest, o.status, o.open, o.copied, o.undone,"
        " o.undone_at, o.start, o.end, o.opener_digest,"
        " (SELECT s.session_id || s.agent_id || s.position FROM occurrence s WHERE s.id=c.shown)"
        " FROM occurrence o JOIN content c ON c.id=o.content_id ORDER BY 1, 2, 3",
        "SELECT * FROM spawn ORDER BY 1, 2, 3, 4, 5",
        "SELECT session_id, agent_id, offset, head_hash, tail_hash, complete FROM source ORDER BY 1, 2",
        _REFINED,
        "SELECT c.digest, e.kind, e.value, m.written FROM mention m JOIN entity e ON e.id=m.entity_id"
        " JOIN content c ON c.id=m.content_id WHERE c.shown IS NOT NULL"
        " ORDER BY 1, 2, 3",
    ):
        for row in await database.rows(sql):
            # Bodies count by what is in them, not by how they are compressed.
            values = [
                codec.expand(value) if sql is _REFINED and i == 3 else value for i, value in enumerate(row)
            ]
            digest.update(repr(values).encode())
    return digest.hexdigest()
