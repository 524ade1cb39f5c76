"""A cancelled caller leaves no connection: each is a thread that would keep the process from ending."""

from __future__ import annotations

import threading
from pathlib import Path

import anyio
import pytest

from pipeline.store.database import open_database
from tests.pipeline.store_cases import SAMPLES, fill, inventory


def connections() -> int:
    return sum("_connection_worker_thread" in thread.name for thread in threading.enumerate())


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
