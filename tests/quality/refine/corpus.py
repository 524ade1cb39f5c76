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
"""Names a sessions folder outside the repository."""
HOME_VARIABLE = "KIMI_MEMORY_CORPUS"
"""Names a folder shaped like a KIMI_CODE_HOME, with the recorded project in its ``sessions``."""
ROOT = Path(__file__).parents[3]
BUNDLED = ("tests/quality/bilingual/home", "pipeline/demo/home", "tests/samples/*/home")


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


def bundled() -> tuple[Path, ...]:
    """The sessions folders that are part of the repository."""
    return tuple(
        sorted(
            home / "sessions"
            for pattern in BUNDLED
            for home in ROOT.glob(pattern)
            if (home / "sessions").is_dir()
        )
    )


def external() -> Path | None:
    """The recorded project's sessions folder, when the environment names one that exists."""
    home = os.environ.get(HOME_VARIABLE)
    named = os.environ.get(VARIABLE) or (f"{home}/sessions" if home else "")
    return Path(named) if named and Path(named).is_dir() else None


def corpora(named: Path | None) -> dict[str, list[Case]]:
    """The turns at hand by corpus: the folder that was named, else the repository's own and the recorded one."""
    if named is not None:
        return {named.parent.name: list(cases(named))}
    found: dict[str, list[Case]] = {}
    for folder in bundled():
        group = "samples" if "samples" in folder.parts else folder.parent.parent.name
        found.setdefault(group, []).extend(cases(folder))
    recorded = external()
    if recorded is not None:
        found["recorded project"] = list(cases(recorded))
    return found
