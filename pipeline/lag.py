"""How far a store is behind the wires: bytes that are not read yet, and since when they wait."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.sessions import Session
from pipeline.store.sources import Source

PEEK_BYTES = 64 * 1024
_TIME = re.compile(rb'"time(?:stamp)?"\s*:\s*(\d{10,13})(?:\.\d+)?\b')


@dataclass(frozen=True, slots=True)
class Lag:
    """One session that is behind: unread bytes in ``wires`` of its wires; ``seconds`` since the oldest of them was
    written, as the wire itself says."""

    session_id: str
    bytes: int
    seconds: float
    wires: int

    def as_json(self) -> dict[str, Any]:
        return {
            "sessionId": self.session_id,
            "bytes": self.bytes,
            "seconds": round(self.seconds, 1),
            "wires": self.wires,
        }


@dataclass(frozen=True, slots=True)
class Standing:
    """The wires of a workspace against its store. ``behind`` is empty when every byte is read."""

    wires: int
    bytes: int
    behind: tuple[Lag, ...]

    @property
    def unread(self) -> int:
        return sum(lag.bytes for lag in self.behind)


def standing(sessions: Iterable[Session], known: Mapping[tuple[str, str], Source], now_ms: int) -> Standing:
    """Compare file sizes with checkpoints (one stat a wire; a look into those that are behind)."""
    wires = total = 0
    behind = []
    for session in sessions:
        unread, since, late = 0, now_ms, 0
        for agent in session.agents:
            try:
                stat = agent.wire.stat()
            except OSError:
                continue
            wires, total = wires + 1, total + stat.st_size
            source = known.get((session.session_id, agent.agent_id))
            point = source.checkpoint if source is not None else None
            done = (
                point.offset if point is not None and point.offset <= stat.st_size else 0
            )  # shorter: rewritten
            missing = stat.st_size - done
            torn = _whole_lines(agent.wire, done, missing) if 0 < missing <= PEEK_BYTES else missing
            if torn:
                unread, late = unread + torn, late + 1
                written = _first_time(agent.wire, done) or stat.st_mtime_ns // 1_000_000
                since = min(since, written)
        if unread:
            behind.append(Lag(session.session_id, unread, max(0.0, (now_ms - since) / 1000), late))
    behind.sort(key=lambda lag: -lag.seconds)
    return Standing(wires, total, tuple(behind))


def _whole_lines(wire: Path, start: int, missing: int) -> int:
    """Unread bytes without a torn last line: it is the writer that is not done with it."""
    try:
        with wire.open("rb") as file:
            file.seek(start)
            return file.read(missing).rfind(b"\n") + 1
    except OSError:
        return 0


def _first_time(wire: Path, start: int) -> int | None:
    """When the first unread record was written (ms)."""
    try:
        with wire.open("rb") as file:
            file.seek(start)
            found = _TIME.search(file.read(PEEK_BYTES))
    except OSError:
        return None
    if found is None:
        return None
    value = int(found[1])
    return value if value > 10**11 else value * 1000
