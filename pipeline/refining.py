"""The refining stage: candidates ─► bodies ─► workers (pure) ─► one writer."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from pipeline.report import Report
from pipeline.store import codec
from pipeline.store.database import Database
from pipeline.store.refined import Candidate, PackedRefined, pack_refined, store_refined
from pipeline.store.turns import bodies
from pipeline.workers import Workers
from stages.model import Turn
from stages.refine import refine

log = logging.getLogger(__name__)

BATCH_TURNS = 128
"""Turns refined per piece of work: about 30 ms."""

Piece = tuple[bytes | None, dict[int, bytes], list[Candidate]]
"""The dictionary, bodies by content id, and what to refine: what a worker needs, and each body once."""

Done = list[PackedRefined]


def refine_piece(piece: Piece) -> tuple[Done, list[str]]:
    """Refine and pack one piece (pure; runs in any process); one bad turn is named in the second list, never stops the
    rest.
    """
    done: Done = []
    failures = []
    dictionary, found, candidates = piece
    number = None if dictionary is None else codec.use(dictionary)
    turns: dict[int, Turn] = {}  # most turns come twice: to be refined, and as the one before the next
    for candidate in candidates:
        try:
            turn = _unpacked(candidate.content_id, found, turns)
            before = candidate.previous_id
            previous = _unpacked(before, found, turns) if before is not None and before in found else None
            record = refine(turn, previous, cwd=candidate.cwd)
            done.append(pack_refined(candidate.content_id, record, number))
        except Exception as error:  # the boundary of one turn
            log.exception("refining content %d failed", candidate.content_id)
            failures.append(f"turn content {candidate.content_id}: {type(error).__name__}: {error}")
    return done, failures


def _unpacked(content_id: int, found: dict[int, bytes], turns: dict[int, Turn]) -> Turn:
    if content_id not in turns:
        turns[content_id] = codec.unpack(found[content_id])
    return turns[content_id]


async def refine_all(
    database: Database, candidates: Sequence[Candidate], *, workers: Workers, report: Report
) -> None:
    """Refine ``candidates`` and store the records; totals go to ``report``. Nothing is lost on cancel: each
    piece is committed by itself, and what is missing is refined next time."""
    began = time.monotonic()
    pieces = [candidates[i : i + BATCH_TURNS] for i in range(0, len(candidates), BATCH_TURNS)]
    send_piece, receive_piece = anyio.create_memory_object_stream[Piece](workers.jobs)
    send_done, receive_done = anyio.create_memory_object_stream[Done](workers.jobs)
    async with anyio.create_task_group() as group:
        group.start_soon(_load, database, pieces, send_piece)
        async with receive_piece, send_done:
            for _ in range(min(workers.jobs + 1, max(1, len(pieces)))):
                group.start_soon(_refine, workers, receive_piece.clone(), send_done.clone(), report)
        group.start_soon(_store, database, receive_done, report)
    report.seconds += time.monotonic() - began


async def _load(
    database: Database, pieces: Sequence[Sequence[Candidate]], send: MemoryObjectSendStream[Piece]
) -> None:
    async with send:
        for piece in pieces:
            wanted = {c.content_id for c in piece} | {
                c.previous_id for c in piece if c.previous_id is not None
            }
            found = await bodies(database, sorted(wanted))
            alive = [c for c in piece if c.content_id in found]
            await send.send((codec.dictionary(database.dictionary), found, alive))


async def _refine(
    workers: Workers,
    receive: MemoryObjectReceiveStream[Piece],
    send: MemoryObjectSendStream[Done],
    report: Report,
) -> None:
    async with receive, send:
        async for piece in receive:
            done, failures = await workers.run(refine_piece, piece)
            if failures:
                report.skipped["unrefined"] += len(failures)
                report.failures += failures
            await send.send(done)


async def _store(database: Database, receive: MemoryObjectReceiveStream[Done], report: Report) -> None:
    async with receive:
        async for done in receive:
            async with database.transaction():
                await store_refined(database, done, now=time.time_ns() // 1_000_000)
            report.note_refined(database.path, [record.content_id for record in done])
