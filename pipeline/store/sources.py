"""Sessions and wires as the store knows them: checkpoints, saved fold states, and the optimistic lock on
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from pipeline.sessions import Agent, Session
from pipeline.store import codec
from pipeline.store.database import Database
from stages.model import Checkpoint


@dataclass(frozen=True, slots=True)
class Source:
    """One wire's row. ``version`` changes with every commit on it; ``generation`` with every reread from 0."""

    id: int
    session_id: str
    agent_id: str
    path: str
    version: int
    generation: int
    checkpoint: Checkpoint | None
    complete: bool
    counts: Mapping[str, int]


_COLUMNS = (
    "id, session_id, agent_id, path, version, generation, dev, ino, offset, head_hash, tail_hash, size, mtime_ns,"
    " complete, counts"
)


def _source(row: Any) -> Source:
    checkpoint = None
    if row[9] is not None:
        checkpoint = Checkpoint(
            dev=row[6],
            ino=row[7],
            offset=row[8],
            head_hash=row[9],
            tail_hash=row[10],
            size=row[11],
            mtime_ns=row[12],
        )
    return Source(
        id=row[0],
        session_id=row[1],
        agent_id=row[2],
        path=row[3],
        version=row[4],
        generation=row[5],
        checkpoint=checkpoint,
        complete=bool(row[13]),
        counts={} if row[14] == "{}" else orjson.loads(row[14]),
    )


async def sources(database: Database) -> dict[tuple[str, str], Source]:
    """Every known wire by (session, agent), present or not."""
    return {(row[1], row[2]): _source(row) for row in await database.rows(f"SELECT {_COLUMNS} FROM source")}


async def source(database: Database, source_id: int) -> Source:
    """One wire's row as it stands now."""
    return _source(await database.row(f"SELECT {_COLUMNS} FROM source WHERE id=?", (source_id,)))


async def saved_state(database: Database, source_id: int) -> bytes | None:
    """The splitter state that belongs to the committed checkpoint."""
    row = await database.row("SELECT state FROM source WHERE id=?", (source_id,))
    return codec.expand(row[0]) if row and row[0] is not None else None


async def register(database: Database, sessions: Iterable[Session], *, now: int) -> None:
    """Note the sessions and wires that discovery found; call inside a transaction. Unchanged rows are not
    written.
    """
    found = list(sessions)
    await database.executemany(
        """INSERT INTO session(session_id, kind, dir, cwd, title, created_at, updated_at, archived, forked_from,
               imported_from, present) VALUES(?,?,?,?,?,?,?,?,?,?,1)
           ON CONFLICT(session_id) DO UPDATE SET kind=excluded.kind, dir=excluded.dir, cwd=excluded.cwd,
               title=excluded.title, created_at=excluded.created_at, updated_at=excluded.updated_at,
               archived=excluded.archived, forked_from=excluded.forked_from,
               imported_from=excluded.imported_from, present=1""",
        [_session_row(session) for session in found],
    )
    await database.executemany(
        """INSERT INTO source(session_id, agent_id, path, kind, parent_agent, seen_at) VALUES(?,?,?,?,?,?)
           ON CONFLICT(session_id, agent_id) DO UPDATE SET path=excluded.path, kind=excluded.kind,
               parent_agent=excluded.parent_agent, present=1""",
        [
            (session.session_id, agent.agent_id, str(agent.wire), agent.kind, agent.parent_agent_id, now)
            for session in found
            for agent in session.agents
        ],
    )


def _session_row(session: Session) -> tuple[Any, ...]:
    return (
        session.session_id,
        session.kind,
        str(session.dir),
        session.cwd,
        session.title,
        session.created_at,
        session.updated_at,
        int(session.archived),
        session.forked_from,
        session.imported_from,
    )


async def unchanged(database: Database, sessions: Iterable[Session]) -> bool:
    """Whether ``register`` would change nothing: a catch-up without news must not write."""
    stored = {
        row[0]: tuple(row)
        for row in await database.rows(
            "SELECT session_id, kind, dir, cwd, title, created_at, updated_at, archived, forked_from, imported_from"
            " FROM session WHERE present=1"
        )
    }
    wires = {
        (row[0], row[1]): tuple(row[2:])
        for row in await database.rows(
            "SELECT session_id, agent_id, path, kind, parent_agent FROM source WHERE present=1"
        )
    }
    seen_sessions, seen_wires = set(), set()
    for session in sessions:
        seen_sessions.add(session.session_id)
        if stored.get(session.session_id) != _session_row(session):
            return False
        for agent in session.agents:
            seen_wires.add((session.session_id, agent.agent_id))
            if wires.get((session.session_id, agent.agent_id)) != _wire_row(agent):
                return False
    return seen_sessions == set(stored) and seen_wires == set(wires)


def _wire_row(agent: Agent) -> tuple[Any, ...]:
    return (str(agent.wire), agent.kind, agent.parent_agent_id)


async def mark_gone(database: Database, sessions: Iterable[Session]) -> None:
    """Mark sessions and wires that discovery no longer finds; their turns stay (the store may be the last
    copy).
    """
    found = list(sessions)
    here = {session.session_id for session in found}
    wires = {(session.session_id, agent.agent_id) for session in found for agent in session.agents}
    gone = [
        row[0]
        for row in await database.rows("SELECT session_id FROM session WHERE present=1")
        if row[0] not in here
    ]
    lost = [
        (row[0], row[1])
        for row in await database.rows("SELECT session_id, agent_id FROM source WHERE present=1")
        if (row[0], row[1]) not in wires
    ]
    await database.executemany("UPDATE session SET present=0 WHERE session_id=?", [(name,) for name in gone])
    await database.executemany("UPDATE source SET present=0 WHERE session_id=? AND agent_id=?", lost)


async def advance(
    database: Database,
    source: Source,
    checkpoint: Checkpoint,
    state: bytes | None,
    *,
    complete: bool,
    counts: Mapping[str, int],
    now: int,
) -> bool:
    """Move a wire's checkpoint on, in the caller's transaction; ``False`` if another process was faster."""
    changed = await database.execute(
        """UPDATE source SET version=version+1, generation=?, dev=?, ino=?, offset=?, head_hash=?, tail_hash=?,
               size=?, mtime_ns=?, state=?, complete=?, counts=?, seen_at=?, present=1
           WHERE id=? AND version=?""",
        (
            source.generation,
            checkpoint.dev,
            checkpoint.ino,
            checkpoint.offset,
            checkpoint.head_hash,
            checkpoint.tail_hash,
            checkpoint.size,
            checkpoint.mtime_ns,
            None if state is None else codec.compress(state, database.dictionary),
            int(complete),
            orjson.dumps(dict(counts)).decode(),
            now,
            source.id,
            source.version,
        ),
    )
    return changed == 1
