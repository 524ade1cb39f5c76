"""Where forgotten turns have left their traces in a store's files, and taking them out.

``survey`` finds and changes nothing; ``clean`` does what a survey found and may be done again after a kill. Derived
files (pages, history, searches, reports) go whole and are made anew where they can be; a theme loses the pointers and
what was told of those sessions; a memory goes only where it was asked for, its deleted and overwritten versions
always.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from pipeline.errors import PipelineError
from pipeline.store import essence, files, memory_file, names
from pipeline.store.catalogue import Catalogue
from pipeline.store.index import INDEX, Index
from pipeline.store.theme_history import HISTORY
from pipeline.store.theme_record import SAME_MOMENT_MS, Ref, ThemeRecord, decode, encode
from pipeline.store.themes import PAGE_ASIDE, THEMES
from pipeline.store.tombstones import Pending, Tombstones
from pipeline.store.versions import HISTORY_DIR, TRASH_DIR

DERIVED = ("searches", "proposals", "reports", "exports", ".cache")
"""Folders whose files are ours, and go whole when they tell of a forgotten turn."""


DAMAGED = ".damaged-"
"""In the name of a database that `pipeline rebuild` set aside."""


class Gone:
    """Whether a reference names a forgotten turn; ``sessions`` are those that lost any."""

    def __init__(self, stones: Tombstones) -> None:
        self.whole = stones.sessions
        self.sessions = stones.sessions | {grave.session_id for grave in stones.turns}
        self._positions = {(g.session_id, g.agent_id, g.position) for g in stones.turns}
        self._turns = {(g.session_id, g.agent_id, g.turn_id) for g in stones.turns}
        self._openers = {g.opener for g in stones.turns if g.prompted}
        self._times: dict[str, list[int]] = {}
        for grave in stones.turns:
            if grave.started_at is not None:
                self._times.setdefault(grave.session_id, []).append(grave.started_at)

    def turn(self, session: str, turn_id: int | None, agent: str = "main") -> bool:
        """By the engine's number, as sources of memories and proposals and search views give it."""
        return session in self.whole or (turn_id is not None and (session, agent, turn_id) in self._turns)

    def ref(self, ref: Ref, timestamp: int | None = None) -> bool:
        """By a theme's pointer. The other server's, which has an ordinal, is known by its time."""
        if ref.session_id in self.whole or (ref.opener and ref.opener in self._openers):
            return True
        if ref.position is not None:
            return (ref.session_id, ref.agent_id, ref.position) in self._positions
        near = self._times.get(ref.session_id, ())
        return timestamp is not None and any(abs(at - timestamp) <= SAME_MOMENT_MS for at in near)


@dataclass(slots=True)
class Survey:
    """What was found. ``files`` are paths in the store with the reason; ``kept`` are memories that stay unless asked
    for."""

    files: dict[str, str] = field(default_factory=dict)
    themes: list[str] = field(default_factory=list)
    seeds: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)

    @property
    def pending(self) -> Pending:
        return Pending(tuple(self.files), tuple(self.themes), tuple(self.seeds), tuple(self.facts))


@dataclass(frozen=True, slots=True)
class Aim:
    """What besides the turns themselves is to go: what holds ``needle``, a whole ``theme``, everything derived."""

    needle: str = ""
    theme: str | None = None
    everything: bool = False
    memories: bool = False

    def holds(self, text: str) -> bool:
        return bool(self.needle) and self.needle.casefold() in text.casefold()


def digest_of(text: str) -> str:
    """How a seed or a fact is named in the tombstones without its text."""
    return hashlib.blake2b(
        " ".join(text.split()).casefold().encode("utf-8", "replace"), digest_size=8
    ).hexdigest()


# --- finding -------------------------------------------------------------------------------------------------


def survey(root: Path, gone: Gone, aim: Aim) -> Survey:
    """Everything in the store's files that tells of forgotten turns. Reads only."""
    found = Survey()
    for folder in DERIVED:
        for path in _files(root / folder):
            if aim.everything or _tells(path, gone, aim):
                found.files[_name(root, path)] = folder
    for path in _files(root):
        if DAMAGED in path.name:  # a database that was set aside cannot be searched: it may hold anything
            found.files[_name(root, path)] = "damaged database"
        elif path.name.startswith(files.TEMP_PREFIX) and (
            aim.everything or _mentions(_text(path), gone, aim)
        ):
            found.files[_name(root, path)] = "leftover"
    _survey_themes(root, gone, aim, found)
    _survey_memories(root, gone, aim, found)
    return found


