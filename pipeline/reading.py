"""Turns straight from the wires, written nowhere: `pipeline turns` and `pipeline show`.

Copies (a fork's or import's prefix) are traced to the turn they were copied from while that session exists;
without it the first session that holds the prefix stands for it (WIRE §7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from pipeline.exclusion import SHUT, Excluded, without_excluded
from pipeline.fold import HEAD_BYTES, Folded
from pipeline.sessions import Agent, Session
from stages import tail
from stages.model import Turn, TurnKey
from stages.split import open_splitter, status_at, whole_turn
from stages.wire.contract import Origin, Redact


@dataclass(frozen=True, slots=True)
class Reading:
    """One agent's turns as its wire stands now."""

    session: Session
    agent: Agent
    turns: tuple[Turn, ...]
    mtime_ms: int
    skipped: dict[str, int]


def origin_of(session: Session, agent: Agent) -> Origin:
    """What the splitter must know of a wire beyond its bytes."""
    return Origin(
        session_id=session.session_id,
        agent_id=agent.agent_id,
        cwd=session.cwd,
        context_copied=agent.forked_from is not None,
        imported=session.imported,
        forked=session.forked_from is not None,
    )


def read_agent(session: Session, agent: Agent, redact: Redact) -> Reading:
    """All turns of one wire in one pass. Raises what ``stages.tail.read`` raises."""
    folded, splitter, skipped = Folded(), None, dict[str, int]()
    for chunk, _ in tail.read(agent.wire):
        if splitter is None and chunk.data:
            splitter = open_splitter(chunk.data[:HEAD_BYTES], origin_of(session, agent), redact)
        if splitter is not None:
            folded.apply(splitter.feed(chunk))
        for reason, count in chunk.skipped:
            skipped[reason] = skipped.get(reason, 0) + count
    if splitter is not None:
        folded.apply(splitter.provisional())
        for reason, count in splitter.counts.items():
            skipped[reason] = skipped.get(reason, 0) + count
    turns = tuple(_allowed(session, (folded.turns[position] for position in sorted(folded.turns))))
    return Reading(session, agent, turns, _mtime_ms(agent.wire), skipped)


def _allowed(session: Session, turns: Iterable[Turn]) -> Iterator[Turn]:
    """The turns that may be shown: not what a person had forgotten, nor what tools did to excluded files."""
    keeping = session.keeping
    excluded = Excluded(keeping.exclude_paths, session.cwd)
    retold = False
    for turn in turns:
        if keeping.forgotten is not None and keeping.forgotten(turn):
            retold = True  # summaries of compactions after it may retell it
            continue
        if retold and turn.compactions:
            turn = replace(turn, compactions=())
        yield without_excluded(turn, excluded) if excluded.rules else turn


