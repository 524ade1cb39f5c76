"""Keeping the derived data sound: reindexing after a tokenizer change or many dead rows, and rebuilding it
all.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from contextlib import suppress
from pathlib import Path

from anyio import to_thread

from pipeline.fold import tokens_of
from pipeline.store import codec
from pipeline.store.database import Database
from pipeline.store.refined import drop_refined
from stages.redact import RULES_VERSION
from stages.tokens import TOKENIZER_VERSION

log = logging.getLogger(__name__)

DEAD_SHARE = 0.10
"""Share of dead index rows from which the index is made anew (FTS5 cannot forget a contentless row, design)."""
MERGE_SHARE = 0.2
"""Share of new rows from which the index's segments are merged into one: smaller by a tenth, and faster to
search.
"""
DEAD_LEAST = 1000
"""Below this many dead rows the share does not matter."""
PIECE = 500


async def index_is_current(database: Database) -> bool:
    """Whether the index was made by this tokenizer (a store without an index counts as current)."""
    version = await database.meta("tokenizer")
    return version is None or int(version) == TOKENIZER_VERSION


async def note_versions(database: Database) -> None:
    """Note which tokenizer and which redaction rules made the store; call inside a transaction."""
    await database.set_meta("tokenizer", TOKENIZER_VERSION)
    if await database.meta("rules") is None:
        await database.set_meta("rules", RULES_VERSION)


async def dead_rows(database: Database) -> tuple[int, int]:
    """``(dead, all)`` rows of the index."""
    everything = (await database.row("SELECT count(*) FROM turn_fts_docsize"))[0]
    alive = (await database.row("SELECT count(*) FROM content"))[0]
    return everything - alive, everything


async def tend_index(database: Database, added: int = 0) -> None:
    """After ``added`` new turns: reindex if the tokenizer changed or too many rows are dead, merge after a
    backfill.
    """
    from pipeline.keeping import shed_if_due  # which needs the index of this module

    await shed_if_due(database)
    dead, everything = await dead_rows(database)
    if not await index_is_current(database) or (dead > DEAD_LEAST and dead > DEAD_SHARE * everything):
        await reindex(database)
    elif added > DEAD_LEAST / 4 and added > MERGE_SHARE * everything:
        async with database.transaction():
            await database.execute("INSERT INTO turn_fts(turn_fts) VALUES('optimize')")


async def close_up(database: Database, added: int) -> None:
    """After a backfill or refining added ``added`` rows: write the file anew without the gaps that growing
    left in it, a twentieth of its size (0.1 s for 30 MB). Left for another time when the disk is too full for
    a copy, or when another process is at work on the store.
    """
    everything = (await database.row("SELECT count(*) FROM content"))[0]
    if added > DEAD_LEAST / 4 and added > MERGE_SHARE * everything:
        with suppress(sqlite3.OperationalError):
            await database.shed()


async def reindex(database: Database) -> None:
    """Make the index anew from the stored contents, in one transaction: readers see the old one until it
    commits.
    """
    async with database.transaction():
        await index_anew(database)


async def index_anew(database: Database) -> None:
    """``reindex`` in the caller's transaction."""
    await database.execute("INSERT INTO turn_fts(turn_fts) VALUES('delete-all')")
    last = 0
    while rows := await database.rows(
        "SELECT id, body FROM content WHERE id>? ORDER BY id LIMIT ?", (last, PIECE)
    ):
        tokens = await to_thread.run_sync(_tokens, [(row[0], row[1]) for row in rows])
        await database.executemany(
            "INSERT INTO turn_fts(rowid, user, agent, actions, errors) VALUES(?,?,?,?,?)", tokens
        )
        last = rows[-1][0]
    await note_versions(database)


def _tokens(rows: list[tuple[int, bytes]]) -> list[tuple[int, str, str, str, str]]:
    return [(content_id, *_tokens_of(content_id, body)) for content_id, body in rows]


def _tokens_of(content_id: int, body: bytes) -> tuple[str, str, str, str]:
    """A damaged body has no tokens, and does not keep the others from theirs; `pipeline doctor` names it."""
    try:
        return tokens_of(codec.unpack(body))
    except ValueError as error:
        log.warning("content %d: %s", content_id, error)
        return "", "", "", ""


async def read_everything_again(database: Database) -> None:
    """Forget all checkpoints: the next catch-up reads every wire from 0. Turns whose wire is gone stay as
    they are.
    """
    async with database.transaction():
        await database.execute(
            "UPDATE source SET head_hash=NULL, offset=0, state=NULL, complete=0, version=version+1 WHERE present=1"
        )
        rows = await database.rows("SELECT id FROM content WHERE shown IS NOT NULL")
        await drop_refined(database, [row[0] for row in rows])
        # "rules" stays as it is: an older store's turns without a wire are still to be redacted (keep_rules).


def set_aside(path: Path) -> Path:
    """Move a damaged database (with its WAL) out of the way; returns where it went. Nothing is deleted."""
    aside = path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}")
    for suffix in ("", "-wal", "-shm"):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.replace(aside.with_name(aside.name + suffix))
    return aside
