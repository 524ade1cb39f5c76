"""Opening `refined/refined.sqlite`: WAL, one writer, migrations as data, a newer schema refused.

Readers are never blocked and never write. A writer's work is one short transaction at a time
(``BEGIN IMMEDIATE``, busy timeout 10 s), retried by tenacity while another process holds the lock. Tables of
other programs in the same file (the peer server's ``refined_turns``) are left alone.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Self, TypeVar

import aiosqlite
import anyio
import tenacity
from anyio import to_thread

from pipeline.errors import PipelineError, StoreError, StoreTooNew
from pipeline.store import codec
from pipeline.store.files import make_dirs
from stages.tokens import FTS5_TOKENIZE

BUSY_TIMEOUT_MS = 10_000
"""How long SQLite itself waits for another writer; tenacity then tries again."""
CACHE_KIB = 16_384
MMAP_BYTES = 256 * 1024 * 1024
"""Of the file, mapped by readers. Not by writers: a backfill would end with the whole store resident."""
PAGE_BYTES = 16_384
"""Bodies are 1 to 4 KB: four times SQLite's usual page wastes a tenth less of the file on half-filled pages."""

FTS = f"""CREATE VIRTUAL TABLE turn_fts USING fts5(user, agent, actions, errors, content='', tokenize="{FTS5_TOKENIZE}")"""

SCHEMA_1 = (
    "CREATE TABLE kmp_meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID",
    # What bodies are compressed with (pipeline/store/codec.py); the newest serves new ones.
    "CREATE TABLE dictionary(id INTEGER PRIMARY KEY, data BLOB NOT NULL)",
    # One session of the workspace, as discovery saw it last.
    """CREATE TABLE session(
        session_id TEXT PRIMARY KEY, kind TEXT NOT NULL, dir TEXT NOT NULL, cwd TEXT, title TEXT,
        created_at INTEGER, updated_at INTEGER, archived INTEGER NOT NULL DEFAULT 0,
        forked_from TEXT, imported_from TEXT, present INTEGER NOT NULL DEFAULT 1) WITHOUT ROWID""",
    # One wire file. `version` counts commits (optimistic lock of a fold), `generation` counts rereads from 0.
    """CREATE TABLE source(
        id INTEGER PRIMARY KEY, session_id TEXT NOT NULL, agent_id TEXT NOT NULL, path TEXT NOT NULL,
        kind TEXT NOT NULL DEFAULT 'main', parent_agent TEXT,
        version INTEGER NOT NULL DEFAULT 0, generation INTEGER NOT NULL DEFAULT 0,
        dev INTEGER, ino INTEGER, offset INTEGER NOT NULL DEFAULT 0, head_hash TEXT, tail_hash TEXT,
        size INTEGER, mtime_ns INTEGER, state BLOB, complete INTEGER NOT NULL DEFAULT 0,
        counts TEXT NOT NULL DEFAULT '{}', seen_at INTEGER, present INTEGER NOT NULL DEFAULT 1,
        UNIQUE(session_id, agent_id))""",
    # A turn's content, once, immutable; its id is also its FTS rowid and never used again (AUTOINCREMENT).
    # `shown` is the occurrence that a search shows: the earliest live one, NULL if there is none.
    """CREATE TABLE content(
        id INTEGER PRIMARY KEY AUTOINCREMENT, digest BLOB NOT NULL UNIQUE, body BLOB NOT NULL,
        shown INTEGER)""",
    "CREATE INDEX content_shown ON content(shown)",  # a search's snapshot of what is live reads this alone
    """CREATE TABLE occurrence(
        id INTEGER PRIMARY KEY, source_id INTEGER NOT NULL, session_id TEXT NOT NULL, agent_id TEXT NOT NULL,
        position INTEGER NOT NULL, turn_id INTEGER NOT NULL, content_id INTEGER NOT NULL,
        opener_digest TEXT NOT NULL, prompt_id TEXT, origin TEXT NOT NULL, status TEXT NOT NULL,
        open INTEGER NOT NULL, copied INTEGER NOT NULL, undone INTEGER NOT NULL, undone_at INTEGER,
        started_at INTEGER, ended_at INTEGER, last_at INTEGER, start INTEGER NOT NULL, end INTEGER NOT NULL,
        line_first INTEGER NOT NULL, line_last INTEGER NOT NULL,
        generation INTEGER NOT NULL, seen_at INTEGER NOT NULL,
        UNIQUE(session_id, agent_id, position))""",
    "CREATE INDEX occurrence_content ON occurrence(content_id)",
    "CREATE INDEX occurrence_opener ON occurrence(opener_digest)",
    # A tool call that started a sub-agent: how a sub-agent's turns find their parent turn.
    """CREATE TABLE spawn(
        session_id TEXT NOT NULL, agent_id TEXT NOT NULL, parent_agent TEXT NOT NULL,
        position INTEGER NOT NULL, call_id TEXT NOT NULL,
        PRIMARY KEY(session_id, agent_id, parent_agent, position, call_id)) WITHOUT ROWID""",
    """CREATE TABLE refined(
        content_id INTEGER PRIMARY KEY, version INTEGER NOT NULL, decision INTEGER NOT NULL,
        refined_at INTEGER NOT NULL, body BLOB NOT NULL)""",
    # What refined turns touched, inverted: by entity. A turn's own list is in its refined record.
    # An entity's id is a digest of its kind and value (pipeline/store/refined.py), so that none is looked up.
    "CREATE TABLE entity(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, value TEXT NOT NULL)",
    """CREATE TABLE mention(
        entity_id INTEGER NOT NULL, content_id INTEGER NOT NULL, written INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY(entity_id, content_id)) WITHOUT ROWID""",
    FTS,
)

