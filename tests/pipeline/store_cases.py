"""Stores made in tests: catch-up and refining without the command line."""

from __future__ import annotations

import os
from pathlib import Path

import anyio

from pipeline.catchup import catch_up
from pipeline.config import load
from pipeline.refining import refine_all
from pipeline.report import Report
from pipeline.sessions import Inventory, discover
from pipeline.settings import Settings
from pipeline.store.database import open_database
from pipeline.store.refined import unrefined
from pipeline.store.turns import fingerprint
from pipeline.workers import Workers

KEY = b"a key for tests, 32 bytes long.."
SAMPLES = Path(__file__).parent.parent / "samples"


def settings(home: Path, store: Path, legacy: Path | None = None) -> Settings:
    """Settings that look at one home and nothing else."""
    return load(
        {
            "HOME": "/home/dev",
            "KIMI_CODE_HOME": str(home),
            "KIMI_SHARE_DIR": str(legacy or home / "no-legacy"),
            "MEMORY_STORE_ROOT": str(store),
            "PATH": os.environ.get("PATH", ""),
        }
    )


def inventory(home: Path, legacy: Path | None = None) -> Inventory:
    return discover(settings(home, home / "no-store", legacy))


async def filled(database_path: Path, found: Inventory, *, refine: bool = False, jobs: int = 1) -> Report:
    """Catch a store up with everything that was found; optionally refine it all."""
    report = Report()
    async with open_database(database_path) as database:
        await catch_up(database, found.sessions, key=KEY, workers=Workers(jobs), report=report)
        if refine:
            await refine_all(database, await unrefined(database), workers=Workers(jobs), report=report)
    return report


def fill(database_path: Path, found: Inventory, *, refine: bool = False, jobs: int = 1) -> Report:
    """``filled`` for tests without a loop."""

    async def work() -> Report:
        return await filled(database_path, found, refine=refine, jobs=jobs)

    return anyio.run(work)


def content(database_path: Path) -> str:
    """The store's logical content."""

    async def work() -> str:
        async with open_database(database_path) as database:
            return await fingerprint(database)

    return anyio.run(work)
