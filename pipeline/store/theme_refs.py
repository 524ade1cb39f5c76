"""What a theme file refers to: turns and memories, and their JSON. Times in records are ms, in files
ISO-8601 UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from stages.aggregate import Place
from stages.model import Cluster, TurnKey

_TURN_FIELDS = (
    "sessionId", "agentId", "turnId", "position", "opener", "timestamp", "score", "via", "gone", "unresolved",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference to a turn; ``position`` is ``None`` as long as it is only an ordinal of the other
    server.
    """

    session_id: str
    turn_id: int
    agent_id: str = "main"
    position: int | None = None
    opener: str = ""

    @property
    def place(self) -> Place | None:
        return None if self.position is None else (self.session_id, self.agent_id, self.position)

    def is_same(self, other: Ref) -> bool:
        """The same turn: place and, where both say it, opener."""
        if self.place is None or other.place is None:
            return self == other
        return self.place == other.place and (
            self.opener == other.opener or not (self.opener and other.opener)
        )


@dataclass(frozen=True, slots=True)
class ThemeTurn:
    """A theme's pointer as kept. ``score`` and ``via`` are ``None`` on the other server's pointers."""

    ref: Ref
    timestamp: int | None
    score: float | None = None
    via: str | None = None
    gone: bool = False
    unresolved: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ThemeMemory:
    """A linked Markdown memory."""

    key: str
    folder: str
    title: str
    timestamp: int | None
    extra: Mapping[str, Any] = field(default_factory=dict)


def ref_of(key: TurnKey) -> Ref:
    return Ref(key.session_id, key.turn_id, key.agent_id, key.position, key.opener_digest)


def iso(at: int | None) -> str | None:
    """Milliseconds as ISO-8601 UTC with ms and Z."""
    if at is None:
        return None
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def ms_of(value: object) -> int | None:
    """ISO-8601 (naive means UTC) or a number of ms as ms; ``None`` for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return int(value)
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def cluster_json(cluster: Cluster) -> dict[str, Any]:
    """A cluster as the file and ``trace --format json`` show it."""
    return {
        "id": cluster.id,
        "sessionId": cluster.session_id,
        "agentId": cluster.agent_id,
        "turnIds": list(cluster.turn_ids),
        "positions": list(cluster.positions),
        "start": iso(cluster.start),
        "end": iso(cluster.end),
        "summary": cluster.summary,
        "decision": cluster.decision,
        "decisions": [{"turnId": turn_id, "text": text} for turn_id, text in cluster.decisions],
        "files": list(cluster.files),
    }


def ref_json(ref: Ref) -> dict[str, Any]:
    row: dict[str, Any] = {"sessionId": ref.session_id, "agentId": ref.agent_id, "turnId": ref.turn_id}
    if ref.position is not None:
        row["position"] = ref.position
    if ref.opener:
        row["opener"] = ref.opener
    return row


def turn_json(turn: ThemeTurn) -> dict[str, Any]:
    row = {**ref_json(turn.ref), "timestamp": iso(turn.timestamp)}
    if turn.score is not None:
        row["score"] = turn.score
    if turn.via is not None:
        row["via"] = turn.via
    if turn.gone:
        row["gone"] = True
    if turn.unresolved:
        row["unresolved"] = True
    return {**row, **turn.extra}


def memory_json(memory: ThemeMemory) -> dict[str, Any]:
    row = {
        "key": memory.key,
        "folder": memory.folder,
        "title": memory.title,
        "timestamp": iso(memory.timestamp),
    }
    return {**row, **memory.extra}


def ref_from(row: Mapping[str, Any], name: str) -> Ref:
    session, turn, position = row.get("sessionId"), row.get("turnId"), row.get("position")
    if not isinstance(session, str) or isinstance(turn, bool) or not isinstance(turn, int):
        raise ValueError(f"an entry of “{name}” names no sessionId and turnId")
    if isinstance(position, bool) or not isinstance(position, int | None):
        raise ValueError(f"an entry of “{name}” has a position that is no number")
    return Ref(session, turn, str(row.get("agentId") or "main"), position, str(row.get("opener") or ""))


def turn_from(row: Mapping[str, Any]) -> ThemeTurn:
    score, via = row.get("score"), row.get("via")
    return ThemeTurn(
        ref=ref_from(row, "turns"),
        timestamp=ms_of(row.get("timestamp")),
        score=float(score) if isinstance(score, int | float) and not isinstance(score, bool) else None,
        via=via if isinstance(via, str) else None,
        gone=row.get("gone") is True,
        unresolved=row.get("unresolved") is True,
        extra={key: each for key, each in row.items() if key not in _TURN_FIELDS},
    )


def memory_from(row: Mapping[str, Any]) -> ThemeMemory:
    return ThemeMemory(
        key=str(row.get("key", "")),
        folder=str(row.get("folder", "memory")),
        title=str(row.get("title", "")),
        timestamp=ms_of(row.get("timestamp")),
        extra={key: each for key, each in row.items() if key not in ("key", "folder", "title", "timestamp")},
    )
