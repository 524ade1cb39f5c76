"""Saved search views: ``searches/search-<12 hex>.json``, in the other server's shape with more beside it.

A view is a pointer list, made only when asked for. The same words in any order and case share one view; their
number and size are bounded, the oldest give way.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.answers import Answer, iso
from pipeline.store import files

VIEWS_MOST = 200
CLUSTERS_MOST = 50
MEMBERS_MOST = 60
QUERY_CHARS = 2_000
VIEW_BYTES = 1024 * 1024
"""A larger file is none of ours and is not read."""

_NAME = re.compile(r"search-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class View:
    """One saved view, as far as its file tells. ``key`` is the file's name without ``.json``."""

    key: str
    query: str
    created_at: str
    total: int
    clusters: int


def view_key(query: str) -> str:
    """The other server's name for a query: md5 of its lower-cased words, sorted and joined by ``-``."""
    words = "-".join(sorted(query.lower().split()))
    digest = hashlib.md5(words.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
    return f"search-{digest[:12]}"


def save_view(
    root: Path, answer: Answer, *, now: int, gap_seconds: float, max_cluster_size: int, refined: int = 0
) -> str:
    """Save the answer's pointers below the store ``root``; returns the key. Raises StoreError.

    Saving the same answer again keeps the file's time. ``refined`` is how many of its turns are refined.
    """
    key = view_key(answer.query)
    path = root / "searches" / f"{key}.json"
    with files.locked(root, f"searches/{key}.json"):
        view = _view(answer, now, gap_seconds, max_cluster_size, refined)
        old = files.read_json(path)
        if isinstance(old, dict) and {**old, "createdAt": ""} == {**view, "createdAt": ""}:
            return key
        files.write_json(path, view)
    _prune(root, keep=key)
    return key


def _view(
    answer: Answer, now: int, gap_seconds: float, max_cluster_size: int, refined: int
) -> dict[str, Any]:
    best = {(hit.session_id, hit.agent_id, hit.turn_id): hit.score for hit in answer.hits}
    clusters = []
    for cluster in answer.clusters[:CLUSTERS_MOST]:
        members = cluster.turn_ids[:MEMBERS_MOST]
        hits = cluster.hit_turn_ids or members[:1]
        top = max(hits, key=lambda turn: best.get((cluster.session_id, cluster.agent_id, turn), 0.0))
        clusters.append(
            {
                "sessionId": cluster.session_id,
                "agentId": cluster.agent_id,
                "hitTurnId": top,
                "memberCount": len(members),
                "refinedCount": 0,
                "members": [
                    {"sessionId": cluster.session_id, "agentId": cluster.agent_id, "turnId": turn}
                    for turn in members
                ],
            }
        )
    return {
        "query": answer.query[:QUERY_CHARS].encode("utf-8", "replace").decode(),
        "createdAt": iso(now),
        "totalMatches": answer.total,
        "matchMode": answer.mode,
        "totalRefined": refined,
        "gapSeconds": gap_seconds,
        "maxClusterSize": max_cluster_size,
        "skippedSessions": 0,
        "clusters": clusters,
    }


def list_views(root: Path, limit: int = 20) -> list[View]:
    """The newest views first. Files that are no views are left out."""
    found = [view for path in _paths(root) if (view := _read(path)) is not None]
    return sorted(found, key=lambda view: (view.created_at, view.key), reverse=True)[: max(0, limit)]


def read_view(root: Path, key: str) -> dict[str, Any] | None:
    """The whole view, ``None`` if there is none of this key (any other name is none)."""
    if not _NAME.fullmatch(key):
        return None
    found = files.read_json(root / "searches" / f"{key}.json")
    return found if isinstance(found, dict) else None


def delete_view(root: Path, key: str) -> bool:
    """Remove one view; whether there was one. Raises StoreError."""
    if not _NAME.fullmatch(key):
        return False
    with files.locked(root, f"searches/{key}.json"):
        return files.remove(root / "searches" / f"{key}.json")


def _paths(root: Path) -> list[Path]:
    try:
        return [
            path
            for path in (root / "searches").iterdir()
            if _NAME.fullmatch(path.stem) and path.suffix == ".json"
        ]
    except OSError:
        return []


def _read(path: Path) -> View | None:
    try:
        if path.stat().st_size > VIEW_BYTES:
            return None
    except OSError:
        return None
    found = files.read_json(path)
    if not isinstance(found, dict) or not isinstance(found.get("query"), str):
        return None
    clusters, total, created = found.get("clusters"), found.get("totalMatches"), found.get("createdAt")
    return View(
        path.stem,
        found["query"],
        created if isinstance(created, str) else "",
        total if isinstance(total, int) else 0,
        len(clusters) if isinstance(clusters, list) else 0,
    )


def _prune(root: Path, *, keep: str) -> None:
    """Beyond the bound the oldest views go."""
    views = list_views(root, limit=1_000_000)
    for view in [view for view in views if view.key != keep][VIEWS_MOST - 1 :]:
        delete_view(root, view.key)
