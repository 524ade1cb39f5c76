"""The map from sessions to directories that the hooks keep: ``<store root>/sessions-map.json``.

    {"sessions": {"<session id>": {"cwd": "/home/dev/shop", "kimiPid": 4711, "at": <ms>}}}

Only SessionStart tells a session's true directory, and only the process id that hooks and servers share tells
which sessions a server belongs to. The map is a hint: without it, or with a torn one, other evidence counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import orjson

NAME = "sessions-map.json"
READ_LIMIT = 8 << 20


@dataclass(frozen=True, slots=True)
class Mapped:
    """One session of the map. ``at`` is in ms."""

    session_id: str
    cwd: str
    kimi_pid: int
    at: int


def mapped_sessions(store_root: Path, kimi_pid: int) -> tuple[Mapped, ...]:
    """The sessions that the Kimi process ``kimi_pid`` opened, newest last; empty when there is no usable map."""
    found = [entry for entry in read_map(store_root) if entry.kimi_pid == kimi_pid]
    return tuple(sorted(found, key=lambda entry: (entry.at, entry.session_id)))


def read_map(store_root: Path) -> tuple[Mapped, ...]:
    """Every usable entry of the map."""
    path = store_root / NAME
    try:
        if not path.is_file() or path.stat().st_size > READ_LIMIT:
            return ()
        value = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return ()
    sessions = value.get("sessions") if isinstance(value, dict) else None
    entries = sessions.items() if isinstance(sessions, dict) else ()
    return tuple(entry for name, row in entries if (entry := _entry(name, row)) is not None)


def _entry(name: str, row: object) -> Mapped | None:
    if not isinstance(row, dict):
        return None
    cwd, pid, at = row.get("cwd"), row.get("kimiPid"), row.get("at")
    if not isinstance(cwd, str) or not isinstance(pid, int):
        return None
    return Mapped(name, cwd, pid, at if isinstance(at, int) else 0)