# New index rows wait in memory, 8 MB of them and not one: fewer segments to merge.
SCHEMA_2 = ("INSERT INTO turn_fts(turn_fts, rank) VALUES('hashsize', 8388608)",)

MIGRATIONS: tuple[tuple[str, ...], ...] = (SCHEMA_1, SCHEMA_2)
"""Statements from schema n to n+1, applied in order, each step in one transaction; never destructive."""
SCHEMA_VERSION = len(MIGRATIONS)

T = TypeVar("T")
IN_LIMIT = 500
"""Values in one ``IN (…)``: below the limit of every SQLite."""

transient = tenacity.AsyncRetrying(
    retry=tenacity.retry_if_exception(
        lambda error: isinstance(error, sqlite3.OperationalError) and "locked" in str(error)
    ),
    stop=tenacity.stop_after_attempt(6),
    wait=tenacity.wait_random_exponential(multiplier=0.05, max=1.0),
    reraise=True,
)
"""Bounded, jittered retries for a lock that outlived the busy timeout."""


class Database:
    """One connection to a store's database. ``write=False`` opens it read-only."""

    def __init__(
        self, path: Path, connection: aiosqlite.Connection, *, write: bool, wait_ms: int | None = None
    ) -> None:
        self.path = path
        self.wait_ms = wait_ms
        self.write = write
        self._connection = connection
        self.dictionary: int | None = None
        self._data_version = -1
        self._writing = anyio.Lock()

    @classmethod
    async def open(cls, path: Path, *, write: bool = True, wait_ms: int | None = None) -> Self:
        """Open (``write``: create and migrate) the database. ``wait_ms`` bounds the wait for another writer, for
        callers that would rather go without; by default it is long and tried again.

        Raises StoreError if the file is no database, is newer than this program, or cannot be written.
        """
        try:
            if write:
                await to_thread.run_sync(_make_private, path)
            try:
                return await cls._opened(
                    path, "mode=rw" if write else "mode=ro", write=write, wait_ms=wait_ms
                )
            except sqlite3.OperationalError:
                # On a medium that cannot be written even a reader of a WAL database needs ``immutable``.
                if write or not await to_thread.run_sync(_is_read_only, path):
                    raise
                return await cls._opened(path, "mode=ro&immutable=1", write=False)
        except (OSError, sqlite3.Error) as error:
            raise store_error(path, error) from error

    @classmethod
    async def _opened(cls, path: Path, how: str, *, write: bool, wait_ms: int | None = None) -> Self:
        # A connection is a thread that keeps the process alive: no cancellation may lose one half made.
        with anyio.CancelScope(shield=True):
            connection = await aiosqlite.connect(
                f"{path_uri(path)}?{how}", uri=True, isolation_level=None, cached_statements=256
            )
        self = cls(path, connection, write=write, wait_ms=wait_ms)
        try:
            await self._prepare()
        except BaseException:
            await self.close(at_once=True)
            raise
        return self

    async def _prepare(self) -> None:
        wait_ms = BUSY_TIMEOUT_MS if self.wait_ms is None else self.wait_ms
        await self._connection.execute(f"PRAGMA busy_timeout={wait_ms}")
        await self._connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
        if not self.write:
            await self._connection.execute(f"PRAGMA mmap_size={MMAP_BYTES}")
        await self._connection.execute("PRAGMA temp_store=MEMORY")
        if self.write:
            await self._connection.execute(f"PRAGMA page_size={PAGE_BYTES}")  # counts for a new file only
            await self._connection.execute("PRAGMA journal_mode=WAL")
            # WAL with NORMAL survives any kill of the process; a power cut may lose the last commits, never
            # tear them, and what is lost is read again from the wire.
            await self._connection.execute("PRAGMA synchronous=NORMAL")
        version = await self.schema_version()
        if version > SCHEMA_VERSION:
            raise StoreTooNew(self.path, version, SCHEMA_VERSION)
        if version < SCHEMA_VERSION and self.write:
            await self._migrate()
        if version:
            await self.load_dictionaries()

    async def schema_version(self) -> int:
        """Our schema's number; 0 if the file has none of our tables."""
        if not await self.rows("SELECT 1 FROM sqlite_master WHERE type='table' AND name='kmp_meta'"):
            return 0
        return int(await self.meta("schema", 0))

    async def _migrate(self) -> None:
        async with self.transaction():
            version = (
                await self.schema_version()
            )  # again, under the lock: another process may have been first
            for number in range(version, SCHEMA_VERSION):
                for statement in MIGRATIONS[number]:
                    await self._connection.execute(statement)
            await self.set_meta("schema", SCHEMA_VERSION)

    async def load_dictionaries(self) -> None:
        """Make the store's dictionaries known to this process."""
        codec.look_in(self.path)
        self.dictionary = None
        for row in await self.rows("SELECT data FROM dictionary ORDER BY id"):
            self.dictionary = codec.use(row[0])

    async def _notice_dictionary(self) -> None:
        """Another process may have replaced the dictionary: what is written from now on must not need a lost one.

        One cheap question a transaction; the dictionary is read only after a commit of somebody else.
        """
        version = (await self.row("PRAGMA data_version"))[0]
        if version != self._data_version:
            self._data_version = version
            if await self.rows("SELECT 1 FROM sqlite_master WHERE name='dictionary'"):
                await self.load_dictionaries()

    async def learn_dictionary(self) -> None:
        """Learn a dictionary from what is stored, and pack that anew with it, if there is none and enough to
        learn from. In a transaction.
        """
        if self.dictionary is not None:
            return
        await self.load_dictionaries()  # another process may have been first
        if self.dictionary is None and (await self.row("SELECT count(*) FROM content"))[0] >= codec.SAMPLES:
            found = await self.rows("SELECT body, id FROM content ORDER BY id DESC LIMIT 2000")
            bodies = [(row[0], row[1]) for row in found]
            learned, packed = await to_thread.run_sync(codec.learn_and_pack, bodies)
            await self.execute("INSERT INTO dictionary(data) VALUES(?)", (learned,))
            await self.executemany("UPDATE content SET body=? WHERE id=?", packed)
            self.dictionary = codec.use(learned)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """A write transaction: committed on leaving, rolled back on any exception or cancellation.

        Tasks that share this connection take turns.
        """
        async with self._writing:
            await self._begin()
            try:
                await self._notice_dictionary()
                yield
                await self._connection.commit()
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await self._connection.rollback()
                raise

    async def _begin(self) -> None:
        if self.wait_ms is not None:
            await self._connection.execute("BEGIN IMMEDIATE")
            return
        async for attempt in transient.copy():
            with attempt:
                await self._connection.execute("BEGIN IMMEDIATE")

    async def rows(self, sql: str, parameters: Iterable[Any] = ()) -> Sequence[Any]:
        """All rows of a query."""
        return list(await self._connection.execute_fetchall(sql, parameters))

    async def row(self, sql: str, parameters: Iterable[Any] = ()) -> Any:
        """The first row of a query, or ``None``."""
        found = await self.rows(sql, parameters)
        return found[0] if found else None

    async def execute(self, sql: str, parameters: Iterable[Any] = ()) -> int:
        """Run one statement; returns the number of rows it changed."""
        cursor = await self._connection.execute(sql, parameters)
        count = cursor.rowcount
        await cursor.close()
        return count

    async def executemany(self, sql: str, rows: Iterable[Iterable[Any]]) -> None:
        """Run one statement for many rows in a single hop to the database thread."""
        cursor = await self._connection.executemany(sql, rows)
        await cursor.close()

    async def meta(self, key: str, default: Any = None) -> Any:
        """A value of the store's own notes (schema, tokenizer version …)."""
        found = await self.row("SELECT value FROM kmp_meta WHERE key=?", (key,))
        return found[0] if found else default

    async def set_meta(self, key: str, value: Any) -> None:
        await self.execute(
            "INSERT INTO kmp_meta(key, value) VALUES(?, ?) ON CONFLICT(key) DO UPDATE SET value=excluded.value",
            (key, value),
        )

    async def shed(self) -> bool:
        """Make the bytes of deleted rows leave the disk: rewrite the file without them, and empty the write-ahead log.

        Returns whether the log could be emptied; a reader that holds an older state in use can prevent it. Call
        outside of a transaction. Needs free space for a copy of the database.
        """
        async with self._writing:
            # A cache as usual would fill with up to a hundred MB of copies, and no page is asked for twice.
            await self._connection.execute("PRAGMA cache_size=-1024")
            await self._connection.execute("PRAGMA temp_store=FILE")
            try:
                async for attempt in transient.copy():
                    with attempt:
                        await self._connection.execute("VACUUM")
            finally:
                await self._connection.execute("PRAGMA temp_store=MEMORY")
                await self._connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
        return await self.checkpoint()

    async def checkpoint(self) -> bool:
        """Write the log back into the file and empty it; ``False`` while a reader prevents it."""
        busy = (await self.row("PRAGMA wal_checkpoint(TRUNCATE)"))[0]
        return not busy

    async def close(self, *, at_once: bool = False) -> None:
        """Close the connection, also when the caller was cancelled; ``at_once`` breaks off a running statement."""
        with anyio.CancelScope(shield=True):
            if at_once:
                await self._connection.interrupt()
            await self._connection.close()


