"""The tools that build, list and curate themes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio
from anyio import to_thread

from pipeline.answers import local_time
from pipeline.commands.run import split_keywords
from pipeline.commands.scope import day
from pipeline.errors import BadInput, PipelineError
from pipeline.refining import refine_all
from pipeline.report import Report
from pipeline.store.database import Database
from pipeline.store.refined import refined_turns, unrefined
from pipeline.store.theme_record import Ref, ThemeMemory, ThemeRecord
from pipeline.store.turns import Occurrence, find
from pipeline.theming import ThemeRequest
from pipeline.workers import Workers
from server.call import Call
from server.pages import counted, fenced, some_lines
from server.runs import Run
from server.space import PATIENT_S, Space
from stages.aggregate import Place
from stages.discover import Suggestion, suggest_seeds
from stages.discover import discover as discover_subjects
from stages.snippet import one_line, shorten
from stages.tokens import STOP_WORDS, tokens

PROGRESS_S = 0.5
NAME_HITS = 80
"""Turns that hold a word of a new theme's name and are refined to suggest seeds from."""
LATEST_REFINED = 1_000
"""Refined turns that suggestions are made from: reading them must not hold up the other calls."""
SUGGESTIONS, SUGGESTED = 6, 12


# --- running -----------------------------------------------------------------------------------------------


async def run_theme(call: Call) -> str:
    """Build or refresh a theme; without keywords a new one is only talked about."""
    space = await call.space()
    request = ThemeRequest(
        call["theme"].strip(),
        split_keywords(",".join(call["keywords"] or ())),
        bool(call["replace_keywords"]),
        day(call["since"], "since"),
        day(call["until"], "until", end=True),
    )
    if request.replace_keywords and not request.keywords:
        raise BadInput("replace_keywords: needs keywords to put in place of the old ones")
    record = await to_thread.run_sync(space.themes.read, request.name)
    if not request.keywords and not (record and (record.seeds or record.turns)):
        return await _suggest(space, request.name)
    if not space.sessions and not await space.reads_index():
        raise BadInput(
            f"workspace: no session was recorded in {space.label} yet: there is nothing to build from"
        )
    run, joined = space.runs.join(request)
    await _wait(call, run, call["wait_seconds"])
    return run_text(run, joined=joined)


async def _wait(call: Call, run: Run, seconds: int) -> None:
    """Until the run ends or the time is over. The run goes on whatever becomes of the call."""
    with anyio.move_on_after(seconds):
        while not run.done.is_set():
            await call.progress(run.report.refined, None, run.stage)
            with anyio.move_on_after(PROGRESS_S):
                await run.done.wait()


def run_text(run: Run, *, joined: bool = False) -> str:
    """How a run stands, or what came of it. Raises what it failed with."""
    name = run.request.name
    if run.error is not None:
        raise run.error
    if run.result is None:
        also = " (asked for before, joined)" if joined else ""
        return (
            f"theme “{name}”: {run.stage}, for {run.seconds:.0f} s{also}; it goes on in the background. "
            "pipeline_status tells when it is done."
        )
    report = run.report
    changed = "saved" if run.result.changed else "unchanged"
    return (
        f"theme “{run.result.theme}”: {counted(run.result.turns, 'turn')}, {changed} in {run.seconds:.1f} s "
        f"(refined {report.refined}, reused {report.reused})\nfile: {run.result.path}\n"
        f'Next: trace_theme {{"theme": "{run.result.theme}"}}'
    )


async def _suggest(space: Space, name: str) -> str:
    """Seeds for a new theme. Nothing is built: its scope is confirmed first."""
    freshness = await space.freshen(PATIENT_S)
    seeds: tuple[str, ...] = ()
    if await space.reads_index():
        try:
            async with space.writing() as database:
                seeds = await _seeds(database, name)
        except PipelineError as error:
            space.last_error = error.message
    lines = [
        f"theme “{one_line(name)}” is new: nothing was run. Confirm its scope and 1 to 3 keywords that only this "
        "subject uses with the user, then call run_theme with keywords."
    ]
    if seeds:
        lines += ["Suggested keywords:", fenced(", ".join(map(one_line, seeds)))]
    if freshness.reason:
        lines.append(freshness.reason)
    return "\n".join(lines)


async def _seeds(database: Database, name: str) -> tuple[str, ...]:
    """Suggestions from turns that hold words of the name (refined for it), and from the latest refined ones."""
    terms = [term for term in tokens(name) if term not in STOP_WORDS] or tokens(name)
    named: list[int] = []
    if terms:
        match = " OR ".join(f'"{term}"' for term in dict.fromkeys(terms))
        rows = await database.rows(
            "SELECT turn_fts.rowid FROM turn_fts JOIN content c ON c.id=turn_fts.rowid"
            " WHERE turn_fts MATCH ? AND c.shown IS NOT NULL ORDER BY rank LIMIT ?",
            (match, NAME_HITS),
        )
        named = [row[0] for row in rows]
        await refine_all(database, await unrefined(database, named), workers=Workers(1), report=Report())
    turns = await refined_turns(database, {*named, *await _latest_refined(database)})
    return (await to_thread.run_sync(lambda: suggest_seeds(turns, name)))[:SUGGESTED]


