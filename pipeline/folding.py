"""The folding stage: wires with news go through the workers into the store.

    wires with news ─► readers (fold, off the loop) ─► batches ─► groups ─► one writer (a transaction each)

Rows and offset commit together, and only if the wire's row still has the version that the fold started from;
otherwise the batch is dropped and the wire is read again from the stored checkpoint. A kill at any instant,
or two processes on one file, lose nothing and repeat nothing."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from pipeline.fold import BATCH_BYTES, FORGOTTEN, FoldBatch, FoldJob, fold
from pipeline.report import Report
from pipeline.store import codec
from pipeline.store import sources as rows
from pipeline.store.database import Database
from pipeline.store.erasing import erase
from pipeline.store.sources import Source
from pipeline.store.tombstones import Tombstones
from pipeline.store.turns import apply_batches, drop_old_generation, find
from pipeline.workers import Workers
from stages.model import Checkpoint, Copied
from stages.split import StateMismatch
from stages.tail import SourceError, SourceRewritten, Verdict
from stages.wire.contract import Origin

log = logging.getLogger(__name__)

BUDGET_BYTES = 512 * 1024
"""Piece size under a time budget: about 10 ms of work, so that the budget is kept."""
GROUP_BATCHES, GROUP_TURNS = 64, 512
"""Batches, and turns, committed in one transaction: each costs the index a segment to be merged later."""


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
    checkpoint: Checkpoint
    first: bool


Progress = Callable[[int, int], None]
"""Called with (bytes done, bytes in all) after each commit."""


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


class FoldRun:
    """One round over the wires with news. ``deadline`` is of ``time.monotonic()``."""

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
        send_group, receive_group = anyio.create_memory_object_stream[list[Folded]](0)
        items = iter(work)
        async with anyio.create_task_group() as group:
            group.start_soon(self._gather, receive, send_group)
            group.start_soon(self._write_all, receive_group)
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
            await send.send(Folded(source, batch, batch.checkpoint, first))
            first = False
            if batch.at_end or source.id in self.stale:
                return
            if self.deadline is not None and time.monotonic() >= self.deadline:
                self.report.incomplete = True
                return
            retold = job.retold or bool(batch.counts[FORGOTTEN])
            job = replace(job, checkpoint=batch.checkpoint, state=batch.state, retold=retold)

    async def _gather(
        self, receive: MemoryObjectReceiveStream[Folded], send: MemoryObjectSendStream[list[Folded]]
    ) -> None:
        """Put batches together that are committed together: no two of one wire; under a budget those that are
        there.
        """
        group: dict[int, Folded] = {}
        async with receive, send:
            async for folded in receive:
                if folded.source.id in group:
                    await send.send([*group.values()])
                    group.clear()
                group[folded.source.id] = folded
                hurried = self.deadline is not None and not receive.statistics().current_buffer_used
                turns = sum(len(item.batch.turns) for item in group.values())
                if hurried or turns >= GROUP_TURNS or len(group) >= GROUP_BATCHES:
                    await send.send([*group.values()])
                    group.clear()
            if group:
                await send.send([*group.values()])

    async def _write_all(self, receive: MemoryObjectReceiveStream[list[Folded]]) -> None:
        async with receive:
            async for group in receive:
                async with self.database.transaction():
                    await self._write(group)
                    await self.database.learn_dictionary()
                if self.progress is not None:
                    self.progress(self.done, self.total)

    async def _write(self, group: Sequence[Folded]) -> None:
        now = time.time_ns() // 1_000_000
        current = [
            (folded, stored) for folded in group if (stored := await self._unmoved(folded)) is not None
        ]
        await apply_batches(self.database, [(folded.source, folded.batch) for folded, _ in current], now=now)
        for folded, stored in current:
            await self._advance(folded, stored, now)
            self._count(folded)

    async def _unmoved(self, folded: Folded) -> Source | None:
        """The wire's row, if it still is as the fold found it; else the wire is noted to be read again."""
        source = folded.source
        self.done += folded.batch.read
        if source.id in self.stale:
            return None
        stored = await rows.source(self.database, source.id)
        if stored.version != self.current.get(source.id, source).version:
            self.stale.add(source.id)
            return None
        return stored

    async def _advance(self, folded: Folded, stored: Source, now: int) -> None:
        source, batch = replace(folded.source, version=stored.version), folded.batch
        await self._drop_copies(source, batch)
        reread = source.generation != stored.generation
        if batch.at_end and (reread or not stored.complete):
            await drop_old_generation(self.database, source)
        await rows.advance(
            self.database,
            source,
            folded.checkpoint,
            batch.state,
            complete=batch.at_end,
            counts=dict(batch.counts) if reread else _sum(stored, batch),
            now=now,
        )
        self.current[source.id] = replace(source, version=stored.version + 1)

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
