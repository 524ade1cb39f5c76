"""`refine_session_turns`: the refined records of some turns of one session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipeline.answers import local_time
from pipeline.errors import BadInput
from pipeline.refining import refine_all
from pipeline.report import Report
from pipeline.store.database import Database
from pipeline.store.refined import refined_turns, unrefined
from pipeline.store.turns import Occurrence, find
from pipeline.workers import Workers
from server.call import Call
from server.pages import counted, fenced, some_lines
from server.space import PATIENT_S
from stages.model import RefinedTurn
from stages.snippet import one_line


async def refine_session_turns(call: Call) -> str:
    """Refine what is not refined yet, and show it all."""
    space = await call.space()
    freshness = await space.freshen(PATIENT_S)
    if not await space.has_index():
        raise BadInput(f"sessionId: nothing is read yet: {freshness.reason}")
    async with space.writing() as database:
        places = await _places(database, call["sessionId"])
        if not places:
            raise BadInput(
                f"sessionId: the store knows no session {call['sessionId']}",
                hint="search_context and bootstrap_workspace give session ids.",
            )
        chosen = _chosen(places, call["turnIds"], call["limit"])
        ids = [place.content_id for place in chosen]
        report = Report()
        await refine_all(database, await unrefined(database, ids), workers=Workers(1), report=report)
        turns = await refined_turns(database, ids)
    head = f"{counted(len(turns), 'turn')} of {places[0].session_id}: refined {report.refined} now"
    if call["turnIds"] and (left := sorted(set(call["turnIds"]) - {place.turn_id for place in chosen})):
        head += f"; it has no turn {', '.join(map(str, left))}"
    if len(turns) < len(chosen):
        head += f"; {len(chosen) - len(turns)} are undone, running, or shown in another session"
    body = some_lines(
        [line for turn in turns for line in _lines(turn)], 40_000, "{} more lines: ask for fewer turns"
    )
    return f"{head}\n{fenced(body)}".rstrip()


async def _places(database: Database, session_id: str) -> Sequence[Occurrence]:
    for name in dict.fromkeys((session_id, f"session_{session_id}")):
        if found := await find(database, name):
            return found
    return ()


def _chosen(places: Sequence[Occurrence], numbers: Sequence[int] | None, limit: int) -> list[Occurrence]:
    if numbers:
        wanted = set(numbers)
        return [place for place in places if place.turn_id in wanted][:limit]
    return [place for place in places if not place.undone][-limit:]


def _lines(turn: RefinedTurn) -> Iterator[str]:
    mark = " · decision" if turn.refined.decision else ""
    yield f"turn {turn.key.turn_id} · {local_time(turn.timestamp or None).strip()}{mark}"
    yield f"   {one_line(turn.refined.summary)}"
    for fact in turn.refined.facts:
        yield f"   {fact.type}: {one_line(fact.text)}"
    entities = turn.refined.entities
    for name, values in (
        ("wrote", entities.files_written),
        ("read", entities.files_read),
        ("ran", entities.commands),
        ("errors", entities.errors),
    ):
        if values:
            yield f"   {name}: {one_line(', '.join(values[:12]))}"
