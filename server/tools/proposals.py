"""The tools of the proposal queue: the service proposes, a person decides."""

from __future__ import annotations

from typing import Any

from anyio import to_thread

from pipeline.errors import PipelineError
from pipeline.proposing import propose_from_store
from pipeline.workers import Workers
from server.call import Call
from server.pages import fenced, some_lines
from server.space import PATIENT_S, Space
from stages.snippet import one_line, shorten

TEXT_CHARS = 700


async def propose_memories(call: Call) -> str:
    """Look for what is worth keeping, and list what is proposed."""
    space = await call.space()
    problem = "" if call["status"] != "open" else await _propose(space, call["limit"])
    found = await to_thread.run_sync(space.proposals.list, call["status"], call["limit"])
    lines = [problem] if problem else []
    if not found["total"]:
        return "\n".join([*lines, f"No proposal is {call['status']}."])
    lines.append(
        f"{found['total']} {call['status']}"
        + (": ask the user, then resolve_proposal" * (call["status"] == "open"))
    )
    lines.append(fenced(some_lines([_text(one) for one in found["items"]], 40_000, "{} more")))
    if found["total"] > len(found["items"]):
        lines.append(f"{found['total'] - len(found['items'])} more: raise limit")
    return "\n".join(lines)


async def _propose(space: Space, limit: int) -> str:
    """Queue new proposals; what hinders it is said, the queue is shown all the same."""
    freshness = await space.freshen(PATIENT_S)
    if not await space.reads_index():
        return freshness.reason
    try:
        async with space.writing() as database:
            memories = await to_thread.run_sync(space.memories.all)
            await propose_from_store(database, space.proposals, memories, workers=Workers(1), limit=limit)
    except PipelineError as error:
        return f"no new proposals: {error.message}"
    return freshness.reason if freshness.stale or freshness.incomplete else ""


def _text(one: dict[str, Any]) -> str:
    source = one["source"]
    where = f" · {source.get('sessionId')} turn {source.get('turnId')}" if source.get("sessionId") else ""
    kept = one.get("memory")
    state = f" · saved as {kept['folder']}/{kept['key']}" if kept else ""
    head = f"{one['id']}  {one['folder']}/{one['key']}{where}{state}"
    return f"{head}\n   {shorten(one_line(one['text']), TEXT_CHARS)}"


async def resolve_proposal(call: Call) -> str:
    """Settle one proposal."""
    space = await call.space()

    def settle() -> dict[str, Any]:
        return space.proposals.resolve(
            call["id"],
            call["action"],
            text=call["text"],
            title=call["title"],
            folder=call["folder"],
            key=call["key"],
            tags=call["tags"],
        )

    done = await to_thread.run_sync(settle)
    text = f"{done['status']}{'' if done['changed'] else ' already'}"
    if "memory" in done:
        return f"{text}: saved as {done['memory']['folder']}/{done['memory']['key']}"
    return f"{text}: it does not come back" if done["status"] == "rejected" else text
