"""Kept searches: pointer lists that somebody asked for, in the compatible server's files."""

from __future__ import annotations

from dataclasses import replace

from anyio import to_thread

from pipeline.answers import Answer
from pipeline.errors import BadInput, PipelineError
from pipeline.search_request import SearchRequest
from pipeline.store.views import delete_view, list_views, read_view, save_view
from server.call import Call
from server.pages import fenced
from server.space import Space
from stages.snippet import one_line, shorten


async def keep_view(space: Space, answer: Answer, request: SearchRequest) -> str:
    """Keep a search; says where, or why not. A disk that refuses costs the view, never the answer."""
    kept = replace(answer, query=space.redact(answer.query))

    def save() -> str:
        return save_view(
            space.layout.root,
            kept,
            now=space.service.now(),
            gap_seconds=request.cluster_gap_seconds,
            max_cluster_size=request.max_cluster_size,
        )

    try:
        return f"kept as {await to_thread.run_sync(save)}"
    except PipelineError as error:
        return f"not kept: {error.message}"


async def list_search_views(call: Call) -> str:
    """The kept searches, newest first."""
    space = await call.space()
    views = await to_thread.run_sync(list_views, space.layout.root, call["limit"])
    rows = [
        f"{view.key}  {view.created_at[:16].replace('T', ' ')}  {view.total} matches, {view.clusters} clusters  "
        f"{shorten(one_line(view.query), 120)}"
        for view in views
    ]
    return fenced("\n".join(rows)) or "No search is kept: search_context with save_view keeps one."


async def delete_search_view(call: Call) -> str:
    """Delete a kept search; refined turns are shared by all and stay."""
    space = await call.space()
    key = call["key"].strip().removesuffix(".json")
    if await to_thread.run_sync(delete_view, space.layout.root, key):
        return f"{key}: deleted. No turn was."
    if key.startswith("search-") and read_view(space.layout.root, key) is None and len(key) == 19:
        return f"{key}: is not there (any more)."
    raise BadInput(f"key: no kept search {shorten(key, 60)!r}", hint="list_search_views gives the keys.")