def _make_private(path: Path) -> None:
    """Create the file, 0600 in a 0700 directory, before SQLite would with the umask's mode."""
    make_dirs(path.parent)  # mkdir(parents=True) gives its mode to the last one only
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


def _is_read_only(path: Path) -> bool:
    """Whether the database is there, in a place that this process may not write to."""
    return path.is_file() and not os.access(path.parent, os.W_OK)


def path_uri(path: Path) -> str:
    """The file: URI that SQLite opens (Chinese and odd characters escaped)."""
    return path.absolute().as_uri()


@asynccontextmanager
async def open_database(
    path: Path, *, write: bool = True, wait_ms: int | None = None
) -> AsyncIterator[Database]:
    """``Database.open`` as a context."""
    database = await Database.open(path, write=write, wait_ms=wait_ms)
    try:
        yield database
    except sqlite3.Error as error:
        raise store_error(path, error) from error
    except BaseExceptionGroup as group:
        if (cause := _database_error(group)) is not None:
            raise store_error(path, cause) from group
        raise
    except anyio.get_cancelled_exc_class():
        await database.close(at_once=True)
        raise
    finally:
        await database.close()


def _database_error(group: BaseExceptionGroup[BaseException]) -> sqlite3.Error | None:
    """The failed database call among what stopped a group of tasks, unless a person or a signal did."""
    found: sqlite3.Error | None = None
    for error in group.exceptions:
        inner = _database_error(error) if isinstance(error, BaseExceptionGroup) else error
        if isinstance(inner, KeyboardInterrupt | SystemExit):
            return None
        if isinstance(inner, sqlite3.Error):
            found = found or inner
    return found


