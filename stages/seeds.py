"""Seed keywords against turns: how strongly each occurs, and how far its presence can be trusted.

A seed that occurs everywhere is a weak witness, so each is weighted by its rarity; several weak ones in one
turn add up (noisy-or). A seed of several tokens (``git sync``, ``src/mcp/server.ts``, ``上下文保存``)
matches by its literal text, or by most of its tokens weighted by rarity.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from stages import tokens
from stages.evidence import Evidence, Stats

PARTIAL = 0.6
"""Share of a seed's tokens (by rarity) that must be there when its literal text is not."""
PARTIAL_STRENGTH = 0.6
LONELY = 0.35
"""What is left of a seed's reliability when nothing else of the theme ever stands beside it."""

_GAPS = re.compile(r"[\s_\-]+")


@dataclass(frozen=True, slots=True)
class Seed:
    """A seed keyword, its tokens, and its reliability in 0..1 (how much one clear occurrence proves)."""

    text: str
    literal: str
    terms: tuple[str, ...]
    reliability: float


def normal(text: str) -> str:
    """Case-folded, compatibility-normalised, with ``-``, ``_`` and white space alike."""
    return _GAPS.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip()


def prepare(seeds: Sequence[str], everything: Sequence[Evidence], stats: Stats) -> tuple[Seed, ...]:
    """Seeds with their reliabilities over the turns at hand, in the order given, without repeats."""
    prepared: dict[str, Seed] = {}
    for text in seeds:
        literal = normal(text)
        terms = tuple(dict.fromkeys(tokens.tokens(text)))
        if not literal or literal in prepared or not terms:
            continue
        bare = Seed(text, literal, terms, 1.0)
        hits = sum(strength(bare, item, stats) >= PARTIAL_STRENGTH * 0.5 for item in everything)
        share = max(hits / max(1, len(everything)), _share(terms, stats))
        prepared[literal] = Seed(text, literal, terms, reliability(share))
    return tuple(prepared.values())


def reliability(share: float) -> float:
    """How much a seed proves that occurs in this share of all turns: 0.95 for a rare one, 0.15 for a
    ubiquitous one.
    """
    return max(0.15, 0.95 - 1.6 * share) if share < 0.5 else 0.15


def _share(terms: Sequence[str], stats: Stats) -> float:
    """Upper bound of the seed's document share: that of its rarest token."""
    if not stats.turns:
        return 0.0
    return min(stats.frequency.get(term, 0) for term in terms) / stats.turns


def strength(seed: Seed, item: Evidence, stats: Stats) -> float:
    """How clearly a seed occurs in a turn, in 0..1: by its tokens' weights in the bag, times how whole it
    is.
    """
    present = [term for term in seed.terms if term in item.bag]
    if not present:
        return 0.0
    if len(seed.terms) == 1:
        return item.bag[seed.terms[0]]
    whole = sum(_weight(term, stats) for term in seed.terms)
    share = sum(_weight(term, stats) for term in present) / whole
    if share < PARTIAL:
        return 0.0
    level = min(item.bag[term] for term in present)
    if literal_in(seed, item):
        return max(item.bag[term] for term in present)
    return level * share * PARTIAL_STRENGTH


def _weight(term: str, stats: Stats) -> float:
    return 0.1 + stats.rarity(term)


def literal_in(seed: Seed, item: Evidence) -> bool:
    """Whether the seed's very text stands in what the person wrote, the summary, the facts, or a named
    entity.
    """
    refined = item.turn.refined
    return any(
        seed.literal in normal(text)
        for text in (
            item.own_text,
            refined.summary,
            *(fact.text for fact in refined.facts),
            *(value for _, value in refined.entities.pairs()),
        )
    ) or seed.literal in normal(item.turn.answer)


def relevance(strengths: Sequence[float], trust: Sequence[float]) -> float:
    """Noisy-or of the seeds: 1 − Π (1 − trust × strength). Coverage of several seeds adds up."""
    doubt = 1.0
    for level, reliable in zip(strengths, trust, strict=True):
        doubt *= 1.0 - reliable * level
    return 1.0 - doubt


def agreement(
    seeds: Sequence[Seed], table: Sequence[Sequence[float]], support: Sequence[float]
) -> list[float]:
    """Each seed's reliability given the company kept where it occurs: an ambiguous seed is often found alone.

    ``table`` holds a row of strengths a turn, ``support`` the expansion's; another seed in the turn is
    company too.
    """
    trust = []
    for index, seed in enumerate(seeds):
        met = total = 0.0
        for row, company in zip(table, support, strict=True):
            others = max(
                (row[other] * seeds[other].reliability for other in range(len(seeds)) if other != index),
                default=0.0,
            )
            met += row[index] * max(min(1.0, company * 1.5), others)
            total += row[index]
        kept = met / total if total else 0.0
        trust.append(seed.reliability * min(1.0, LONELY + (1.0 - LONELY) * 1.5 * kept))
    return trust
