"""Before a search: fold the newest bytes within a small budget, and say how far behind the store still is."""

from __future__ import annotations

import time
from collections.abc import Sequence

from pipeline.catchup import catch_up
from pipeline.errors import PipelineError
from pipeline.report import Report
from pipeline.search import Freshness
from pipeline.sessions import Session
from pipeline.settings import Settings
from pipeline.store.database import Database, open_database
from pipeline.store.layout import Layout, redaction_key
from pipeline.upkeep import index_is_current, note_versions
from pipeline.workers import Workers

RESERVE = 0.1
"""Seconds of the budget kept for the last piece's commit and for the answer itself."""
LEAST = 0.02
"""Seconds spent on news at least: one appended turn is folded even if opening the store took the rest."""


async def freshen(
    layout: Layout, sessions: Sequence[Session], settings: Settings, budget: float
) -> Freshness:
    """Catch the store of ``layout`` up for at most ``budget`` seconds. A store that cannot be written is stale:
    it answers with what it has. Never raises for it."""
    began = time.monotonic()
    try:
        key = redaction_key(settings.store_root, create=True)
        async with open_database(
            layout.database, wait_ms=int(max(LEAST, budget - RESERVE) * 1000)
        ) as database:
            left = budget - RESERVE - (time.monotonic() - began)
            return await catch_up_within(database, sessions, key=key, budget=max(LEAST, left))
    except PipelineError as error:
        return Freshness(stale=True, reason=f"new bytes could not be read: {error.message}")


async def catch_up_within(
    database: Database, sessions: Sequence[Session], *, key: bytes, budget: float
) -> Freshness:
    """The same over an open database. Raises what ``catch_up`` raises."""
    if await database.meta("tokenizer") is None:
        async with database.transaction():
            await note_versions(database)
    report = Report()
    await catch_up(database, sessions, key=key, workers=Workers(1), report=report, budget=budget)
    if not await index_is_current(database):
        return Freshness(stale=True, reason="the index is of another version: `pipeline index` makes it anew")
    if report.incomplete:
        return Freshness(
            incomplete=True, reason="not all new bytes are read yet: `pipeline index` reads the rest"
        )
    if report.failures:
        return Freshness(incomplete=True, reason=f"could not read {len(report.failures)} of the wires")
    return Freshness()