def _survey_themes(root: Path, gone: Gone, aim: Aim, found: Survey) -> None:
    folder = root / THEMES
    dropped: set[str] = set()
    for path in sorted(folder.glob("*.json")):
        text = _text(path)
        record = _record(path)
        named = aim.theme is not None and path.stem.casefold() == names.file_name(aim.theme).casefold()
        if aim.everything or named or (record is None and _mentions(text, gone, aim)) or aim.holds(path.stem):
            found.files[_name(root, path)] = "theme"
            dropped.add(path.stem)
        elif record is not None and (_concerned(record, gone) or aim.holds(text)):
            found.themes.append(path.stem)
            found.seeds += [
                digest_of(seed) for seed in (*record.seeds, *record.removed_seeds) if aim.holds(seed)
            ]
    touched = {name.casefold() for name in (*dropped, *found.themes)}
    for page in sorted(folder.glob("*.md")):
        theme = page.stem.removesuffix(PAGE_ASIDE)
        if aim.everything or theme.casefold() in touched or aim.holds(_text(page)):
            found.files[_name(root, page)] = "page"
    for entry in _files(folder / HISTORY):
        if aim.everything or entry.parent.name in touched or _mentions(_text(entry), gone, aim):
            found.files[_name(root, entry)] = "history"


def _survey_memories(root: Path, gone: Gone, aim: Aim, found: Survey) -> None:
    erased: set[str] = set()
    for memory in Catalogue(root).all((*names.ROOTS,)):
        if not (aim.everything or _sourced(memory.source, gone) or aim.holds(_text(root / memory.path))):
            continue
        if not aim.memories:
            if not aim.everything or _sourced(memory.source, gone):
                found.kept.append(memory.path)
            continue
        found.files[memory.path] = "memory"
        erased.add(names.fold(memory.name))
        for version in _files(root / HISTORY_DIR / memory.path.removesuffix(".md")):
            found.files[_name(root, version)] = "history"
    for kept in (TRASH_DIR, HISTORY_DIR):
        for version in _files(root / kept):
            text = _text(version)
            sourced = version.suffix == ".md" and _sourced(memory_file.parse(text).source, gone)
            if (aim.everything and aim.memories) or sourced or aim.holds(text):
                found.files.setdefault(_name(root, version), "history" if kept == HISTORY_DIR else "trash")
    _survey_essence(root, aim, found, erased)


def _survey_essence(root: Path, aim: Aim, found: Survey, erased: set[str]) -> None:
    path = root / essence.PATH
    if aim.everything and aim.memories:
        found.files.update({_name(root, each): "essence" for each in _files(path.parent)})
        return
    if not aim.memories:
        return
    versions = [path, *_files(root / HISTORY_DIR / essence.PATH.removesuffix(".md"))]
    for version in versions:
        text = memory_file.parse(_text(version)).body
        facts = [
            fact.text
            for fact in essence.facts(text)
            if aim.holds(fact.text) or (fact.cites and all(names.fold(cite) in erased for cite in fact.cites))
        ]
        if version == path:
            found.facts += [digest_of(fact) for fact in facts]
        elif facts:
            found.files[_name(root, version)] = "history"


def _concerned(record: ThemeRecord, gone: Gone) -> bool:
    """Whether a theme points to a forgotten turn, or tells of a session that lost one."""
    refs = [*record.pins, *record.exclusions]
    return (
        any(gone.ref(turn.ref, turn.timestamp) for turn in record.turns)
        or any(gone.ref(ref) for ref in refs)
        or any(cluster.get("sessionId") in gone.sessions for cluster in record.clusters)
    )


def _tells(path: Path, gone: Gone, aim: Aim) -> bool:
    text = _text(path)
    if aim.holds(text):
        return True
    if path.suffix != ".json":
        return _mentions(text, gone, aim)
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return _mentions(text, gone, aim)
    return any(gone.turn(*ref) for ref in _references(value))


def _references(value: Any) -> Iterator[tuple[str, int | None, str]]:
    """Every ``{sessionId, turnId, agentId}`` in a JSON value; a view's ``hitTurnId`` and ``turnIds`` too."""
    if isinstance(value, dict):
        session = value.get("sessionId")
        if isinstance(session, str):
            agent = str(value.get("agentId") or "main")
            turns = [value.get("turnId"), value.get("hitTurnId"), *_listed(value.get("turnIds"))]
            yield session, None, agent
            yield from ((session, turn, agent) for turn in turns if isinstance(turn, int))
        for each in value.values():
            yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mentions(text: str, gone: Gone, aim: Aim) -> bool:
    return aim.holds(text) or any(session in text for session in gone.sessions)


