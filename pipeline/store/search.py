"""Candidate retrieval and ranking over the index: from a parsed query to turns in order, best first.

    terms ─► evidence (which turns, how rare) ─► candidates ─► scored turns ─► neighbours lend ─► order

The work is bounded whatever the query: rare terms bring their turns; common ones add turns only where all of
them
meet (newest first), and weigh on the candidates that are there. Totals are exact all the same: sets of turns
are
cheap.
"""

from __future__ import annotations

import heapq
import math
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pipeline.store import codec
from pipeline.store.conditions import Key, Met
from pipeline.store.evidence import Evidence, Flags, Scorer, TermEvidence, newest
from pipeline.store.postings import Postings, marks, quoted
from stages import tokens
from stages.query import Query

MatchMode: TypeAlias = Literal["all", "any"]
POOL = 120
"""Turns that are scored term by term."""
ROUGH = 4000
"""Turns that are weighed roughly to find the pool."""
MEETING = 300
"""Turns taken where all terms meet, newest first, when some term is too common to be counted."""
LENDERS = 24
"""Best turns whose neighbours are looked at."""
REACH = 2
"""How far, in turns, weight is lent."""
LENT = (0.0, 0.20, 0.12)
"""Share of a neighbour's term scores that is lent, by distance."""
BRIEF_TOKENS, BRIEF_LENT = 8, 2.5
"""A message this short ("2", "continue") goes on with what was asked before it, and is lent so much more."""
GAP_MS = 3 * 3600 * 1000
"""A longer pause ends a discussion: nothing is lent across."""

FLOOR, COVERED, ASKED = 0.15, 0.5, 1.0
"""The factors of a turn's bm25: unconditional, for the share of the query it holds, and for the share that
the person's own words hold. Long answers hold many words by chance; a question is about what it says."""
ASKED_TOKENS = 120
"""Longer messages (pasted logs) say less with each word."""
DECISION_BONUS = 0.05
RECENCY_BONUS = 0.06
RECENCY_HALF_LIFE_MS = 45 * 86_400_000
ROUGH_COLUMNS = {"user": 1.0, "agent": 0.6, "actions": 0.4, "errors": 0.6}


@dataclass(frozen=True, slots=True)
class Place:
    """The occurrence that shows a content. Times are ms."""

    content_id: int
    session_id: str
    agent_id: str
    position: int
    turn_id: int
    status: str
    open: bool
    started_at: int | None
    last_at: int | None
    copied: bool = False

    @property
    def key(self) -> Key:
        return (self.session_id, self.agent_id, self.position)

    @property
    def at(self) -> int | None:
        return self.started_at if self.started_at is not None else self.last_at


_PLACE = "content_id, session_id, agent_id, position, turn_id, status, open, started_at, last_at, copied"


@dataclass(frozen=True, slots=True)
class Scored:
    """One turn in the ranking. ``shares`` says per term how much of it the turn holds (0..1); ``parts`` are
    the
    sub-agents' turns that lent it their words; ``lent`` is the share of the score that neighbours gave."""

    place: Place
    score: float
    base: float
    boost: float
    shares: tuple[float, ...]
    parts: tuple[int, ...]
    decision: bool
    lent: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """A query's turns, best first (at most a pool's worth), and how many there are in all."""

    turns: tuple[Scored, ...]
    total: int
    mode: MatchMode
    weights: tuple[float, ...] = ()
    unmet: tuple[str, ...] = ()
    """Filters and phrases that no turn at all meets."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the caller adds to a query. Times are ms, ``until`` exclusive. ``excluded`` turns are never
    listed."""

    since: int | None = None
    until: int | None = None
    excluded: frozenset[Key] = frozenset()
    now: int = 0
    pool: int = POOL


@dataclass(slots=True)
class _Sets:
    """Turns by meaning: matching every content term, any of them, and what may be listed at all."""

    allowed: Flags
    every: Flags
    some: Flags
    unmet: list[str] = field(default_factory=list)


