"""Scans a sessions folder: which sessions and agents are there, in every layout (WIRE §2, §11).

Unchanged sessions cost two ``stat`` calls: what was parsed is kept in a cache, keyed by directory.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from pipeline import session_state as states
from pipeline import workspaces
from pipeline.session_head import read_head
from pipeline.session_state import MAIN, AgentKind, AgentState, SessionState
from stages import tail

if TYPE_CHECKING:
    from pipeline.store.tombstones import Forgotten

Kind: TypeAlias = Literal["kimi-code", "kimi-cli"]

WIRE = "wire.jsonl"
NO_WIRE = "no-wire"
NOT_REGULAR = "not-regular"
UNREADABLE = "unreadable"
BROKEN_STATE = "broken-state"
CONTEXT_ONLY = "context-only"

STATE_BYTES = 8 << 20
"""A state or index file is read up to here."""

RECENT_NS = 2_000_000_000
"""A directory that changed this recently may change again without a new mtime (coarse clocks): not cached."""

_LEGACY_BUCKET = re.compile(r"(?:[^_]+_)?[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent's wire. Copied context of ``forked_from`` (an agent of the same session) opens a btw's or
    fork's."""

    agent_id: str
    wire: Path
    kind: AgentKind = MAIN
    parent_agent_id: str | None = None
    forked_from: str | None = None
    swarm_item: str | None = None
    profile: str | None = None


@dataclass(frozen=True, slots=True)
class Keeping:
    """What may be kept and shown of a session: rules of paths and sessions that are not, the days that the raw index
    keeps a turn (0 = for ever), and what of it a person had forgotten."""

    exclude_paths: tuple[str, ...] = ()
    exclude_sessions: tuple[str, ...] = ()
    retention_days: int = 0
    forgotten: Forgotten | None = None


EVERYTHING = Keeping()


@dataclass(frozen=True, slots=True)
class Session:
    """One session on the disk. ``title`` is as recorded (``None``: derive one); redact it before it is kept.

    ``cwd`` is the directory as recorded, ``bucket`` the folder the session lies in. Times are ms; kimi-cli
    records no creation time. ``imported_from`` is a kimi-cli session's id, ``superseded_by_original`` says
    that this session is there too: the imported prefix need not be read, turns added since are the import's
    own.
    """

    session_id: str
    kind: Kind
    dir: Path
    bucket: str
    cwd: str | None
    workspace_id: str
    title: str | None
    created_at: int | None
    updated_at: int | None
    archived: bool
    forked_from: str | None
    imported: bool
    imported_from: str | None
    agents: tuple[Agent, ...]
    parent_session_id: str | None = None
    child_kind: str | None = None
    superseded_by_original: bool = False
    keeping: Keeping = field(default=EVERYTHING, compare=False)


Facts: TypeAlias = tuple[int, ...]
Stamp: TypeAlias = tuple[Facts, ...]


@dataclass(frozen=True, slots=True)
class Cached:
    """A session as parsed, what the files looked like then, and what was skipped in it."""

    stamp: Stamp
    session: Session | None
    skipped: tuple[str, ...]


Cache: TypeAlias = dict[str, Cached]
"""Belongs to the caller, who keeps it between calls; its content is ours."""


