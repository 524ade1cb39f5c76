"""Keeping the derived data sound: reindexing after a tokenizer change or many dead rows, and rebuilding it
all.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import orjson
from anyio import to_thread

from pipeline.exclusion import Excluded, without_excluded
from pipeline.fold import redactor, tokens_of
from pipeline.session_folders import Keeping
from pipeline.store import codec, files
from pipeline.store.database import Database
from pipeline.store.erasing import erase, read_again, repack, rewrite
from pipeline.store.refined import drop_refined
from pipeline.store.tombstones import ancestors, lineage
from pipeline.store.turns import OCCURRENCE, occurrence
from pipeline.workspaces import matches_any
from stages.model import Turn
from stages.redact import RULES_VERSION
from stages.tokens import TOKENIZER_VERSION
from stages.wire.tools import compact_text

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
    await _shed_if_due(database)
    dead, everything = await dead_rows(database)
    if not await index_is_current(database) or (dead > DEAD_LEAST and dead > DEAD_SHARE * everything):
        await reindex(database)
    elif added > DEAD_LEAST / 4 and added > MERGE_SHARE * everything:
        async with database.transaction():
            await database.execute("INSERT INTO turn_fts(turn_fts) VALUES('optimize')")


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
    return [(content_id, *tokens_of(codec.unpack(body))) for content_id, body in rows]


async def keep_rules(database: Database, keeping: Keeping, key: bytes, *, now: int) -> None:
    """Bring an older store up to the redaction rules of this program and to the exclude and retention rules in force.

    What is stored is changed at once, so that nothing waits for a wire; then every wire is read again, and turns whose
    wire is gone stay as they were changed. Cheap when nothing changed: one query.
    """
    notes = dict(await database.rows("SELECT key, value FROM kmp_meta WHERE key IN (?,?,?,?)", _NOTES))
    rules = _digest(keeping)
    newer = int(notes.get("rules", RULES_VERSION)) < RULES_VERSION
    changed = notes.get("exclude", _digest(Keeping())) != rules
    longer = int(notes.get("retention", 0)) != keeping.retention_days
    old = keeping.retention_days > 0 and int(notes.get("expired", 0)) < now - DAY_MS
    if not (newer or changed or longer or old):
        return
    async with database.transaction():
        if newer or changed:
            await _scrub(database, keeping, key)
        if newer or changed or longer:
            await read_again(database, [row[0] for row in await database.rows("SELECT id FROM source")])
            await database.set_meta("shed", 1)
        if keeping.retention_days:
            await _expire(database, expiry(keeping, now))
            await database.set_meta("shed", 1)
        for name, value in (
            ("rules", max(RULES_VERSION, int(notes.get("rules", 0)))),
            ("exclude", rules),
            ("retention", keeping.retention_days),
            ("expired", now),
        ):
            await database.set_meta(name, value)
    if newer or changed:
        await to_thread.run_sync(redact_files, database.path.parent.parent, redactor(key))


_NOTES = ("rules", "exclude", "retention", "expired")
DAY_MS = 86_400_000


def expiry(keeping: Keeping, now: int) -> int | None:
    """Turns that began before this moment (ms) are kept no longer; ``None``: for ever."""
    return now - keeping.retention_days * DAY_MS if keeping.retention_days else None


def _digest(keeping: Keeping) -> str:
    rules = orjson.dumps([sorted(keeping.exclude_paths), sorted(keeping.exclude_sessions)])
    return hashlib.blake2b(rules, digest_size=8).hexdigest()


async def _scrub(database: Database, keeping: Keeping, key: bytes) -> None:
    """Sessions that are excluded now go; texts of the others are redacted, and excluded paths taken out of them."""
    redact = redactor(key)
    if keeping.exclude_sessions:
        sources = await lineage(database)
        shut = [
            name
            for name in sources
            if any(matches_any(each, keeping.exclude_sessions) for each in (name, *ancestors(name, sources)))
        ]
        for name in shut:
            rows = await database.rows(f"SELECT {OCCURRENCE} FROM occurrence WHERE session_id=?", (name,))
            await erase(database, [occurrence(row) for row in rows])
    for cwd, where, parameters in await _by_cwd(database):
        excluded = Excluded(keeping.exclude_paths, cwd)
        await rewrite(database, partial(_clean, redact=redact, excluded=excluded), where, parameters)
    titles = await database.rows("SELECT session_id, title FROM session WHERE title IS NOT NULL")
    await database.executemany(
        "UPDATE session SET title=? WHERE session_id=?", [(redact(title), name) for name, title in titles]
    )


async def _by_cwd(database: Database) -> list[tuple[str | None, str, list[str]]]:
    """The directories that sessions ran in (one, but for spellings), each with the condition for its contents."""
    rows = await database.rows("SELECT DISTINCT cwd FROM session")
    holds = "c.id IN (SELECT o.content_id FROM occurrence o JOIN session s ON s.session_id=o.session_id WHERE s.cwd"
    return [(row[0], f"{holds} IS NULL)", []) if row[0] is None else (row[0], f"{holds}=?)", [row[0]]) for row in rows]


def _clean(turn: Turn, redact: Callable[[str], str], excluded: Excluded) -> Turn:
    """A stored turn under newer rules."""
    turn = redacted(turn, redact)
    return without_excluded(turn, excluded) if excluded.rules else turn


def redacted(turn: Turn, redact: Callable[[str], str]) -> Turn:
    """A turn with every text redacted again."""
    steps = tuple(
        replace(
            step,
            texts=tuple(map(redact, step.texts)),
            tools=tuple(
                replace(
                    call,
                    args=_args(call.args, redact),
                    command=redact(call.command),
                    error=redact(call.error),
                    outcome=redact(call.outcome),
                    files=tuple(replace(touch, path=redact(touch.path)) for touch in call.files),
                )
                for call in step.tools
            ),
        )
        for step in turn.steps
    )
    return replace(
        turn,
        opening_text=redact(turn.opening_text),
        user_text=None if turn.user_text is None else redact(turn.user_text),
        steps=steps,
        steers=tuple(replace(steer, text=redact(steer.text)) for steer in turn.steers),
        error=redact(turn.error),
        compactions=tuple(map(redact, turn.compactions)),
    )


def _args(args: str, redact: Callable[[str], str]) -> str:
    plain = args.replace("\\n", "\n")
    return args if redact(plain) == plain else compact_text(args, room="full", redact=redact)


async def _expire(database: Database, before: int | None) -> None:
    rows = await database.rows(f"SELECT {OCCURRENCE} FROM occurrence WHERE started_at<?", (before,))
    await erase(database, [occurrence(row) for row in rows], titles=False)


DERIVED = ("themes", "searches", "proposals", "reports", "exports")


def redact_files(root: Path, redact: Callable[[str], str]) -> list[Path]:
    """Redact again what the service itself wrote into files; returns those that changed. Memories are a person's."""
    changed = []
    for folder in DERIVED:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".json", ".md") or not path.is_file():
                continue
            before = files.read_text(path) or ""
            after = _redacted_json(before, redact) if path.suffix == ".json" else redact(before)
            if after != before and files.write_text(path, after):
                changed.append(path)
    return changed


def _redacted_json(text: str, redact: Callable[[str], str]) -> str:
    try:
        before = orjson.loads(text)
    except orjson.JSONDecodeError:
        return redact(text)
    after = _redacted_value(before, redact)
    if after == before:
        return text
    return orjson.dumps(after, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def _redacted_value(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_redacted_value(each, redact) for each in value]
    if isinstance(value, dict):
        return {name: _redacted_value(each, redact) for name, each in value.items()}
    return value


async def _shed_if_due(database: Database) -> None:
    """Once everything was read again under new rules: make the bytes of the old rows leave the disk."""
    if not await database.meta("shed"):
        return
    if await database.rows("SELECT 1 FROM source WHERE present=1 AND complete=0 LIMIT 1"):
        return
    async with database.transaction():
        await repack(database)
        await index_anew(database)
        await database.set_meta("shed", 0)
    await database.shed()


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
        await database.set_meta("rules", RULES_VERSION)


def set_aside(path: Path) -> Path:
    """Move a damaged database (with its WAL) out of the way; returns where it went. Nothing is deleted."""
    aside = path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}")
    for suffix in ("", "-wal", "-shm"):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.replace(aside.with_name(aside.name + suffix))
    return aside
