"""Kept searches, in the files of the compatible server: ``searches/search-<hash>.json``.

They are written where their tools are listed (``KIMI_MEMORY_TOOLS=all``): nobody else would read them.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from anyio import to_thread

from pipeline.answers import Answer, iso, local_time
from pipeline.errors import BadInput, PipelineError
from pipeline.search_request import SearchRequest
from pipeline.store import files
from server.call import Call
from server.pages import fenced
from server.space import Space
from stages.snippet import one_line, shorten
from stages.tokens import words

KEPT = 200
PREFIX = "search-"


def view_key(query: str) -> str:
    """The compatible server's key: md5 of the lower-cased, sorted terms."""
    terms = "-".join(sorted({word.lower() for word, _ in words(query)}))
    return PREFIX + hashlib.md5(terms.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()[:12]


async def keep_view(space: Space, answer: Answer, request: SearchRequest) -> None:
    """Keep a search with hits. A disk that refuses costs the view, not the answer."""
    if not answer.hits or request.cursor:
        return
    query = space.redact(request.query)
    value = {
        "query": query,
        "createdAt": iso(space.service.now()),
        "totalMatches": answer.total,
        "totalRefined": 0,
        "gapSeconds": request.cluster_gap_seconds,
        "maxClusterSize": request.max_cluster_size,
        "skippedSessions": [],
        "clusters": [
            {
                "sessionId": cluster.session_id,
                "hitTurnId": cluster.hit_turn_ids[0] if cluster.hit_turn_ids else None,
                "memberCount": len(cluster.turn_ids),
                "refinedCount": 0,
                "members": [{"sessionId": cluster.session_id, "turnId": turn} for turn in cluster.turn_ids],
            }
            for cluster in answer.clusters
        ],
    }
    await to_thread.run_sync(_write, space.layout.searches, view_key(query), value)


def _write(folder: Path, key: str, value: dict[str, Any]) -> None:
    try:
        files.write_json(folder / f"{key}.json", value)
        for path in _paths(folder)[KEPT:]:
            files.remove(path)
    except PipelineError:
        return


def _paths(folder: Path) -> list[Path]:
    """The kept searches, newest first."""
    if not folder.is_dir():
        return []
    dated = [(path.stat().st_mtime_ns, path) for path in folder.glob(f"{PREFIX}*.json") if path.is_file()]
    return [path for _, path in sorted(dated, reverse=True)]


async def list_search_views(call: Call) -> str:
    """The kept searches."""
    space = await call.space()
    rows = []
    for path in (await to_thread.run_sync(_paths, space.layout.searches))[: call["limit"]]:
        value = files.read_json(path)
        if isinstance(value, dict):
            clusters = value.get("clusters")
            count = len(clusters) if isinstance(clusters, list) else 0
            query = shorten(one_line(str(value.get("query", ""))), 120)
            when = str(value.get("createdAt", ""))[:16].replace("T", " ") or local_time(None)
            rows.append(
                f"{path.stem}  {when}  {value.get('totalMatches', 0)} matches, {count} clusters  {query}"
            )
    return fenced("\n".join(rows)) or "No search is kept yet."


async def delete_search_view(call: Call) -> str:
    """Delete a kept search; refined turns are shared by all and stay."""
    space = await call.space()
    key = call["key"].removesuffix(".json")
    known = {path.stem: path for path in _paths(space.layout.searches)}
    if key not in known:
        if key.startswith(PREFIX) and key.removeprefix(PREFIX).isalnum():
            return f"{key}: is not there (any more)."
        raise BadInput(f"key: no kept search {shorten(key, 60)!r}", hint="list_search_views gives the keys.")
    await to_thread.run_sync(files.remove, known[key])
    return f"{key}: deleted. No turn was."