async def _latest_refined(database: Database) -> list[int]:
    rows = await database.rows(
        "SELECT c.id FROM content c JOIN occurrence o ON o.id=c.shown JOIN refined r ON r.content_id=c.id"
        " ORDER BY coalesce(o.started_at, 0) DESC LIMIT ?",
        (LATEST_REFINED,),
    )
    return [row[0] for row in rows]


# --- listing -----------------------------------------------------------------------------------------------


async def list_themes(call: Call) -> str:
    """Themes, and subjects that have none."""
    space = await call.space()
    good, bad = await to_thread.run_sync(space.themes.all)
    good.sort(key=lambda each: (-(each.updated_at or 0), each.theme))
    rows = [_row(record) for record in good[: call["limit"]]]
    parts = [
        f"{counted(len(good), 'theme')}; trace_theme tells one's story"
        if good
        else "No theme yet: run_theme builds one."
    ]
    if rows:
        parts.append(fenced(some_lines(rows, 30_000, "{} more")))
    parts += [f"cannot be read: {error.message}" for error in bad]
    if call["suggest"]:
        parts += await _suggestions(space, good)
    return "\n".join(parts)


def _row(record: ThemeRecord) -> str:
    times = [turn.timestamp for turn in record.turns if turn.timestamp is not None]
    span = f"{local_time(min(times))[:10]} to {local_time(max(times))[:10]}" if times else "no turn"
    sessions = len({turn.ref.session_id for turn in record.turns})
    decisions = sum(len(cluster.get("decisions", [])) for cluster in record.clusters)
    parts = [
        record.display_name,
        f"{counted(len(record.turns), 'turn')} in {counted(sessions, 'session')}",
        span,
    ]
    parts += [counted(decisions, "decision")] if decisions else []
    parts += [f"{len(record.memories)} memories"] if record.memories else []
    parts += [f"seeds: {', '.join(record.seeds)}"] if record.seeds else []
    return shorten(one_line(" · ".join(parts)), 300)


async def _suggestions(space: Space, themes: Sequence[ThemeRecord]) -> list[str]:
    if not await space.reads_index():
        return []
    try:
        async with space.reading() as database:
            turns = await refined_turns(database, await _latest_refined(database))
    except PipelineError as error:
        return [f"no suggestions: {error.message}"]
    named = [_places(record) for record in themes]
    found = await to_thread.run_sync(lambda: discover_subjects(turns, named=named, limit=SUGGESTIONS))
    if not found:
        return []
    return [
        "Subjects without a theme (run_theme with these keywords, once the user agrees):",
        fenced(_told(found)),
    ]


def _places(record: ThemeRecord) -> frozenset[Place]:
    return frozenset(turn.ref.place for turn in record.turns if turn.ref.place is not None)


def _told(found: Sequence[Suggestion]) -> str:
    rows = []
    for each in found:
        places = f"{counted(len(each.turns), 'turn')} in {counted(each.sessions, 'session')}"
        rows.append(one_line(f"{each.name}: {places} · keywords: {', '.join(each.seeds)}"))
    return "\n".join(rows)


# --- what a person does to a theme -------------------------------------------------------------------------


async def tag_theme(call: Call) -> str:
    """Put a turn or a memory into a theme."""
    space = await call.space()
    if call["memoryKey"]:
        memory = await to_thread.run_sync(_memory, space, call)

        def link(record: ThemeRecord) -> ThemeRecord:
            return record.remember(memory)

        return await _curated(
            space, call["theme"], "tag", link, f"memory {memory.folder}/{memory.key}", create=True
        )
    refs = await _refs(space, call)

    def tag(record: ThemeRecord) -> ThemeRecord:
        for ref, at in refs:
            record = record.tag(ref, at)
        return record

    return await _curated(space, call["theme"], "tag", tag, _turns(refs), create=True)


async def untag_theme(call: Call) -> str:
    """Take a turn or a memory out of a theme, and keep the turn out."""
    space = await call.space()
    if call["memoryKey"]:
        held = await to_thread.run_sync(_linked, space, call)
        if held is None:
            return f"untag “{call['theme']}”: nothing to change"

        def unlink(record: ThemeRecord) -> ThemeRecord:
            return record.forget_memory(held.folder, held.key)

        return await _curated(space, call["theme"], "untag", unlink, f"memory {held.folder}/{held.key}")
    await to_thread.run_sync(space.themes.require, call["theme"])
    refs = await _refs(space, call)

    def untag(record: ThemeRecord) -> ThemeRecord:
        for ref, _ in refs:
            record = record.untag(ref)
        return record

    return await _curated(space, call["theme"], "untag", untag, _turns(refs))


