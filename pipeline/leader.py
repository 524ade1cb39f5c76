"""One leader per store among all processes: who does the background work.

The leader holds a file lock, which the kernel drops when it dies, and shows progress by touching its record
``.locks/background.json``. A process that is alive but shows no progress is deposed: a contender that saw the record
unchanged for ``STALL_S`` of its own monotonic clock takes the next lock and writes its own record; the old leader finds
another's token there and steps down. Both working for a moment is harmless: every write is a short transaction that
counts only if the wire's row is as it was.

Synchronous: the async edge runs it in threads.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from pipeline.store import files

RECORD = "background.json"
SLOTS = 4
"""Locks that leaders take in turn: a deposed leader may hold its own for as long as it hangs."""
STALL_S = 120.0
"""Without progress for this long a leader is deposed."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Who leads a store: process, machine, ``role`` (``server``, ``watch``) and since when (ms)."""

    pid: int
    host: str
    role: str
    since: int
    token: str
    slot: int

    def as_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


class Leadership:
    """This process's part in the election of one store's leader. ``clock`` is monotonic, in seconds."""

    def __init__(
        self,
        store: Path,
        role: str,
        *,
        stall_s: float = STALL_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.store = store
        self.role = role
        self.stall_s = stall_s
        self._clock = clock
        self._token = ""
        self._lock: FileLock | None = None
        self._watched: tuple[str, int] = ("", 0)
        self._since = clock()

    def try_lead(self) -> bool:
        """Become the leader if there is none, or none that gets on. Raises StoreError where no lock can be made."""
        files.make_dirs(self.store / files.LOCK_DIR)
        try:
            with FileLock(self._path("background"), timeout=0, mode=0o600, thread_local=False):
                return self._stand()
        except Timeout:  # another contender is at it
            return False
        except OSError as error:
            raise files.refusal(error, self._path("background"), "lock") from error

    def _stand(self) -> bool:
        held = owner(self.store)
        slot = held.slot if held is not None else 0
        if self._take(slot):
            return self._begin(slot)
        if not self._stalled(held):
            return False
        return any(
            self._take(other % SLOTS) and self._begin(other % SLOTS)
            for other in range(slot + 1, slot + SLOTS)
        )

    def _stalled(self, held: Owner | None) -> bool:
        """Whether the record did not change for too long, as this process saw it."""
        seen = (held.token if held else "", self._beat_of_record())
        if seen != self._watched:
            self._watched, self._since = seen, self._clock()
        return self._clock() - self._since >= self.stall_s

    def _beat_of_record(self) -> int:
        try:
            return self._path(RECORD).stat().st_mtime_ns
        except OSError:
            return 0

    def _take(self, slot: int) -> bool:
        lock = FileLock(self._path(f"background-{slot}"), timeout=0, mode=0o600, thread_local=False)
        try:
            lock.acquire()
        except Timeout:
            return False
        self._lock = lock
        return True

    def _begin(self, slot: int) -> bool:
        self._token = secrets.token_hex(8)
        since = time.time_ns() // 1_000_000
        mine = Owner(os.getpid(), socket.gethostname(), self.role, since, self._token, slot)
        try:
            files.write_json(self._path(RECORD), mine.as_json())
        except BaseException:
            self._release()
            raise
        return True

    def beat(self, progress: bool = True) -> bool:
        """Show ``progress``; ``False`` (and this process leads no more) when another one has taken over."""
        if self._lock is None:
            return False
        found = owner(self.store)
        if found is None or found.token != self._token:
            self._release()
            return False
        if progress:
            with suppress(OSError):  # a store that cannot be written now: the next beat may
                os.utime(self._path(RECORD))
        return True

    def resign(self) -> None:
        """Lead no more; the next contender takes over at once."""
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            with suppress(OSError):
                self._lock.release()
            self._lock = None

    def _path(self, name: str) -> Path:
        return self.store / files.LOCK_DIR / name


def owner(store: Path) -> Owner | None:
    """Who led last; whether it still lives, ``alive`` tells."""
    found = files.read_json(store / files.LOCK_DIR / RECORD)
    if not isinstance(found, dict):
        return None
    try:
        mine = Owner(*(found[name] for name in Owner.__slots__))
    except KeyError:
        return None
    return mine if isinstance(mine.slot, int) and 0 <= mine.slot < SLOTS else None


def alive(store: Path, who: Owner) -> bool:
    """Whether the leader's process still holds its lock."""
    path = store / files.LOCK_DIR / f"background-{who.slot}"
    if not path.exists():
        return False
    try:
        with FileLock(path, timeout=0, mode=0o600, thread_local=False):
            return False
    except Timeout:
        return True
    except OSError:
        return False


def last_beat(store: Path) -> int | None:
    """When the leader last showed progress (ms)."""
    try:
        return (store / files.LOCK_DIR / RECORD).stat().st_mtime_ns // 1_000_000
    except OSError:
        return None
