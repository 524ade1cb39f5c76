"""What a person had forgotten, so that no rescan, rebuild, fork copy or import brings it back.

``<store>/tombstones.json`` is written before anything is deleted and outlives the database: a kill in the middle
of a deletion is finished by the next run, a database made anew stays without what was forgotten, and so does one
restored from a backup. It holds no text: digests of openers, ids, times and file names. The database keeps a copy
of it (``kmp_meta``), in case the file is lost. Where neither can be read nothing is read from the wires.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from anyio import to_thread

from pipeline.config import TOMBSTONES_NAME
from pipeline.errors import StoreError
from pipeline.store import files

if TYPE_CHECKING:  # discovery reads the file, long before a database is opened
    from pipeline.store.database import Database
    from stages.wire.blank import Opened

NAME = TOMBSTONES_NAME
VERSION = 1
COPY, APPLIED, BEGUN = "tombstones", "forgotten", "forgetting"
"""Keys of ``kmp_meta``: the copy of the file, the number of the last request that is done, and of the last one whose
rows are gone."""

Period = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class Grave:
    """One forgotten turn. ``prompted``: its opener carried a prompt id, so that no other turn has its digest."""

    opener: str
    session_id: str
    agent_id: str
    position: int
    turn_id: int
    started_at: int | None
    prompted: bool


@dataclass(frozen=True, slots=True)
class Pending:
    """What is still to be done in files for the last request: file names in the store, themes to make anew, and
    digests (``digest_of``) of seed keywords and essence facts to drop. No text."""

    files: tuple[str, ...] = ()
    themes: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The tombstones that concern one session; called with a turn. ``whole``: all of it, later turns included."""

    session_id: str
    whole: bool
    copies: bool
    """Turns copied into it come from a session that is forgotten whole."""
    ancestors: frozenset[str]
    periods: tuple[Period, ...]
    graves: Mapping[str, tuple[Grave, ...]]

    def __call__(self, turn: Opened) -> bool:
        if self.whole or (self.copies and turn.copied):
            return True
        if turn.started_at is not None and any(_within(turn.started_at, period) for period in self.periods):
            return True
        return any(self._is(turn, grave) for grave in self.graves.get(turn.opener_digest, ()))

    def _is(self, turn: Opened, grave: Grave) -> bool:
        """Equal openers without a prompt id ("continue") are the same turn at the same time, or the same place."""
        if grave.prompted:
            return True
        if grave.session_id == self.session_id:
            if turn.started_at is not None or grave.started_at is not None:
                return turn.started_at == grave.started_at
            return turn.position == grave.position
        if grave.session_id in self.ancestors and turn.copied:
            return True
        return turn.started_at is not None and turn.started_at == grave.started_at

    @property
    def concerns_title(self) -> bool:
        """Whether the session lost any turn: its title may be made of it."""
        near = self.ancestors | {self.session_id}
        return (
            self.whole
            or self.copies
            or any(grave.session_id in near for row in self.graves.values() for grave in row)
        )

    def touches(self, agent_id: str) -> bool:
        """Whether this agent's wire held a turn that is forgotten: its summaries may retell it."""
        near = self.ancestors | {self.session_id}
        return any(
            grave.session_id in near and grave.agent_id == agent_id
            for row in self.graves.values()
            for grave in row
        )


@dataclass(frozen=True, slots=True)
class Tombstones:
    """All that is forgotten of one store. ``number`` counts requests; sessions are forgotten whole, periods are
    inclusive (ms)."""

    number: int = 0
    sessions: frozenset[str] = frozenset()
    periods: tuple[Period, ...] = ()
    turns: frozenset[Grave] = frozenset()
    pending: Pending = Pending()

    @property
    def empty(self) -> bool:
        return not (self.sessions or self.periods or self.turns)

    def within(self, at: int | None) -> bool:
        """Whether a moment (ms) lies in a forgotten period."""
        return at is not None and any(_within(at, period) for period in self.periods)

    def and_also(
        self,
        graves: Iterable[Grave],
        sessions: Iterable[str] = (),
        periods: Sequence[Period] = (),
        pending: Pending = Pending(),
    ) -> Tombstones:
        """These and the ones of one more request; what an unfinished one left to do stays to be done."""
        return replace(
            self.also_pending(pending),
            number=self.number + 1,
            sessions=self.sessions | frozenset(sessions),
            periods=tuple(dict.fromkeys((*self.periods, *periods))),
            turns=self.turns | frozenset(graves),
        )

    def also_pending(self, pending: Pending) -> Tombstones:
        """These, with more to be done."""
        both = (tuple(dict.fromkeys((*getattr(self.pending, n), *getattr(pending, n)))) for n in _PENDING)
        return replace(self, pending=Pending(*both))

    def of_session(self, session_id: str, sources: Mapping[str, str | None]) -> Forgotten | None:
        """What concerns a session; ``sources`` names for each session the one it was forked or imported from."""
        if self.empty:
            return None
        line = ancestors(session_id, sources)
        return Forgotten(
            session_id,
            session_id in self.sessions,
            bool(line & self.sessions),
            line,
            self.periods,
            _by_opener(self.turns),
        )


