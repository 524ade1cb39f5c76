"""`trace_theme`: how a subject developed, as text to read or as JSON, in pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from anyio import to_thread

from pipeline.answers import local_time
from pipeline.errors import PipelineError
from pipeline.store.catalogue import milliseconds
from pipeline.store.claims import Claim, claim_of
from pipeline.store.database import Database
from pipeline.store.refined import refined_turns
from pipeline.store.theme_record import ThemeRecord, ThemeTurn, encode
from pipeline.store.turns import Occurrence, bodies, find, unpack
from pipeline.theming import LocalZone, resolvable
from server.call import Call
from server.pages import counted, cursor_at, offset_of, paged
from server.space import Space
from stages.clusters import Later, Place, later_decisions
from stages.model import Cluster, RefinedTurn, Theme, Turn, TurnKey, final_text
from stages.page_words import CHINESE, ENGLISH
from stages.refine import refine
from stages.refining.prose import is_chinese
from stages.snippet import clean, defuse, one_line, shorten
from stages.story import is_told, open_ends, parts, story, without_label

QUESTION_CHARS, ANSWER_CHARS, STUB_CHARS = 300, 600, 40
FILES = 10


@dataclass(frozen=True, slots=True)
class Trace:
    """A theme with what the store knows of its turns."""

    record: ThemeRecord
    theme: Theme
    turns: Mapping[Place, RefinedTurn]
    claims: Mapping[tuple[str, int], Claim]
    """What the other server noted of turns that could not be resolved."""

    @property
    def loose(self) -> list[ThemeTurn]:
        """Turns that lie in no cluster: tagged ones, and those of the other server."""
        held = {
            (cluster.session_id, cluster.agent_id, position)
            for cluster in self.theme.clusters
            for position in cluster.positions
        }
        return [turn for turn in self.record.turns if turn.ref.place is None or turn.ref.place not in held]


async def trace_theme(call: Call) -> str:
    """The story of one theme."""
    space = await call.space()
    record = await to_thread.run_sync(space.themes.require, call["theme"])
    trace = await _traced(space, record)
    about = f"trace {trace.record.theme} {call['format']} {bool(call['includeTurnContent'])}"
    if call["format"] == "json":
        return _json(
            trace, call["max_chars"], call["cursor"], about, content=bool(call["includeTurnContent"])
        )
    text = "\n".join(_lines(trace, content=bool(call["includeTurnContent"])))
    head = _head(trace) if not call["cursor"] else f"theme “{one_line(record.display_name)}”, continued"
    return paged(text, call["max_chars"], call["cursor"], about, head=head)


async def _traced(space: Space, record: ThemeRecord) -> Trace:
    """The record with the other server's pointers mapped, and its turns as far as the store knows them."""
    clusters = tuple(
        sorted((_cluster(each) for each in record.clusters), key=lambda each: (each.start, each.id))
    )
    theme = Theme(record.theme, record.seeds, (), clusters)
    turns: dict[Place, RefinedTurn] = {}
    claims: dict[tuple[str, int], Claim] = {}
    if await space.reads_index():
        try:
            async with space.reading() as database:
                record = record.resolve(await resolvable(database))
                turns = await _turns(space, database, record, clusters)
                claims = await _claims(database, record)
        except PipelineError as error:
            space.last_error = error.message
    return Trace(record, theme, turns, claims)


async def _claims(database: Database, record: ThemeRecord) -> dict[tuple[str, int], Claim]:
    found: dict[tuple[str, int], Claim] = {}
    for turn in record.turns:
        if turn.unresolved or turn.gone:
            claim = await claim_of(database, turn.ref.session_id, turn.ref.turn_id)
            if claim is not None:
                found[turn.ref.session_id, turn.ref.turn_id] = claim
    return found


