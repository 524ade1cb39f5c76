"""Builds session folders as Kimi Code CLI 2.1.0 leaves them: ``Home`` → ``Session`` → ``Wire`` → turns.

    home = Home(tmp_path)
    session = home.session("/home/dev/shop", at=1_796_033_702_000, title="port conflict")
    session.main.turn("why is it busy?", say("I look.", read("server.py", "PORT = 3000")), say("Fixed."))
    session.write()
    home.write()

Everything is a function of the seed and the calls made: no clock, no real randomness. ``tests.wire_calls``
holds the tool calls, ``tests.wire_agent`` the order of records, ``tests.wire_records`` the records.
"""

import hashlib
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests import wire_records as rec
from tests.wire_agent import Wire
from tests.wire_calls import (
    Call,
    Say,
    SubAgent,
    agent,
    bash,
    edit,
    fetch,
    glob,
    grep,
    mcp,
    read,
    read_missing,
    say,
    todo,
    write,
)
from tests.wire_ids import TRIMMED, Bulk, Ids, bulk
from tests.wire_records import dumps

__all__ = [
    "TRIMMED",
    "Bulk",
    "Call",
    "Home",
    "Ids",
    "Say",
    "Session",
    "SubAgent",
    "Wire",
    "agent",
    "bash",
    "bulk",
    "edit",
    "fetch",
    "glob",
    "grep",
    "mcp",
    "read",
    "read_missing",
    "say",
    "todo",
    "work_dir_key",
    "write",
]


def work_dir_key(cwd: str) -> str:
    """The bucket name of a working directory (WIRE §2, v2)."""
    norm = cwd.replace("\\", "/").rstrip("/")
    slug = re.sub(r"[^a-z0-9._-]+", "-", norm.rsplit("/", 1)[-1].lower()).strip("-")[:40].strip("-")
    slug = "workspace" if slug in ("", ".", "..") else slug
    return f"wd_{slug}_{hashlib.sha256(norm.encode()).hexdigest()[:12]}"


class Session:
    """One session folder: ``main`` and its sub-agents' wires, and state.json."""

    def __init__(self, home: "Home", session_id: str, cwd: str, at: int, title: str | None) -> None:
        self.home = home
        self.session_id = session_id
        self.cwd = cwd
        self.bucket = work_dir_key(cwd)
        self.created_at = at
        self.title = title
        self.forked_from: str | None = None
        self.archived = False
        self.custom: dict[str, object] = {}
        self.agents: dict[str, dict[str, object]] = {}
        self.wires: dict[str, Wire] = {}
        self._register("main", {"type": "main"})
        self.main = Wire(self, "main", at + 20)
        self.wires["main"] = self.main

    @property
    def ids(self) -> Ids:
        return self.home.ids

    @property
    def bulk(self) -> Bulk:
        return self.home.bulk

    @property
    def journal(self) -> bool:
        return self.home.journal

    @property
    def folder(self) -> Path:
        return self.home.root / "sessions" / self.bucket / self.session_id

    def _register(self, agent_id: str, about: Mapping[str, object]) -> None:
        where = f"{self.home.shown_as}/sessions/{self.bucket}/{self.session_id}/agents/{agent_id}"
        self.agents[agent_id] = {"homedir": where, **about}

    def spawn(self, parent: Wire, profile: str, item: str | None = None) -> Wire:
        agent_id = f"agent-{len(self.wires) - 1}"
        labels = (
            {"parentAgentId": parent.agent_id}
            | ({"swarmItem": item} if item else {})
            | {"profileName": profile}
        )
        self._register(agent_id, {"type": "sub", "parentAgentId": parent.agent_id, "labels": labels})
        wire = self.wires[agent_id] = Wire(self, agent_id, parent.now, profile)
        return wire

    def fork(self, at: int, session_id: str | None = None) -> "Session":
        """``kimi fork``: a new session whose wires are copies that go on by themselves."""
        title = f"Fork: {self.title or self.session_id}"
        twin = self.home.session(self.cwd, at=at, title=title, session_id=session_id)
        twin.forked_from = self.session_id
        for agent_id, wire in self.wires.items():
            if agent_id != "main":
                twin._register(
                    agent_id, {key: value for key, value in self.agents[agent_id].items() if key != "homedir"}
                )
            twin.wires[agent_id] = wire.copy_to(twin, at)
        twin.main = twin.wires["main"]
        return twin

    def state(self) -> dict[str, object]:
        """state.json, version 2 (WIRE §2). ``kimi -p`` sessions have no title."""
        named = {"title": self.title, "titleKind": "custom"} if self.title is not None else {}
        forked = {"forkedFrom": self.forked_from} if self.forked_from is not None else {}
        return {
            "id": self.session_id,
            "version": 2,
            "cwd": self.cwd,
            "createdAt": self.created_at,
            "updatedAt": self.main.now,
            "archived": self.archived,
            **forked,
            "agents": self.agents,
            "custom": self.custom,
            **named,
            "lastTurnReason": "completed",
            "isCustomTitle": self.title is not None,
        }

    def write(self) -> int:
        """Writes the folder (again, if called again); returns the bytes of its wires."""
        total = 0
        for agent_id, wire in self.wires.items():
            path = self.folder / "agents" / agent_id / "wire.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            total += path.write_bytes(wire.data())
        (self.folder / "state.json").write_text(dumps(self.state()), encoding="utf-8")
        return total


class Home:
    """A KIMI_CODE_HOME at ``root``; records name it ``shown_as``, as copied homes do (WIRE §12.22).

    ``journal`` false leaves out the agent.* copies, which came with 0.43, for fixtures that must be small.
    """

    def __init__(
        self,
        root: Path,
        *,
        seed: int = 0,
        bulk: Bulk = TRIMMED,
        journal: bool = True,
        shown_as: str = "/home/dev/.kimi-code",
    ) -> None:
        self.root = root
        self.bulk = bulk
        self.journal = journal
        self.shown_as = shown_as
        self.ids = Ids(random.Random(seed))
        self.sessions: list[Session] = []

    def session(
        self, cwd: str, *, at: int, title: str | None = None, session_id: str | None = None
    ) -> Session:
        session = Session(self, session_id or f"session_{self.ids.uuid()}", cwd, at, title)
        self.sessions.append(session)
        return session

    def write(self, sessions: Sequence[Session] | None = None) -> int:
        """Writes every session (``sessions``: only those), workspaces.json and session_index.jsonl."""
        total = sum(session.write() for session in (self.sessions if sessions is None else sessions))
        self.write_indexes()
        return total

    def write_indexes(self) -> None:
        workspaces: dict[str, object] = {}
        for session in self.sessions:
            opened = {"created_at": rec.iso(session.created_at), "last_opened_at": rec.iso(session.main.now)}
            name = session.cwd.rstrip("/").rsplit("/", 1)[-1]
            workspaces.setdefault(session.bucket, {"root": session.cwd, "name": name, **opened})
        listing = {"version": 1, "workspaces": workspaces, "deleted_workspace_ids": []}
        lines = [
            dumps(
                {
                    "sessionId": one.session_id,
                    "sessionDir": f"{self.shown_as}/sessions/{one.bucket}/{one.session_id}",
                    "workDir": one.cwd,
                }
            )
            for one in self.sessions
        ]
        self.root.mkdir(parents=True, exist_ok=True)
        (self.root / "workspaces.json").write_text(dumps(listing), encoding="utf-8")
        (self.root / "session_index.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
