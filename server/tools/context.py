"""The tools that recall conversations."""

from __future__ import annotations

from functools import partial

import orjson
from anyio import to_thread

from pipeline.answers import local_time
from pipeline.commands.scope import day
from pipeline.errors import BadInput
from pipeline.search_request import SearchRequest
from pipeline.sessions import shown_title
from pipeline.store.claims import find_claims
from server.bootstrap import previous_session, snapshot
from server.call import Call
from server.current_session import Current, current_session
from server.pages import counted, cursor_at, fenced, offset_of, paged, some_lines
from server.recent import activity, detailed, last_turns
from server.space import Space
from server.tools.views import keep_view
from server.whole_turns import Include, Reference, whole_texts
from stages.snippet import one_line, shorten

BOOTSTRAP_BUDGET_S, FORCED_BUDGET_S = 1.0, 20.0
CLAIMS_SHOWN = 3


async def bootstrap_workspace(call: Call) -> str:
    """The snapshot a session begins with."""
    space = await call.space()
    if call["force"]:
        await call.progress(0, None, "reading all sessions")
    freshness = await space.freshen(FORCED_BUDGET_S if call["force"] else BOOTSTRAP_BUDGET_S)
    current = await current_session(space, call)
    return await snapshot(
        space,
        current,
        detailed=call["detailed_rounds"],
        summaries=call["summary_rounds"],
        limit=call["max_chars"],
        freshness=freshness.reason if freshness.stale or freshness.incomplete else "",
    )


async def search_context(call: Call) -> str:
    """Ranked turns for a query."""
    space = await call.space()
    freshness = await space.freshen()
    request = SearchRequest(
        call["query"],
        limit=call["limit"],
        since=day(call["date_from"], "date_from"),
        until=day(call["date_to"], "date_to", end=True),
        detail=call["detail"],
        cursor=call["cursor"] or None,
        cluster_gap_seconds=call["cluster_gap_seconds"],
        max_cluster_size=call["max_cluster_size"],
        now=space.service.now(),
    )
    claims = await _claims(space, call)
    if not await space.has_index():
        if space.sessions:
            raise BadInput(f"the index is not there yet: {freshness.reason}", hint="Ask again in a moment.")
        return f"No turn matches: no session was recorded in {space.label} yet.\n{claims}".strip()
    answer = await space.searcher.search(request, freshness)
    kept = await keep_view(space, answer, request) if call["save_view"] else ""
    if call["format"] == "json":
        return orjson.dumps(answer.json(call["max_output_chars"])).decode()
    room = call["max_output_chars"] - len(kept) - len(claims) - 2
    return "\n".join(part for part in (kept, answer.text(room), claims) if part)


async def _claims(space: Space, call: Call) -> str:
    """What the other server noted of sessions whose logs are gone; bounded to a quarter of the answer."""
    if call["cursor"] or call["format"] == "json" or not space.layout.database.is_file():
        return ""
    known = [session.session_id for session in space.sessions]
    async with space.reading(ours=False) as database:
        found, total = await find_claims(database, call["query"], known, CLAIMS_SHOWN)
    if not found:
        return ""
    rows = [
        f"{claim.timestamp[:16].replace('T', ' ')}  {claim.session_id}  turn {claim.turn_id}  "
        f"{shorten(one_line(space.redact(claim.text)), 220)}"
        for claim in found
    ]
    head = f"claims of another server about {counted(total, 'turn')} whose log is gone:"
    return f"{head}\n{fenced(some_lines(rows, call['max_output_chars'] // 4))}"


async def load_turn_context(call: Call) -> str:
    """Whole turns, paged."""
    space = await call.space()
    if not call["references"]:
        raise BadInput("references: is empty", hint='Give [{"sessionId": "session_…", "turnId": 3}].')
    await space.freshen()
    wanted = set(call["include"] or ())
    include = Include("args" in wanted, "results" in wanted, "diffs" in wanted)
    texts: list[str] = []
    missing: list[str] = []
    for reference in map(Reference.of, call["references"]):
        found = await whole_texts(space, reference, include)
        texts += found
        if not found:
            missing.append(await _missing(space, reference))
    if not texts:
        raise BadInput("\n".join(missing))
    about = orjson.dumps([call["references"], sorted(wanted)]).decode()
    page = partial(
        paged, "\n\n".join(texts), call["max_chars"], call["cursor"], about, head="\n".join(missing)
    )
    return await to_thread.run_sync(page)  # a turn may hold megabytes


