"""What a request to forget comes to: which turns, with their sub-agents' and copies, and which files tell of them.

Reads only. ``pipeline.forgetting`` carries a plan out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from anyio import to_thread

from pipeline.errors import BadInput
from pipeline.forgotten_files import Aim, Gone, Survey, survey
from pipeline.store import codec
from pipeline.store.database import Database
from pipeline.store.erasing import (
    PIECE,
    occurrences_of,
)
from pipeline.store.layout import Layout
from pipeline.store.theme_record import Ref
from pipeline.store.themes import ThemeStore
from pipeline.store.tombstones import Grave, Period, Tombstones
from pipeline.store.turns import OCCURRENCE, Occurrence, occurrence
from stages.model import Turn

MATCH_LEAST = 3
"""Characters of a text to match: fewer are in every other turn."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to forget: exactly one of a session (with ``turn`` or ``position``: that turn), a period (ms, inclusive),
    ``everything`` up to now, a theme's turns, or turns that hold the text ``match`` (any case).

    ``memories`` also takes Markdown memories that were written from these turns, or hold ``match``.
    """

    session: str | None = None
    turn: int | None = None
    agent: str = "main"
    position: int | None = None
    since: int | None = None
    until: int | None = None
    everything: bool = False
    theme: str | None = None
    match: str | None = None
    memories: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What a request comes to, before anything is done. ``rules`` hold for what comes later too."""

    places: tuple[Occurrence, ...]
    graves: frozenset[Grave]
    sessions: tuple[str, ...]
    periods: tuple[Period, ...]
    found: Survey = field(default_factory=Survey)

    @property
    def empty(self) -> bool:
        """Nothing is stored of it, and no rule would keep anything out later."""
        return not (self.places or self.sessions or self.periods or self.found.files or self.found.themes)

    def as_json(self) -> dict[str, Any]:
        """The object of `pipeline forget --json` and of the tool."""
        by_session: dict[str, list[Occurrence]] = {}
        for one in self.places:
            by_session.setdefault(one.session_id, []).append(one)
        return {
            "turns": len({one.content_id for one in self.places}),
            "occurrences": len(self.places),
            "sessions": [
                {
                    "sessionId": name,
                    "whole": name in self.sessions,
                    "turns": [
                        {"agentId": o.agent_id, "turnId": o.turn_id, "position": o.position} for o in rows
                    ],
                }
                for name, rows in sorted(by_session.items())
            ],
            "rules": {"sessions": list(self.sessions), "periods": [list(period) for period in self.periods]},
            "themes": self.found.themes,
            "files": [{"path": path, "kind": kind} for path, kind in sorted(self.found.files.items())],
            "memoriesKept": self.found.kept,
        }


# --- the plan --------------------------------------------------------------------------------------------------


async def plan(database: Database, layout: Layout, request: Request, *, now: int) -> Plan:
    """What ``request`` would forget; reads only. ``now`` is ms: a period never reaches into the future.

    Catch the store up first: only what it knows is found by turn, theme and text. Raises BadInput for a request that
    cannot be meant (nothing or several things named, an unknown turn or theme), CorruptTheme.
    """
    _check(request)
    period = _period(request, now)
    aimed, sessions = await _aimed(database, layout, request, period)
    whole = (
        (request.session,) if request.session is not None and request.turn is request.position is None else ()
    )
    alike = [one for one in aimed if not (one.copied and one.session_id in whole)]
    places = {one.id: one for one in aimed}
    for one in await _same(database, await _with_subagents(database, alike)):
        places[one.id] = one
    graves = frozenset(
        Grave(
            o.opener_digest,
            o.session_id,
            o.agent_id,
            o.position,
            o.turn_id,
            o.started_at,
            o.prompt_id is not None,
        )
        for o in places.values()
        if not (o.copied and o.session_id in whole)
    )
    stones = Tombstones().and_also(graves, sessions, (period,) if period else ())
    aim = Aim(request.match or "", request.theme, request.everything, request.memories)
    found = await to_thread.run_sync(survey, layout.root, Gone(stones), aim)
    ordered = sorted(places.values(), key=lambda o: (o.session_id, o.agent_id, o.position))
    return Plan(tuple(ordered), graves, tuple(sessions), (period,) if period else (), found)


def _check(request: Request) -> None:
    named = [
        name
        for name, value in (
            ("a session", request.session),
            ("a period", request.since if request.since is not None else request.until),
            ("everything", request.everything or None),
            ("a theme", request.theme),
            ("a text", request.match),
        )
        if value is not None
    ]
    if len(named) != 1:
        what = " and ".join(named) or "nothing"
        raise BadInput(
            f"{what} named: name one thing to forget", hint="A session, a turn, a period, a theme or a text."
        )
    if request.session is None and (request.turn is not None or request.position is not None):
        raise BadInput("a turn is named without its session")
    if request.match is not None and len(request.match.strip()) < MATCH_LEAST:
        raise BadInput(
            f"the text {request.match!r} is too short", hint=f"Give at least {MATCH_LEAST} characters."
        )
    if request.since is not None and request.until is not None and request.since > request.until:
        raise BadInput("the period ends before it begins")