async def _curated(
    space: Space,
    theme: str,
    op: str,
    change: Callable[[ThemeRecord], ThemeRecord],
    what: str,
    *,
    create: bool = False,
) -> str:
    def update() -> tuple[ThemeRecord, bool]:
        written = space.themes.update(theme, change, space.service.now(), op=op, create=create)
        return written.record, written.changed

    record, changed = await to_thread.run_sync(update)
    done = {"tag": "added to", "untag": "taken out of"}[op]
    state = f"{what} {done}" if changed else f"nothing to change: {what} was already {done}"
    return f"{state} “{record.display_name}” ({counted(len(record.turns), 'turn')}, {len(record.memories)} memories)"


async def _refs(space: Space, call: Call) -> list[tuple[Ref, int | None]]:
    """The turns that the arguments name, with their times. Raises BadInput when there is none."""
    if not call["sessionId"] or call["turnId"] is None:
        raise BadInput(
            "sessionId, turnId: name a turn with both, or a memory with memoryKey",
            hint="search_context and trace_theme give sessionId and turnId.",
        )
    await space.freshen(PATIENT_S)
    found: list[Occurrence] = []
    if await space.has_index():
        async with space.reading() as database:
            for session_id in _spellings(call["sessionId"]):
                found = found or await find(
                    database,
                    session_id,
                    agent_id=call["agentId"] or "main",
                    turn_id=call["turnId"],
                    position=call["position"],
                )
    if not found:
        raise BadInput(
            f"turnId: the store knows no turn {call['turnId']} of {call['sessionId']}",
            hint="load_more_context shows a session's turns, search_context finds them.",
        )
    return [
        (Ref(o.session_id, o.turn_id, o.agent_id, o.position, o.opener_digest), o.started_at) for o in found
    ]


def _spellings(session_id: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((session_id, f"session_{session_id}", session_id.removeprefix("session_"))))


def _turns(refs: Sequence[tuple[Ref, int | None]]) -> str:
    ref = refs[0][0]
    twins = f" ({len(refs)} turns share this number: all)" if len(refs) > 1 else ""
    return f"turn {ref.turn_id} of {ref.session_id}{twins}"


def _memory(space: Space, call: Call) -> ThemeMemory:
    memory = space.memories.get(call["memoryKey"], call["memoryFolder"])
    if memory is None:
        raise BadInput(f"memoryKey: no memory {call['memoryKey']!r}", hint="search and list give the keys.")
    title = space.redact(call["memoryTitle"] or "") or memory.title
    return ThemeMemory(key=memory.key, folder=memory.folder, title=title, timestamp=space.service.now())


def _linked(space: Space, call: Call) -> ThemeMemory | None:
    """The theme's link that is meant, also when the memory itself is gone."""
    key, folder = call["memoryKey"].rpartition("/")[2], call["memoryFolder"]
    for memory in space.themes.require(call["theme"]).memories:
        if memory.key == key and folder in (None, "", memory.folder, memory.folder.removeprefix("memory/")):
            return memory
    return None


async def manage_theme(call: Call) -> str:
    """Rename, merge or undo."""
    space = await call.space()
    theme, to, now = call["theme"], (call["to"] or "").strip(), space.service.now()
    if call["action"] == "undo":
        undone = await to_thread.run_sync(space.themes.undo, theme)
        return f"took back the last change of “{theme}”: {undone}"
    if not to:
        meaning = "the new name" if call["action"] == "rename" else "the theme to merge into"
        raise BadInput(f"to: missing: {meaning}")
    if call["action"] == "rename":
        written = await to_thread.run_sync(_renamed, space, theme, to, now)
        return f"“{theme}” is now “{written}”"
    merged = await to_thread.run_sync(_merged, space, theme, to, now)
    return f"“{theme}” is part of “{merged.display_name}” now: {counted(len(merged.turns), 'turn')}"


def _renamed(space: Space, theme: str, to: str, now: int) -> str:
    if space.themes.read(theme) is None and (there := space.themes.read(to)) is not None:
        return there.display_name  # the call was sent again
    return space.themes.rename(theme, to, now).record.display_name


def _merged(space: Space, theme: str, to: str, now: int) -> ThemeRecord:
    if space.themes.read(theme) is None and (there := space.themes.read(to)) is not None:
        return there  # the call was sent again
    return space.themes.merge(theme, to, now).record


async def delete_theme(call: Call) -> str:
    """Delete a theme; its turns and memories stay."""
    space = await call.space()

    def remove() -> str:
        if space.themes.read(call["theme"]) is None:
            return f"there is no theme “{call['theme']}” (any more)"
        record = space.themes.remove(call["theme"], space.service.now())
        return f"deleted theme “{record.display_name}”; no turn and no memory went; undo brings it back"

    return await to_thread.run_sync(remove)
