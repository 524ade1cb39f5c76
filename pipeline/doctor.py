"""`pipeline doctor`: looks at everything this service stands on and says the truth about it.

Checks read only. With ``fix`` what is safe is mended: modes, leftovers of killed writers, the index, saved states and
checkpoints, index.json, an interrupted forgetting. Nothing that a person wrote is changed, and no damaged file is
deleted. The database has its own checks (``pipeline.doctor_database``), and so have texts (``pipeline.doctor_deep``).
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from anyio import to_thread

from pipeline.config import CONFIG_NAME
from pipeline.doctor_report import Finding, Level
from pipeline.errors import PipelineError
from pipeline.sessions import Inventory, Session
from pipeline.settings import Settings
from pipeline.store import files, names, tombstones
from pipeline.store.catalogue import Catalogue
from pipeline.store.index import INDEX, INDEXED, Index
from pipeline.store.layout import KEY_BYTES, KEY_NAME, Layout, redaction_key
from pipeline.store.themes import ThemeStore

SPACE_LOW, SPACE_OUT = 500_000_000, 50_000_000
"""Bytes free below which the disk is worth a warning, or a problem."""
NAMED = 3
"""Files that are named in one line; more are counted."""


async def examine(
    settings: Settings,
    inventory: Inventory,
    layout: Layout,
    sessions: tuple[Session, ...],
    *,
    fix: bool = False,
    deep: bool = False,
) -> list[Finding]:
    """All checks of one workspace's store, in the order they are shown."""
    from pipeline.doctor_database import check_database
    from pipeline.doctor_deep import check_texts

    found = list(await to_thread.run_sync(_surroundings, settings, inventory, fix))
    if not layout.root.is_dir():
        return [
            *found,
            Finding("store", "note", f"{layout.root}: not made yet", hint="`pipeline index` makes it."),
        ]
    found += await to_thread.run_sync(lambda: list(check_files(settings, layout, fix)))
    found += await check_database(settings, layout, sessions, fix=fix)
    if deep:
        found += await check_texts(settings, layout, fix=fix)
    return found


# --- around the stores -------------------------------------------------------------------------------------


def _surroundings(settings: Settings, inventory: Inventory, fix: bool) -> list[Finding]:
    return [*_homes(inventory), *_key(settings, fix), *_space(settings.store_root)]


def _homes(inventory: Inventory) -> Iterator[Finding]:
    there = [folder for folder in inventory.folders if folder.is_dir()]
    for folder in there:
        if not os.access(folder, os.R_OK | os.X_OK):
            yield Finding("homes", "problem", f"{folder}: cannot be read", hint="Check its owner and mode.")
    if not there:
        looked_at = ", ".join(map(str, inventory.folders))
        yield Finding("homes", "warning", f"no sessions folder: looked at {looked_at}",
                      hint="Set KIMI_CODE_HOME or MEMORY_SESSIONS_ROOT.")  # fmt: skip
    else:
        count = len(inventory.sessions)
        yield Finding("homes", "ok", f"{count} sessions in {', '.join(map(str, there))}")
    skipped = {reason: count for reason, count in sorted(inventory.skipped.items()) if count}
    if skipped:
        text = ", ".join(f"{reason} {count}" for reason, count in skipped.items())
        yield Finding("homes", "note", f"not looked at: {text}")


def _key(settings: Settings, fix: bool) -> Iterator[Finding]:
    path = settings.store_root / KEY_NAME
    if not settings.store_root.is_dir():
        return
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        found = Finding(
            "key", "warning", f"{path}: missing; placeholders of secrets made from now on differ from those before",
            hint="Restore it from a backup if there is one; the next run makes a new one.", fix="make a new one",
        )  # fmt: skip
    except OSError as error:
        yield Finding(
            "key", "problem", f"{path}: cannot be read: {error.strerror}", hint="Check its owner and mode."
        )
        return
    else:
        if size >= KEY_BYTES:
            yield Finding("key", "ok", f"{path}: there")
            return
        found = Finding("key", "problem", f"{path}: {size} bytes are no key", fix="make a new one")
    if fix:
        redaction_key(settings.store_root, create=True)
        found = found.mended()
    yield found


def _space(root: Path) -> Iterator[Finding]:
    while not root.exists():
        root = root.parent
    free = shutil.disk_usage(root).free
    level: Level = "problem" if free < SPACE_OUT else "warning" if free < SPACE_LOW else "ok"
    hint = "" if level == "ok" else "Free some space, or name another place with MEMORY_STORE_ROOT."
    yield Finding("disk", level, f"{free / 1e6:.0f} MB free at {root}", hint=hint)
    if not os.access(root, os.W_OK):
        yield Finding("disk", "problem", f"{root}: read-only; searches answer, nothing new is kept",
                      hint="Mount it writable, or name another place with MEMORY_STORE_ROOT.")  # fmt: skip


# --- the files of a store ----------------------------------------------------------------------------------


def check_files(settings: Settings, layout: Layout, fix: bool) -> Iterator[Finding]:
    """Modes, leftovers, themes, memories, index.json, tombstones and who works on the store."""
    yield from _modes(settings.store_root, layout.root, fix)
    yield from _leftovers(layout.root, fix)
    yield from _themes(layout)
    yield from _memories(layout.root, fix)
    yield from _tombstones(layout)
    yield from _leader(layout.root)