def _period(request: Request, now: int) -> Period | None:
    if request.everything:
        return None, now
    if request.since is None and request.until is None:
        return None
    return request.since, min(now, request.until if request.until is not None else now)


async def _aimed(
    database: Database, layout: Layout, request: Request, period: Period | None
) -> tuple[list[Occurrence], list[str]]:
    """The occurrences named, and the sessions that are forgotten whole."""
    if request.everything:
        return await _where(database, "1"), []
    if period is not None:
        since, until = period
        low = -(2**62) if since is None else since
        return await _where(database, "started_at BETWEEN ? AND ?", low, until), []
    if request.match is not None:
        return await _matching(database, request.match), []
    if request.theme is not None:
        return await _of_theme(database, layout, request.theme), []
    session = str(request.session)
    if request.turn is None and request.position is None:
        found = await _where(database, "session_id=?", session)
        if not found and not await database.rows("SELECT 1 FROM session WHERE session_id=?", (session,)):
            raise BadInput(f"no session {session} in this workspace", hint="`pipeline sessions` lists them.")
        return found, [session]
    found = await _where(
        database,
        "session_id=? AND agent_id=? AND (? IS NULL OR turn_id=?) AND (? IS NULL OR position=?)",
        session, request.agent, request.turn, request.turn, request.position, request.position,
    )  # fmt: skip
    if not found:
        raise BadInput(
            f"the store knows no turn {request.turn if request.turn is not None else request.position} of {session} "
            f"({request.agent})",
            hint="`pipeline turns --session ID` lists a session's turns.",
        )
    return found, []


async def _where(database: Database, condition: str, *parameters: Any) -> list[Occurrence]:
    return [
        occurrence(row)
        for row in await database.rows(f"SELECT {OCCURRENCE} FROM occurrence WHERE {condition}", parameters)
    ]


async def _of_theme(database: Database, layout: Layout, name: str) -> list[Occurrence]:
    from pipeline.theming import resolvable

    record = await to_thread.run_sync(ThemeStore(layout.root).require, name)
    record = record.resolve(await resolvable(database))
    found: dict[int, Occurrence] = {}
    for ref in (*(turn.ref for turn in record.turns), *record.pins):
        if ref.position is not None:
            for one in await _where(
                database,
                "session_id=? AND agent_id=? AND position=?",
                ref.session_id,
                ref.agent_id,
                ref.position,
            ):
                if _is(one, ref):
                    found[one.id] = one
    return list(found.values())


def _is(one: Occurrence, ref: Ref) -> bool:
    return not ref.opener or ref.opener == one.opener_digest


async def _matching(database: Database, text: str) -> list[Occurrence]:
    """Occurrences of turns that hold the text, in any of their words; any case."""
    hits: list[int] = []
    last = 0
    while rows := await database.rows(
        "SELECT id, body FROM content WHERE id>? ORDER BY id LIMIT ?", (last, PIECE)
    ):
        last = rows[-1][0]
        hits += await to_thread.run_sync(_hits, [(row[0], row[1]) for row in rows], text.casefold())
    return await occurrences_of(database, hits)


def _hits(rows: Sequence[tuple[int, bytes]], text: str) -> list[int]:
    found = []
    for content_id, body in rows:
        try:
            turn = codec.unpack(body)
        except ValueError:
            continue
        if any(text in each.casefold() for each in texts_of(turn)):
            found.append(content_id)
    return found


def texts_of(turn: Turn) -> list[str]:
    """Every text that is stored of a turn; arguments also as they read without JSON's escapes."""
    found = [turn.opening_text, turn.user_text or "", turn.error, *turn.compactions]
    found += [steer.text for steer in turn.steers]
    for step in turn.steps:
        found += step.texts
        for call in step.tools:
            plain = call.args.replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\")
            found += [
                call.args,
                plain,
                call.command,
                call.error,
                call.outcome,
                *(touch.path for touch in call.files),
            ]
    return [text for text in found if text]


async def _with_subagents(database: Database, places: Sequence[Occurrence]) -> list[Occurrence]:
    """Also the turns of the sub-agents that these turns started, and of theirs."""
    found = {one.id: one for one in places}
    pending = list(places)
    seen: set[tuple[str, str]] = set()
    while pending:
        one = pending.pop()
        for (agent_id,) in await database.rows(
            "SELECT DISTINCT agent_id FROM spawn WHERE session_id=? AND parent_agent=? AND position=?",
            (one.session_id, one.agent_id, one.position),
        ):
            if (one.session_id, agent_id) in seen:
                continue
            seen.add((one.session_id, agent_id))
            for child in await _where(database, "session_id=? AND agent_id=?", one.session_id, agent_id):
                if child.id not in found:
                    found[child.id] = child
                    pending.append(child)
    return list(found.values())


async def _same(database: Database, places: Sequence[Occurrence]) -> list[Occurrence]:
    """Every occurrence of the same turns: copies in forks and imports, by content or by what opened them."""
    found = {one.id: one for one in places}
    for one in await occurrences_of(database, {place.content_id for place in places}):
        found[one.id] = one
    for one in places:
        if one.prompt_id is not None:
            for twin in await _where(database, "opener_digest=?", one.opener_digest):
                found[twin.id] = twin
    return list(found.values())
