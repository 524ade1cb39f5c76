"""A turn whole, as its wire holds it: the bytes the store knows it by, else a new reading of the wire, else the
stored record, which keeps all that was said but arguments and outputs only in part.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from anyio import to_thread

from pipeline.answers import local_time
from pipeline.errors import BadInput, PipelineError
from pipeline.reading import origin_of, read_agent, shown_records
from pipeline.sessions import Agent, Session
from pipeline.store.claims import claim_of
from pipeline.store.sources import sources
from pipeline.store.turns import Occurrence, bodies, find, unpack
from server.space import Space
from stages.model import Turn
from stages.source import SourceError, Verdict
from stages.tail import verdict
from stages.wire.show import whole_turn

MAIN = "main"
CLAIMED = "(its log is gone: another server's note of it, not checked)"
LINE_CHARS = 300


@dataclass(frozen=True, slots=True)
class Reference:
    """What a caller means by a turn; twins share a number, ``position`` tells them apart."""

    session_id: str
    turn_id: int
    agent_id: str = "main"
    position: int | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Reference:
        return cls(given["sessionId"], given["turnId"], given.get("agentId") or "main", given.get("position"))

    def __str__(self) -> str:
        agent = "" if self.agent_id == "main" else f" {self.agent_id}"
        return f"{self.session_id}{agent} turn {self.turn_id}"


@dataclass(frozen=True, slots=True)
class Include:
    """What to show besides what was said."""

    args: bool = False
    results: bool = False
    diffs: bool = False


async def whole_texts(space: Space, reference: Reference, include: Include) -> list[str]:
    """Every turn the reference names, as text; empty when there is none.

    Raises BadInput for an agent that the session has not.
    """
    session = _session(space, reference.session_id)
    places, known = await _stored_places(space, reference)
    agent = _agent(session, reference) if session is not None else None
    if session is not None and agent is not None:
        try:
            return await to_thread.run_sync(
                _from_wire, space, session, agent, reference, places, known, include
            )
        except SourceError:
            pass  # the wire is gone or cannot be read: what the store kept answers
    return await _from_store(space, places, include) or await _claimed(space, reference)


async def _claimed(space: Space, reference: Reference) -> list[str]:
    """What the compatible server noted of a turn whose wire is gone: a claim, and said to be one."""
    if not space.layout.database.is_file() or reference.agent_id != MAIN:
        return []
    try:
        async with space.reading(ours=False) as database:
            claim = await claim_of(database, reference.session_id, reference.turn_id)
    except PipelineError:
        return []
    if claim is None:
        return []
    head = f"=== {claim.session_id} · turn {claim.turn_id} · {claim.timestamp[:16].replace('T', ' ')}"
    facts = [f"- {fact}" for fact in claim.facts]
    return [space.redact("\n".join([head, CLAIMED, claim.summary, *facts]))]


def _session(space: Space, session_id: str) -> Session | None:
    wanted = session_id.removeprefix("session_")
    return next((one for one in space.sessions if one.session_id.removeprefix("session_") == wanted), None)


def _agent(session: Session, reference: Reference) -> Agent:
    found = next((agent for agent in session.agents if agent.agent_id == reference.agent_id), None)
    if found is None:
        agents = ", ".join(agent.agent_id for agent in session.agents)
        raise BadInput(
            f"agentId: {session.session_id} has no agent {reference.agent_id}", hint=f"It has {agents}."
        )
    return found


async def _stored_places(space: Space, reference: Reference) -> tuple[list[Occurrence], Any]:
    """Where the store says the turn lies, and the checkpoint of its wire that this is true for."""
    try:
        async with space.reading() as database:
            places = await find(
                database,
                reference.session_id,
                agent_id=reference.agent_id,
                turn_id=reference.turn_id,
                position=reference.position,
            )
            source = (await sources(database)).get((reference.session_id, reference.agent_id))
    except PipelineError:
        return [], None
    return places, source.checkpoint if source is not None and source.complete else None


def _from_wire(
    space: Space,
    session: Session,
    agent: Agent,
    reference: Reference,
    places: list[Occurrence],
    checkpoint: Any,
    include: Include,
) -> list[str]:
    trusted = checkpoint is not None and verdict(agent.wire, checkpoint) in (Verdict.SAME, Verdict.APPEND)
    if places and trusted and not any(place.open for place in places):
        spans = [(place, place.start, place.end) for place in places]
        return [_text(space, session, agent, place, start, end, include) for place, start, end in spans]
    turns = [
        turn
        for turn in read_agent(session, agent, space.redact).turns
        if turn.turn_id == reference.turn_id and reference.position in (None, turn.position)
    ]
    return [_text(space, session, agent, turn, turn.start, turn.end, include) for turn in turns]


def _text(
    space: Space,
    session: Session,
    agent: Agent,
    turn: Turn | Occurrence,
    start: int,
    end: int,
    include: Include,
) -> str:
    try:
        with agent.wire.open("rb") as file:
            file.seek(start)
            data = file.read(end - start)
    except OSError as error:
        raise SourceError(agent.wire, Verdict.GONE) from error
    records = shown_records(session, whole_turn(data, origin_of(session, agent), space.redact, turn.turn_id))
    head = _heading(session.session_id, agent.agent_id, turn)
    return "\n".join([head, *(line for record in records for line in _record(record, include))])


def _heading(session_id: str, agent_id: str, turn: Turn | Occurrence) -> str:
    agent = "" if agent_id == "main" else f" · {agent_id}"
    marks = [str(turn.status)] if turn.status != "completed" else []
    marks += ["undone"] if turn.undone else []
    marks += ["copied from another session"] if turn.copied else []
    when = local_time(turn.started_at).strip()
    return f"=== {session_id}{agent} · turn {turn.turn_id} · {when}{''.join(f' · {mark}' for mark in marks)}"


def _record(record: Mapping[str, Any], include: Include) -> Iterator[str]:
    kind = record["kind"]
    if kind in ("prompt", "steer"):
        who = "user" if record.get("origin") in ("user", "") else record.get("origin")
        yield f"[{who}{' (while it worked)' if kind == 'steer' else ''}]\n{record['text']}"
    elif kind == "text":
        yield f"[agent]\n{record['text']}"
    elif kind == "call":
        yield from _call(record, include)
    elif kind == "result":
        yield from _result(record, include)
    elif kind == "compaction" and record["text"]:  # one that may retell what was forgotten has none
        yield f"[compaction]\n{record['text']}"
    elif kind == "end" and record.get("error"):
        yield f"[ended: {record['status']}]\n{record['error']}"


def _call(record: Mapping[str, Any], include: Include) -> Iterator[str]:
    args = record["args"]
    if include.args and args:
        shown = args if isinstance(args, str) else orjson.dumps(args, option=orjson.OPT_INDENT_2).decode()
        yield f"[call {record['name']}]\n{_unescaped(shown)}"
    else:
        yield f"[call {record['name']}] {_gist(args)}".rstrip()
    if include.diffs and isinstance(args, dict) and (diff := _diff(args)):
        yield diff


def _unescaped(text: str) -> str:
    """JSON whose long texts read as texts: kept as it is, but with their line ends."""
    return text.replace("\\n", "\n")


def _result(record: Mapping[str, Any], include: Include) -> Iterator[str]:
    if record["result"] == "error" or include.results:
        mark = "failed" if record["result"] == "error" else "result"
        text = record["text"] if include.results else _one_line(record["text"])
        yield f"[{mark}] {text}".rstrip()


def _gist(args: Any) -> str:
    """The telling argument of a call, on one line."""
    if not isinstance(args, dict):
        return _one_line(str(args or ""))
    for name in ("command", "path", "file_path", "pattern", "query", "url", "prompt", "description"):
        value = args.get(name)
        if isinstance(value, str) and value.strip():
            return _one_line(value)
    return _one_line(", ".join(f"{name}={value}" for name, value in args.items()))


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LINE_CHARS else text[: LINE_CHARS - 1] + "…"


def _diff(args: Mapping[str, Any]) -> str:
    """The change that an edit or a write asked for, as a unified diff."""
    path = str(args.get("path") or args.get("file_path") or "")
    edits = args.get("edits") or args.get("edit") or [args]
    parts = []
    for edit in edits if isinstance(edits, list) else [edits]:
        if not isinstance(edit, dict):
            continue
        old = edit.get("old_string", edit.get("old"))
        new = edit.get("new_string", edit.get("new", edit.get("content")))
        if isinstance(new, str) and (isinstance(old, str) or "content" in edit):
            before = (old or "").splitlines()
            lines = difflib.unified_diff(before, new.splitlines(), path, path, lineterm="", n=2)
            parts += list(lines)
    return "\n".join(parts)


# --- without the wire --------------------------------------------------------------------------------------


async def _from_store(space: Space, places: list[Occurrence], include: Include) -> list[str]:
    if not places:
        return []
    async with space.reading() as database:
        texts = await bodies(database, [place.content_id for place in places])
    return [
        _stored_text(unpack(texts[place.content_id], place), place, include)
        for place in places
        if place.content_id in texts
    ]


def _stored_text(turn: Turn, place: Occurrence, include: Include) -> str:
    lines = [
        _heading(place.session_id, place.agent_id, place),
        "(its log is gone: from the stored record; tool arguments and outputs were kept in part)",
        f"[{'user' if turn.user_text is not None else turn.origin}]\n{turn.opening_text}",
    ]
    steers = {steer.after_step: steer for steer in turn.live_steers}
    for number, step in enumerate(turn.live_steps):
        lines += [f"[agent]\n{text}" for text in step.texts]
        for call in step.tools:
            lines.append(
                f"[call {call.name}] {call.args if include.args else call.command or _one_line(call.args)}"
            )
            if call.result == "error":
                lines.append(f"[failed] {call.error}")
            elif include.results and call.outcome:
                lines.append(f"[result, its end] {call.outcome}")
        if (steer := steers.get(number + 1)) is not None:
            lines.append(f"[{'user' if steer.human else steer.origin} (while it worked)]\n{steer.text}")
    if turn.error:
        lines.append(f"[ended: {turn.status}]\n{turn.error}")
    return "\n".join(lines)
