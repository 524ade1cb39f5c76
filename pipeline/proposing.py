"""Drafts of memories from refined turns: what was decided and why, and what a hard error turned out to be.

Pure but for ``propose_from_store``. Drafts only enter the proposal queue: a person decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from anyio import to_thread

from pipeline.refining import refine_all
from pipeline.report import Report
from pipeline.store.catalogue import Memory
from pipeline.store.database import Database
from pipeline.store.proposals import Draft, Proposals
from pipeline.store.refined import refined_turns, unrefined
from pipeline.workers import Workers
from stages.model import Fact, FactType, RefinedTurn
from stages.snippet import one_line, shorten

LATEST_TURNS = 200
"""How far back turns are looked at for new proposals: older decisions are for themes to find."""
TITLE_CHARS = 80
_LABEL = re.compile(r"^(?:decided|decision|决定|结论)\s*[:：]\s*", re.IGNORECASE)
MIN_CHARS, MAX_CHARS = 20, 600
"""A decision shorter than this says nothing alone; a longer text is no decision."""


async def propose_from_store(
    database: Database, proposals: Proposals, memories: Sequence[Memory], *, workers: Workers, limit: int
) -> int:
    """Queue up to ``limit`` new proposals from the latest turns, refining what is not refined; how many were new."""
    rows = await database.rows(
        "SELECT c.id FROM content c JOIN occurrence o ON o.id=c.shown"
        " WHERE o.open=0 AND o.agent_id='main' ORDER BY coalesce(o.started_at, 0) DESC LIMIT ?",
        (LATEST_TURNS,),
    )
    ids = [row[0] for row in rows]
    await refine_all(database, await unrefined(database, ids), workers=workers, report=Report())
    turns = await refined_turns(database, ids)
    return await to_thread.run_sync(_queue, proposals, drafts(turns, remembered(memories)), limit)


def _queue(proposals: Proposals, found: Iterable[Draft], limit: int) -> int:
    new = 0
    for draft in found:
        if new >= limit:
            break
        new += bool(proposals.propose(draft)["created"])
    return new


def remembered(memories: Iterable[Memory]) -> frozenset[tuple[str, str]]:
    """``(session, turn)`` of every turn that a memory names as its source."""
    return frozenset(
        (str(memory.source["session"]), str(memory.source["turn"]))
        for memory in memories
        if "session" in memory.source and "turn" in memory.source
    )


def drafts(turns: Sequence[RefinedTurn], known: frozenset[tuple[str, str]] = frozenset()) -> Iterator[Draft]:
    """Drafts from ``turns``, the latest turn first; turns in ``known`` (session, turn) have a memory already."""
    for turn in sorted(turns, key=lambda each: (-each.timestamp, each.key.session_id, each.key.position)):
        if (turn.key.session_id, str(turn.key.turn_id)) in known or turn.status in ("blocked", "failed"):
            continue
        yield from _decisions(turn)
        yield from _fix(turn)


def _decisions(turn: RefinedTurn) -> Iterator[Draft]:
    if not turn.refined.decision:
        return
    reasons = [fact.text for fact in _facts(turn, "reason")]
    found = [fact for fact in _facts(turn, "decision") if MIN_CHARS <= len(fact.text) <= MAX_CHARS]
    # The agent's sentence first: a person's “1, and keep it” needs its question to be understood.
    for fact in sorted(found, key=lambda each: each.source == "user")[:1]:
        because = [reason for reason in reasons if reason not in fact.text][:2]
        text = "\n".join([fact.text, *(f"- {reason}" for reason in because)])
        title = _LABEL.sub("", fact.text)
        yield _draft(turn, text, title, "decisions", "decision", "a decision was made in this turn")


def _fix(turn: RefinedTurn) -> Iterator[Draft]:
    """An error, what was changed, and a result that shows it gone: worth more than either alone."""
    errors, changed, results = (_facts(turn, kind) for kind in ("error", "changed", "result"))
    if turn.status != "completed" or not (errors and changed and results):
        return
    text = "\n".join(f"- {fact.text}" for fact in (errors[0], *changed[:2], results[-1]))
    yield _draft(
        turn, text, results[-1].text, "knowledge", "fix", "an error was found and fixed in this turn"
    )


def _facts(turn: RefinedTurn, kind: FactType) -> list[Fact]:
    return [fact for fact in turn.refined.facts if fact.type == kind]


def _draft(turn: RefinedTurn, text: str, title: str, folder: str, tag: str, why: str) -> Draft:
    written = [PurePosixPath(path).name for path in turn.refined.entities.files_written]
    return Draft(
        text=text,
        title=shorten(one_line(title), TITLE_CHARS),
        folder=folder,
        tags=(tag, *written[:2]),
        source={
            "sessionId": turn.key.session_id,
            "agentId": turn.key.agent_id,
            "turnId": turn.key.turn_id,
        },
        why=why,
    )
