"""One workspace as the server holds it: its store opened piece by piece, at the first use of each.

Memories, themes and proposals are files and need no database. Reads of the database borrow a connection of
their own (temporary tables belong to a connection, so two tasks never share one); one task at a time catches
up, and the others do not wait for it longer than their budget.
"""

from __future__ import annotations

import logging
import secrets
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from pipeline.catchup import catch_up
from pipeline.errors import PipelineError, StoreError
from pipeline.fold import redactor
from pipeline.report import Report
from pipeline.search import Freshness, Searcher
from pipeline.search_freshness import catch_up_within
from pipeline.sessions import Session
from pipeline.settings import Settings
from pipeline.store import files
from pipeline.store.database import Database, store_error
from pipeline.store.essence import Essence
from pipeline.store.layout import KEY_BYTES, Layout, redaction_key
from pipeline.store.material import Usage
from pipeline.store.memories import Memories
from pipeline.store.proposals import Proposals
from pipeline.store.theme_links import StoredThemeLinks
from pipeline.store.themes import ThemeStore
from pipeline.upkeep import tend_index
from pipeline.workers import Workers
from server.runs import Runs
from stages.redact import Redactor

if TYPE_CHECKING:
    from server.service import Service

log = logging.getLogger(__name__)

IDLE_READERS = 2
"""Open read connections kept for the next call."""
PATIENT_S = 3.0
"""Budget of calls that change something by what the turns say: they had better see all of them."""
GRACE_S, FIRST_GRACE_S = 0.1, 3.0
"""How much longer than its budget a catch-up is waited for: opening the store, the last commit; the first one in
a process also compiles the redaction rules and may have to make the store."""


@dataclass(slots=True)
class _Look:
    """A short catch-up that calls may join, and what it found."""

    done: anyio.Event = field(default_factory=anyio.Event)
    found: Freshness | None = None


