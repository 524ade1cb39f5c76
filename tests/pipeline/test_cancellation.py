"""Nobody waits for ever: cancelled callers leave no connection, and a search does not wait for a writer."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import anyio
import pytest

from pipeline.search import Freshness
from pipeline.search_freshness import freshen
from pipeline.store.database import open_database
from pipeline.store.layout import Layout
from tests.pipeline.store_cases import SAMPLES, fill, inventory, settings


def connections() -> int:
    """Connections that are left once the ones that are closing had time to end."""
    threads = [thread for thread in threading.enumerate() if "_connection_worker_thread" in thread.name]
    for thread in threads:
        thread.join(timeout=5)
    return sum(thread.is_alive() for thread in threads)


@pytest.mark.parametrize("checkpoints", range(0, 40, 3))
def test_a_cancelled_caller_leaves_no_thread(checkpoints: int, tmp_path: Path) -> None:
    path = tmp_path / "refined.sqlite"
    fill(path, inventory(SAMPLES / "a_plain" / "home"))

    async def use() -> None:
        async with open_database(path) as database, database.transaction():
            while True:
                await database.rows("SELECT count(*) FROM content")

    async def cancelled() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(use)
            for _ in range(checkpoints):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()

    anyio.run(cancelled)
    assert connections() == 0
    fill(path, inventory(SAMPLES / "a_plain" / "home"))


def test_a_long_statement_is_broken_off(tmp_path: Path) -> None:
    path = tmp_path / "refined.sqlite"
    fill(path, inventory(SAMPLES / "a_plain" / "home"))
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT count(*) FROM n"

    async def use() -> None:
        async with open_database(path, write=False) as database:
            await database.rows(endless)

    async def cancelled() -> None:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                group.start_soon(use)
                await anyio.wait_all_tasks_blocked()
                group.cancel_scope.cancel()

    anyio.run(cancelled)
    assert connections() == 0


def test_a_search_does_not_wait_for_a_writer_beyond_its_budget(tmp_path: Path) -> None:
    found = inventory(SAMPLES / "a_plain" / "home")
    layout = Layout(tmp_path / "store")
    fill(layout.database, inventory(SAMPLES / "b_resume" / "home"))
    holder = sqlite3.connect(layout.database, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")

    async def look() -> Freshness:
        with anyio.fail_after(5):
            return await freshen(
                layout, found.sessions, settings(SAMPLES / "a_plain" / "home", tmp_path / "root"), 0.2
            )

    try:
        assert anyio.run(look).stale
    finally:
        holder.close()
    assert not anyio.run(look).stale
