"""The doctor's look at a database: is it whole, is the index what the turns say, is it what the wires say?"""

from __future__ import annotations

import os
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path

import zstandard
from anyio import to_thread

from pipeline.doctor_report import Finding, Level
from pipeline.errors import StoreError
from pipeline.fold import EXPIRED, FORGOTTEN
from pipeline.sessions import Session
from pipeline.settings import Settings
from pipeline.store import codec, tombstones
from pipeline.store.database import SCHEMA_VERSION, Database, open_database
from pipeline.store.erasing import read_again
from pipeline.store.layout import Layout, redaction_key
from pipeline.store.sources import Source, sources
from pipeline.store.turns import settle
from pipeline.upkeep import dead_rows, index_is_current, reindex
from stages.redact import RULES_VERSION
from stages.source import Verdict
from stages.split import StateMismatch, open_splitter
from stages.tail import verdict
from stages.wire.contract import Origin

FRAME_HEAD = 18
"""Bytes of a zstd frame that tell its dictionary."""
NAMED = 3
_ORDINARY = frozenset({"noise", FORGOTTEN, EXPIRED})


async def check_database(
    settings: Settings, layout: Layout, sessions: Sequence[Session], *, fix: bool
) -> list[Finding]:
    """Everything about ``refined.sqlite``. Opens it for writing only with ``fix``."""
    path = layout.database
    if not path.is_file():
        return [Finding("database", "note", f"{path}: not made yet", hint="`pipeline index` makes it.")]
    found: list[Finding] = []
    try:
        async with open_database(path, write=False) as database:
            for check in (_whole, _schema):
                found.append(await check(database))
                if found[-1].level == "problem":
                    return found  # nothing else can be trusted, and nothing is written to it
            if not fix:
                return found + [finding async for finding in _checks(database, settings, sessions, fix)]
        async with open_database(path) as database:
            return found + [finding async for finding in _checks(database, settings, sessions, fix)]
    except StoreError as error:
        return [*found, Finding("database", "problem", error.message, hint=error.hint)]


async def _checks(
    database: Database, settings: Settings, sessions: Sequence[Session], fix: bool
) -> AsyncIterator[Finding]:
    yield await _forgetting(database, fix)
    yield await _dictionary(database, fix)
    yield await _rows(database, fix)
    yield await _index(database, fix)
    for finding in await _rules(database, settings, sessions, fix):
        yield finding
    for finding in await _wires(database, sessions, fix):
        yield finding
    yield await _log(database, fix)


async def _whole(database: Database) -> Finding:
    said = [row[0] for row in await database.rows("PRAGMA quick_check(5)")]
    if said == ["ok"]:
        size = database.path.stat().st_size
        return Finding("database", "ok", f"{database.path}: whole, {size / 1e6:.1f} MB")
    return Finding("database", "problem", f"{database.path}: damaged: {said[0]}",
                   hint="`pipeline rebuild` makes it anew from the wires; turns without a wire are lost.")  # fmt: skip


async def _schema(database: Database) -> Finding:
    version = await database.schema_version()
    if version == 0:
        return Finding(
            "database", "problem", f"{database.path}: holds none of our tables", hint="`pipeline index`."
        )
    level: Level = "ok" if version == SCHEMA_VERSION else "note"
    more = "" if level == "ok" else f"; this program's is {SCHEMA_VERSION}, the next run brings it up to it"
    return Finding("database", level, f"schema {version}{more}")


async def _forgetting(database: Database, fix: bool) -> Finding:
    path = tombstones.place(database.path)
    try:
        stones, done = await tombstones.current(database)
    except StoreError as error:
        return Finding(
            "forgotten", "problem", error.message, hint="Restore it from a backup: nothing is read without."
        )
    if not done and not stones.empty:
        finding = Finding("forgotten", "problem", "a forgetting was interrupted: rows or bytes of it remain",
                          hint="The next run finishes it.", fix="finish it")  # fmt: skip
        if fix:
            from pipeline.forgetting import finish

            return finding.mended() if await finish(database) else finding
        return finding
    try:
        as_is = tombstones.read(path)
    except StoreError:
        as_is = None
    if as_is is None or as_is.number < stones.number:
        finding = Finding("forgotten", "problem", f"{path}: lost or damaged; the database's copy of it counts",
                          fix="write it again from that copy")  # fmt: skip
        if fix:
            await to_thread.run_sync(tombstones.write, path, stones)
            return finding.mended()
        return finding
    return Finding("forgotten", "ok", "all that was forgotten is carried out")


async def _index(database: Database, fix: bool) -> Finding:
    """Every turn has its index row, and the index is whole."""
    lacking = (
        await database.row("SELECT count(*) FROM content WHERE id NOT IN (SELECT id FROM turn_fts_docsize)")
    )[0]
    problem = f"{lacking} turns are not in the search index" if lacking else ""
    if not problem:
        problem = await to_thread.run_sync(_index_damage, database.path)
    if not problem and not await index_is_current(database):
        finding = Finding("index", "warning", "the search index was made by another version of the tokenizer",
                          hint="The next `pipeline index` makes it anew.", fix="make it anew")  # fmt: skip
    elif problem:
        finding = Finding(
            "index", "problem", problem, hint="`pipeline rebuild` makes it anew.", fix="make it anew"
        )
    else:
        dead, everything = await dead_rows(database)
        return Finding("index", "ok", f"{everything - dead} turns, {dead} dead rows")
    if fix:
        await reindex(database)
        return finding.mended()
    return finding


