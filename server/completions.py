"""Completions: keys, folders, themes, sessions and files as they are in this workspace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from anyio import to_thread

from pipeline.errors import PipelineError

if TYPE_CHECKING:
    from server.service import Service
    from server.space import Space

MOST = 100
"""As many values as the protocol allows."""


async def complete(service: Service, about: str, argument: str, value: str) -> tuple[list[str], int]:
    """Values for an argument of a prompt or resource template that hold ``value``, and how many there are."""
    space = await service.space()
    if argument == "filePath":
        known = await _files(space)
    elif argument == "turn":
        known = []
    else:
        known = await to_thread.run_sync(_known, space, about, argument)
    wanted = value.casefold()
    begins = [one for one in known if one.casefold().startswith(wanted)]
    holds = [one for one in known if wanted in one.casefold() and one not in set(begins)]
    found = [*begins, *holds]
    return found[:MOST], len(found)


def _known(space: Space, about: str, argument: str) -> list[str]:
    if argument == "theme":
        return _once(record.theme for record in space.themes.all()[0])
    if argument == "key":
        return _once(memory.key for memory in space.memories.all())
    if argument == "folder":
        return _once(memory.folder for memory in space.memories.all())
    if argument == "session":
        return _once(session.session_id for session in reversed(space.sessions))
    return []


def _once(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


async def _files(space: Space) -> list[str]:
    """Files that refined turns wrote, the most often written first."""
    if not await space.reads_index():
        return []
    try:
        async with space.reading() as database:
            from pipeline.store.refined import refined_turns

            turns = await refined_turns(database)
    except PipelineError:
        return []
    counts: dict[str, int] = {}
    for turn in turns:
        for path in turn.refined.entities.files_written:
            counts[path] = counts.get(path, 0) + 1
    return sorted(counts, key=lambda path: (-counts[path], path))