class Space:
    """One workspace. ``label`` is its directory (or id); ``sessions`` are as discovery saw them for this call."""

    def __init__(self, space_id: str, label: str, settings: Settings, service: Service) -> None:
        self.id = space_id
        self.label = label
        self.settings = settings
        self.service = service
        self.layout = Layout(settings.store(space_id))
        self.sessions: tuple[Session, ...] = ()
        self.runs = Runs(self)
        self.searcher = Searcher(self.layout.database)
        self.catching_up: tuple[int, int] | None = None
        """Bytes done and in all of the catch-up that goes on in the background."""
        self.last_error = ""
        self._catching = anyio.Lock()
        self._next: _Look | None = None
        self._warm = False
        self._readers: list[Database] = []
        self._key: bytes | None = None

    # --- what is kept in files ------------------------------------------------------------------------------

    @cached_property
    def themes(self) -> ThemeStore:
        return ThemeStore(self.layout.root)

    @cached_property
    def links(self) -> StoredThemeLinks:
        return StoredThemeLinks(self.themes, self.service.now)

    @cached_property
    def memories(self) -> Memories:
        return Memories(self.layout.root, now=self.service.now, redact=self.redact, links=self.links)

    @cached_property
    def essence(self) -> Essence:
        return Essence(self.layout.root, self.memories.index, now=self.service.now, redact=self.redact)

    @cached_property
    def usage(self) -> Usage:
        return Usage(self.layout.root, self.service.now)

    @cached_property
    def proposals(self) -> Proposals:
        return Proposals(self.memories, now=self.service.now, redact=self.redact)

    def redact(self, text: str) -> str:
        """``text`` without secrets."""
        return self.redactor(text) if text.strip() else text

    @property
    def redactor(self) -> Redactor:
        return redactor(self.key)

    @property
    def key(self) -> bytes:
        """The redaction key; while the store root refuses to hold one, a key of this process alone."""
        if self._key is None:
            try:
                self._key = redaction_key(self.settings.store_root, create=True)
            except PipelineError:
                return self._spare_key
        return self._key

    @cached_property
    def _spare_key(self) -> bytes:
        try:
            return redaction_key(self.settings.store_root, create=False)
        except PipelineError:
            return secrets.token_bytes(KEY_BYTES)

    # --- the database ---------------------------------------------------------------------------------------

    @asynccontextmanager
    async def reading(self, *, ours: bool = True) -> AsyncIterator[Database]:
        """A read connection for this task alone. Raises StoreError when there is nothing to read.

        ``ours`` asks for our own tables: the file may be the other server's alone.
        """
        database = self._readers.pop() if self._readers else await self._open(write=False)
        sound = False
        try:
            if ours and not await database.schema_version():
                raise StoreError(
                    self.layout.database, "nothing is indexed yet", hint="Ask again in a moment."
                )
            yield database
            sound = True
        except sqlite3.Error as error:
            raise store_error(self.layout.database, error) from error
        finally:
            if sound and len(self._readers) < IDLE_READERS:
                self._readers.append(database)
            else:
                await _close(database)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Database]:
        """A write connection for this task alone; the store is made when it is new."""
        await to_thread.run_sync(files.make_dirs, self.layout.root)
        database = await self._open(write=True)
        try:
            yield database
        except sqlite3.Error as error:
            raise store_error(self.layout.database, error) from error
        finally:
            await _close(database)

    async def _open(self, *, write: bool) -> Database:
        """Opened whole or not at all: a connection's thread must not outlive a cancelled call half open."""
        with anyio.CancelScope(shield=True):
            database = await Database.open(self.layout.database, write=write)
        return database  # noqa: RET504 - a scope may swallow an exception, says its type

    async def has_index(self) -> bool:
        """Whether there is an index of ours to read. Raises StoreError when the file cannot be read."""
        if not self.layout.database.is_file():
            return False
        version = 0
        async with self.reading(ours=False) as database:
            version = await database.schema_version()
        return version > 0

    async def reads_index(self) -> bool:
        """``has_index``, for answers that can do without: what hinders is kept for the status."""
        try:
            return await self.has_index()
        except PipelineError as error:
            self.last_error = error.message
            return False

    async def freshen(self, budget: float | None = None) -> Freshness:
        """Catch up for at most ``budget`` seconds (default: the setting), and say how fresh the store is.

        What does not fit goes on in the background. A store that cannot be written is stale, not an error. The
        reading is no part of the call: a call that is cancelled does not stop it, a locked store does not
        hold the call.
        """
        if not self.sessions:
            return Freshness(reason="no session was recorded in this workspace yet")
        budget = self.settings.search_budget_ms / 1000 if budget is None else budget
        if self._next is None:
            self._next = _Look()
            self.service.start("catching up", self._look, self._next, budget)
        look = self._next
        with anyio.move_on_after(budget + (GRACE_S if self._warm else FIRST_GRACE_S)):
            await look.done.wait()
        return look.found or Freshness(incomplete=True, reason=self.lag())

    async def _look(self, look: _Look, budget: float) -> None:
        """One short catch-up. Calls join it until it begins: once it has looked, news belong to the next one."""
        try:
            async with self._catching:
                self._next = None
                look.found = await self._freshen(budget)
        finally:
            if self._next is look:
                self._next = None
            self._warm = True
            look.done.set()

    async def _freshen(self, budget: float) -> Freshness:
        try:
            async with self.writing() as database:
                found = await catch_up_within(database, self.sessions, key=self.key, budget=budget)
        except PipelineError as error:
            self.last_error = error.message
            return Freshness(stale=True, reason=f"new turns could not be read: {error.message}")
        self.last_error = ""
        if found.incomplete or found.stale:
            self.service.start("catching up", self.catch_up)
        return Freshness(found.stale, True, self.lag()) if found.incomplete else found

    def lag(self) -> str:
        """How far the reading of new bytes is, in words."""
        if self.catching_up is None or not self.catching_up[1]:
            return "older sessions are still being read in the background: ask again soon"
        done, total = (part / 1_000_000 for part in self.catching_up)
        return f"older sessions are still being read ({done:.0f} of {total:.0f} MB): ask again soon"

    async def catch_up(self) -> Report:
        """Read everything new, however long it takes; concurrent calls take turns. Raises StoreError."""
        report = Report()
        async with self._catching:
            try:
                async with self.writing() as database:
                    await catch_up(
                        database,
                        self.sessions,
                        key=self.key,
                        workers=Workers(1),
                        report=report,
                        progress=self._read,
                    )
                    await tend_index(database)
            except PipelineError as error:
                self.last_error = error.message
                raise
            finally:
                self.catching_up = None
        return report

    def _read(self, done: int, total: int) -> None:
        self.catching_up = (done, total)

    async def close(self) -> None:
        """Close every idle connection. All are told at once: a caller that waits no longer leaves none open."""
        async with anyio.create_task_group() as closing:
            while self._readers:
                closing.start_soon(self._readers.pop().close)
            closing.start_soon(to_thread.run_sync, self.searcher.close)


async def _close(database: Database) -> None:
    """Close, also on the way out of a cancelled call: what still runs in the connection's thread ends first."""
    with anyio.CancelScope(shield=True):
        await database.close()