def _sourced(source: Any, gone: Gone) -> bool:
    """Whether a memory's source names a forgotten turn."""
    session, turn = str(source.get("session", "")), str(source.get("turn", ""))
    return bool(session) and gone.turn(
        session, int(turn) if turn.isdigit() else None, str(source.get("agent") or "main")
    )


# --- taking out ------------------------------------------------------------------------------------------------


def clean(root: Path, gone: Gone, pending: Pending) -> list[str]:
    """Do what a survey found; returns the themes that are to be told anew. Raises StoreError."""
    memories = [name for name in pending.files if name.partition("/")[0] in names.ROOTS]
    for name in pending.files:
        path = names.inside(root, root / name)
        with files.locked(root, name):
            files.remove(path)
        if path.parent != root:
            files.prune_dirs(path.parent, root)
    left = [name for name in pending.themes if _strip_theme(root, name, gone, set(pending.seeds))]
    if pending.facts or memories:
        _strip_essence(root, set(pending.facts), {names.fold(name.removesuffix(".md")) for name in memories})
    if memories and (root / INDEX).exists():
        Index(Catalogue(root), lambda: time.time_ns() // 1_000_000).refresh(memories)
    return left


def _strip_theme(root: Path, stem: str, gone: Gone, seeds: set[str]) -> bool:
    """Take the pointers, and all that is told of the sessions concerned, out of a theme; nothing is kept of before.

    Returns whether anything is left to tell; a theme with neither seeds, turns nor memories goes.
    """
    path = root / THEMES / f"{stem}.json"
    with files.locked(root, f"{THEMES}/{stem.casefold()}.json"):
        record = _record(path)
        if record is None:
            return False
        stripped = replace(
            record,
            turns=tuple(turn for turn in record.turns if not gone.ref(turn.ref, turn.timestamp)),
            pins=tuple(ref for ref in record.pins if not gone.ref(ref)),
            exclusions=tuple(ref for ref in record.exclusions if not gone.ref(ref)),
            clusters=tuple(each for each in record.clusters if each.get("sessionId") not in gone.sessions),
            seeds=tuple(seed for seed in record.seeds if digest_of(seed) not in seeds),
            removed_seeds=tuple(seed for seed in record.removed_seeds if digest_of(seed) not in seeds),
        )
        if not (stripped.seeds or stripped.turns or stripped.memories or stripped.pins):
            files.remove(path)
            return False
        files.write_json(path, encode(stripped))
        return bool(stripped.seeds or stripped.turns)


def _strip_essence(root: Path, facts: set[str], erased: set[str]) -> None:
    """Drop facts, and the citations of memories that are gone, from the workspace's essence."""
    path = root / essence.PATH
    with files.locked(root, essence.PATH):
        text = files.read_text(path)
        if text is None:
            return
        lines = text.split("\n")
        body = memory_file.parse(text).body
        offset = text.replace("\r\n", "\n").find(body) if body else -1
        if offset < 0:
            return
        above = text[:offset].count("\n")
        gone: set[int] = set()
        for fact in essence.facts(body):
            if digest_of(fact.text) in facts:
                gone.update(_lines_of(fact, lines, above))
        for number, line in enumerate(lines):
            cites = essence.citations(line)
            if line.lstrip().startswith(">") and cites and all(names.fold(cite) in erased for cite in cites):
                gone.add(number)
        if gone:
            files.write_text(path, "\n".join(line for number, line in enumerate(lines) if number not in gone))


def _lines_of(fact: essence.Fact, lines: list[str], above: int) -> range:
    start = above + fact.line - 1
    end = start + 1
    while end < len(lines) and " ".join(" ".join(lines[start:end]).split()) != fact.text:
        end += 1
    return range(start, end)


# --- reading -----------------------------------------------------------------------------------------------


def _files(folder: Path) -> Iterable[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _text(path: Path) -> str:
    try:
        return files.read_text(path) or ""
    except PipelineError:
        return ""


def _record(path: Path) -> ThemeRecord | None:
    try:
        return decode(orjson.loads(_text(path)), path.stem)
    except (ValueError, AttributeError):
        return None


def _name(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()