async def _turns(
    space: Space, database: Database, record: ThemeRecord, clusters: Sequence[Cluster]
) -> dict[Place, RefinedTurn]:
    """The theme's turns by place; one without a refined record is refined here, and kept nowhere."""
    wanted = {turn.ref.place for turn in record.turns if turn.ref.place is not None}
    wanted |= {(each.session_id, each.agent_id, position) for each in clusters for position in each.positions}
    held: dict[Place, Occurrence] = {}
    for session_id, agent_id in sorted({place[:2] for place in wanted}):
        for found in await find(database, session_id, agent_id=agent_id):
            if (place := (session_id, agent_id, found.position)) in wanted:
                held[place] = found
    refined = await refined_turns(database, {found.content_id for found in held.values()})
    turns = {(turn.key.session_id, turn.key.agent_id, turn.key.position): turn for turn in refined}
    bare = [found for place, found in held.items() if place not in turns]
    texts = await bodies(database, [found.content_id for found in bare])
    cwds = {session.session_id: session.cwd for session in space.sessions}
    for found in bare:
        if (body := texts.get(found.content_id)) is not None:
            turn = _refined(unpack(body, found), found, cwds.get(found.session_id))
            turns[found.session_id, found.agent_id, found.position] = turn
    return turns


def _refined(turn: Turn, found: Occurrence, cwd: str | None) -> RefinedTurn:
    return RefinedTurn(
        key=TurnKey(found.session_id, found.agent_id, found.position, found.turn_id, found.opener_digest),
        origin=found.origin,
        status=turn.status,
        timestamp=found.started_at or 0,
        user_text=turn.user_text or "",
        answer=final_text(turn.live_steps) or "",
        refined=refine(turn, None, cwd=cwd),
    )


def _cluster(row: Mapping[str, Any]) -> Cluster:
    """A cluster as the file has it; what is missing or odd is empty."""
    decisions = [each for each in row.get("decisions", []) if isinstance(each, dict)]
    numbers = tuple(each for each in row.get("turnIds", []) if isinstance(each, int))
    positions = tuple(each for each in row.get("positions", []) if isinstance(each, int))
    start = milliseconds(str(row.get("start") or "")) or 0
    return Cluster(
        id=str(row.get("id", "")),
        session_id=str(row.get("sessionId", "")),
        agent_id=str(row.get("agentId") or "main"),
        turn_ids=numbers,
        positions=positions if len(positions) == len(numbers) else (),
        start=start,
        end=milliseconds(str(row.get("end") or "")) or start,
        summary=str(row.get("summary", "")),
        decision=row.get("decision") is True,
        decisions=tuple(
            (each["turnId"], str(each.get("text", ""))) for each in decisions if "turnId" in each
        ),
        files=tuple(str(each) for each in row.get("files", [])),
    )


# --- text --------------------------------------------------------------------------------------------------


def _head(trace: Trace) -> str:
    record = trace.record
    sessions = len({turn.ref.session_id for turn in record.turns})
    times = [turn.timestamp for turn in record.turns if turn.timestamp is not None]
    facts = [
        f"{counted(len(record.turns), 'turn')} in {counted(sessions, 'session')}, "
        + counted(len(trace.theme.clusters), "cluster")
    ]
    if times:
        facts.append(f"{local_time(min(times))[:10]} to {local_time(max(times))[:10]}")
    if record.seeds:
        facts.append(f"seeds: {one_line(', '.join(record.seeds))}")
    marks = [
        f"{count} {word}"
        for count, word in (
            (len(record.pins), "pinned"),
            (len(record.exclusions), "taken out"),
            (sum(turn.gone for turn in record.turns), "gone from the logs"),
            (sum(turn.unresolved for turn in record.turns), "not resolved to a turn"),
        )
        if count
    ]
    return f"theme “{one_line(record.display_name)}”: {'; '.join([*facts, *marks])}"


