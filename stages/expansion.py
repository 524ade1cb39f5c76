"""Expansion from what the sure turns share (pseudo-relevance feedback), by words and by rare entities.

The turns that the seeds prove best are taken as sure; terms that they share and that the rest of the corpus
lacks (synonyms, the other language, files, symbols) become witnesses of the theme. The sure set also
settles which sense of an ambiguous seed is meant: turns with the seed but without any of the company it
keeps stay weak.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stages.evidence import BACKGROUND, NARRATION, Evidence, Stats

SURE_SHARE = 0.419
"""A turn is sure when its relevance is at least this share of the best three turns' mean."""
MAX_TERMS = 32
MIN_LIFT = 4.87
MIN_COVER = 0.143
"""Share of the sure turns that must have a term before it witnesses."""

ONE_TALK = 0.294
"""What a term is worth that a single discussion has: its own matter rather than the theme's."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """Witness terms with weights in 0..1, and the support (weighted sum) a typical sure turn has."""

    weights: Mapping[str, float]
    typical: float

    def support(self, item: Evidence) -> float:
        """How much of a typical sure turn's company this turn keeps, in 0..1."""
        if not self.typical:
            return 0.0
        total = sum(weight * item.bag[term] for term, weight in self.weights.items() if term in item.bag)
        return min(1.0, total / self.typical)


EMPTY = Expansion({}, 0.0)


def sure_turns(relevances: Sequence[float]) -> tuple[int, ...]:
    """Indexes of the turns the seeds prove best; the bound follows the theme's own best turns."""
    best = sorted(relevances, reverse=True)[:3]
    if not best or best[0] <= 0:
        return ()
    bound = SURE_SHARE * sum(best) / len(best)
    return tuple(index for index, value in enumerate(relevances) if value >= bound and value > 0)


def expand(
    items: Sequence[Evidence],
    weights: Mapping[int, float],
    stats: Stats,
    known: frozenset[str],
    talk: Sequence[int] = (),
) -> Expansion:
    """Witness terms shared by the weighted turns; ``known`` (the seeds' own terms) are left out.

    A term must occur in at least two of them and be at least ``MIN_LIFT`` times as frequent there as
    elsewhere.
    """
    if len(weights) < 2:
        return EMPTY
    mass = sum(weights.values())
    amount: defaultdict[str, float] = defaultdict(float)
    turns: defaultdict[str, int] = defaultdict(int)
    heard: defaultdict[str, set[int]] = defaultdict(set)
    inside: defaultdict[str, float] = defaultdict(float)
    for index, trust in sorted(weights.items()):
        for term, value in items[index].bag.items():
            if term not in known and term not in NARRATION and not _is_path_token(term):
                amount[term] += trust * value
                inside[term] += value
                turns[term] += 1
                heard[term].add(talk[index] if talk else index)
    common = {term for term, times in turns.items() if times >= max(2, MIN_COVER * len(weights))}
    everywhere: defaultdict[str, float] = defaultdict(float)
    for item in items:
        for term in common & item.bag.keys():
            everywhere[term] += item.bag[term]
    scored = {
        term: math.sqrt(amount[term] / mass)
        * (inside[term] / everywhere[term])
        * (1.0 if len(heard[term]) > 1 else ONE_TALK)
        * _surprise(turns[term], len(weights), stats.times(term), stats.turns)
        for term in common
    }
    best = sorted(
        ((value, term) for term, value in scored.items() if value > 0), key=lambda pair: (-pair[0], pair[1])
    )
    chosen = {term: round(value, 4) for value, term in best[:MAX_TERMS]}
    if not chosen:
        return EMPTY
    sums = [
        trust * sum(chosen[term] * value for term, value in items[index].bag.items() if term in chosen)
        for index, trust in sorted(weights.items())
    ]
    return Expansion(chosen, sum(sums) / mass)


def _is_path_token(term: str) -> bool:
    """A path's punctuated forms repeat its typed entity; counting each would let one file outvote all
    words.
    """
    return ":" not in term and ("/" in term or "." in term)


def _surprise(inside: int, sure: int, everywhere: int, turns: int) -> float:
    """Normalised log of how much more frequent a term is in the sure turns than in the others; 0 below
    MIN_LIFT.
    """
    outside = max(0, everywhere - inside)
    lift = ((inside + 0.5) / (sure + 1)) / ((outside + 0.5) / (max(turns - sure, 1) + BACKGROUND))
    if lift < MIN_LIFT:
        return 0.0
    return min(1.0, math.log(lift) / math.log(100.0))