def _index_damage(path: Path) -> str:
    """FTS5's own check, which needs the write lock for a moment, changes nothing and is left out where it cannot be
    had."""
    if not os.access(path, os.W_OK):
        return ""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=5
    )
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO turn_fts(turn_fts) VALUES('integrity-check')")
        connection.execute("ROLLBACK")
    except sqlite3.DatabaseError as error:
        if "locked" in str(error) or "readonly" in str(error) or "read-only" in str(error):
            return ""
        return f"the search index is damaged: {error}"
    finally:
        connection.close()
    return ""


async def _rows(database: Database, fix: bool) -> Finding:
    """Rows that point nowhere, or that nothing points to."""
    counts = {
        "occurrences without a content": "SELECT count(*) FROM occurrence WHERE content_id NOT IN (SELECT id FROM content)",
        "contents without an occurrence": "SELECT count(*) FROM content WHERE id NOT IN (SELECT content_id FROM occurrence)",
        "contents shown at no place": "SELECT count(*) FROM content WHERE shown IS NOT NULL"
        " AND shown NOT IN (SELECT id FROM occurrence)",
        "refined records without a turn": "SELECT count(*) FROM refined WHERE content_id NOT IN (SELECT id FROM content)",
    }
    wrong = {name: count for name, sql in counts.items() if (count := (await database.row(sql))[0])}
    if not wrong:
        turns = (await database.row("SELECT count(*) FROM content WHERE shown IS NOT NULL"))[0]
        refined = (await database.row("SELECT count(*) FROM refined"))[0]
        return Finding("turns", "ok", f"{turns} turns, {refined} refined")
    finding = Finding("turns", "problem", ", ".join(f"{count} {name}" for name, count in wrong.items()),
                      fix="drop them, and read their wires again")  # fmt: skip
    if not fix:
        return finding
    async with database.transaction():
        lost = await database.rows(
            "SELECT DISTINCT source_id FROM occurrence WHERE content_id NOT IN (SELECT id FROM content)"
        )
        await read_again(database, [row[0] for row in lost])
        await database.execute("DELETE FROM occurrence WHERE content_id NOT IN (SELECT id FROM content)")
        await database.execute("DELETE FROM refined WHERE content_id NOT IN (SELECT id FROM content)")
        await settle(database, [row[0] for row in await database.rows("SELECT id FROM content")])
    return finding.mended()


async def _dictionary(database: Database, fix: bool) -> Finding:
    """Every stored body can be expanded: its frame names no dictionary, or one that is there."""
    known = {0} | {
        int.from_bytes(row[0][4:8], "little") for row in await database.rows("SELECT data FROM dictionary")
    }
    unreadable: list[int] = []
    last = 0
    while rows := await database.rows(
        f"SELECT id, substr(body, 1, {FRAME_HEAD}) FROM content WHERE id>? ORDER BY id LIMIT 5000", (last,)
    ):
        last = rows[-1][0]
        unreadable += [row[0] for row in rows if _dictionary_of(row[1]) not in known]
    if not unreadable:
        return Finding("bodies", "ok", f"every text can be read; {len(known) - 1} dictionaries")
    finding = Finding(
        "bodies", "problem", f"the texts of {len(unreadable)} turns cannot be read",
        hint="A dictionary is missing, or they are damaged.", fix="drop them, and read their wires again",
    )  # fmt: skip
    if not fix:
        return finding
    await _drop_unreadable(database, unreadable)
    return finding.mended()


async def _drop_unreadable(database: Database, contents: Iterable[int]) -> None:
    ids = [(each,) for each in contents]
    async with database.transaction():
        await database.execute("CREATE TEMP TABLE IF NOT EXISTS unreadable(id INTEGER PRIMARY KEY)")
        await database.execute("DELETE FROM unreadable")
        await database.executemany("INSERT INTO unreadable VALUES(?)", ids)
        lost = await database.rows(
            "SELECT DISTINCT source_id FROM occurrence WHERE content_id IN (SELECT id FROM unreadable)"
        )
        await read_again(database, [row[0] for row in lost])
        for table, column in (
            ("occurrence", "content_id"),
            ("mention", "content_id"),
            ("refined", "content_id"),
        ):
            await database.execute(f"DELETE FROM {table} WHERE {column} IN (SELECT id FROM unreadable)")
        await database.execute("DELETE FROM entity WHERE id NOT IN (SELECT entity_id FROM mention)")
        await database.execute("DELETE FROM content WHERE id IN (SELECT id FROM unreadable)")


def _dictionary_of(head: bytes) -> int:
    try:
        return zstandard.get_frame_parameters(head).dict_id
    except zstandard.ZstdError:
        return -1