def _lines(trace: Trace, *, content: bool) -> Iterator[str]:
    theme = trace.theme
    words = CHINESE if is_chinese(" ".join(cluster.summary for cluster in theme.clusters)) else ENGLISH
    # A single cluster tells itself: its story would only say it twice.
    told = one_line(story(theme, trace.turns, words, LocalZone())) if len(theme.clusters) > 1 else ""
    if told:
        yield told
        yield ""
    later = later_decisions(theme)
    rows: list[tuple[int, list[str]]] = [
        (cluster.start, list(_cluster_lines(trace, cluster, later, told, content=content)))
        for cluster in theme.clusters
    ]
    rows += [(turn.timestamp or 0, list(_loose_lines(trace, turn, content=content))) for turn in trace.loose]
    for _, lines in sorted(rows, key=lambda row: row[0]):
        yield from lines
    yield from _footer(trace)


def _cluster_lines(
    trace: Trace,
    cluster: Cluster,
    later: Mapping[tuple[str, int], tuple[Later, ...]],
    told: str,
    *,
    content: bool,
) -> Iterator[str]:
    """A cluster. A decision is quoted once: where the story ``told`` it already, it is named by its beginning."""
    agent = "" if cluster.agent_id == "main" else f" {cluster.agent_id}"
    yield f"{local_time(cluster.start)}  {cluster.session_id}{agent}  {_numbers(cluster.turn_ids)}"
    if summary := _undecided(cluster):
        yield f"   {summary}"
    for ordinal, (turn_id, text) in enumerate(cluster.decisions):
        said = one_line(text)
        if is_told(text, told):
            said = one_line(without_label(text))
            said = f"{shorten(said, min(STUB_CHARS, len(said) // 2))} (quoted at the top)"
        yield f"   decided (turn {turn_id}): {said}"
        for other in later.get((cluster.id, ordinal), ())[:3]:
            when = local_time(other.at)[:10]
            yield f"      later on the same subject: {when} {other.session_id} turn {other.turn_id}"
    if cluster.files:
        yield f"   files: {', '.join(cluster.files)}"
    if content:
        for position in cluster.positions:
            yield from _content(trace.turns.get((cluster.session_id, cluster.agent_id, position)))


def _undecided(cluster: Cluster) -> str:
    """A cluster's summary without the outcome that its decisions say in full."""
    decided = " ".join(one_line(text) for _, text in cluster.decisions)
    asked, outcome = parts(one_line(cluster.summary))
    return asked if outcome and is_told(outcome.rstrip("…"), decided) else one_line(cluster.summary)


def _loose_lines(trace: Trace, turn: ThemeTurn, *, content: bool) -> Iterator[str]:
    ref = turn.ref
    known = trace.turns.get(ref.place) if ref.place is not None else None
    marks = [mark for mark, on in (("gone", turn.gone), ("not resolved", turn.unresolved)) if on]
    claim = trace.claims.get((ref.session_id, ref.turn_id)) if known is None else None
    about = known.refined.summary if known is not None else f"claimed: {claim.summary}" if claim else ""
    yield "  ".join(
        [local_time(turn.timestamp), ref.session_id, f"turn {ref.turn_id}", *marks, turn.via or ""]
    ).rstrip()
    if about:
        yield f"   {shorten(one_line(about), 280)}"
    if content:
        yield from _content(known)


def _content(turn: RefinedTurn | None) -> Iterator[str]:
    if turn is None:
        return
    yield f"   turn {turn.key.turn_id} asked: {shorten(one_line(turn.user_text), QUESTION_CHARS)}"
    if turn.answer:
        yield f"   turn {turn.key.turn_id} answered: {shorten(one_line(turn.answer), ANSWER_CHARS)}"


def _footer(trace: Trace) -> Iterator[str]:
    counts: dict[str, int] = {}
    for cluster in trace.theme.clusters:
        for path in cluster.files:
            counts[path] = counts.get(path, 0) + 1
    if counts:
        top = sorted(counts, key=lambda path: (-counts[path], path))[:FILES]
        yield f"files most touched: {', '.join(top)}"
    if trace.record.memories:
        yield "memories: " + ", ".join(f"{memory.folder}/{memory.key}" for memory in trace.record.memories)
    for turn, fact in open_ends(trace.theme, trace.turns):
        yield f"open: {shorten(one_line(fact.text), 200)} ({turn.key.session_id} turn {turn.key.turn_id})"


