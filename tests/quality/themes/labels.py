"""Theme labels as README.md here describes them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Key = tuple[str, str, int]
"""``(session_id, agent_id, turn_id)``."""


@dataclass(frozen=True, slots=True)
class Label:
    """One labelled theme."""

    theme: str
    seeds: tuple[str, ...]
    members: frozenset[Key]
    either: frozenset[Key]


def read_labels(path: Path) -> tuple[str, list[Label]]:
    """The corpus a file is about (from its name, unless it says so) and its themes."""
    value = json.loads(path.read_text(encoding="utf-8"))
    rows = value if isinstance(value, list) else value["themes"]
    corpus = value.get("corpus") if isinstance(value, dict) else None
    return str(corpus or path.stem.removeprefix("labels_")), [_label(row) for row in rows]


def _label(row: dict[str, Any]) -> Label:
    members = frozenset(_keys(row["members"]))
    return Label(
        row["theme"], tuple(row["seeds"]), members, frozenset(_keys(row.get("either", []))) - members
    )


def _keys(rows: Iterable[dict[str, Any]]) -> Iterable[Key]:
    return ((row["sessionId"], row.get("agentId", "main"), row["turnId"]) for row in rows)