class Scan:
    """One look at the folders. ``skipped`` counts what was left out, by reason."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self.skipped: Counter[str] = Counter()
        self._seen: set[str] = set()
        self._trusted_before = time.time_ns() - RECENT_NS

    def folder(self, folder: Path) -> list[Session]:
        """All sessions below a sessions folder. One that cannot be read is counted, one that is absent is
        empty."""
        found: list[Session] = []
        for bucket in self._directories(folder):
            legacy = _LEGACY_BUCKET.fullmatch(bucket.name) is not None
            for entry in self._directories(bucket.path, legacy=legacy):
                session = self._cached(entry, bucket.name, legacy)
                if session is not None:
                    found.append(session)
        return _with_hints(found, folder, self.cache)

    def forget_unseen(self) -> None:
        """Drop from the cache what was not met in this look."""
        for path in self.cache.keys() - self._seen:
            del self.cache[path]

    def _directories(self, path: str | Path, *, legacy: bool = False) -> Iterator[os.DirEntry[str]]:
        """Sub-directories without dot entries. A legacy bucket's own .jsonl files are sessions without a
        wire."""
        try:
            with os.scandir(path) as entries:
                listed = list(entries)
        except FileNotFoundError:
            return
        except OSError:
            self.skipped[UNREADABLE] += 1
            return
        for entry in listed:
            if entry.name.startswith("."):
                continue
            if _is_dir(entry):
                yield entry
            elif legacy and entry.name.endswith(".jsonl"):
                self.skipped[CONTEXT_ONLY] += 1

    def _cached(self, entry: os.DirEntry[str], bucket: str, legacy: bool) -> Session | None:
        path = entry.path
        self._seen.add(path)
        stamp = _legacy_stamp(path) if legacy else _stamp(path)
        known = self.cache.get(path)
        if known is None or known.stamp != stamp:
            look = _Look(Path(path), bucket)
            session = look.kimi_cli() if legacy and not look.has("agents") else look.kimi_code()
            known = Cached(stamp, session, tuple(look.skipped))
            if look.settled and _newest(stamp) < self._trusted_before:
                self.cache[path] = known
            else:
                self.cache.pop(path, None)
        if known.skipped:
            self.skipped.update(known.skipped)
        return known.session


class _Look:
    """Reads one session directory. ``settled`` is false when its content may change without a trace
    outside."""

    def __init__(self, directory: Path, bucket: str) -> None:
        self.dir = directory
        self.bucket = bucket
        self.skipped: list[str] = []
        self.settled = True

    def kimi_code(self) -> Session | None:
        state = self._state("state.json", "session-meta/state.json", parse=states.parse_state)
        agents = [
            _agent(name, wire, state.agents.get(name) or states.default_agent(name))
            for name, wire in self._wires("agents")
        ]
        if not any(agent.agent_id == MAIN for agent in agents) and self._is_wire(self.dir / WIRE):
            agents.insert(0, Agent(MAIN, self.dir / WIRE))  # the ancient layout
        return self._session("kimi-code", state, agents)

    def kimi_cli(self) -> Session | None:
        state = self._state("state.json", "metadata.json", parse=states.parse_legacy_state)
        wire = self.dir / WIRE
        agents = [Agent(MAIN, wire)] if self._is_wire(wire) else []
        for name, path in self._wires("subagents"):
            meta = _small(path.with_name("meta.json")) or b""
            agents.append(_agent(name, path, states.parse_legacy_agent(meta)))
        if state.updated_at is None and agents:
            facts = _facts(str(agents[0].wire))
            state = replace(state, updated_at=facts[0] // 1_000_000 if facts else None)
        if not agents and self.has("context.jsonl"):
            self.skipped.append(CONTEXT_ONLY)
            return None
        return self._session("kimi-cli", state, agents)

    def has(self, name: str) -> bool:
        return bool(_facts(str(self.dir / name)))

    def _session(self, kind: Kind, state: SessionState, agents: list[Agent]) -> Session | None:
        if not agents:
            if not self.skipped:
                self.skipped.append(NO_WIRE)
            return None
        return Session(
            session_id=self.dir.name,
            kind=kind,
            dir=self.dir,
            bucket=self.bucket,
            cwd=state.cwd,
            workspace_id=workspaces.workspace_id(state.cwd, "") if state.cwd else "",
            title=state.title,
            created_at=state.created_at,
            updated_at=state.updated_at,
            archived=state.archived,
            forked_from=state.forked_from,
            imported=state.imported,
            imported_from=state.imported_from,
            agents=tuple(agents),
            parent_session_id=state.parent_session_id,
            child_kind=state.child_kind,
        )

    def _state(self, *names: str, parse: Callable[[bytes], SessionState | None]) -> SessionState:
        """The first of these files that is there; a broken one is noted, and the session does without."""
        for name in names:
            raw = _small(self.dir / name)
            if raw is None:
                continue
            state = parse(raw)
            if state is None:
                self.skipped.append(BROKEN_STATE)
            return state or SessionState()
        return SessionState()

    def _wires(self, name: str) -> list[tuple[str, Path]]:
        """Agents with a wire, ``main`` first, then by number. A directory without one may get it any
        moment."""
        found: list[tuple[str, Path]] = []
        try:
            with os.scandir(self.dir / name) as entries:
                names = [entry.name for entry in entries if not entry.name.startswith(".") and _is_dir(entry)]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError:
            self.skipped.append(UNREADABLE)
            self.settled = False
            return []
        for agent in sorted(names, key=_agent_order):
            wire = self.dir / name / agent / WIRE
            if self._is_wire(wire):
                found.append((agent, wire))
            else:
                self.settled = False
        return found

    def _is_wire(self, path: Path) -> bool:
        """Whether a regular file is there; anything else under that name is noted."""
        try:
            mode = path.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            self.skipped.append(UNREADABLE)
            return False
        if not stat.S_ISREG(mode):
            self.skipped.append(NOT_REGULAR)
            return False
        return True


def _agent(name: str, wire: Path, state: AgentState) -> Agent:
    return Agent(
        agent_id=name,
        wire=wire,
        kind=state.kind,
        parent_agent_id=state.parent_agent_id,
        forked_from=state.forked_from,
        swarm_item=state.swarm_item,
        profile=state.profile,
    )


def _agent_order(name: str) -> tuple[bool, int, str]:
    number = name.rpartition("-")[2]
    return name != MAIN, int(number) if number.isdecimal() else -1, name


# --- directories that no state file tells ------------------------------------------------------------------


def _with_hints(found: list[Session], folder: Path, cache: Cache) -> list[Session]:
    """Fill unknown directories from the files beside the folder, then from the bucket's other sessions,
    then from the head of the main wire. Absolute paths in those files are never followed: a home may have
    been copied.
    """
    if all(session.cwd is not None for session in found):
        return found
    home = folder.parent
    index = states.parse_session_index(_small(home / "session_index.jsonl") or b"")
    buckets = states.parse_workspaces(_small(home / "workspaces.json") or b"")
    buckets |= states.parse_legacy_dirs(_small(home / "kimi.json") or b"")
    for session in found:
        if session.cwd and session.bucket == workspaces.work_dir_key(session.cwd):
            buckets.setdefault(session.bucket, session.cwd)
    return [
        session
        if session.cwd is not None
        else replace(
            session,
            cwd=index.get(session.session_id) or buckets.get(session.bucket) or _recorded_cwd(session, cache),
        )
        for session in found
    ]


def _recorded_cwd(session: Session, cache: Cache) -> str | None:
    """From the wire itself; kept in the cache, a wire's first lines stay."""
    if session.kind == "kimi-cli":
        return None
    cwd = read_head(session.agents[0].wire).cwd
    known = cache.get(str(session.dir))
    if cwd and known and known.session:
        cache[str(session.dir)] = replace(known, session=replace(known.session, cwd=cwd))
    return cwd


# --- the file system ---------------------------------------------------------------------------------------


def _small(path: Path) -> bytes | None:
    """The content of a small file; ``None`` where none is, empty where it cannot be read."""
    try:
        return tail.peek(path, STATE_BYTES)
    except tail.SourceGone:
        return None
    except tail.SourceError:
        return b""


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _stamp(path: str) -> Stamp:
    """What tells that a kimi-code session changed: state.json is replaced, an agent adds a directory."""
    state, agents = _facts(path + "/state.json"), _facts(path + "/agents")
    if state and agents:
        return state, agents
    return state, agents, _facts(path + "/session-meta/state.json"), _facts(f"{path}/{WIRE}")


def _legacy_stamp(path: str) -> Stamp:
    names = ("state.json", "metadata.json", WIRE, "subagents", "agents")
    return tuple(_facts(f"{path}/{name}") for name in names)


def _facts(path: str) -> Facts:
    """``(mtime in ns, size, inode)``; empty for what is not there."""
    try:
        found = os.stat(path)  # noqa: PTH116 (thousands of them)
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_size, found.st_ino


def _newest(stamp: Stamp) -> int:
    return max((facts[0] for facts in stamp if facts), default=0)