def shown_records(session: Session, records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records of one whole turn, as ``whole_turn`` gives them, without what may not be shown: calls that name an
    excluded file, and summaries of compactions in a session that lost a turn."""
    excluded = Excluded(session.keeping.exclude_paths, session.cwd)
    retold = session.keeping.forgotten is not None and session.keeping.forgotten.concerns_title
    shut: set[str] = set()
    found = []
    for record in records:
        if record.get("kind") == "compaction" and retold:
            record = {**record, "text": ""}
        elif excluded.rules and record.get("kind") == "call":
            args = record.get("args")
            command = str(args.get("command", "")) if isinstance(args, dict) else ""
            if excluded.call(orjson.dumps(args).decode(), command, ()):
                shut.add(str(record.get("id")))
                record = {**record, "args": orjson.loads(SHUT)}
        elif excluded.rules and record.get("kind") == "result":
            text = str(record.get("text", ""))
            record = {**record, "text": "" if str(record.get("id")) in shut else excluded.without(text)}
        found.append(record)
    return found


def _mtime_ms(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns // 1_000_000
    except OSError:
        return 0


class Copies:
    """Finds the turn that a copied turn was copied from, over all sessions of a workspace."""

    def __init__(self, sessions: Sequence[Session], redact: Redact) -> None:
        self._sessions = {session.session_id: session for session in sessions}
        self._order = sorted(sessions, key=lambda s: (s.created_at or 0, s.session_id))
        self._redact = redact
        self._read: dict[tuple[str, str], tuple[Turn, ...]] = {}

    def original(self, session: Session, agent: Agent, turn: Turn) -> TurnKey | None:
        """The key of the original; ``None`` if the turn is no copy, or is itself the first that is left."""
        if not turn.copied:
            return None
        seen = {session.session_id}
        here, found = session, None
        while turn.copied and (source := self._source(here, seen)) is not None:
            seen.add(source.session_id)
            match = _match(self._turns(source, agent.agent_id), turn)
            if match is None:
                break
            here, turn, found = source, match, _key(source, agent, match)
        if found is not None:
            return found
        return self._sibling(session, agent, turn)

    def _source(self, session: Session, seen: set[str]) -> Session | None:
        name = session.forked_from or session.imported_from
        source = self._sessions.get(name) if name else None
        return None if source is None or source.session_id in seen else source

    def _sibling(self, session: Session, agent: Agent, turn: Turn) -> TurnKey | None:
        """The same prefix in an earlier fork of the same lost session."""
        for other in self._order:
            if other.session_id == session.session_id:
                return None
            if session.forked_from is not None and other.forked_from == session.forked_from:
                match = _match([t for t in self._turns(other, agent.agent_id) if t.copied], turn)
                if match is not None:
                    return _key(other, agent, match)
        return None

    def _turns(self, session: Session, agent_id: str) -> tuple[Turn, ...]:
        key = (session.session_id, agent_id)
        if key not in self._read:
            agent = next((agent for agent in session.agents if agent.agent_id == agent_id), None)
            try:
                self._read[key] = read_agent(session, agent, self._redact).turns if agent else ()
            except tail.SourceError:
                self._read[key] = ()
        return self._read[key]


def _key(session: Session, agent: Agent, turn: Turn) -> TurnKey:
    return TurnKey(session.session_id, agent.agent_id, turn.position, turn.turn_id, turn.opener_digest)


def _match(turns: Iterable[Turn], turn: Turn) -> Turn | None:
    """The turn with the same opener; of several (no prompt ids) the one with the same time, number or place."""
    same = [other for other in turns if other.opener_digest == turn.opener_digest]
    if len(same) < 2:
        return same[0] if same else None
    return max(
        same,
        key=lambda other: (
            other.started_at == turn.started_at,
            other.turn_id == turn.turn_id,
            -abs(other.position - turn.position),
        ),
    )


def turn_json(reading: Reading, turn: Turn, original: TurnKey | None, *, now_ms: int) -> dict[str, Any]:
    """The stable object of `pipeline turns --json`."""
    record: dict[str, Any] = {
        "sessionId": reading.session.session_id,
        "agentId": reading.agent.agent_id,
        "turnId": turn.turn_id,
        "position": turn.position,
        "origin": turn.origin,
        "promptId": turn.prompt_id,
        "userText": turn.user_text,
        "openingText": turn.opening_text,
        "assistantText": turn.assistant_text,
        "tools": [{"id": call.id, "name": call.name, "result": call.result} for call in turn.tools],
        "files": [{"path": touch.path, "op": touch.op} for call in turn.tools for touch in call.files],
        "errors": errors(turn),
        "steers": [steer.text for steer in turn.steers if steer.human],
        "status": status_at(turn.open, turn.status, turn.last_at, reading.mtime_ms, now_ms),
        "undone": turn.undone,
        "copyOf": None
        if original is None
        else {"sessionId": original.session_id, "agentId": original.agent_id, "turnId": original.turn_id},
        "startedAt": turn.started_at,
        "endedAt": turn.ended_at,
    }
    if turn.cut is not None:
        live = replace(turn, steps=turn.live_steps, steers=turn.live_steers)
        record["cut"] = {"at": turn.cut.at, "assistantText": live.assistant_text}
    return record


def errors(turn: Turn) -> list[dict[str, Any]]:
    """A turn's errors: failed calls, then its own (tool and id null)."""
    found: list[dict[str, Any]] = [
        {"tool": call.name, "id": call.id, "text": call.error}
        for call in turn.tools
        if call.result == "error"
    ]
    if turn.error:
        found.append({"tool": None, "id": None, "text": turn.error})
    return found


def json_lines(records: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """One compact JSON object a line."""
    return (orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE) for record in records)


def whole(reading: Reading, turn: Turn, redact: Redact) -> dict[str, Any]:
    """One turn whole, from its bytes in the wire: what was said, each call's arguments and results, in order."""
    with reading.agent.wire.open("rb") as file:
        file.seek(turn.start)
        data = file.read(turn.end - turn.start)
    return {
        "sessionId": reading.session.session_id,
        "agentId": reading.agent.agent_id,
        "turnId": turn.turn_id,
        "position": turn.position,
        "status": turn.status,
        "startedAt": turn.started_at,
        "endedAt": turn.ended_at,
        "records": shown_records(
            reading.session,
            whole_turn(data, origin_of(reading.session, reading.agent), redact, turn.turn_id),
        ),
    }
