"""What the leader of a store's background work says about itself, read by others (`pipeline status`)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipeline.leader import STALL_S, alive, last_beat, owner
from pipeline.store import files

STATUS = (".cache", "background.json")
"""Below the store; the leader writes it."""


def background_status(store: Path, now_ms: int | None = None) -> dict[str, Any] | None:
    """``{leader, state, progressAt, queue, lastError, …}``; ``None`` where no process ever led. Reads only.

    ``leader`` is ``None`` when nobody leads now: what the last one said then stands under its time ``at``. A leader
    that shows no progress is ``stalled``.
    """
    who = owner(store)
    if who is None:
        return None
    now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    told = files.read_json(store.joinpath(*STATUS))
    told = told if isinstance(told, dict) else {}
    beat = last_beat(store)
    leads = alive(store, who)
    return {
        "leader": {"pid": who.pid, "host": who.host, "role": who.role, "since": who.since} if leads else None,
        "progressAt": beat,
        "stalled": leads and beat is not None and now - beat > STALL_S * 1000,
        **{key: value for key, value in told.items() if key != "pid"},
    }


def background_lines(status: dict[str, Any] | None) -> Iterator[str]:
    """The same for people."""
    if status is None:
        yield "background: never ran here (the server or `pipeline watch` does it)"
        return
    leader = status["leader"]
    if leader is None:
        yield "background: no process leads now"
    else:
        ago = (time.time() * 1000 - (status["progressAt"] or 0)) / 1000
        stalled = "; no progress: another process will take over" if status["stalled"] else ""
        yield (
            f"background: {status.get('state', 'starting')}; led by process {leader['pid']} ({leader['role']}), "
            f"progress {max(0.0, ago):.0f} s ago{stalled}"
        )
        queue = status.get("queue") or {}
        if any(queue.values()):
            yield (
                f"  queue: {queue.get('unreadBytes', 0)} bytes to read, {queue.get('unrefinedTurns', 0)} turns to "
                f"refine, {queue.get('themes', 0)} themes to look at"
            )
        if status.get("watching") == "polling":
            yield f"  polling for changes: {status.get('watchingWhy') or 'asked for'}"
    error = status.get("lastError")
    if isinstance(error, dict):
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime((error.get("at") or 0) / 1000))
        yield f"  last error ({when}): {error.get('what')}"
