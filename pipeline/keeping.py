"""What the settings and the redaction rules allow to be kept, and bringing an older store up to them by itself.

A changed set of exclude rules, a newer set of redaction rules and the retention rule change what is stored at once;
then the wires are read again, and once they are, the bytes of the old rows leave the disk.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import orjson
from anyio import to_thread

from pipeline.errors import PipelineError
from pipeline.exclusion import Excluded, without_excluded
from pipeline.fold import redactor
from pipeline.report import Report
from pipeline.session_folders import Keeping
from pipeline.store import files
from pipeline.store.database import Database
from pipeline.store.erasing import blank_states, erase, read_again, repack, rewrite
from pipeline.store.layout import Layout
from pipeline.store.theme_history import HISTORY
from pipeline.store.themes import THEMES, ThemeStore
from pipeline.store.tombstones import Tombstones, ancestors, lineage
from pipeline.store.turns import OCCURRENCE, occurrence
from pipeline.upkeep import index_anew
from pipeline.workers import Workers
from pipeline.workspaces import matches_any
from stages.model import Turn
from stages.redact import RULES_VERSION
from stages.wire.tools import compact_text


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
        if (before := expiry(keeping, now)) is not None:
            await _expire(database, before)
        for name, value in (
            ("rules", max(RULES_VERSION, int(notes.get("rules", 0)))),
            ("exclude", rules),
            ("retention", keeping.retention_days),
            ("expired", now),
        ):
            await database.set_meta(name, value)
    root = database.path.parent.parent
    if newer:
        await to_thread.run_sync(redact_files, root, redactor(key))
    if changed:
        await to_thread.run_sync(untell, root)


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
    return [
        (row[0], f"{holds} IS NULL)", []) if row[0] is None else (row[0], f"{holds}=?)", [row[0]])
        for row in rows
    ]


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


async def _expire(database: Database, before: int) -> None:
    rows = await database.rows(f"SELECT {OCCURRENCE} FROM occurrence WHERE started_at<?", (before,))
    if rows:
        await erase(database, [occurrence(row) for row in rows], titles=False)
        await blank_states(database, Tombstones(periods=((None, before - 1),)))
        await database.set_meta("shed", 1)


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
    if isinstance(value, str):  # a kept version of a theme is a text that is JSON
        return _redacted_json(value, redact) if value.startswith("{") else redact(value)
    if isinstance(value, list):
        return [_redacted_value(each, redact) for each in value]
    if isinstance(value, dict):
        return {name: _redacted_value(each, redact) for name, each in value.items()}
    return value


async def shed_if_due(database: Database) -> None:
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
    await tell_anew(database)


def untell(root: Path) -> None:
    """Take what themes tell out of their files, and out of their kept versions: pointers, seeds and all that a person
    did stay. The pages go; they are made anew from what may be stored now."""
    folder = root / THEMES
    for path in sorted(folder.glob("*.json")):
        with files.locked(root, f"{THEMES}/{path.stem.casefold()}.json"):
            text = files.read_text(path)
            files.write_text(path, _untold(text) or "")
    for path in sorted((folder / HISTORY).rglob("*.json")):
        value = files.read_json(path)
        if isinstance(value, dict) and isinstance(value.get("before"), dict):
            before = {name: _untold(text) for name, text in value["before"].items()}
            files.write_json(path, {**value, "before": before})
    for page in sorted(folder.glob("*.md")):
        files.remove(page)


def _untold(text: str | None) -> str | None:
    try:
        value = orjson.loads(text or "null")
    except orjson.JSONDecodeError:
        return text
    if not isinstance(value, dict) or not value.get("clusters"):
        return text
    return orjson.dumps(
        {**value, "clusters": []}, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    ).decode()


async def tell_anew(database: Database) -> None:
    """Build the themes that tell nothing any more."""
    from pipeline.theming import ThemeRequest, build_theme

    layout = Layout(database.path.parent.parent)
    records, _ = await to_thread.run_sync(ThemeStore(layout.root).all)
    for record in records:
        if record.turns and not record.clusters:
            with suppress(PipelineError):  # `pipeline run` says what is wrong with it
                request = ThemeRequest(record.theme)
                await build_theme(database, layout, "", request, workers=Workers(1), report=Report())
