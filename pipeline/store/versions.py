"""What was overwritten or deleted: ``.history/<folder>/<key>/<time>-<digest>.md`` and the same below
``.trash/``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from pipeline.store import files, names
from pipeline.store.catalogue import EXTENSION, iso

HISTORY_DIR, TRASH_DIR = ".history", ".trash"
HISTORY_KEPT = 50
"""Versions of one file that are kept, the newest ones."""


class Versions:
    """Old versions of the Markdown files of one store; paths are relative to it. ``now`` gives ms."""

    def __init__(self, store: Path, now: Callable[[], int]) -> None:
        self._store = store
        self._now = now

    def keep(self, path: str, data: bytes) -> str:
        """Keep the bytes about to be overwritten; where they lie now. Called under the lock of ``path``."""
        folder = self._folder(HISTORY_DIR, path)
        kept = _newest_first(folder)
        if kept and kept[0].stem.endswith(
            _digest(data)
        ):  # a resend after a crash between keeping and writing
            return kept[0].relative_to(self._store).as_posix()
        target = folder / self._name(data)
        files.write_bytes(target, data)
        for old in kept[HISTORY_KEPT - 1 :]:
            files.remove(old)
        return target.relative_to(self._store).as_posix()

    def of(self, path: str) -> tuple[Path, ...]:
        """The kept versions of a file, newest first."""
        return tuple(_newest_first(self._folder(HISTORY_DIR, path)))

    def trash(self, path: str) -> bool:
        """Move a file to the trash; ``False`` when it is gone already. Called under its lock."""
        data = files.read_bytes(self._store / path)
        if data is None:
            return False
        files.rename(self._store / path, self._folder(TRASH_DIR, path) / self._name(data))
        return True

    def trashed(self, key: str, folder: str | None) -> tuple[str, Path] | None:
        """The newest trashed file of this key (below ``folder``, if given): old path and where it lies."""
        root = self._store / TRASH_DIR / (folder or "")
        wanted = names.fold(key)
        found = [one for one in root.rglob(f"*{EXTENSION}") if names.identity(one.parent.name) == wanted]
        newest = max(found, key=lambda one: one.name, default=None)
        if newest is None:
            return None
        return newest.parent.relative_to(self._store / TRASH_DIR).as_posix() + EXTENSION, newest

    def in_trash(self, path: str) -> bool:
        """Whether a file of exactly this path was deleted."""
        return bool(_newest_first(self._folder(TRASH_DIR, path)))

    def untrash(self, path: str, version: Path) -> None:
        """Put a trashed file back at ``path``; older ones of it become history. Called under its lock."""
        files.rename(version, self._store / path)
        for older in _newest_first(self._folder(TRASH_DIR, path)):
            files.rename(older, self._folder(HISTORY_DIR, path) / older.name)
        files.prune_dirs(version.parent, self._store / TRASH_DIR)

    def follow(self, old: str, new: str) -> None:
        """The history goes where its file went."""
        for version in self.of(old):
            files.rename(version, self._folder(HISTORY_DIR, new) / version.name)
        files.prune_dirs(self._folder(HISTORY_DIR, old), self._store / HISTORY_DIR)

    def erase(self, path: str) -> int:
        """Remove every kept and trashed version of a file for good; how many."""
        erased = 0
        for kept in (HISTORY_DIR, TRASH_DIR):
            folder = self._folder(kept, path)
            erased += sum(files.remove(version) for version in _newest_first(folder))
            files.prune_dirs(folder, self._store / kept)
        return erased

    def _folder(self, kept: str, path: str) -> Path:
        return self._store / kept / path.removesuffix(EXTENSION)

    def _name(self, data: bytes) -> str:
        stamp = iso(self._now()).replace("-", "").replace(":", "")
        return f"{stamp}-{_digest(data)}{EXTENSION}"


def _newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"*{EXTENSION}"), key=lambda one: one.name, reverse=True)


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=4).hexdigest()