_PENDING = ("files", "themes", "seeds", "facts")


def ancestors(session_id: str, sources: Mapping[str, str | None]) -> frozenset[str]:
    """The sessions that this one was made from, directly or not."""
    found: set[str] = set()
    while (source := sources.get(session_id)) is not None and source not in found:
        found.add(source)
        session_id = source
    return frozenset(found)


def _within(at: int, period: Period) -> bool:
    since, until = period
    return (since is None or at >= since) and (until is None or at <= until)


@lru_cache(maxsize=8)
def _by_opener(graves: frozenset[Grave]) -> Mapping[str, tuple[Grave, ...]]:
    found: dict[str, tuple[Grave, ...]] = {}
    for grave in graves:
        found[grave.opener] = (*found.get(grave.opener, ()), grave)
    return found


# --- the file and its copy ---------------------------------------------------------------------------------


def place(database_path: Path) -> Path:
    """Where the tombstones of the store with this database lie: at the store's root."""
    return database_path.parent.parent / NAME


EVERYTHING = Tombstones(periods=((None, None),))
"""For readers that cannot know what was forgotten: then they show nothing."""


def of_store(root: Path) -> Tombstones:
    """The tombstones of the store at ``root`` as its file says; EVERYTHING where the file cannot be read."""
    try:
        return read(root / NAME)
    except StoreError:
        return EVERYTHING


def read(path: Path) -> Tombstones:
    """The tombstones of a file; none if there is none. Raises StoreError for a file that cannot be read as such."""
    data = files.read_bytes(path)
    return Tombstones() if data is None else _parsed(path, data)


@lru_cache(maxsize=16)
def _parsed(path: Path, data: bytes) -> Tombstones:
    try:
        return decode(orjson.loads(data))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StoreError(
            path,
            f"cannot be read, so nobody knows what was forgotten ({error})",
            hint="`pipeline doctor --fix` restores it from its copy in the database.",
        ) from error


def write(path: Path, stones: Tombstones) -> None:
    """Put the tombstones on the disk, whole or not at all."""
    files.write_bytes(path, orjson.dumps(encode(stones), option=orjson.OPT_APPEND_NEWLINE))


async def current(database: Database) -> tuple[Tombstones, bool]:
    """What is forgotten now, and whether all of it has been carried out.

    A file that was lost, or is older than what the database knows, is made up for by the copy there. Raises
    StoreError when the file cannot be read and there is no copy of it.
    """
    path = place(database.path)
    notes = dict(await database.rows("SELECT key, value FROM kmp_meta WHERE key IN (?,?)", (COPY, APPLIED)))
    copy = _copied(notes.get(COPY))
    applied = int(notes.get(APPLIED, 0))
    try:
        stones = await to_thread.run_sync(read, path)
    except StoreError:
        if copy is None:
            raise
        stones = copy
    if copy is not None and (copy.number > stones.number or stones is copy):
        stones = copy
        if database.write:  # whoever reads the file alone (discovery) must know too
            with suppress(StoreError):
                await to_thread.run_sync(write, path, stones)
    return stones, stones.number <= applied


@lru_cache(maxsize=16)
def _copied(text: str | None) -> Tombstones | None:
    if not text:
        return None
    try:
        return decode(orjson.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


async def keep_copy(database: Database, stones: Tombstones) -> None:
    """Keep a copy in the database, in the caller's transaction."""
    await database.set_meta(BEGUN, stones.number)
    await database.set_meta(COPY, orjson.dumps(encode(replace(stones, pending=Pending()))).decode())


def encode(stones: Tombstones) -> dict[str, Any]:
    """The JSON of the file, in a fixed order."""
    value: dict[str, Any] = {
        "version": VERSION,
        "number": stones.number,
        "sessions": sorted(stones.sessions),
        "periods": [list(period) for period in stones.periods],
        "turns": [
            [g.opener, g.session_id, g.agent_id, g.position, g.turn_id, g.started_at, g.prompted]
            for g in sorted(stones.turns, key=lambda g: (g.session_id, g.agent_id, g.position, g.opener))
        ],
    }
    pending = {
        name: list(getattr(stones.pending, name)) for name in _PENDING if getattr(stones.pending, name)
    }
    return value | ({"pending": pending} if pending else {})


def decode(value: Any) -> Tombstones:
    """The reverse of ``encode``. Raises ValueError, TypeError, KeyError or AttributeError for anything else."""
    if value["version"] != VERSION:
        raise ValueError(f"version {value['version']!r} is not {VERSION}")
    pending = value.get("pending", {})
    return Tombstones(
        int(value["number"]),
        frozenset(map(str, value["sessions"])),
        tuple((period[0], period[1]) for period in value["periods"]),
        frozenset(Grave(*row) for row in value["turns"]),
        Pending(*(tuple(map(str, pending.get(name, ()))) for name in _PENDING)),
    )


async def lineage(database: Database) -> dict[str, str | None]:
    """For each known session the one it was forked or imported from."""
    return {
        row[0]: row[1]
        for row in await database.rows("SELECT session_id, coalesce(forked_from, imported_from) FROM session")
    }
