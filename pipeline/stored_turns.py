"""Turns whose wire is gone: what the stores still hold of them, in the shape that `pipeline show` prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pipeline.errors import StoreError
from pipeline.store.database import open_database
from pipeline.store.turns import bodies, find, unpack
from stages.model import Turn


async def stored_turns(
    databases: Sequence[Path], session_id: str, turn_id: int, *, agent_id: str, position: int | None
) -> list[dict[str, Any]]:
    """The turns that a reference names, from whichever of the stores knows the session; unreadable ones are
    passed over. Each says ``stored: true``: arguments and outputs are kept in part only.
    """
    found: list[dict[str, Any]] = []
    for path in databases:
        try:
            async with open_database(path, write=False) as database:
                places = await find(
                    database, session_id, agent_id=agent_id, turn_id=turn_id, position=position
                )
                texts = await bodies(database, [place.content_id for place in places])
        except StoreError:
            continue
        for place in places:
            turn = unpack(texts[place.content_id], place)
            found.append(
                {
                    "sessionId": session_id,
                    "agentId": agent_id,
                    "turnId": turn.turn_id,
                    "position": turn.position,
                    "status": turn.status,
                    "startedAt": turn.started_at,
                    "endedAt": turn.ended_at,
                    "stored": True,
                    "records": list(_records(turn)),
                }
            )
    return found


def _records(turn: Turn) -> Iterator[dict[str, Any]]:
    yield {"kind": "prompt", "at": turn.started_at, "origin": turn.origin, "text": turn.opening_text}
    for number, step in enumerate(turn.steps):
        for steer in turn.steers:
            if steer.after_step == number:
                yield {"kind": "steer", "at": steer.at, "origin": steer.origin, "text": steer.text}
        for text in step.texts:
            yield {"kind": "text", "at": None, "text": text}
        for call in step.tools:
            yield {"kind": "call", "at": None, "id": call.id, "name": call.name, "args": call.args}
            text = call.error or call.outcome
            yield {"kind": "result", "at": None, "id": call.id, "result": call.result, "text": text}
    for summary in turn.compactions:
        yield {"kind": "compaction", "at": None, "text": summary}
    yield {"kind": "end", "at": turn.ended_at, "status": turn.status, "error": turn.error}
