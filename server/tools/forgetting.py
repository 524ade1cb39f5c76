"""`forget`: turns that a person wants gone for good. Shows what would go and what stays; `confirm` does it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pipeline.answers import local_time
from pipeline.commands.scope import day
from pipeline.errors import BadInput, PipelineError
from pipeline.forgetting import Done, Plan, Request, finish, plan
from pipeline.forgetting import forget as carry_out
from pipeline.forgetting_plan import MATCH_LEAST
from pipeline.store import tombstones
from pipeline.store.database import Database
from pipeline.store.themes import NoSuchTheme
from pipeline.store.tombstones import Tombstones
from pipeline.store.turns import bodies, unpack
from pipeline.workers import Workers
from server.call import Call
from server.pages import counted, fenced
from server.space import Space
from stages.snippet import one_line, shorten

BUDGET_S = 20.0
"""For reading what is new: only what the store knows is found by turn, theme and text."""
TURNS_SHOWN, SESSIONS_SHOWN, FILES_SHOWN, QUESTION_CHARS = 12, 20, 20, 100
NOTHING = "Nothing is stored of it (any more): nothing was changed."


async def forget(call: Call) -> str:
    """What a request comes to; with ``confirm`` it is carried out. Sent again it changes nothing."""
    request = _request(call)
    space = await call.space()
    await call.progress(0, None, "reading new turns")
    freshness = await space.freshen(BUDGET_S)
    if not await space.has_index():
        return f"Nothing is indexed in {space.label} yet: there is nothing to forget."
    behind = freshness.reason if freshness.incomplete or freshness.stale else ""
    if not call["confirm"]:
        async with space.reading() as database:
            wanted = await _planned(space, database, request, sure=False)
            rows = [] if wanted is None else await _turn_rows(space, database, wanted)
        return "\n".join([_shown(wanted, rows), *([behind] if behind else [])])
    if behind:
        raise PipelineError(
            f"confirm: not every turn is read yet, some would be missed: {behind}", hint="Send it again soon."
        )
    await call.progress(0, None, "forgetting")
    async with space.writing() as database:
        await finish(database)  # a request that a kill interrupted; cheap when there is none
        wanted = await _planned(space, database, request, sure=True)
        if wanted is None:
            return NOTHING
        done = await carry_out(database, space.layout, wanted, workers=Workers(1))
    return _told(wanted, done)


# --- the request -------------------------------------------------------------------------------------------


def _request(call: Call) -> Request:
    """The arguments as a request. Raises BadInput that names the argument."""
    since, until = day(call["since"], "since"), day(call["until"], "until", end=True)
    period = next((name for name in ("since", "until") if call[name]), None)
    named = [name for name in ("sessionId", "theme", "match", "everything") if call[name]]
    named += [period] if period else []
    for name in ("turnId", "position"):
        if call[name] is not None and not call["sessionId"]:
            raise BadInput(f"{name}: needs sessionId")
    if len(named) != 1:
        problem = f"{', '.join(named)}: name one thing to forget" if named else "sessionId: missing"
        raise BadInput(problem, hint="It takes one of sessionId, since and until, theme, match, everything.")
    if call["agentId"] and call["turnId"] is call["position"] is None:
        raise BadInput("agentId: needs turnId", hint="A session is forgotten with all its agents.")
    if since is not None and until is not None and since > until:
        raise BadInput("until: lies before since")
    if call["match"] and len(call["match"].strip()) < MATCH_LEAST:
        raise BadInput(
            f"match: {call['match']!r} is too short", hint=f"Give at least {MATCH_LEAST} characters."
        )
    return Request(
        session=call["sessionId"] or None,
        turn=call["turnId"],
        agent=call["agentId"] or "main",
        position=call["position"],
        since=since,
        until=until,
        everything=bool(call["everything"]),
        theme=call["theme"] or None,
        match=call["match"] or None,
        memories=bool(call["memories"]),
    )


async def _planned(space: Space, database: Database, request: Request, *, sure: bool) -> Plan | None:
    """The plan; ``None`` when nothing is left to be done.

    Raises BadInput for a session, turn or theme that is not there. A theme that goes leaves no name behind: to be
    ``sure`` of a theme that is not there is taken for a call sent again.
    """
    stones, _ = await tombstones.current(database)
    if request.session is not None:
        request = replace(request, session=await _session_id(space, database, stones, request.session))
    try:
        wanted = await plan(database, space.layout, request, now=space.service.now())
    except NoSuchTheme as error:
        if sure:
            return None
        raise BadInput(f"theme: {error.message}", hint=error.hint) from error
    except BadInput as error:
        if _buried(stones, request):
            return None
        name = "sessionId" if request.turn is request.position is None else "turnId"
        raise BadInput(f"{name}: {error.message}", hint="search_context gives ids and numbers.") from error
    return None if _settled(wanted, stones, request) else wanted


async def _session_id(space: Space, database: Database, stones: Tombstones, given: str) -> str:
    """The session's full id, as far as anything knows it; it may be given without its prefix."""
    known = {one.session_id for one in space.sessions} | stones.sessions
    known |= {grave.session_id for grave in stones.turns}
    known |= {name for (name,) in await database.rows("SELECT session_id FROM session")}
    bare = given.strip().removeprefix("session_")
    return next((name for name in (given.strip(), f"session_{bare}", bare) if name in known), given.strip())


