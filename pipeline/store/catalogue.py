"""The Markdown files of a store as they are now: a walk and one stat a file, parsed again only when they
changed.

The files are the truth, so nothing here is kept on disk: an edit from outside is seen at the next call.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import TypeAlias

from pipeline.errors import PipelineError
from pipeline.store import files, memory_file, names

READ_LIMIT = 4 << 20
"""Bytes of one memory that are read: a larger file is shown by its beginning, with a problem noted."""

RACY_NS = 50_000_000
"""A file changed this shortly before it was read may change again within one tick of the file system's
clock."""

EXTENSION = ".md"

Stamp: TypeAlias = tuple[int, int, int, int]
"""mtime ns, ctime ns, size, inode: equal while a file is untouched."""


@dataclass(frozen=True, slots=True)
class Memory:
    """One memory as its file says. ``path`` is relative to the store, "/"-separated; ``key`` is the file's
    stem.

    ``created_at`` and ``updated_at`` are the file's own texts, ISO-8601 by default, from the file's mtime
    where it has none. ``changed_at`` (ms) is the later of ``updated_at`` and the mtime: an editor's save
    counts.
    """

    path: str
    folder: str
    key: str
    title: str
    tags: tuple[str, ...]
    created_at: str
    updated_at: str
    changed_at: int
    body: str
    size: int
    stamp: Stamp
    source: Mapping[str, str] = field(default_factory=dict)
    pinned: bool = False
    """``pinned: true`` in its frontmatter: a person wants it in the essence."""
    written_key: str = ""
    """The ``key`` field, which a renamed or copied file may have kept."""
    problem: str = ""
    """``<path>:<line>: <why>`` when the frontmatter cannot be read."""

    @property
    def archived(self) -> bool:
        return self.folder.partition("/")[0] == names.ARCHIVE

    @property
    def name(self) -> str:
        """``<folder>/<key>``: how citations and links call it."""
        return f"{self.folder}/{self.key}"


class Catalogue:
    """The memories of one store. Safe to use from several threads."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self._known: dict[str, Memory] = {}
        self._lock = Lock()

    def all(self, roots: Iterable[str] = names.ROOTS) -> tuple[Memory, ...]:
        """Every memory below ``roots``, by path. Files that cannot be read are left out, never fatal."""
        with self._lock:
            found: dict[str, Memory] = {}
            for root in roots:
                for path, status in walk(self.store, root):
                    memory = self._memory(path, status)
                    if memory is not None:
                        found[path] = memory
            kept = {path: memory for path, memory in found.items() if not _racy(memory)}
            self._known = {**self._others(roots), **kept}
        return tuple(found[path] for path in sorted(found))

    def at(self, path: str) -> Memory | None:
        """The memory in this file of the store, read now; ``None`` when there is none."""
        try:
            status = (self.store / path).lstat()
        except OSError:
            return None
        if not stat.S_ISREG(status.st_mode):
            return None
        with self._lock:
            return self._memory(path, status)

    def _others(self, roots: Iterable[str]) -> dict[str, Memory]:
        roots = set(roots)
        return {path: one for path, one in self._known.items() if path.partition("/")[0] not in roots}

    def _memory(self, path: str, status: os.stat_result) -> Memory | None:
        stamp = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
        known = self._known.get(path)
        if known is not None and known.stamp == stamp:
            return known
        try:
            data = files.read_bytes(self.store / path, limit=READ_LIMIT)
        except PipelineError:
            return None
        return None if data is None else read(path, data.decode("utf-8", "replace"), stamp)


def read(path: str, text: str, stamp: Stamp) -> Memory:
    """The memory that this text at this path is."""
    parsed = memory_file.parse(text)
    folder, _, file_name = path.rpartition("/")
    key = file_name[: -len(EXTENSION)]
    mtime_ms = stamp[0] // 1_000_000
    updated_at = memory_file.scalar(parsed.fields.get("updatedAt")) or iso(mtime_ms)
    problem = parsed.problem and f"{path}:{parsed.problem.line}: {parsed.problem.message}"
    if stamp[2] > READ_LIMIT:
        problem = f"{path}:1: {stamp[2]} bytes, of which the first {READ_LIMIT} are read"
    return Memory(
        path=path,
        folder=folder,
        key=key,
        title=memory_file.printable(parsed.title) or key,
        tags=parsed.tags,
        created_at=memory_file.scalar(parsed.fields.get("createdAt")) or updated_at,
        updated_at=updated_at,
        changed_at=max(milliseconds(updated_at) or 0, mtime_ms),
        body=parsed.body,
        size=stamp[2],
        stamp=stamp,
        source=parsed.source,
        pinned=memory_file.scalar(parsed.fields.get("pinned")).lower() in ("true", "yes", "on", "1"),
        written_key=memory_file.scalar(parsed.fields.get("key")),
        problem=problem or "",
    )


def walk(store: Path, root: str) -> Iterator[tuple[str, os.stat_result]]:
    """Path in the store and status of each regular ``.md`` file below ``root``; hidden names and links are
    left."""
    try:
        entries = sorted(os.scandir(store / root), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        try:
            if entry.is_dir(follow_symlinks=False):
                yield from walk(store, f"{root}/{entry.name}")
            elif entry.name.lower().endswith(EXTENSION) and entry.is_file(follow_symlinks=False):
                yield f"{root}/{entry.name}", entry.stat(follow_symlinks=False)
        except OSError:
            continue


def iso(ms: int) -> str:
    """ISO-8601 UTC with milliseconds and ``Z``, as all stored times are."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def milliseconds(text: str) -> int | None:
    """Milliseconds of an ISO-8601 time or date, UTC where it names no zone; ``None`` for anything else."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _racy(memory: Memory) -> bool:
    return time.time_ns() - max(memory.stamp[0], memory.stamp[1]) < RACY_NS
