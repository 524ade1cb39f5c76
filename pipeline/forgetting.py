"""Forgetting that sticks: what a person names goes from everything this service keeps, and does not come back.

    plan (reads only) ─► tombstones on disk ─► one transaction (rows, index, states, dictionary) ─► files ─► bytes

The tombstones come first and say what is still to be done: a kill at any instant leaves the store as before, or
with a plan that the next catch-up, `pipeline forget` or `pipeline doctor --fix` carries out. Kimi's own files are
never touched: what is forgotten here is still in the wires, until Kimi's session is deleted.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace

import anyio
from anyio import to_thread
from filelock import Timeout

from pipeline.errors import PipelineError, StoreError
from pipeline.forgetting_plan import Plan, Request, plan
from pipeline.forgotten_files import Aim, Gone, clean, survey
from pipeline.report import Report
from pipeline.store import files, tombstones
from pipeline.store.database import Database
from pipeline.store.erasing import (
    blank_states,
    drop_claims,
    drop_retellings,
    erase,
    forgotten_rows,
    repack,
)
from pipeline.store.layout import Layout
from pipeline.store.themes import PAGE_ASIDE, ThemeStore
from pipeline.store.tombstones import Pending, Tombstones
from pipeline.workers import Workers

__all__ = ["Done", "Plan", "Request", "finish", "forget", "plan", "purge_theme"]

log = logging.getLogger(__name__)

CHECKPOINT_TRIES = 50
CHECKPOINT_WAIT_S = 0.1
POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Done:
    """``emptied`` is false while a reader keeps the write-ahead log from being emptied: doctor tells, the next run
    tries again. ``untold`` are themes whose page could not be made anew now."""

    emptied: bool
    untold: tuple[str, ...] = ()


async def forget(database: Database, layout: Layout, wanted: Plan, *, workers: Workers) -> Done:
    """Carry out a plan. Raises StoreError when the disk refuses; what was begun is then finished by the next run."""
    async with _held(layout):
        stones, _ = await tombstones.current(database)
        stones = stones.and_also(wanted.graves, wanted.sessions, wanted.periods, wanted.found.pending)
        await to_thread.run_sync(tombstones.write, tombstones.place(database.path), stones)
        # From here on every catch-up leaves these turns out; a kill from here on is finished by the next run.
        return await _carry_out(database, layout, stones, workers)


async def finish(database: Database, *, workers: Workers | None = None) -> bool:
    """Finish a request that a kill or a full disk interrupted, or that a restored backup undid. ``False`` while
    another process is at it. Cheap when there is nothing to do."""
    stones, done = await tombstones.current(database)
    if done:
        return True
    layout = Layout(database.path.parent.parent)
    try:
        async with _held(layout, 0.0):
            found = await to_thread.run_sync(survey, layout.root, Gone(stones), Aim())
            await _carry_out(database, layout, stones.also_pending(found.pending), workers or Workers(1))
    except StoreError as error:
        if not isinstance(error.__cause__, Timeout):
            raise
        return False
    return True


@asynccontextmanager
async def _held(layout: Layout, wait_s: float = 60.0) -> AsyncIterator[None]:
    """Hold the store's lock on forgetting. Raises StoreError after ``wait_s`` seconds."""
    deadline = anyio.current_time() + wait_s
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(files.locked(layout.root, tombstones.NAME, timeout=0.0))
                break
            except StoreError as error:
                if not isinstance(error.__cause__, Timeout) or anyio.current_time() >= deadline:
                    raise
            await anyio.sleep(POLL_S)
        yield


async def _carry_out(database: Database, layout: Layout, stones: Tombstones, workers: Workers) -> Done:
    gone = Gone(stones)
    await _rows(database, stones)
    left = await to_thread.run_sync(clean, layout.root, gone, stones.pending)
    untold = await _tell_anew(database, layout, left, workers)
    await database.shed()
    async with database.transaction():
        await database.set_meta(tombstones.APPLIED, stones.number)
    done = replace(stones, pending=Pending())
    await to_thread.run_sync(tombstones.write, tombstones.place(database.path), done)
    return Done(await emptied(database), tuple(untold))


async def _rows(database: Database, stones: Tombstones) -> None:
    """The database's part, in one transaction."""
    from pipeline.upkeep import index_anew

    try:
        async with database.transaction():
            await tombstones.keep_copy(database, stones)
            await erase(database, await forgotten_rows(database, stones))
            await drop_retellings(database, stones)
            await drop_claims(database, stones)
            await blank_states(database, stones)
            await repack(database)
            await index_anew(database)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await database.load_dictionaries()  # as they are, now that nothing of it happened
        raise


async def _tell_anew(
    database: Database, layout: Layout, themes: Sequence[str], workers: Workers
) -> list[str]:
    """Rebuild the themes that lost something, from what remains."""
    from pipeline.theming import ThemeRequest, build_theme

    untold = []
    for name in themes:
        try:
            await build_theme(database, layout, "", ThemeRequest(name), workers=workers, report=Report())
        except PipelineError as error:
            log.warning("theme %s could not be told anew: %s", name, error.message)
            untold.append(name)
        store = ThemeStore(layout.root)
        await to_thread.run_sync(store.history.forget, store.path(name))
    return untold


async def purge_theme(database: Database, layout: Layout, name: str) -> None:
    """Take what is forgotten out of a theme that was being built meanwhile, with its page and all earlier versions."""
    stones, _ = await tombstones.current(database)
    store = ThemeStore(layout.root)

    def purge() -> None:
        path = store.path(name)
        pages = [path.with_suffix(".md"), path.with_name(f"{path.stem}{PAGE_ASIDE}.md")]
        there = tuple(page.relative_to(layout.root).as_posix() for page in pages if page.exists())
        clean(layout.root, Gone(stones), Pending(files=there, themes=(path.stem,)))
        store.history.forget(path)

    await to_thread.run_sync(purge)


async def emptied(database: Database) -> bool:
    """Empty the write-ahead log, waiting a little for readers to let go of older states."""
    for _ in range(CHECKPOINT_TRIES):
        if await database.checkpoint():
            return True
        await anyio.sleep(CHECKPOINT_WAIT_S)
    return False