async def _rules(
    database: Database, settings: Settings, sessions: Sequence[Session], fix: bool
) -> list[Finding]:
    rules = int(await database.meta("rules", RULES_VERSION))
    if rules >= RULES_VERSION:
        return [Finding("redaction", "ok", f"rules {rules}")]
    finding = Finding("redaction", "warning", f"stored under older redaction rules ({rules}; now {RULES_VERSION})",
                      hint="The next run redacts the store again.", fix="redact it again")  # fmt: skip
    if fix and sessions:
        from pipeline.keeping import keep_rules

        key = redaction_key(settings.store_root, create=True)
        await keep_rules(database, sessions[0].keeping, key, now=time.time_ns() // 1_000_000)
        finding = finding.mended()
    return [finding]


# --- against the wires -------------------------------------------------------------------------------------


async def _wires(database: Database, sessions: Sequence[Session], fix: bool) -> list[Finding]:
    known = await sources(database)
    states = {row[0]: row[1] for row in await database.rows("SELECT id, state FROM source")}
    found = await to_thread.run_sync(_compare, known, sessions)
    damaged = await to_thread.run_sync(_damaged, known, states)
    findings = list(found)
    if damaged:
        finding = Finding("checkpoints", "problem", f"{len(damaged)} saved states of wires cannot be read",
                          hint="The next run reads those wires again.", fix="have those wires read again")  # fmt: skip
        if fix:
            async with database.transaction():
                await read_again(database, damaged)
            finding = finding.mended()
        findings.append(finding)
    skipped: Counter[str] = Counter()
    for source in known.values():
        skipped.update(
            {name: count for name, count in source.counts.items() if name not in _ORDINARY and count}
        )
    if skipped:
        text = ", ".join(f"{name} {count}" for name, count in sorted(skipped.items()))
        findings.append(Finding("wires", "note", f"lines that meant nothing: {text}"))
    kept_out = Counter({n: sum(s.counts.get(n, 0) for s in known.values()) for n in (FORGOTTEN, EXPIRED)})
    if +kept_out:
        text = ", ".join(f"{name} {count}" for name, count in (+kept_out).items())
        findings.append(Finding("wires", "note", f"turns kept out: {text}"))
    return findings


def _compare(known: dict[tuple[str, str], Source], sessions: Sequence[Session]) -> list[Finding]:
    lag, late, rewritten, odd, present = 0, 0, [], [], set()
    for session in sessions:
        for agent in session.agents:
            key = (session.session_id, agent.agent_id)
            present.add(key)
            source = known.get(key)
            checkpoint = source.checkpoint if source is not None else None
            said = verdict(agent.wire, checkpoint)
            if said is Verdict.REWRITE:
                rewritten.append(agent.wire)
            elif said in (Verdict.IRREGULAR, Verdict.GONE):
                odd.append(agent.wire)
                continue
            size = _size(agent.wire)
            done = checkpoint.offset if checkpoint is not None and said is not Verdict.REWRITE else 0
            behind = max(0, size - done)
            lag += behind
            late += behind > 0
    findings = []
    if odd:
        findings.append(Finding("wires", "warning", f"{len(odd)} cannot be read: {_names(odd)}"))
    if rewritten:
        text = f"{len(rewritten)} were rewritten since they were read: {_names(rewritten)}"
        findings.append(Finding("wires", "note", text, hint="The next run reads them again."))
    gone = [key for key in known if key not in present]
    if gone:
        text = f"{len(gone)} wires are gone from Kimi's folders; their turns are kept here"
        findings.append(Finding("wires", "note", text))
    if late:
        text = f"{lag / 1e6:.2f} MB in {late} of {len(present)} wires are not read yet"
        findings.append(Finding("wires", "note", text, hint="`pipeline index` reads them."))
    else:
        findings.append(Finding("wires", "ok", f"{len(present)} wires, all read to their last line"))
    return findings


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _damaged(known: dict[tuple[str, str], Source], states: dict[int, bytes | None]) -> list[int]:
    """Wires whose saved state does not go with their checkpoint, or cannot be read."""
    found = []
    for source in known.values():
        state = states.get(source.id)
        if source.checkpoint is None or source.checkpoint.offset == 0:
            continue
        try:
            if state is None:
                raise ValueError("no state")
            open_splitter(b"", Origin(source.session_id, source.agent_id), str, codec.expand(state))
        except (ValueError, StateMismatch):
            found.append(source.id)
    return found


async def _log(database: Database, fix: bool) -> Finding:
    """After a forgetting the write-ahead log must be empty; otherwise its size is nobody's concern."""
    log = database.path.with_name(database.path.name + "-wal")
    size = _size(log)
    if not size or not int(await database.meta(tombstones.APPLIED, 0)):
        return Finding("log", "ok", f"write-ahead log: {size / 1e6:.1f} MB")
    finding = Finding("log", "note", f"write-ahead log: {size / 1e6:.1f} MB", fix="empty it")
    if fix and await database.checkpoint():
        return finding.mended()
    return finding


def _names(paths: Sequence[Path]) -> str:
    more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
    return ", ".join(map(str, paths[:NAMED])) + more