def store_error(path: Path, error: Exception) -> PipelineError:
    """What a person can do about a failed database call."""
    text = str(error)
    if "unable to open" in text and _is_read_only(path):
        text = "the store is read-only"
    return StoreError(path, text, hint=next((advice for sign, advice in _ADVICE if sign in text), ""))


_ADVICE = (
    ("not a database", "The file is damaged; `pipeline rebuild` makes it anew from the wires."),
    ("malformed", "The file is damaged; `pipeline rebuild` makes it anew from the wires."),
    ("readonly", "The store is read-only; check permissions, or set MEMORY_STORE_ROOT elsewhere."),
    ("ermission denied", "The store is read-only; check permissions, or set MEMORY_STORE_ROOT elsewhere."),
    ("ead-only", "The store is read-only; check permissions, or set MEMORY_STORE_ROOT elsewhere."),
    ("full", "The disk is full; free some space and run again: nothing was lost."),
    ("No space", "The disk is full; free some space and run again: nothing was lost."),
    ("locked", "Another process holds the store; try again."),
    ("unable to open", "It cannot be opened; has `pipeline index` run for this workspace?"),
)


def batched(ids: Iterable[T]) -> Iterator[list[T]]:
    """Pieces small enough for one ``IN (…)``."""
    pieces = iter(ids)
    while piece := list(islice(pieces, IN_LIMIT)):
        yield piece
