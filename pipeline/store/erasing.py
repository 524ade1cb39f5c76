"""Taking turns out of the database for good: rows, index, saved states, and the dictionary that learned from them.

Everything here runs in one transaction of the caller, so that a kill leaves the store as it was before or as it is
after; ``Database.shed`` then makes the bytes leave the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from anyio import to_thread

from pipeline import fold
from pipeline.store import codec, tombstones
from pipeline.store.database import Database, batched
from pipeline.store.refined import drop_refined
from pipeline.store.tombstones import Tombstones
from pipeline.store.turns import OCCURRENCE, Occurrence, occurrence, put_contents, settle
from stages.model import Turn
from stages.split import StateMismatch, open_splitter
from stages.wire.blank import blank_compactions, blank_turns
from stages.wire.contract import Origin

PIECE = 500
SAME_MOMENT_MS = 1_500


async def forgotten_rows(database: Database, stones: Tombstones) -> list[Occurrence]:
    """The stored occurrences that the tombstones name."""
    sources = await tombstones.lineage(database)
    found: list[Occurrence] = []
    for (session_id,) in await database.rows("SELECT DISTINCT session_id FROM occurrence"):
        forgotten = stones.of_session(session_id, sources)
        if forgotten is None:
            continue
        rows = await database.rows(f"SELECT {OCCURRENCE} FROM occurrence WHERE session_id=?", (session_id,))
        found += [place for place in map(occurrence, rows) if forgotten(place)]
    return found


async def erase(database: Database, places: Sequence[Occurrence], *, titles: bool = True) -> None:
    """Delete these occurrences, the contents that nothing holds any more, and all that was derived from them.

    The turn after each is to be refined anew: its record may quote what it answered. ``titles``: also those of their
    sessions, which are prompts cut short.
    """
    if not places:
        return
    await drop_refined(database, await _followers(database, places))
    await database.executemany("DELETE FROM occurrence WHERE id=?", [(place.id,) for place in places])
    await database.executemany(
        "DELETE FROM spawn WHERE session_id=? AND parent_agent=? AND position=?",
        [(place.session_id, place.agent_id, place.position) for place in places],
    )
    await settle(database, {place.content_id for place in places})
    if not titles:
        return
    sessions = {place.session_id for place in places}
    await database.executemany(
        "UPDATE session SET title=NULL WHERE session_id=?", [(name,) for name in sessions]
    )


async def _followers(database: Database, places: Sequence[Occurrence]) -> set[int]:
    gone = {place.id for place in places}
    found: set[int] = set()
    for session_id, agent_id in {(place.session_id, place.agent_id) for place in places}:
        before = False
        for row in await database.rows(
            "SELECT id, content_id FROM occurrence WHERE session_id=? AND agent_id=? ORDER BY position",
            (session_id, agent_id),
        ):
            if row[0] in gone:
                before = True
            elif before:
                found.add(row[1])
                before = False
    return found


async def rewrite(
    database: Database, change: Callable[[Turn], Turn], where: str = "1", parameters: Sequence[Any] = ()
) -> int:
    """Put each stored turn through ``change``; those that come out different become other contents. Returns how many.

    ``where`` is a condition on ``content c``. A turn that is damaged stays as it is.
    """
    last, count = 0, 0
    while rows := await database.rows(
        f"SELECT c.id, c.body FROM content c WHERE c.id>? AND ({where}) ORDER BY c.id LIMIT ?",
        (last, *parameters, PIECE),
    ):
        last = rows[-1][0]
        pieces = [(row[0], row[1]) for row in rows]
        packed = await to_thread.run_sync(_changed, pieces, change, database.dictionary)
        if not packed:
            continue
        ids = await put_contents(database, list(packed.values()))
        await database.executemany(
            "UPDATE occurrence SET content_id=? WHERE content_id=?",
            [(ids[each.digest], old) for old, each in packed.items()],
        )
        await settle(database, {*packed, *ids.values()})
        count += len(packed)
    return count


def _changed(
    rows: Sequence[tuple[int, bytes]], change: Callable[[Turn], Turn], dictionary: int | None
) -> dict[int, fold.PackedTurn]:
    found = {}
    for content_id, body in rows:
        try:
            before = codec.unpack(body)
        except ValueError:
            continue
        after = change(before)
        if after != before:
            found[content_id] = fold.pack(after, dictionary)
    return found


async def drop_retellings(database: Database, stones: Tombstones) -> None:
    """Drop the summaries of compactions in the wires that held a forgotten turn: they may retell it."""
    wires = {(grave.session_id, grave.agent_id) for grave in stones.turns}
    sources = await tombstones.lineage(database)
    for (session_id,) in await database.rows("SELECT DISTINCT session_id FROM occurrence"):
        near = {session_id, *tombstones.ancestors(session_id, sources)}
        for agent_id in {agent for name, agent in wires if name in near}:
            await rewrite(
                database,
                _without_compactions,
                "c.id IN (SELECT content_id FROM occurrence WHERE session_id=? AND agent_id=?)",
                (session_id, agent_id),
            )


def _without_compactions(turn: Turn) -> Turn:
    return replace(turn, compactions=()) if turn.compactions else turn


async def blank_states(database: Database, stones: Tombstones) -> None:
    """Take what is forgotten out of the saved states of folds; a state that cannot be read is given up, and its wire
    read again. Bumps every wire's version, so that a fold under way elsewhere is dropped."""
    sources = await tombstones.lineage(database)
    changes = []
    for row in await database.rows(
        "SELECT s.id, s.session_id, s.agent_id, s.state, e.cwd FROM source s"
        " LEFT JOIN session e ON e.session_id=s.session_id WHERE s.state IS NOT NULL"
    ):
        forgotten = stones.of_session(row[1], sources)
        if forgotten is None:
            continue
        try:
            origin = Origin(row[1], row[2], row[4])
            splitter = open_splitter(b"", origin, _as_it_is, codec.expand(row[3]))
            gone = blank_turns(splitter, forgotten)
            if not gone and not forgotten.touches(row[2]):
                continue
            blank_compactions(splitter)
            changes.append((codec.compress(splitter.state(), database.dictionary), row[0]))
        except (ValueError, StateMismatch):
            await read_again(database, [row[0]])
    await database.executemany("UPDATE source SET state=? WHERE id=?", changes)
    await database.execute("UPDATE source SET version=version+1")


