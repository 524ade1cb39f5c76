"""The turns of one session as the store has them, or straight from its wire when the store cannot say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from anyio import to_thread

from pipeline.answers import local_time
from pipeline.errors import PipelineError
from pipeline.reading import read_agent
from pipeline.sessions import Session
from pipeline.store.database import Database
from pipeline.store.turns import OCCURRENCE, bodies, occurrence, unpack
from server.space import Space
from stages.model import Turn
from stages.refine import refine
from stages.snippet import one_line, shorten
from stages.tail import SourceError

USER_CHARS, ANSWER_CHARS, DID_CHARS, LINE_CHARS = 700, 1_300, 500, 240


@dataclass(frozen=True, slots=True)
class SessionTurns:
    """Some live turns of a session's main agent, oldest first; ``before`` is how many lie before them."""

    session_id: str
    turns: tuple[Turn, ...]
    before: int
    from_wire: bool = False


async def last_turns(
    space: Space,
    session_id: str,
    limit: int,
    *,
    before_turn: int | None = None,
    before_position: int | None = None,
) -> SessionTurns:
    """The last ``limit`` live turns of a session, before the named one. Without a usable store: from the wire."""
    try:
        async with space.reading() as database:
            found = await _stored(database, session_id, limit, before_turn, before_position)
        if found.turns or found.before:
            return found
    except PipelineError:
        pass
    return await to_thread.run_sync(_from_wire, space, session_id, limit, before_turn, before_position)


async def _stored(
    database: Database, session_id: str, limit: int, before_turn: int | None, before_position: int | None
) -> SessionTurns:
    end = 1 << 60 if before_position is None else before_position
    if before_turn is not None:
        row = await database.row(
            "SELECT min(position) FROM occurrence WHERE session_id=? AND agent_id='main' AND turn_id>=?",
            (session_id, before_turn),
        )
        end = min(end, 1 << 60 if row[0] is None else row[0])
    where = "session_id=? AND agent_id='main' AND undone=0 AND position<?"
    rows = await database.rows(
        f"SELECT {OCCURRENCE} FROM occurrence WHERE {where} ORDER BY position DESC LIMIT ?",
        (session_id, end, limit),
    )
    places = [occurrence(row) for row in reversed(rows)]
    texts = await bodies(database, [place.content_id for place in places])
    turns = tuple(unpack(texts[place.content_id], place) for place in places if place.content_id in texts)
    first = places[0].position if places else end
    before = await database.row(f"SELECT count(*) FROM occurrence WHERE {where}", (session_id, first))
    return SessionTurns(session_id, turns, before[0])


def _from_wire(
    space: Space, session_id: str, limit: int, before_turn: int | None, before_position: int | None
) -> SessionTurns:
    session = next((one for one in space.sessions if one.session_id == session_id), None)
    main = next((agent for agent in session.agents if agent.agent_id == "main"), None) if session else None
    if session is None or main is None:
        return SessionTurns(session_id, (), 0, True)
    try:
        turns = [turn for turn in read_agent(session, main, space.redact).turns if not turn.undone]
    except SourceError:
        return SessionTurns(session_id, (), 0, True)
    if before_turn is not None:
        turns = [turn for turn in turns if turn.turn_id < before_turn]
    if before_position is not None:
        turns = [turn for turn in turns if turn.position < before_position]
    return SessionTurns(session_id, tuple(turns[-limit:]), max(0, len(turns) - limit), True)


@dataclass(frozen=True, slots=True)
class Activity:
    """When a session last did something (ms), and how many live turns it has."""

    session: Session
    last_at: int
    turns: int


async def activity(space: Space) -> list[Activity]:
    """The workspace's sessions with turns, the latest active first, by the times in their turns, not the files'."""
    known: dict[str, tuple[int, int]] = {}
    try:
        async with space.reading() as database:
            for row in await database.rows(
                "SELECT session_id, max(coalesce(last_at, ended_at, started_at, 0)), sum(undone=0) FROM occurrence"
                " WHERE agent_id='main' GROUP BY session_id"
            ):
                known[row[0]] = (row[1] or 0, row[2])
    except PipelineError:
        pass
    found = []
    for session in space.sessions:
        last, turns = known.get(session.session_id, (0, 0 if known else -1))
        found.append(Activity(session, last or session.updated_at or session.created_at or 0, turns))
    return sorted(found, key=lambda each: (-each.last_at, each.session.session_id))


# --- turns as text -----------------------------------------------------------------------------------------


def detailed(turn: Turn, scale: float = 1.0) -> str:
    """A turn in a few lines: what was asked, said at the end, and done. Texts are cut at ``scale`` of their caps."""
    lines = [heading(turn)]
    user = turn.shown_text
    lines.append(f"user: {_cut(user, USER_CHARS * scale)}")
    lines += [
        f"user (later): {_cut(steer.text, USER_CHARS * scale / 2)}"
        for steer in turn.live_steers
        if steer.human
    ]
    answer = _answer(turn)
    if answer:
        lines.append(f"agent: {_cut(answer, ANSWER_CHARS * scale)}")
    did = "; ".join(_actions(turn))
    if did:
        lines.append(f"did: {_cut(did, DID_CHARS * scale)}")
    return "\n".join(lines)


def heading(turn: Turn) -> str:
    status = "" if turn.status == "completed" else f" · {'running' if turn.open else turn.status}"
    return f"turn {turn.turn_id} · {local_time(turn.started_at).strip()}{status}"


def summary_line(turn: Turn, previous: Turn | None, cwd: str | None) -> str:
    """A turn in one line, by the refiner's summary."""
    told = refine(turn, previous, cwd=cwd).summary or turn.shown_text
    return f"turn {turn.turn_id}: {shorten(one_line(told), LINE_CHARS)}"


def _answer(turn: Turn) -> str:
    for step in reversed(turn.live_steps):
        texts = [text for text in step.texts if text.strip()]
        if texts:
            return "\n".join(texts)
    return turn.error


def _actions(turn: Turn) -> Iterator[str]:
    """What was done, without the looking: files changed, commands, failures."""
    seen: set[str] = set()
    for step in turn.live_steps:
        for call in step.tools:
            if call.own:
                continue
            changed = [touch.path for touch in call.files if touch.op != "read"]
            what = (
                f"{call.name} {', '.join(changed)}"
                if changed
                else call.command and f"$ {one_line(call.command)}"
            )
            if call.result == "error":
                what = f"{what or call.name} failed: {shorten(one_line(call.error), 160)}"
            if what and what not in seen:
                seen.add(what)
                yield shorten(what, 200)


def _cut(text: str, limit: float) -> str:
    return shorten(text.strip(), max(40, int(limit)))


def detailed_turns(turns: Sequence[Turn], limit: int) -> str:
    """Turns in detail within ``limit`` characters: texts shorter first, then the oldest turns left out."""
    for scale in (1.0, 0.7, 0.5, 0.35, 0.2):
        text = "\n\n".join(detailed(turn, scale) for turn in turns)
        if len(text) <= limit:
            return text
    kept = list(turns)
    while len(kept) > 1:
        kept = kept[1:]
        text = "\n\n".join(detailed(turn, 0.2) for turn in kept)
        if len(text) <= limit:
            return text
    return shorten(text, limit)
