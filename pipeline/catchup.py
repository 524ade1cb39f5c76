"""Catch-up: what the wires gained since the last time goes into the store (``pipeline.folding``).

Before anything is read: interrupted forgetting is finished, rules of retention hold, sessions are registered.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from anyio import to_thread

from pipeline.errors import DiskFull
from pipeline.fold import redactor
from pipeline.folding import FoldRun, Limits, Progress, Work
from pipeline.keeping import expiry, keep_rules
from pipeline.reading import origin_of
from pipeline.report import Report
from pipeline.sessions import Session, clean_title
from pipeline.store import sources as rows
from pipeline.store import tombstones
from pipeline.store.database import Database
from pipeline.store.sources import Source
from pipeline.store.tombstones import Tombstones
from pipeline.workers import Workers
from stages.tail import Verdict, verdict

log = logging.getLogger(__name__)

ROUNDS = 4
"""How often wires that changed under us, or that another process folded first, are taken up again in one
call.
"""


async def catch_up(
    database: Database,
    sessions: Sequence[Session],
    *,
    key: bytes,
    workers: Workers,
    report: Report,
    budget: float | None = None,
    progress: Progress | None = None,
) -> None:
    """Fold all news of ``sessions`` into the store; with a ``budget`` (seconds) as much as it allows, newest
    first.

    Totals go to ``report``. One bad wire is counted and named there, and never stops the others.
    """
    began = time.monotonic()
    deadline = None if budget is None else began + budget
    now = _now_ms()
    stones = await _finished_forgetting(database, workers)
    if sessions:
        await keep_rules(database, sessions[0].keeping, key, now=now)
    sessions = [_without_secrets(session, key) for session in _untitled(sessions, stones)]
    if not await rows.unchanged(database, sessions):
        async with database.transaction():
            await rows.register(database, sessions, now=now)
            await rows.mark_gone(database, sessions)
    stale: set[int] | None = None
    for _ in range(ROUNDS):
        known = await rows.sources(database)
        work = await to_thread.run_sync(_plan, known, sessions, stale)
        if not work:
            break
        total = sum(item.size for item in work)
        await to_thread.run_sync(need_space, database.path, total)
        # Asked after the wires' versions: a request made meanwhile changes them, and the batch is then dropped.
        limits = await _limits(database, sessions, now)
        run = FoldRun(database, key, workers, report, deadline, progress, total, limits)
        stale = await run.all(work)
        if not stale or report.incomplete:
            break
    report.seconds += time.monotonic() - began


async def _finished_forgetting(database: Database, workers: Workers) -> Tombstones:
    """What is forgotten; what an interrupted `pipeline forget` left to do comes before anything new is read."""
    stones, done = await tombstones.current(database)
    if not done and not stones.empty:
        from pipeline.forgetting import finish

        await finish(database, workers=workers)
    return stones


def _untitled(sessions: Sequence[Session], stones: Tombstones) -> Sequence[Session]:
    """Without the titles that may be made of forgotten prompts."""
    if stones.empty:
        return sessions
    sources = {session.session_id: session.forked_from or session.imported_from for session in sessions}

    def told(session: Session) -> bool:
        forgotten = stones.of_session(session.session_id, sources)
        return stones.within(session.created_at) or (forgotten is not None and forgotten.concerns_title)

    return [replace(session, title=None) if told(session) else session for session in sessions]


async def _limits(database: Database, sessions: Sequence[Session], now: int) -> Limits:
    stones, _ = await tombstones.current(database)
    keeping = sessions[0].keeping
    sources = {} if stones.empty else await tombstones.lineage(database)
    return Limits(stones, sources, keeping.exclude_paths, expiry(keeping, now))


BACKFILL_BYTES = 64 * 1024 * 1024
"""News from which the space on the disk is asked for first."""
STORE_SHARE, STORE_LEAST = 0.15, 16 * 1024 * 1024
"""A store takes at most 0.12 of its wires' bytes; the write-ahead log and index merges come on top."""


def need_space(path: Path, news: int) -> None:
    """Raise DiskFull before a backfill that the disk cannot hold."""
    if news < BACKFILL_BYTES:
        return
    needed = int(news * STORE_SHARE) + STORE_LEAST
    free = shutil.disk_usage(path.parent).free
    if free < needed:
        raise DiskFull(path.parent, needed, free)


def _without_secrets(session: Session, key: bytes) -> Session:
    """Titles are prompts cut short."""
    if session.title is None:
        return session
    title = _clean_title(session.title, key)
    return session if title == session.title else replace(session, title=title)


@lru_cache(maxsize=16_384)
def _clean_title(title: str, key: bytes) -> str:
    """Remembered: each catch-up sees all titles again."""
    return clean_title(title, redactor(key))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _plan(
    known: dict[tuple[str, str], Source], sessions: Sequence[Session], only: set[int] | None
) -> list[Work]:
    """Wires with news, newest first (stat calls: run off the loop)."""
    work = []
    for session in sessions:
        for agent in session.agents:
            source = known.get((session.session_id, agent.agent_id))
            if source is None or (only is not None and source.id not in only):
                continue
            found = verdict(agent.wire, source.checkpoint)
            if found is Verdict.SAME:
                if source.complete:
                    continue
                found = Verdict.APPEND  # an interrupted reread has not yet dropped what the file lost
            if found in (Verdict.GONE, Verdict.IRREGULAR):
                continue
            try:
                stat = agent.wire.stat()
            except OSError:
                continue
            done = source.checkpoint.offset if source.checkpoint and found is Verdict.APPEND else 0
            origin = origin_of(session, agent)
            work.append(
                (
                    stat.st_mtime_ns,
                    Work(replace(source, path=str(agent.wire)), origin, found, stat.st_size - done),
                )
            )
    work.sort(key=lambda item: -item[0])
    return [item for _, item in work]