def _modes(store_root: Path, root: Path, fix: bool) -> Iterator[Finding]:
    """Directories 0700, files 0600; a file a person's editor made wider is safe behind its directory's mode."""
    if os.name == "nt":
        return
    wide_dirs: list[Path] = []
    wide_files: list[Path] = []
    for path in [store_root, store_root / KEY_NAME, store_root / CONFIG_NAME, root, *sorted(root.rglob("*"))]:
        try:
            mode = path.lstat().st_mode
        except OSError:
            continue
        if stat.S_IMODE(mode) & 0o077 and not stat.S_ISLNK(mode):
            (wide_dirs if stat.S_ISDIR(mode) else wide_files).append(path)
    levels: tuple[tuple[list[Path], Level, int, str], ...] = (
        (wide_dirs, "problem", 0o700, "directories"),
        (wide_files, "warning", 0o600, "files"),
    )
    for found, level, mode, kind in levels:
        if found:
            text = f"other users may open {len(found)} {kind}: {_names(found)}"
            finding = Finding("permissions", level, text, fix=f"chmod {mode:04o}")
            yield finding.mended() if fix and _chmod(found, mode) else finding
    if not wide_dirs and not wide_files:
        yield Finding("permissions", "ok", "directories 0700, files 0600")


def _chmod(paths: list[Path], mode: int) -> bool:
    try:
        for path in paths:
            path.chmod(mode)
    except OSError:
        return False
    return True


def _leftovers(root: Path, fix: bool) -> Iterator[Finding]:
    horizon = time.time() - files.STALE_TEMP_S
    found = [
        path for path in root.rglob(f"{files.TEMP_PREFIX}*") if path.is_file() and _mtime(path) <= horizon
    ]
    if found:
        finding = Finding(
            "leftovers",
            "warning",
            f"{len(found)} files of killed writers: {_names(found)}",
            fix="remove them",
        )
        if fix:
            for folder in {path.parent for path in found}:
                files.sweep(folder)
            finding = finding.mended()
        yield finding
    for path in sorted(root.rglob("*.damaged-*")):
        if not path.name.endswith(("-wal", "-shm")):
            yield Finding("leftovers", "note", f"{path}: set aside by `pipeline rebuild`",
                          hint="Remove it once nothing in it is missed.")  # fmt: skip


def _mtime(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return time.time()


def _themes(layout: Layout) -> Iterator[Finding]:
    good, bad = ThemeStore(layout.root).all()
    for error in bad:
        hint = "`pipeline undo THEME` brings back its last version, `pipeline run` begins it afresh."
        yield Finding("themes", "problem", error.message, hint=hint)
    for path in sorted(layout.themes.glob(".corrupt-*")):
        yield Finding("themes", "note", f"{path}: a theme that could not be read, set aside")
    gone = sum(turn.gone or turn.unresolved for record in good for turn in record.turns)
    if gone:
        yield Finding("themes", "note", f"{gone} pointers of themes lead to turns that are not in the store")
    if good or not bad:
        yield Finding("themes", "ok", f"{len(good)} themes")


def _memories(root: Path, fix: bool) -> Iterator[Finding]:
    catalogue = Catalogue(root)
    memories = catalogue.all((*names.ROOTS, "essence"))
    for memory in memories:
        if memory.problem:
            yield Finding(
                "memories", "warning", f"{root / memory.problem}", hint="Mend its frontmatter by hand."
            )
    yield Finding("memories", "ok", f"{len(memories)} memories")
    indexed = {one.path: one for one in memories if one.path.partition("/")[0] in INDEXED}
    value = files.read_json(root / INDEX)
    entries = value.get("index") if isinstance(value, dict) else None
    if not isinstance(entries, dict):
        if not indexed and not (root / INDEX).exists():
            return
        problem = "missing or unreadable"
    else:
        held = {path: entry for path, entry in entries.items() if not path.endswith("/")}
        wrong = {
            p
            for p in held.keys() & indexed.keys()
            if not _is_entry(held[p], indexed[p].title, indexed[p].tags)
        }
        count = len(held.keys() ^ indexed.keys()) + len(wrong)
        if not count:
            yield Finding("index.json", "ok", f"{len(held)} entries as the files say")
            return
        problem = f"{count} of its entries differ from the files"
    finding = Finding("index.json", "warning", f"{root / INDEX}: {problem}", fix="make it equal to the files")
    if fix:
        Index(catalogue, lambda: time.time_ns() // 1_000_000).sync()
        finding = finding.mended()
    yield finding


def _is_entry(entry: object, title: str, tags: tuple[str, ...]) -> bool:
    return isinstance(entry, dict) and entry.get("title") == title and entry.get("tags") == list(tags)


def _tombstones(layout: Layout) -> Iterator[Finding]:
    path = tombstones.place(layout.database)
    try:
        stones = tombstones.read(path)
    except PipelineError as error:
        yield Finding(
            "forgotten", "problem", error.message, hint=error.hint, fix="restore it from the database"
        )
        return
    if not stones.empty:
        yield Finding(
            "forgotten", "ok",
            f"{len(stones.turns)} turns, {len(stones.sessions)} whole sessions, {len(stones.periods)} periods stay out",
        )  # fmt: skip


def _leader(root: Path) -> Iterator[Finding]:
    from pipeline import leader

    owner = leader.owner(root)
    if owner is None or not leader.alive(root, owner):
        yield Finding("background", "note", "no process works in the background on this store")
        return
    beat = leader.last_beat(root)
    idle = max(0.0, time.time() - beat / 1000) if beat is not None else 0.0
    who = f"process {owner.pid} on {owner.host} ({owner.role})"
    if idle > leader.STALL_S:
        yield Finding("background", "warning", f"{who} leads and has shown no progress for {idle:.0f} s",
                      hint="Another process takes over by itself; end that one if it hangs.")  # fmt: skip
    else:
        yield Finding("background", "ok", f"{who} leads; last progress {idle:.0f} s ago")


def _names(paths: list[Path]) -> str:
    more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
    return ", ".join(map(str, paths[:NAMED])) + more