class TurnSearch:
    """Search over one store's index, inside ``reading``. One thread at a time."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.postings = Postings(connection)
        self._dictionaries = -1

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Everything inside sees the store as one commit left it."""
        self.connection.execute("BEGIN")
        try:
            yield
        finally:
            if self.connection.in_transaction:
                self.connection.rollback()

    def rank(self, query: Query, conditions: Conditions) -> Ranking:
        """The turns that ``query`` finds. Raises sqlite3.Error if the store cannot be read."""
        snapshot = self.postings.refresh()
        if self._dictionaries != snapshot.version:
            for row in self.connection.execute("SELECT data FROM dictionary ORDER BY id"):
                codec.use(row[0])
            self._dictionaries = snapshot.version
        by_agent = any(condition.name == "agent" for condition in query.filters)
        evidence = Evidence(self.postings, snapshot, fold=not by_agent)
        terms = evidence.terms(query.terms)
        sets = self._sets(query, conditions, evidence, terms)
        chosen = sets.every or sets.some
        ranking = Ranking((), chosen.bit_count(), "all" if sets.every else "any", unmet=tuple(sets.unmet))
        if not sets.some:
            return ranking
        scorer = Scorer(evidence, terms)
        turns = self._order(scorer, sets, conditions)
        return Ranking(
            tuple(turns), ranking.total, ranking.mode, tuple(term.weight for term in terms), ranking.unmet
        )

    # --- sets -----------------------------------------------------------------------------------------------

    def _sets(
        self, query: Query, conditions: Conditions, evidence: Evidence, terms: Sequence[TermEvidence]
    ) -> _Sets:
        allowed = evidence.listed
        unmet = []
        met = Met(evidence)
        for name, flags in met.required(query):
            if not allowed & flags:
                unmet.append(name)
            allowed &= flags
        for phrase in query.excluded:
            allowed &= ~met.matching(quoted(phrase.tokens))
        if conditions.since is not None or conditions.until is not None:
            allowed &= met.between(conditions.since, conditions.until)
        if conditions.excluded:
            allowed &= ~met.named(conditions.excluded)
        every, some = allowed, 0
        for term in _counted(terms):
            every &= term.held
            some |= term.touched
        for term in terms:
            some |= term.touched
        if not terms:  # filters alone: all that meet them
            some = allowed if query.operators else 0
            every = some
        return _Sets(allowed, every, some & allowed, unmet)

    def unrefined(self) -> int:
        """How many shown turns have no refined record: of those it is not known whether they decide."""
        refined = "SELECT count(*) FROM refined r JOIN content c ON c.id=r.content_id WHERE c.shown>0"
        return self.postings.snapshot.total - int(self.connection.execute(refined).fetchone()[0])

    # --- order ----------------------------------------------------------------------------------------------

    def _order(self, scorer: Scorer, sets: _Sets, conditions: Conditions) -> list[Scored]:
        pool = self._pool(scorer, sets, conditions.pool)
        scorer.prepare(pool)
        own = {turn: _own(scorer, turn) for turn in pool}
        places = self.places(pool)
        best = heapq.nlargest(LENDERS, (turn for turn in pool if turn in places), key=own.__getitem__)
        around = self._around([places[turn] for turn in best], sets)
        missing = [turn for turn in around.values() if turn not in places]
        scorer.prepare(missing)
        places.update(self.places(missing))
        decided = self._decisions(places)
        by_key = {place.key: place for place in places.values()}
        scored = [self._scored(scorer, place, by_key, decided, conditions.now) for place in places.values()]
        scored.sort(key=lambda turn: (-turn.score, -(turn.place.at or 0), turn.place.key))
        return scored

    def _pool(self, scorer: Scorer, sets: _Sets, size: int) -> list[int]:
        """The turns worth scoring: those that the counted terms weigh most, and where all terms meet."""
        if not scorer.terms:
            return newest(sets.some, size)
        rough: dict[int, float] = defaultdict(float)
        parents = scorer.evidence.snapshot.parents if scorer.evidence.fold else {}
        common = []
        for term in scorer.terms:
            for token in (*term.whole, *term.parts, *term.also):
                weight = token.weight if token in term.whole else token.weight * 0.4
                if token.counts is None:
                    common.append((weight, token.common))
                    continue
                for (turn, column), count in token.counts.items():
                    rough[turn] += weight * ROUGH_COLUMNS[column] * count / (count + 1.0)
        for child in rough.keys() & parents.keys():
            rough[parents[child]] += rough.pop(child) * 0.6
        allowed = sets.some.to_bytes(scorer.evidence.size, "little")
        chosen = {turn: value for turn, value in rough.items() if turn < len(allowed) and allowed[turn]}
        if len(chosen) > ROUGH:
            chosen = dict(heapq.nlargest(ROUGH, chosen.items(), key=lambda item: item[1]))
        if common:
            for turn in self._meeting(scorer, sets):
                chosen.setdefault(turn, 0.0)
            for weight, flags in common:
                for turn in chosen:
                    if flags[turn]:
                        chosen[turn] += weight * 0.4
        return heapq.nlargest(size, chosen, key=lambda turn: (chosen[turn], turn))

    def _meeting(self, scorer: Scorer, sets: _Sets) -> list[int]:
        """Turns for terms too common to bring all of theirs: where every term meets, else where any
        stands."""
        common = sets.allowed
        for term in scorer.terms:
            if any(token.counts is None for token in (*term.whole, *term.parts)):
                common &= term.touched
        found = newest(sets.every, MEETING)
        if len(found) < MEETING:
            found += newest(common, MEETING)
        if len(found) < MEETING:
            found += newest(sets.some, MEETING)
        return found

    def _around(self, places: Sequence[Place], sets: _Sets) -> dict[Key, int]:
        """Listed neighbours, by key, of these turns that hold some term themselves."""
        some = sets.some.to_bytes((sets.some.bit_length() + 7) // 8, "little")
        shown = self.postings.snapshot.shown
        found: dict[Key, int] = {}
        for place in places:
            for occurrence, content, position in self.connection.execute(
                "SELECT id, content_id, position FROM occurrence WHERE session_id=? AND agent_id=?"
                " AND position BETWEEN ? AND ?",
                (place.session_id, place.agent_id, place.position - REACH, place.position + REACH),
            ):
                if content < len(some) and some[content] and shown[content] == occurrence:
                    found[(place.session_id, place.agent_id, position)] = content
        return found

    def _scored(
        self,
        scorer: Scorer,
        place: Place,
        by_key: Mapping[Key, Place],
        decided: frozenset[int],
        now: int,
    ) -> Scored:
        vector = scorer.vector(place.content_id)
        lent, joint = [0.0] * len(vector.scores), list(vector.shares)
        brief = scorer.evidence.postings.length(place.content_id)[0] <= BRIEF_TOKENS
        for distance in (-2, -1, 1, 2):
            other = by_key.get((place.session_id, place.agent_id, place.position + distance))
            if other is None or _apart(place, other):
                continue
            share = LENT[abs(distance)]
            if brief and distance < 0:
                share *= BRIEF_LENT
            theirs = scorer.vector(other.content_id)
            for number, value in enumerate(theirs.scores):
                lent[number] += share * value
                joint[number] = max(joint[number], 2 * share * theirs.shares[number])
        own = sum(vector.scores)
        base = own + sum(lent)
        score = base * _factor(scorer, place.content_id, joint)
        decision = place.content_id in decided
        boost = (DECISION_BONUS if decision else 0.0) + _recency(place, now)
        score = (score or 1.0) * (1 + boost)
        parts = scorer.parts(place.content_id)
        return Scored(
            place, score, base, boost, vector.shares, parts, decision, 1 - own / base if base else 0.0
        )

    # --- rows -----------------------------------------------------------------------------------------------

    def places(self, turns: Iterable[int]) -> dict[int, Place]:
        """Where each content is shown; contents that are not shown are left out."""
        shown = self.postings.snapshot.shown
        wanted = [shown[turn] for turn in turns if turn < len(shown) and shown[turn]]
        found: dict[int, Place] = {}
        for begin in range(0, len(wanted), 500):
            some = wanted[begin : begin + 500]
            for row in self.connection.execute(
                f"SELECT {_PLACE} FROM occurrence WHERE id IN ({marks(some)})", some
            ):
                found[row[0]] = _place(row)
        return found

    def neighbours(self, place: Place, reach: int) -> list[Place]:
        """The shown turns around one, itself included, in order of position."""
        rows = self.connection.execute(
            f"SELECT id, {_PLACE} FROM occurrence WHERE session_id=? AND agent_id=? AND position BETWEEN"
            " ? AND ? ORDER BY position",
            (place.session_id, place.agent_id, place.position - reach, place.position + reach),
        ).fetchall()
        shown = self.postings.snapshot.shown
        return [_place(row[1:]) for row in rows if row[1] < len(shown) and shown[row[1]] == row[0]]

    def bodies(self, turns: Sequence[int]) -> dict[int, bytes]:
        """Compressed contents."""
        return dict(
            self.connection.execute(f"SELECT id, body FROM content WHERE id IN ({marks(turns)})", list(turns))
        )

    def sessions(self, session_ids: Iterable[str]) -> dict[str, str]:
        """Titles by session."""
        wanted = list(session_ids)
        return {
            row[0]: row[1] or ""
            for row in self.connection.execute(
                f"SELECT session_id, title FROM session WHERE session_id IN ({marks(wanted)})", wanted
            )
        }

    def wires(self, places: Iterable[Place]) -> dict[Key, str]:
        """The path of the wire that each place was read from."""
        paths: dict[tuple[str, str], str] = {}
        found: dict[Key, str] = {}
        for place in places:
            agent = (place.session_id, place.agent_id)
            if agent not in paths:
                row = self.connection.execute(
                    "SELECT path FROM source WHERE session_id=? AND agent_id=?", agent
                ).fetchone()
                paths[agent] = row[0] if row else ""
            found[place.key] = paths[agent]
        return found

    def _decisions(self, turns: Iterable[int]) -> frozenset[int]:
        wanted = list(turns)
        found: set[int] = set()
        for begin in range(0, len(wanted), 500):
            some = wanted[begin : begin + 500]
            found.update(
                row[0]
                for row in self.connection.execute(
                    f"SELECT content_id FROM refined WHERE decision=1 AND content_id IN ({marks(some)})", some
                )
            )
        return frozenset(found)


def _place(row: Sequence[Any]) -> Place:
    content, session, agent, position, turn, status, is_open, started, last, copied = row
    return Place(content, session, agent, position, turn, status, bool(is_open), started, last, bool(copied))


def _counted(terms: Sequence[TermEvidence]) -> list[TermEvidence]:
    """The terms that a turn must hold for mode "all". A pair of characters that no turn holds is no word
    but the seam between two, unless all pairs are unknown."""
    paired = [term for term in terms if tokens.is_paired(term.term.text)]
    if any(term.touched for term in paired):
        return [term for term in terms if term.touched or term not in paired]
    return list(terms)


def _own(scorer: Scorer, turn: int) -> float:
    vector = scorer.vector(turn)
    return sum(vector.scores) * _factor(scorer, turn, vector.shares)


def _factor(scorer: Scorer, turn: int, shares: Sequence[float]) -> float:
    if not scorer.terms:
        return 1.0
    length = scorer.evidence.postings.length(turn)[0]
    asked = scorer.coverage(scorer.vector(turn).asked) * min(1.0, math.sqrt(ASKED_TOKENS / max(1, length)))
    return FLOOR + COVERED * scorer.coverage(shares) + ASKED * asked


def _apart(place: Place, other: Place) -> bool:
    return place.at is not None and other.at is not None and abs(place.at - other.at) > GAP_MS


def _recency(place: Place, now: int) -> float:
    if place.at is None or now <= 0:
        return 0.0
    age = max(0, now - place.at) / RECENCY_HALF_LIFE_MS
    return RECENCY_BONUS * math.exp2(-age)
