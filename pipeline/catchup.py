"""Catch-up: fold what the wires gained since the last time, and commit it.

    wires with news ─► readers (fold, off the loop) ─► bounded stream of batches ─► one writer (transactions)

Rows and offset commit together, and only if the wire's row still has the version that the fold started from;
otherwise the batch is dropped and the wire is read again from the stored checkpoint. A kill at any instant,
or two processes on one file, lose nothing and repeat nothing."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from pipeline.errors import DiskFull
from pipeline.fold import BATCH_BYTES, FORGOTTEN, FoldBatch, FoldJob, fold, redactor
from pipeline.keeping import expiry, keep_rules
from pipeline.reading import origin_of
from pipeline.report import Report
from pipeline.sessions import Session
from pipeline.store import codec, tombstones
from pipeline.store import sources as rows
from pipeline.store.database import Database
from pipeline.store.erasing import erase
from pipeline.store.sources import Source
from pipeline.store.tombstones import Tombstones
from pipeline.store.turns import apply_batch, drop_old_generation, find
from pipeline.workers import Workers
from stages.model import Copied
from stages.split import StateMismatch
from stages.tail import SourceError, SourceRewritten, Verdict, verdict
from stages.wire.contract import Origin

log = logging.getLogger(__name__)

ROUNDS = 4
"""How often wires that changed under us, or that another process folded first, are taken up again in one
call.
"""
BUDGET_BYTES = 512 * 1024
"""Piece size under a time budget: about 10 ms of work, so that the budget is kept."""
COALESCE = 16
"""Batches committed in one transaction at most."""


@dataclass(frozen=True, slots=True)
class Work:
    """One wire with news."""

    source: Source
    origin: Origin
    verdict: Verdict
    size: int


@dataclass(frozen=True, slots=True)
class Folded:
    """A batch on its way to the writer. ``source`` carries the generation that its rows belong to."""

    source: Source
    batch: FoldBatch
    first: bool


Progress = Callable[[int, int], None]
"""Called with (bytes done, bytes in all) after each commit."""


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
        run = _Run(database, key, workers, report, deadline, progress, total, limits)
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


@dataclass(frozen=True, slots=True)
class Limits:
    """What is not to be stored: forgotten, excluded or too old."""

    stones: Tombstones
    sources: Mapping[str, str | None]
    exclude: tuple[str, ...] = ()
    expired: int | None = None

    def of(self, source: Source) -> dict[str, Any]:
        """The fields of a FoldJob for this wire."""
        forgotten = self.stones.of_session(source.session_id, self.sources)
        return {
            "forgotten": forgotten,
            "retold": forgotten is not None
            and (forgotten.touches(source.agent_id) or bool(source.counts.get(FORGOTTEN))),
            "exclude": self.exclude,
            "expired": self.expired,
        }


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
    return redactor(key)(title)


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


class _Run:
    """One round over the wires with news."""

    def __init__(
        self,
        database: Database,
        key: bytes,
        workers: Workers,
        report: Report,
        deadline: float | None,
        progress: Progress | None,
        total: int,
        limits: Limits,
    ) -> None:
        self.database = database
        self.key = key
        self.workers = workers
        self.report = report
        self.deadline = deadline
        self.progress = progress
        self.total = total
        self.limits = limits
        self.done = 0
        self.stale: set[int] = set()
        self.current: dict[int, Source] = {}

    async def all(self, work: Sequence[Work]) -> set[int]:
        """Fold everything; returns the wires to take up again."""
        send, receive = anyio.create_memory_object_stream[Folded](self.workers.jobs)
        items = iter(work)
        async with anyio.create_task_group() as group:
            group.start_soon(self._write_all, receive)
            async with send, anyio.create_task_group() as readers:
                # One reader more than workers keeps them busy; under a budget it would only overrun it.
                for _ in range(min(self.workers.jobs + (self.deadline is None), len(work))):
                    readers.start_soon(self._read_all, items, send.clone())
        return self.stale

    async def _read_all(self, items: Iterator[Work], send: MemoryObjectSendStream[Folded]) -> None:
        async with send:
            for item in items:
                if self.deadline is not None and time.monotonic() >= self.deadline:
                    self.report.incomplete = True
                    return
                try:
                    await self._read(item, send)
                except SourceRewritten:
                    self.stale.add(item.source.id)
                except SourceError as error:
                    self.report.skipped[error.verdict.value] += 1
                except (anyio.BrokenWorkerProcess, Exception) as error:  # one bad wire never stops a run
                    log.exception("folding %s failed", item.source.path)
                    self.report.skipped["failed"] += 1
                    self.report.failures.append(f"{item.source.path}: {type(error).__name__}: {error}")

    async def _read(self, item: Work, send: MemoryObjectSendStream[Folded]) -> None:
        source, first = item.source, True
        limit = BATCH_BYTES if self.deadline is None else BUDGET_BYTES
        job = FoldJob(item.source.path, item.origin, self.key, limit=limit, **self.limits.of(source))
        if item.verdict is Verdict.APPEND:
            job = replace(
                job, checkpoint=source.checkpoint, state=await rows.saved_state(self.database, source.id)
            )
        else:
            source = replace(source, generation=source.generation + 1)
        while True:
            shared = codec.dictionary(self.database.dictionary)
            try:
                batch = await self.workers.run(fold, replace(job, dictionary=shared))
            except StateMismatch:
                # The saved state is damaged or another program version's: what the wire says counts.
                source, first = replace(source, generation=source.generation + 1), True
                job = replace(job, checkpoint=None, state=None)
                continue
            if batch.checkpoint is None:  # nothing complete in it yet
                return
            await send.send(Folded(source, batch, first))
            first = False
            if batch.at_end or source.id in self.stale:
                return
            if self.deadline is not None and time.monotonic() >= self.deadline:
                self.report.incomplete = True
                return
            retold = job.retold or bool(batch.counts[FORGOTTEN])
            job = replace(job, checkpoint=batch.checkpoint, state=batch.state, retold=retold)

    async def _write_all(self, receive: MemoryObjectReceiveStream[Folded]) -> None:
        async with receive:
            async for folded in receive:
                together = [folded]
                while len(together) < COALESCE:
                    try:
                        together.append(receive.receive_nowait())
                    except (anyio.WouldBlock, anyio.EndOfStream):
                        break
                async with self.database.transaction():
                    for item in together:
                        await self._write(item)
                    await self.database.learn_dictionary()
                if self.progress is not None:
                    self.progress(self.done, self.total)

    async def _write(self, folded: Folded) -> None:
        source, batch = folded.source, folded.batch
        self.done += batch.read
        if source.id in self.stale or batch.checkpoint is None:
            return
        expected = self.current.get(source.id, source)
        stored = await rows.source(self.database, source.id)
        if stored.version != expected.version:
            self.stale.add(source.id)
            return
        now = _now_ms()
        source = replace(source, version=stored.version)
        await apply_batch(self.database, source, batch, now=now)
        await self._drop_copies(source, batch)
        reread = source.generation != stored.generation
        if batch.at_end and (reread or not stored.complete):
            await drop_old_generation(self.database, source)
        counts = dict(batch.counts) if reread else _sum(stored, batch)
        await rows.advance(
            self.database,
            source,
            batch.checkpoint,
            batch.state,
            complete=batch.at_end,
            counts=counts,
            now=now,
        )
        self.current[source.id] = replace(source, version=stored.version + 1)
        self._count(folded)

    async def _drop_copies(self, source: Source, batch: FoldBatch) -> None:
        """Turns that only now turn out to be copies, of turns that are forgotten."""
        forgotten = self.limits.stones.of_session(source.session_id, self.limits.sources)
        if forgotten is not None and any(isinstance(mark, Copied) for mark in batch.marks):
            turns = await find(self.database, source.session_id, agent_id=source.agent_id)
            await erase(self.database, [turn for turn in turns if forgotten(turn)])

    def _count(self, folded: Folded) -> None:
        self.report.files += folded.first
        self.report.bytes += folded.batch.read
        self.report.turns += len(folded.batch.turns)
        self.report.redacted.update(folded.batch.redacted)
        self.report.note(folded.batch.counts)


def _sum(stored: Source, batch: FoldBatch) -> dict[str, int]:
    total = dict(stored.counts)
    for name, count in batch.counts.items():
        total[name] = total.get(name, 0) + count
    return total
