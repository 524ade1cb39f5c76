"""What the files beside a wire say about its session: state.json in all its shapes, and the homes' indexes.

Pure: bytes in, records out. Whatever is missing or of the wrong type is left out, never an error; only a
state file that holds no JSON object at all is ``None`` (WIRE §2, §11).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, TypeAlias

import orjson

from stages.wire.parts import MS_UNTIL, ms

AgentKind: TypeAlias = Literal["main", "sub", "btw", "fork"]
JsonObject: TypeAlias = Mapping[str, object]

MAIN: Literal["main"] = "main"


@dataclass(frozen=True, slots=True)
class AgentState:
    """What is known of one agent. ``forked_from`` is the agent whose context its wire begins with."""

    kind: AgentKind
    parent_agent_id: str | None = None
    forked_from: str | None = None
    swarm_item: str | None = None
    profile: str | None = None


@dataclass(frozen=True, slots=True)
class SessionState:
    """What is known of one session. Times are ms."""

    cwd: str | None = None
    title: str | None = None
    created_at: int | None = None
    updated_at: int | None = None
    archived: bool = False
    forked_from: str | None = None
    imported: bool = False
    """Made from a kimi-cli session, ``imported_from`` if that is recorded."""
    imported_from: str | None = None
    parent_session_id: str | None = None
    child_kind: str | None = None
    agents: Mapping[str, AgentState] = field(default_factory=dict)


def parse_state(raw: bytes) -> SessionState | None:
    """A kimi-code state.json: version 2, or the older one with ISO dates and ``workDir``."""
    state = _object(raw)
    if state is None:
        return None
    custom = _mapping(state.get("custom"))
    return SessionState(
        cwd=_text(state.get("cwd")) or _text(state.get("workDir")),
        title=_text(state.get("title")) or _text(state.get("customTitle")),
        created_at=milliseconds(state.get("createdAt")),
        updated_at=milliseconds(state.get("updatedAt")),
        archived=state.get("archived") is True,
        forked_from=_text(state.get("forkedFrom")),
        imported=bool(custom.get("imported_from_kimi_cli")),
        imported_from=_text(custom.get("kimi_cli_session_id")),
        parent_session_id=_text(custom.get("parent_session_id")),
        child_kind=_text(custom.get("child_session_kind")),
        agents={
            name: _agent(name, value)
            for name, value in _mapping(state.get("agents")).items()
            if isinstance(value, dict)
        },
    )


def _agent(name: str, agent: JsonObject) -> AgentState:
    labels = _mapping(agent.get("labels"))
    parent = _text(agent.get("parentAgentId")) or _text(labels.get("parentAgentId"))
    forked_from = _text(agent.get("forkedFrom"))
    kind: AgentKind = MAIN if name == MAIN else "sub"
    if forked_from:
        # An agent that a tool started has its parent among its labels; the side channel has not.
        kind = "fork" if _text(labels.get("parentAgentId")) else "btw"
    return AgentState(
        kind=kind,
        parent_agent_id=parent,
        forked_from=forked_from,
        swarm_item=_text(labels.get("swarmItem")) or _text(agent.get("swarmItem")),
        profile=_text(labels.get("profileName")),
    )


def default_agent(name: str) -> AgentState:
    """An agent that the state does not mention."""
    return AgentState(MAIN if name == MAIN else "sub")


def parse_legacy_state(raw: bytes) -> SessionState | None:
    """A kimi-cli state.json or the older metadata.json. Times and directory are not in it (WIRE §11)."""
    state = _object(raw)
    if state is None:
        return None
    return SessionState(
        title=_text(state.get("custom_title")) or _text(state.get("title")),
        updated_at=milliseconds(state.get("wire_mtime")),
        archived=state.get("archived") is True,
    )


def parse_legacy_agent(raw: bytes) -> AgentState:
    """A kimi-cli sub-agent's meta.json."""
    meta = _object(raw) or {}
    return AgentState("sub", parent_agent_id=MAIN, profile=_text(meta.get("subagent_type")))


# --- indexes: hints only -----------------------------------------------------------------------------------


def parse_legacy_dirs(raw: bytes) -> dict[str, str]:
    """kimi.json as ``{bucket: directory}``: the only place where kimi-cli keeps directories (WIRE §11)."""
    dirs = (_object(raw) or {}).get("work_dirs")
    found: dict[str, str] = {}
    for entry in dirs if isinstance(dirs, list) else ():
        path = _text(_mapping(entry).get("path"))
        if path is not None:
            digest = hashlib.md5(path.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
            kaos = _text(_mapping(entry).get("kaos"))
            found[digest if kaos in (None, "local") else f"{kaos}_{digest}"] = path
    return found


def parse_session_index(raw: bytes) -> dict[str, str]:
    """session_index.jsonl as ``{session id: directory}``; the last line of an id wins (WIRE §2)."""
    found: dict[str, str] = {}
    for entry in _lines(raw):
        session_id, work_dir = _text(entry.get("sessionId")), _text(entry.get("workDir"))
        if session_id and work_dir:
            found[session_id] = work_dir
        elif session_id:
            found.pop(session_id, None)
    return found


def parse_workspaces(raw: bytes) -> dict[str, str]:
    """workspaces.json as ``{bucket: directory}``."""
    entries = _mapping((_object(raw) or {}).get("workspaces"))
    roots = ((bucket, _text(_mapping(entry).get("root"))) for bucket, entry in entries.items())
    return {bucket: root for bucket, root in roots if root}


# --- values ------------------------------------------------------------------------------------------------


def milliseconds(value: object) -> int | None:
    """A time as ms since the epoch: ms, seconds or ISO-8601 (WIRE §3). ``None`` for anything else."""
    if not isinstance(value, str):
        return ms(value)
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    at = round(moment.timestamp() * 1000)
    return at if 0 < at < MS_UNTIL else None


def _lines(raw: bytes) -> Iterator[JsonObject]:
    for line in raw.split(b"\n"):
        entry = _object(line) if line.strip() else None
        if entry is not None:
            yield entry


def _object(raw: bytes) -> JsonObject | None:
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        value = _lenient(raw)
    return value if isinstance(value, dict) else None


def _lenient(raw: bytes) -> object:
    """A title cut inside a surrogate pair is valid for Python alone (WIRE §3)."""
    try:
        return json.loads(raw.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _mapping(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    """A text with something in it, free of lone surrogates."""
    if not isinstance(value, str) or not value.strip():
        return None
    return value.encode("utf-8", "replace").decode("utf-8")
