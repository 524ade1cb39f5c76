"""Nudges: files that `kimi-memory hook` touches at the end of a turn, named by the session that has something new."""

from __future__ import annotations

import os
from collections.abc import Container
from contextlib import suppress
from pathlib import Path

FOLDER = "nudges"
"""Below the store root: the hook knows no workspaces."""


class Nudges:
    """The nudges for one workspace's sessions. ``waiting`` are those to be dealt with, by session id."""

    def __init__(self, store_root: Path) -> None:
        self.folder = store_root / FOLDER
        self.waiting: dict[str, int] = {}
        self._foreign: dict[str, int] = {}

    def take(self, others: Container[str]) -> None:
        """Look for new ones; those of ``others``, sessions known to be of other workspaces, are left to their leader.

        One for a session that nobody knows yet may be ours.
        """
        with suppress(OSError), os.scandir(self.folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    touched = entry.stat().st_mtime_ns
                    if entry.name in others:
                        self._foreign[entry.name] = touched
                    elif self._foreign.get(entry.name) != touched:
                        self.waiting[entry.name] = touched

    def done(self, mine: Container[str]) -> None:
        """What waited was read: the nudges of ``mine`` go, unless they were touched again meanwhile."""
        for name, touched in self.waiting.items():
            if name not in mine:
                self._foreign[name] = touched
                continue
            path = self.folder / name
            with suppress(OSError):
                if path.stat().st_mtime_ns == touched:
                    path.unlink()
        self.waiting.clear()