def _buried(stones: Tombstones, request: Request) -> bool:
    """Whether a session or turn that the store does not know was forgotten."""
    if request.session in stones.sessions:
        return True
    return any(
        grave.session_id == request.session
        and grave.agent_id == request.agent
        and request.turn in (None, grave.turn_id)
        and request.position in (None, grave.position)
        for grave in stones.turns
    )


def _settled(wanted: Plan, stones: Tombstones, request: Request) -> bool:
    """Whether nothing is left to be done: nothing is stored of it, and its rules hold already."""
    if wanted.places or wanted.found.files or wanted.found.themes:
        return False
    open_end = request.until is None
    covered = all(
        any(
            old_since == since and (open_end or until is None or (old_until or 0) >= until)
            for old_since, old_until in stones.periods
        )
        for since, until in wanted.periods
    )
    return covered and set(wanted.sessions) <= stones.sessions


# --- the answer --------------------------------------------------------------------------------------------


async def _turn_rows(space: Space, database: Database, wanted: Plan) -> list[str]:
    """The first turns that would go, a line each: somebody has to recognise them."""
    told = sorted(wanted.places, key=lambda place: (place.copied, place.started_at or 0))
    first = [*{place.content_id: place for place in reversed(told)}.values()][::-1][:TURNS_SHOWN]
    texts = await bodies(database, [place.content_id for place in first])
    rows = []
    for place in first:
        question = unpack(texts[place.content_id], place).opening_text if place.content_id in texts else ""
        about = space.redact(shorten(one_line(question), QUESTION_CHARS))
        agent = "" if place.agent_id == "main" else f" {place.agent_id}"
        rows.append(
            f"{local_time(place.started_at)}  {place.session_id}{agent}  turn {place.turn_id}  «{about}»"
        )
    return rows


def _shown(wanted: Plan | None, rows: Sequence[str]) -> str:
    if wanted is None:
        return "\n".join(["Nothing is stored of it (any more): nothing to forget.", *_stays(None, "")])
    lines = [f"dry run, nothing is changed. It would forget {_amount(wanted)}.", "goes:"]
    lines.append(fenced("\n".join([*rows, *_goes(wanted, turns=len(rows))])))
    lines += _stays(wanted, "memories: true takes them too")
    lines.append(
        "Show this to the user. If they agree, send it again with confirm: true; nothing brings it back."
    )
    return "\n".join(line for line in lines if line)


def _told(wanted: Plan, done: Done) -> str:
    lines = [f"forgot {_amount(wanted)}, for good.", "gone:", fenced("\n".join(_goes(wanted)))]
    lines += _stays(wanted, "delete moves one to the trash")
    if not done.emptied:
        lines.append("another process is reading the store: the database's log is emptied once that is done")
    if done.untold:
        lines.append(f"not told anew, run_theme does it: {one_line(', '.join(done.untold))}")
    return "\n".join(line for line in lines if line)


def _amount(wanted: Plan) -> str:
    turns = len({place.content_id for place in wanted.places})
    copies = len(wanted.places) - turns
    also = f" and {counted(copies, 'copied turn')}" if copies else ""
    sessions = len({place.session_id for place in wanted.places})
    return f"{counted(turns, 'turn')}{also} in {counted(sessions, 'session')}"


def _goes(wanted: Plan, *, turns: int = 0) -> Iterator[str]:
    """What goes, besides the ``turns`` that are shown in lines of their own."""
    numbers: dict[str, list[str]] = {name: [] for name in wanted.sessions}
    for place in wanted.places:
        agent = "" if place.agent_id == "main" else f" ({place.agent_id})"
        numbers.setdefault(place.session_id, []).append(f"{place.turn_id}{agent}")
    if len(wanted.places) > turns or wanted.sessions:
        for name, each in list(numbers.items())[:SESSIONS_SHOWN]:
            whole = name in wanted.sessions
            yield f"{name}: {'all of it, also what is said in it later' if whole else _some(each)}"
        if len(numbers) > SESSIONS_SHOWN:
            yield f"… {len(numbers) - SESSIONS_SHOWN} more sessions"
    for since, until in wanted.periods:
        yield f"every turn begun {_moment(since, 'from the beginning')} to {_moment(until, 'now')}"
    if wanted.found.themes:
        yield f"themes told anew without it: {one_line(', '.join(wanted.found.themes))}"
    files = sorted(wanted.found.files.items())
    yield from (f"{kind}: {one_line(path)}" for path, kind in files[:FILES_SHOWN])
    if len(files) > FILES_SHOWN:
        yield f"… {len(files) - FILES_SHOWN} more files"


def _some(numbers: Sequence[str]) -> str:
    more = f" and {len(numbers) - TURNS_SHOWN} more" if len(numbers) > TURNS_SHOWN else ""
    return f"turns {', '.join(numbers[:TURNS_SHOWN])}{more}"


def _moment(at: int | None, unknown: str) -> str:
    return unknown if at is None else local_time(at)


def _stays(wanted: Plan | None, advice: str) -> Iterator[str]:
    yield "stays: Kimi's own session files (only Kimi deletes them), all other turns"
    if wanted is not None and (kept := wanted.found.kept):
        more = f" and {len(kept) - FILES_SHOWN} more" if len(kept) > FILES_SHOWN else ""
        yield f"stays: memories written from it ({advice}):"
        yield fenced("\n".join(map(one_line, kept[:FILES_SHOWN])) + more)