async def _missing(space: Space, reference: Reference) -> str:
    """Why a reference leads nowhere, and what is there."""
    known = {one.session_id.removeprefix("session_") for one in space.sessions}
    if reference.session_id.removeprefix("session_") not in known:
        return f"sessionId: {space.label} has no session {reference.session_id}; search_context gives the ids"
    turns = await last_turns(space, reference.session_id, 1)
    last = f"its last one is {turns.turns[-1].turn_id}" if turns.turns else "it has none"
    return f"turnId: {reference.session_id} has no turn {reference.turn_id} ({last})"


async def load_more_context(call: Call) -> str:
    """Turns further back in one session."""
    space = await call.space()
    await space.freshen()
    session_id = await _which_session(space, call)
    about = f"more {session_id} {call['before_turn_id']}"
    position = offset_of(call["cursor"], about) or None
    found = await last_turns(
        space, session_id, call["limit"], before_turn=call["before_turn_id"], before_position=position
    )
    if not found.turns:
        return f"{session_id}: there is no earlier turn."
    text = "\n\n".join(detailed(turn, 2.0) for turn in found.turns)
    head = f"{session_id}: turns {found.turns[0].turn_id} to {found.turns[-1].turn_id}, {found.before} before them"
    if found.before:
        head += f"\nmore: cursor {cursor_at(found.turns[0].position, about)}"
    return paged(text, 45_000, None, about, head=head)


async def _which_session(space: Space, call: Call) -> str:
    if call["session_id"]:
        wanted = str(call["session_id"])
        known = {one.session_id.removeprefix("session_"): one.session_id for one in space.sessions}
        found = known.get(wanted.removeprefix("session_"))
        if found is None:
            raise BadInput(
                f"session_id: no session {wanted} in {space.label}", hint="search_context gives the ids."
            )
        return found
    previous = await previous_session(space, await current_session(space, call))
    if previous is None:
        raise BadInput(f"there is no previous session in {space.label}", hint="Name one with session_id.")
    return previous.session.session_id


async def get_current_workspace(call: Call) -> str:
    """Directory, store and session."""
    space = await call.space()
    await space.freshen()
    current = await current_session(space, call)
    lines = [
        f"workspace: {space.label}",
        f"workspaceId: {space.id}",
        f"store: {space.layout.root}",
        f"sessions: {len(space.sessions)}",
        f"session: {_session(current)}",
    ]
    return "\n".join(lines)


def _session(current: Current) -> str:
    if current.session is not None:
        return f"{current.session.session_id} ({current.how})"
    return current.how + "".join(f"\n- {one.session_id}" for one in current.candidates[:20])


async def list_sessions(call: Call) -> str:
    """The sessions, the latest active first."""
    space = await call.space()
    await space.freshen()
    found = await activity(space)
    about = f"sessions {space.id}"
    start = offset_of(call["cursor"], about)
    rows = []
    for each in found[start : start + call["limit"]]:
        session = each.session
        title = shown_title(session, space.redact)
        marks = [mark for mark, on in (("archived", session.archived), ("fork", session.forked_from)) if on]
        turns = counted(each.turns, "turn") if each.turns >= 0 else "not read yet"
        about_it = shorten(one_line(title), 80)
        rows.append(
            "  ".join([session.session_id, local_time(each.last_at), turns, *marks, about_it]).rstrip()
        )
    if not rows:
        return f"No session was recorded in {space.label} yet."
    head = f"{counted(len(found), 'session')} in {space.label}"
    if start + len(rows) < len(found):
        head += f"\nmore: cursor {cursor_at(start + len(rows), about)}"
    return paged("\n".join(rows), 45_000, None, about, head=head)
