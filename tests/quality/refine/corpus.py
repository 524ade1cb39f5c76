"""The turns of a folder of sessions, each with the one before it: what refining is measured on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline import config, sessions
from pipeline.reading import read_agent
from stages.model import Turn
from stages.redact import Redactor

VARIABLE = "MEMORY_QUALITY_SESSIONS"


@dataclass(frozen=True, slots=True)
class Case:
    """One live turn in its place."""

    session_id: str
    agent_id: str
    cwd: str | None
    wire: Path
    turn: Turn
    before: Turn | None


def cases(folder: Path) -> Iterator[Case]:
    """Every turn of every agent below ``folder``, undone and copied ones left out."""
    settings = config.load({"HOME": str(folder.parent), "MEMORY_SESSIONS_ROOT": str(folder)})
    redact = Redactor(b"quality")
    for session in sessions.discover(settings).sessions:
        for agent in session.agents:
            before: Turn | None = None
            for turn in read_agent(session, agent, redact).turns:
                if not turn.undone and not turn.copied:
                    yield Case(session.session_id, agent.agent_id, session.cwd, agent.wire, turn, before)
                    before = turn


def folder_of(given: str | None) -> Path:
    """The sessions folder that was named, or that the environment names; exits when there is none."""
    named = given or os.environ.get(VARIABLE)
    if not named or not Path(named).is_dir():
        raise SystemExit(f"name a sessions folder: --sessions PATH or {VARIABLE}")
    return Path(named)