def _as_it_is(text: str) -> str:
    return text


async def read_again(database: Database, source_ids: Iterable[int]) -> None:
    """Forget the checkpoints of these wires: the next catch-up reads them from 0."""
    await database.executemany(
        "UPDATE source SET head_hash=NULL, offset=0, state=NULL, complete=0, version=version+1 WHERE id=?",
        [(each,) for each in source_ids],
    )


async def drop_claims(database: Database, stones: Tombstones) -> None:
    """Drop the other server's records of forgotten turns: its table is written for nothing else, and only by its
    rows' own session and time."""
    if not await database.rows("SELECT 1 FROM sqlite_master WHERE type='table' AND name='refined_turns'"):
        return
    times: dict[str, list[int]] = {}
    for grave in stones.turns:
        if grave.started_at is not None:
            times.setdefault(grave.session_id, []).append(grave.started_at)
    gone = []
    for rowid, session, at in await database.rows(
        "SELECT rowid, session_id, CAST(round((julianday(timestamp)-2440587.5)*86400000) AS INTEGER) FROM refined_turns"
    ):
        near = at is not None and any(abs(at - time) <= SAME_MOMENT_MS for time in times.get(session, ()))
        within = at is not None and any(
            (since is None or at >= since) and (until is None or at <= until)
            for since, until in stones.periods
        )
        if session in stones.sessions or near or within:
            gone.append((rowid,))
    await database.executemany("DELETE FROM refined_turns WHERE rowid=?", gone)


async def repack(database: Database) -> None:
    """Learn a dictionary from what remains, compress everything with it, and drop the one before: it holds fragments
    of what it was learned from."""
    bodies = [row[0] for row in await database.rows("SELECT body FROM content ORDER BY id DESC LIMIT 2000")]
    await database.execute("DELETE FROM dictionary")
    database.dictionary = None
    if len(bodies) >= codec.SAMPLES:
        learned = await to_thread.run_sync(codec.learn, bodies)
        await database.execute("INSERT INTO dictionary(data) VALUES(?)", (learned,))
        database.dictionary = codec.use(learned)
    for table, key, column in (
        ("content", "id", "body"),
        ("refined", "content_id", "body"),
        ("source", "id", "state"),
    ):
        last = 0
        while rows := await database.rows(
            f"SELECT {key}, {column} FROM {table} WHERE {key}>? AND {column} IS NOT NULL ORDER BY {key} LIMIT ?",
            (last, PIECE),
        ):
            last = rows[-1][0]
            packed = await to_thread.run_sync(
                _repacked, [(row[0], row[1]) for row in rows], database.dictionary
            )
            await database.executemany(f"UPDATE {table} SET {column}=? WHERE {key}=?", packed)


def _repacked(rows: Sequence[tuple[int, bytes]], dictionary: int | None) -> list[tuple[bytes, int]]:
    return [(codec.compress(codec.expand(body), dictionary), key) for key, body in rows]


async def occurrences_of(database: Database, content_ids: Iterable[int]) -> list[Occurrence]:
    """Every occurrence of these contents."""
    found: list[Occurrence] = []
    for some in batched(sorted(set(content_ids))):
        marks = ",".join("?" * len(some))
        rows = await database.rows(f"SELECT {OCCURRENCE} FROM occurrence WHERE content_id IN ({marks})", some)
        found += map(occurrence, rows)
    return found
