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
from stages.evidence import ANSWER_CHARS, Evidence, Stats

PARTIAL = 0.6
"""Share of a seed's tokens (by rarity) that must be there when its literal text is not."""
PARTIAL_STRENGTH = 0.6
CLEAR = 0.3
"""Strength from which an occurrence is more than a mention."""
COMMONNESS = 2.0
SMALL = 20
"""Turns of other talk imagined beside a small corpus."""

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
        found = [strength(bare, item, stats) for item in everything]
        hits = sum(level >= CLEAR for level in found)
        share = hits / (max(len(everything), stats.turns) + SMALL)
        prepared[literal] = Seed(text, literal, terms, reliability(share, topicality(found, everything)))
    return tuple(prepared.values())


def reliability(share: float, topical: float = 0.0) -> float:
    """How much a seed proves that occurs in this share of all turns: 0.95 for a rare one, 0.15 for one that
    is everywhere. A frequent one whose occurrences keep together is a large subject rather than a common
    word.
    """
    return max(0.15, 0.95 - COMMONNESS * share * (1.0 - topical))


def topicality(found: Sequence[float], everything: Sequence[Evidence]) -> float:
    """How much a seed's occurrences keep together in sessions, in 0..1; 0 when they are strewn by chance.

    The share of turns with it among the turns right after one with it, above its overall share.
    """
    clear = [level >= CLEAR for level in found]
    after = [
        now
        for before, now, left, right in zip(clear, clear[1:], everything, everything[1:], strict=False)
        if before and left.turn.key.session_id == right.turn.key.session_id
    ]
    overall = sum(clear) / max(1, len(clear))
    if len(after) < 3 or overall >= 1.0:
        return 0.0
    return max(0.0, (sum(after) / len(after) - overall) / (1.0 - overall))


def strength(seed: Seed, item: Evidence, stats: Stats) -> float:
    """How clearly a seed occurs in a turn, in 0..1: by its tokens' weights in the bag, times how whole it
    is.
    """
    present = [term for term in seed.terms if term in item.bag]
    if not present:
        return 0.0
    if len(seed.terms) == 1:
        return item.bag[seed.terms[0]]
    if literal_in(seed, item):
        return max(item.bag[term] for term in present)
    whole = sum(_weight(term, stats) for term in seed.terms)
    share = sum(_weight(term, stats) for term in present) / whole
    if share < PARTIAL:
        return 0.0
    return min(item.bag[term] for term in present) * share * PARTIAL_STRENGTH


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
    ) or seed.literal in normal(item.turn.answer[:ANSWER_CHARS])


def families(seeds: Sequence[Seed]) -> tuple[tuple[int, ...], ...]:
    """Indexes of seeds that share a term (``fly`` and ``fly.io``): one mention of both is one mention."""
    groups: list[tuple[set[str], list[int]]] = []
    for index, seed in enumerate(seeds):
        joined, members = set(seed.terms), [index]
        for terms, others in [group for group in groups if group[0] & joined]:
            joined |= terms
            members = others + members
            groups.remove((terms, others))
        groups.append((joined, members))
    return tuple(tuple(members) for _, members in groups)


def relevance(strengths: Sequence[float], trust: Sequence[float], kin: Sequence[Sequence[int]]) -> float:
    """Noisy-or over families of seeds: 1 − Π (1 − best trust × strength). Coverage of several adds up."""
    doubt = 1.0
    for family in kin:
        doubt *= 1.0 - max(trust[index] * strengths[index] for index in family)
    return 1.0 - doubt
