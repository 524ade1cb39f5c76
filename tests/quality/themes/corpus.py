"""A folder of sessions in memory: split, refined and made searchable as the product does, stored nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline import config, sessions
from pipeline.reading import read_agent
from stages.document import Document, document
from stages.model import RefinedTurn, Turn, TurnKey, final_text
from stages.redact import Redactor
from stages.refine import refine


@dataclass(frozen=True, slots=True)
class CorpusTurn:
    """One turn as the aggregator sees it, and as the index sees it."""

    refined: RefinedTurn
    document: Document


def read_corpus(folder: Path) -> list[CorpusTurn]:
    """Every live turn of every main agent below ``folder`` (a sessions folder), by session and position."""
    settings = config.load({"HOME": str(folder.parent), "MEMORY_SESSIONS_ROOT": str(folder)})
    redact = Redactor(b"quality")
    found: list[CorpusTurn] = []
    for session in sessions.discover(settings).sessions:
        for agent in session.agents:
            if agent.kind == "main":
                turns = read_agent(session, agent, redact).turns
                found += refined_session(session.session_id, turns, session.cwd, session.title or "")
    return found


def refined_session(
    session_id: str, turns: Sequence[Turn], cwd: str | None, title: str, agent_id: str = "main"
) -> list[CorpusTurn]:
    """The live turns of one agent, refined one after the other."""
    live = [turn for turn in turns if not turn.undone and not turn.copied]
    return [
        CorpusTurn(
            _refined(TurnKey(session_id, agent_id, turn.position, turn.turn_id), before, turn, cwd, title),
            document(turn),
        )
        for before, turn in zip([None, *live], live, strict=False)
    ]


def _refined(key: TurnKey, before: Turn | None, turn: Turn, cwd: str | None, title: str) -> RefinedTurn:
    return RefinedTurn(
        key=key,
        origin=turn.origin,
        status=turn.status,
        timestamp=turn.started_at or 0,
        user_text=turn.user_text or "",
        answer=final_text(turn.live_steps) or "",
        refined=refine(turn, before, cwd=cwd),
        ended_at=turn.ended_at,
        session_title=title,
    )
