"""The theme aggregator: refined turns and seed keywords become a theme (seed 000 §3.3, design: Themes).

Pure and deterministic: the same evidence gives the same theme, whatever the order of the input. Membership
is a probability from the turn's own evidence (seeds by rarity, company kept by the sure turns, rare
entities) and from its place in the session; the cut between sure and background evidence follows the
theme's own scores.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from stages.clusters import clusters_of
from stages.continuity import Cut, probabilities, threads
from stages.evidence import Evidence, Stats, blended, evidence
from stages.expansion import EMPTY, Expansion, expand, sure_turns
from stages.model import Pointer, RefinedTurn, Theme, TurnKey, Via
from stages.seeds import Seed, families, prepare, relevance, strength
from stages.senses import Senses, hints

MEMBER = 0.5
"""Probability from which a turn belongs."""
ROUNDS = 3
"""Looks at the corpus: each learns from the members that the one before found."""
CUT_AT = 0.48
"""Where between the means of background and theme the cut lies."""
MIN_CUT, MAX_CUT = 0.185, 0.8
COMPANY = 0.55
"""What keeping a typical member's company proves by itself, without any seed."""
SOLO = 0.62
"""What a seed is still worth where it stands without any of the company it usually keeps (another sense)."""
SURE, VERY_SURE = 0.85, 0.9
"""Probabilities from which a turn is learnt from: with evidence of its own, and as a mere follow-up."""
FOLLOW_TRUST = 0.3
FOUND = 0.3
"""Strength from which a seed counts as found in a turn."""
MACHINE_ORIGINS = frozenset({"goal", "cron", "task"})
"""Words of the origins of goal, cron and task turns (WIRE §4.2): ``system_trigger/goal_continuation``,
``cron_job``, ``task``, ``background_task``.
"""
_WORDS = re.compile(r"[a-z]+")

Place = tuple[str, str, int]
"""``(session_id, agent_id, position)``: the stable key of a turn (design: Identity)."""


@dataclass(frozen=True, slots=True)
class Curation:
    """What a person did to a theme; no run undoes it. ``tagged`` turns are members as long as they exist."""

    tagged: frozenset[Place] = frozenset()
    pinned: frozenset[Place] = frozenset()
    excluded: frozenset[Place] = frozenset()
    removed_seeds: frozenset[str] = frozenset()


NOTHING = Curation()


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a turn is in or out: for ``--explain`` and tests."""

    key: TurnKey
    score: float
    probability: float
    via: Via
    seeds: tuple[str, ...] = ()
    company: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """The whole reading of a corpus for one theme: verdicts in input order, the cut, the witness terms."""

    verdicts: tuple[Verdict, ...]
    cut: float
    expansion: Expansion
    seeds: tuple[Seed, ...] = field(default=())


def place(key: TurnKey) -> Place:
    """The stable key of a turn."""
    return (key.session_id, key.agent_id, key.position)


def is_candidate(turn: RefinedTurn) -> bool:
    """Whether a turn may join a theme by itself (design: Identity): a main agent's, and it did something.

    Undone turns and copies are not refined into candidates by the store; blocked and running ones are out
    here, and so are goal, cron and task turns that did nothing.
    """
    if turn.key.agent_id != "main" or turn.status in ("blocked", "running"):
        return False
    if MACHINE_ORIGINS.isdisjoint(_WORDS.findall(turn.origin.lower())):
        return True
    return did_something(turn)


def did_something(turn: RefinedTurn) -> bool:
    """A turn with an answer, a fact, or something written or run."""
    entities = turn.refined.entities
    return bool(turn.answer.strip() or turn.refined.facts or entities.files_written or entities.commands)


def has_substance(item: Evidence) -> bool:
    """A turn worth showing: a person's own words, an answer, or a deed. “[Request interrupted]” is none."""
    return bool(item.own or item.own_text.strip() or did_something(item.turn))


def aggregate(
    name: str,
    seeds: Sequence[str],
    turns: Sequence[RefinedTurn],
    *,
    curation: Curation = NOTHING,
    stats: Stats | None = None,
) -> Theme:
    """Build the theme ``name`` from all refined candidate turns and their session neighbours.

    ``stats`` are document frequencies over the whole corpus; without them the turns at hand are counted.
    Excluded turns never appear; pinned and tagged ones always do, as long as they are among ``turns``.
    """
    kept = tuple(seed for seed in dict.fromkeys(seeds) if seed not in curation.removed_seeds)
    ordered = in_order(turns)
    items = [evidence(turn) for turn in ordered]
    counted = blended(stats, items)
    reading = read(kept, items, counted, name=name)
    pointers = [
        Pointer(verdict.key, item.turn.timestamp, verdict.probability, via)
        for item, verdict in zip(items, reading.verdicts, strict=True)
        if (via := _membership(item, verdict, curation)) is not None
    ]
    pointers.sort(key=lambda pointer: (pointer.timestamp, place(pointer.key)))
    members = {place(pointer.key): pointer.score for pointer in pointers}
    return Theme(name, kept, tuple(pointers), clusters_of(items, members, counted))


