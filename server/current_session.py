"""Which session is asking, by evidence. The protocol does not say (Kimi sends no session id with a call).

In this order: the caller says so; the hooks' map names one session of our Kimi process in this workspace; one
wire's newest records hold this very call, still without a result; one wire alone has a turn that runs. Else it
is ambiguous, and the candidates are named. The newest file alone proves nothing: two terminals may be open.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import orjson
from anyio import to_thread

from pipeline import workspaces
from pipeline.errors import BadInput, PipelineError
from pipeline.sessions import Session
from server.call import Call
from server.session_map import mapped_sessions
from server.space import Space

TAIL_BYTES = 512 << 10
"""The end of a wire that is searched for a call: Kimi writes the call just before it makes it."""
FRESH_S = 600.0
"""A wire that was not written for this long holds no call that is being made now."""
RUNNING_MS = 5 * 60 * 1000
"""An open turn runs while its last record is younger (as ``stages.split.status_at``)."""
MAIN = "main"
LOOKS, PAUSE_S = 5, 0.02
"""Kimi writes in batches: the call may reach the disk a moment after it reaches us."""


@dataclass(frozen=True, slots=True)
class Current:
    """The asking session, or ``None``; ``how`` says what showed it; ``candidates`` are left when it is not clear."""

    session: Session | None
    how: str
    candidates: tuple[Session, ...] = ()
    turn_id: int | None = None
    """The turn that makes the call, where its log showed it."""


async def current_session(space: Space, call: Call) -> Current:
    """Find the session that makes ``call``. Raises BadInput for a ``session_id`` that is not of this workspace."""
    named = call["session_id"]
    if named:
        return Current(_named(space, str(named)), "given as session_id")
    candidates = list(space.sessions)
    mapped = _by_map(space, candidates)
    if len(mapped) == 1:
        return Current(mapped[0], "the hooks' session map names it for this Kimi process")
    candidates = mapped or candidates
    if not candidates:
        return Current(None, "no session was recorded in this workspace yet")
    asking = await _by_call(candidates, call)
    if len(asking) == 1:
        return Current(asking[0][0], "its log holds this very call", turn_id=asking[0][1])
    running = await _running(space, [session for session, _ in asking] or candidates)
    if len(running) == 1 and not asking:
        return Current(running[0], "it alone has a turn that runs")
    left = tuple(session for session, _ in asking) or tuple(running)
    if left:
        return Current(None, f"ambiguous: {len(left)} sessions may be asking", left)
    return Current(None, "unknown: no session has a turn that runs")


def _named(space: Space, session_id: str) -> Session:
    found = [
        one
        for one in space.sessions
        if session_id in (one.session_id, one.session_id.removeprefix("session_"))
    ]
    if not found:
        latest = ", ".join(one.session_id for one in list(space.sessions)[-5:])
        raise BadInput(
            f"session_id: no session {session_id} in {space.label}",
            hint=f"Latest: {latest or 'there is none yet'}.",
        )
    return found[0]


def _by_map(space: Space, sessions: Sequence[Session]) -> list[Session]:
    entries = mapped_sessions(space.settings.store_root, space.service.parent)
    here = {entry.session_id for entry in entries if workspaces.same_dir(entry.cwd, space.label)}
    return [session for session in sessions if session.session_id in here]


# --- the call in the logs ----------------------------------------------------------------------------------


async def _by_call(sessions: Sequence[Session], call: Call) -> list[tuple[Session, int | None]]:
    now = time.time()
    fresh = [(session, wire) for session in sessions for wire in _fresh_wires(session, now)]
    for look in range(LOOKS if fresh else 0):
        if look:
            await anyio.sleep(PAUSE_S)
        found = await to_thread.run_sync(_holding, fresh, call.tool, dict(call.given))
        if found:
            return found
    return []


def _fresh_wires(session: Session, now: float) -> Iterator[Path]:
    for agent in session.agents:
        try:
            if now - agent.wire.stat().st_mtime < FRESH_S:
                yield agent.wire
        except OSError:
            continue


def _holding(
    wires: Sequence[tuple[Session, Path]], tool: str, given: Mapping[str, Any]
) -> list[tuple[Session, int | None]]:
    found: dict[str, tuple[Session, int | None]] = {}
    for session, wire in wires:
        if session.session_id not in found and (calls := open_calls(_tail(wire), tool, given)):
            # A sub-agent's turn numbers are its own: they would name another turn of the session.
            turn = next(iter(calls.values())) if wire.parent.name == MAIN else None
            found[session.session_id] = (session, turn)
    return list(found.values())


def _tail(wire: Path) -> bytes:
    try:
        with wire.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - TAIL_BYTES))
            data = file.read(TAIL_BYTES)
    except OSError:
        return b""
    return data if size <= TAIL_BYTES else data[data.find(b"\n") + 1 :]


def open_calls(data: bytes, tool: str, given: Mapping[str, Any]) -> dict[str, int | None]:
    """Calls of ``tool`` with these arguments in these last lines of a wire that have no result yet (WIRE §5).

    By call id, with the number of the turn that made each.
    """
    calls: dict[str, int | None] = {}
    name = tool.encode()
    for line in data.split(b"\n"):
        if b"ool" not in line or not (name in line or b"esult" in line):
            continue
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(record, dict):
            _note(record, tool, given, calls)
    return calls


def _note(
    record: Mapping[str, Any], tool: str, given: Mapping[str, Any], calls: dict[str, int | None]
) -> None:
    """Add the record's call to ``calls``, or take out the one whose result it is; both dialects."""
    event, message = record.get("event"), record.get("message")
    if isinstance(event, dict):
        if event.get("type") == "tool.call" and _same(event.get("name"), event.get("args"), tool, given):
            turn = str(event.get("turnId", ""))
            calls[str(event.get("toolCallId"))] = int(turn) if turn.isdigit() else None
        elif event.get("type") == "tool.result":
            calls.pop(str(event.get("toolCallId")), None)
    elif isinstance(message, dict) and isinstance(payload := message.get("payload"), dict):
        function = payload.get("function")
        if message.get("type") == "ToolCall" and isinstance(function, dict):
            if _same(function.get("name"), function.get("arguments"), tool, given):
                calls[str(payload.get("id"))] = None
        elif message.get("type") == "ToolResult":
            calls.pop(str(payload.get("tool_call_id")), None)


def _same(name: object, args: object, tool: str, given: Mapping[str, Any]) -> bool:
    if not isinstance(name, str) or not (
        name == tool or (name.startswith("mcp__") and name.endswith(f"__{tool}"))
    ):
        return False
    if isinstance(args, str):
        try:
            args = orjson.loads(args) if args.strip() else {}
        except orjson.JSONDecodeError:
            return False
    return (args or {}) == dict(given)


# --- turns that run ----------------------------------------------------------------------------------------


async def _running(space: Space, sessions: Sequence[Session]) -> list[Session]:
    """Sessions with an open turn whose last record is younger than RUNNING_MS, as the (caught-up) store says."""
    oldest = space.service.now() - RUNNING_MS
    try:
        async with space.reading() as database:
            rows = await database.rows(
                "SELECT DISTINCT session_id FROM occurrence WHERE open=1 AND agent_id='main' AND undone=0"
                " AND coalesce(last_at, started_at)>=?",
                (oldest,),
            )
    except PipelineError:
        return []
    names = {row[0] for row in rows}
    return [session for session in sessions if session.session_id in names]