def _numbers(numbers: Sequence[int]) -> str:
    if not numbers:
        return "no turn"
    if len(numbers) == 1:
        return f"turn {numbers[0]}"
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return "turns " + ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


# --- JSON --------------------------------------------------------------------------------------------------


def _json(trace: Trace, limit: int, cursor: str | None, about: str, *, content: bool) -> str:
    """The theme as its file has it, as many clusters with their turns as fit, and the cursor of the next ones."""
    record = encode(trace.record)
    later = later_decisions(trace.theme)
    rows = [*(_cluster_row(trace, each, later, content=content) for each in trace.theme.clusters)]
    rows += [{"turns": [row]} for row in _loose_rows(trace, content=content)]
    start = offset_of(cursor, about)
    shell = {
        name: record[name] for name in ("theme", "displayName", "createdAt", "updatedAt", "seeds", "memories")
    }
    shell |= {
        "turnCount": len(trace.record.turns),
        "clusterCount": len(trace.theme.clusters),
        "nextCursor": None,
    }
    found: list[dict[str, Any]] = []
    room = limit - len(_dumped({**shell, "timeline": []})) - 40
    for row in rows[start:]:
        size = len(_dumped(row)) + 1
        if found and size > room:
            break
        found.append(row if size <= room else _least(row))
        room -= size
    if start + len(found) < len(rows):
        shell["nextCursor"] = cursor_at(start + len(found), about)
    return _dumped({**shell, "timeline": found})


def _dumped(value: object) -> str:
    return defuse(clean(orjson.dumps(value).decode()))


def _least(row: dict[str, Any]) -> dict[str, Any]:
    """A cluster too large for the answer: where it is, and how it begins."""
    kept: dict[str, Any] = {
        name: row[name] for name in ("id", "sessionId", "agentId", "start", "end") if name in row
    }
    return {**kept, "summary": shorten(str(row.get("summary", "")), 200), "shortened": True}


def _cluster_row(
    trace: Trace, cluster: Cluster, later: Mapping[tuple[str, int], tuple[Later, ...]], *, content: bool
) -> dict[str, Any]:
    source = next((each for each in trace.record.clusters if str(each.get("id", "")) == cluster.id), {})
    decisions = [
        {
            "turnId": turn_id,
            "text": text,
            "later": [
                {"sessionId": other.session_id, "turnId": other.turn_id, "text": other.text}
                for other in later.get((cluster.id, ordinal), ())
            ],
        }
        for ordinal, (turn_id, text) in enumerate(cluster.decisions)
    ]
    row = {**source, "decisions": decisions}
    if content:
        places = [(cluster.session_id, cluster.agent_id, position) for position in cluster.positions]
        row["turns"] = [_turn_row(trace.turns[place]) for place in places if place in trace.turns]
    return row


def _turn_row(turn: RefinedTurn) -> dict[str, Any]:
    return {
        "turnId": turn.key.turn_id,
        "asked": shorten(one_line(turn.user_text), QUESTION_CHARS),
        "answered": shorten(one_line(turn.answer), ANSWER_CHARS),
    }


def _loose_rows(trace: Trace, *, content: bool) -> Iterator[dict[str, Any]]:
    rows = {
        (row["sessionId"], row.get("agentId"), row["turnId"], row.get("position")): row
        for row in encode(trace.record)["turns"]
    }
    for turn in trace.loose:
        ref = turn.ref
        row = rows[(ref.session_id, ref.agent_id, ref.turn_id, ref.position)]
        known = trace.turns.get(ref.place) if ref.place is not None else None
        if known is not None:
            row = {**row, "summary": known.refined.summary, **(_turn_row(known) if content else {})}
        yield row
