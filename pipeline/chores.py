"""What background work there is for one workspace, in small steps: the next one is done, committed and reported.

    read new bytes ─► tend the index ─► refine (recent turns, what themes and searches touch, the rest)
                   ─► refresh themes with new evidence ─► propose memories

Every step is safe to cancel or kill at any instant: what was not committed is done again. One chore that fails is
named and left until there are news; it never stops the others. What is transient (a locked database, a file in use,
a file that vanished while we looked) is tried again a few times, with a random pause that grows.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import tenacity
from anyio import to_thread

from pipeline.catchup import catch_up
from pipeline.errors import PipelineError
from pipeline.fold import redactor
from pipeline.lag import Standing, standing
from pipeline.news import SEEN, before_compaction, latest, not_looked_at, searched, unrefined_count
from pipeline.proposing import LATEST_TURNS, drafts, remembered
from pipeline.refining import refine_all
from pipeline.report import Report
from pipeline.sessions import Cache, Session, discover
from pipeline.settings import Settings
from pipeline.store import files
from pipeline.store.database import Database
from pipeline.store.layout import Layout, redaction_key
from pipeline.store.memories import Memories
from pipeline.store.proposals import Draft, Proposals
from pipeline.store.refined import Candidate, refined_turns, unrefined
from pipeline.store.sources import sources
from pipeline.store.themes import ThemeStore
from pipeline.theme_refresh import has_new_evidence, refresh_theme
from pipeline.theming import theme_candidates
from pipeline.transient import retrying, told
from pipeline.upkeep import note_versions, tend_index
from pipeline.workers import Workers

log = logging.getLogger(__name__)

Chore: TypeAlias = Literal["look", "read", "index", "refine", "theme", "propose", "nothing"]

READ_S = 0.15
"""How long one step reads new bytes: then it is committed, and asked again whether work may go on."""
PIECE_TURNS = 24
RECENT_TURNS = 400
PROPOSALS_MOST = 8
"""New proposals a round: a queue that nobody can read helps nobody."""


@dataclass(frozen=True, slots=True)
class Done:
    """One step. ``more``: there is (or may be) another one to do. ``error`` says what went wrong in it."""

    chore: Chore
    more: bool
    detail: str = ""
    error: str = ""


@dataclass(slots=True)
class Queue:
    """What waits, by kind, as far as it is known."""

    turns: int = 0
    themes: int = 0
    unread: int = 0

    def as_json(self) -> dict[str, int]:
        return {"unreadBytes": self.unread, "unrefinedTurns": self.turns, "themes": self.themes}


@dataclass(slots=True)
class _Round:
    """What is still to do since the last news."""

    read: bool = False
    tended: bool = False
    phases: list[str] | None = None
    turns: list[Candidate] = field(default_factory=list)
    themes: list[str] | None = None
    new: set[int] = field(default_factory=set)
    proposed: bool = False
    failed: set[str] = field(default_factory=set)


class Chores:
    """The background work on one workspace's store. ``settings`` is asked at each look; one task at a time."""

    def __init__(
        self,
        settings: Callable[[], Settings],
        workspace: str,
        *,
        clock: Callable[[], float] = time.time,
        retries: tenacity.AsyncRetrying | None = None,
    ) -> None:
        self.workspace = workspace
        self.queue = Queue()
        self.sessions: tuple[Session, ...] = ()
        self.others: tuple[Session, ...] = ()
        self.standing: Standing | None = None
        self._settings = settings
        self._clock = clock
        self._retries = retries or retrying()
        self._cache: Cache = {}
        self._round = _Round()
        self._looked = False
        self._database: Database | None = None
        self._layout = Layout(settings().store(workspace))
        self._workers = Workers(1)
        self._added = 0
        self._key = b""

    # --- from outside ---------------------------------------------------------------------------------------

    def news(self) -> None:
        """Something changed on the disk: look again from the beginning."""
        self._looked = False
        self._round = _Round()

    @property
    def blocked(self) -> bool:
        """Whether what everything else needs has failed: nothing more is done until there are news."""
        return bool(self._round.failed & {"look", "read"})

    async def step(self, *, urgent: bool = False) -> Done:
        """Do the next piece. ``urgent``: only read, and propose what a compaction is about to lose.

        Raises nothing but cancellation.
        """
        chore = self.next(urgent=urgent)
        try:
            async for attempt in self._retries.copy():
                with attempt:
                    return await self._do(chore, urgent)
        except Exception as error:  # the boundary of one chore
            log.exception("background: %s failed", chore)
            self._round.failed.add(chore)
            await self._drop_database()
            return Done(chore, True, error=told(error))
        raise AssertionError("tenacity tries at least once")

    async def close(self) -> None:
        await self._drop_database()

    def next(self, *, urgent: bool = False) -> Chore:
        """What the next step will be."""
        todo = self._round
        if not self._looked:
            return "nothing" if "look" in todo.failed else "look"
        if not self.sessions:
            return "nothing"
        if not todo.read:
            return "nothing" if "read" in todo.failed else "read"
        if urgent:
            return "nothing" if todo.proposed or "propose" in todo.failed else "propose"
        for chore, done in (
            ("index", todo.tended),
            ("refine", todo.phases == [] and not todo.turns),
            ("theme", todo.themes == []),
            ("propose", todo.proposed),
        ):
            if not done and chore not in todo.failed:
                return chore  # type: ignore[return-value]
        return "nothing"

    async def _do(self, chore: Chore, urgent: bool) -> Done:
        match chore:
            case "look":
                return await self._look()
            case "read":
                return await self._read()
            case "index":
                return await self._tend()
            case "refine":
                return await self._refine()
            case "theme":
                return await self._theme()
            case "propose":
                return await self._propose(urgent)
            case "nothing":
                return Done("nothing", False)

    async def _open(self) -> Database:
        """The store, made when it is new. Temporary tables belong to the connection: this one is ours alone."""
        if self._database is None:
            await to_thread.run_sync(files.make_dirs, self._layout.root)
            self._key = await to_thread.run_sync(
                lambda: redaction_key(self._settings().store_root, create=True)
            )
            database = await Database.open(self._layout.database)
            self._database = database
            if await database.meta("tokenizer") is None:
                async with database.transaction():
                    await note_versions(database)
        return self._database

    async def _drop_database(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            await database.close()

    # --- the chores -----------------------------------------------------------------------------------------

    async def _look(self) -> Done:
        inventory = await to_thread.run_sync(lambda: discover(self._settings(), self._cache))
        mine: list[Session] = []
        others: list[Session] = []
        for session in inventory.sessions:
            (mine if session.workspace_id == self.workspace else others).append(session)
        self.sessions, self.others = tuple(mine), tuple(others)
        self._looked = True
        return Done("look", bool(mine), f"{len(mine)} sessions")

    async def _read(self) -> Done:
        database = await self._open()
        report = Report()
        await catch_up(
            database, self.sessions, key=self._key, workers=self._workers, report=report, budget=READ_S
        )
        self._added += report.turns
        self._round.read = not report.incomplete
        await self._measure(database)
        error = report.failures[0] if report.failures else ""
        return Done("read", True, f"{report.bytes} bytes, {report.turns} turns", error)

    async def _measure(self, database: Database) -> None:
        known = await sources(database)
        now = int(self._clock() * 1000)
        self.standing = await to_thread.run_sync(standing, self.sessions, known, now)
        self.queue.unread = self.standing.unread
        self.queue.turns = await unrefined_count(database)

    async def _tend(self) -> Done:
        database = await self._open()
        await tend_index(database, self._added)
        self._added = 0
        self._round.tended = True
        return Done("index", True)

    async def _refine(self) -> Done:
        database = await self._open()
        todo = self._round
        if todo.phases is None:
            todo.phases = ["recent", "touched", "rest"]
        while not todo.turns and todo.phases:
            todo.turns = await self._candidates(database, todo.phases[0])
            del todo.phases[0]
        report = Report()
        if piece := todo.turns[:PIECE_TURNS]:
            await refine_all(database, piece, workers=self._workers, report=report)
            del todo.turns[:PIECE_TURNS]  # not before: a step that is stopped is done again
            self.queue.turns = await unrefined_count(database)
        error = report.failures[0] if report.failures else ""
        return Done("refine", True, f"{report.refined} turns", error)

    async def _candidates(self, database: Database, phase: str) -> list[Candidate]:
        """Unrefined turns of a phase, the latest first."""
        chosen: set[int] | None = None
        if phase == "recent":
            chosen = set(await latest(database, RECENT_TURNS))
        elif phase == "touched":
            chosen = await self._touched(database)
        found = await unrefined(database, chosen)
        age = {content_id: number for number, content_id in enumerate(await latest(database, None))}
        return sorted(found, key=lambda each: age.get(each.content_id, len(age)))

    async def _touched(self, database: Database) -> set[int]:
        """Contents that themes look at and that kept searches point to."""
        records, _ = await to_thread.run_sync(ThemeStore(self._layout.root).all)
        found: set[int] = set()
        for record in records:
            if record.seeds or record.turns:
                found |= await theme_candidates(database, record.seeds, record)
        for session_id, turn_id in await to_thread.run_sync(searched, self._layout.searches):
            rows = await database.rows(
                "SELECT content_id FROM occurrence WHERE session_id=? AND turn_id=?", (session_id, turn_id)
            )
            found.update(row[0] for row in rows)
        return found

    async def _theme(self) -> Done:
        """One theme a step; new evidence is what came in since the last whole round."""
        database = await self._open()
        todo = self._round
        if todo.themes is None:
            todo.new, _ = await not_looked_at(database)
            names = [path.stem for path in await to_thread.run_sync(ThemeStore(self._layout.root).paths)]
            todo.themes = names if todo.new else []
        self.queue.themes = len(todo.themes)
        if not todo.themes:
            return Done("theme", True)
        name = todo.themes[0]
        try:
            detail = await self._refreshed(database, name)
        except PipelineError as error:  # a broken file: the other themes go on
            del todo.themes[0]
            return Done("theme", True, name, told(error))
        del todo.themes[0]
        return Done("theme", True, f"{name}: {detail}")

    async def _refreshed(self, database: Database, name: str) -> str:
        record = await to_thread.run_sync(ThemeStore(self._layout.root).read, name)
        if record is None or not await has_new_evidence(database, record, self._round.new):
            return "nothing new"
        changed = await refresh_theme(
            database, self._layout, self.workspace, name, workers=self._workers, report=Report()
        )
        return "refreshed" if changed else "as it was"

    async def _propose(self, urgent: bool) -> Done:
        database = await self._open()
        new, seen = await not_looked_at(database)
        found = new & set(await latest(database, LATEST_TURNS))
        if urgent:
            found = await before_compaction(database, found)
        made = await self._queue_drafts(database, found) if found else 0
        self._round.proposed = True
        if not urgent and not self._round.failed:
            async with database.transaction():
                if await database.meta(SEEN) != seen:
                    await database.set_meta(SEEN, seen)
        return Done("propose", True, f"{made} proposals")

    async def _queue_drafts(self, database: Database, found: set[int]) -> int:
        await refine_all(database, await unrefined(database, found), workers=self._workers, report=Report())
        turns = await refined_turns(database, found)
        redact = redactor(self._key)
        memories = Memories(self._layout.root, now=self._now_ms, redact=redact)
        proposals = Proposals(memories, now=self._now_ms, redact=redact)

        def queue() -> int:
            return _queued(proposals, drafts(turns, remembered(memories.all())))

        return await to_thread.run_sync(queue)

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)


def _queued(proposals: Proposals, found: Iterable[Draft]) -> int:
    made = 0
    for draft in found:
        if made >= PROPOSALS_MOST:
            break
        made += bool(proposals.propose(draft)["created"])
    return made