def _membership(item: Evidence, verdict: Verdict, curation: Curation) -> Via | None:
    spot = place(verdict.key)
    if spot in curation.excluded:
        return None
    if spot in curation.tagged:
        return "tagged"
    if verdict.probability >= MEMBER and is_candidate(item.turn) and has_substance(item):
        return verdict.via
    return "tagged" if spot in curation.pinned else None


def in_order(turns: Iterable[RefinedTurn]) -> list[RefinedTurn]:
    """One turn a place, by session, agent and position."""
    unique: dict[Place, RefinedTurn] = {}
    for turn in turns:
        held = unique.get(place(turn.key))
        if held is None or _rank(turn) > _rank(held):
            unique[place(turn.key)] = turn
    return [unique[spot] for spot in sorted(unique)]


def _rank(turn: RefinedTurn) -> tuple[int, str]:
    return (turn.timestamp, repr(turn))


def read(
    seeds: Sequence[str], items: Sequence[Evidence], stats: Stats | None = None, *, name: str = ""
) -> Reading:
    """Judge every turn for a theme; ``items`` are ordered by session, agent and position."""
    stats = blended(stats, items)
    prepared = prepare(seeds, items, stats)
    known = frozenset(term for seed in prepared for term in seed.terms)
    able = [is_candidate(item.turn) for item in items]  # the others neither belong nor speak against
    table = [
        tuple(strength(seed, item, stats) if may else 0.0 for seed in prepared)
        for item, may in zip(items, able, strict=True)
    ]
    kin = families(prepared)
    trust = [seed.reliability for seed in prepared]
    found = threads(items, stats)
    seeded = [relevance(row, trust, kin) for row in table]
    senses = Senses(found, seeded, stats, known, hints(name, known))
    expansion, chances = EMPTY, [0.0] * len(items)
    scores = [senses.taught(index, score) for index, score in enumerate(seeded)]
    cut = Cut(1.0, 2.0)
    for turn in range(ROUNDS):
        sure = _sure(scores, chances, cut, first=turn == 0)
        expansion = expand(items, sure, stats, known, senses.where)
        support = [expansion.support(item) for item in items]
        solo = SOLO if expansion.weights else 1.0
        scores = [
            senses.lifted(index, _both(senses.meant(index, score), company, solo), company)
            for index, (score, company) in enumerate(zip(seeded, support, strict=True))
        ]
        cut = adaptive_cut(scores, sure_turns(scores))
        held = [
            senses.sheltered(index, score, cut.at) if may else cut.at
            for index, (score, may) in enumerate(zip(scores, able, strict=True))
        ]
        chances = probabilities(found, held, cut, senses.priors)
    verdicts = tuple(
        _verdict(item, score, chance, prepared, expansion, cut.at, stats)
        for item, score, chance in zip(items, scores, chances, strict=True)
    )
    return Reading(verdicts, cut.at, expansion, prepared)


def _sure(
    scores: Sequence[float],
    chances: Sequence[float],
    cut: Cut,
    *,
    first: bool,
) -> dict[int, float]:
    """The turns to learn from, with trust: at first those that the seeds prove best, then all likely members.

    The second look takes in the facets that the best turns do not show, and what follow-ups call things.
    """
    if first:
        return {index: scores[index] for index in sure_turns(scores)}
    return {
        index: chance * max(scores[index], FOLLOW_TRUST)
        for index, chance in enumerate(chances)
        if chance >= SURE and (scores[index] >= cut.at or chance >= VERY_SURE)
    }


def _both(seeded: float, company: float, solo: float) -> float:
    """Own relevance and company together: each adds to the other, company alone proves less, and a seed
    without any company a little less than it would.
    """
    seeded *= solo + (1.0 - solo) * min(1.0, 3.0 * company)
    return 1.0 - (1.0 - seeded) * (1.0 - COMPANY * company * math.sqrt(company))


def adaptive_cut(scores: Sequence[float], sure: Sequence[int]) -> Cut:
    """The score that parts this theme from its background: the middle of two means, found by iteration."""
    if not sure:
        return Cut(1.0, 2.0)
    high = sum(scores[index] for index in sure) / len(sure)
    low = 0.0
    cut = low + CUT_AT * (high - low)
    for _ in range(10):
        above = [value for value in scores if value >= cut]
        below = [value for value in scores if value < cut]
        high = sum(above) / len(above) if above else high
        low = sum(below) / len(below) if below else low
        moved = low + CUT_AT * (high - low)
        if abs(moved - cut) < 1e-6:
            break
        cut = moved
    cut = min(MAX_CUT, max(MIN_CUT, cut))
    return Cut(cut, max(high, cut + 0.1))


def _verdict(
    item: Evidence,
    score: float,
    chance: float,
    seeds: Sequence[Seed],
    expansion: Expansion,
    cut: float,
    stats: Stats,
) -> Verdict:
    found = tuple(seed.text for seed in seeds if strength(seed, item, stats) >= FOUND)
    company = tuple(term for term in expansion.weights if term in item.bag)
    via: Via = "seed" if found else "entity" if score >= cut else "follow-up"
    return Verdict(item.turn.key, round(score, 4), round(chance, 4), via, found, company)
