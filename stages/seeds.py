"""Seed keywords against turns: how strongly each occurs, and how far its presence can be trusted.

A seed that occurs everywhere is a weak witness, so each is weighted by its rarity; several weak ones in one
turn add up (noisy-or). A seed of several tokens (``git sync``, ``src/mcp/server.ts``, ``上下文保存``)
matches by its literal text, or by most of its tokens weighted by rarity.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from stages import tokens
from stages.evidence import ANSWER_CHARS, Evidence, Stats

PARTIAL = 0.6
"""Share of a seed's tokens (by rarity) that must be there when its literal text is not."""
PARTIAL_STRENGTH = 0.6
CLEAR = 0.3
"""Strength from which an occurrence is more than a mention."""
COMMONNESS = 1.92
SMALL = 20
"""Turns of other talk imagined beside a small corpus."""

FIXED = 4
"""Occurrences that make a longer word a fixed one."""
COMPOUND = 0.431
"""What a seed is worth in a turn that has it only inside longer words."""

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]+")
_PARTICLES = frozenset("的了和是在会不没有也都就要被把里中上下与及或到从后前时吗呢吧么给为将让用对跟该这那")
_GAPS = re.compile(r"[\s_\-]+")


@dataclass(frozen=True, slots=True)
class Seed:
    """A seed keyword, its tokens, and its reliability in 0..1 (how much one clear occurrence proves)."""

    text: str
    literal: str
    terms: tuple[str, ...]
    reliability: float
    compounds: frozenset[str] = frozenset()
    """Fixed longer words that begin with the seed (令牌桶 for 令牌): another thing, of which the seed says how."""


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
        bare = Seed(text, literal, terms, 1.0, compounds(literal, terms, everything))
        found = [strength(bare, item, stats) for item in everything]
        hits = sum(level >= CLEAR for level in found)
        share = hits / (max(len(everything), stats.turns) + SMALL)
        trust = reliability(share, topicality(found, everything))
        prepared[literal] = replace(bare, reliability=trust)
    return tuple(prepared.values())


def compounds(literal: str, terms: Sequence[str], everything: Sequence[Evidence]) -> frozenset[str]:
    """Words one character longer than a Chinese seed that the talk uses as words of their own.

    Chinese puts the head last, so 令牌桶 is a bucket. The longer form must be frequent and be followed by ever
    different characters; after a mere beginning of the next word (令牌过期) the same one always follows.
    """
    if not _HAN.fullmatch(literal):
        return frozenset()
    after: dict[str, Counter[str]] = {}
    for item in everything:
        if all(term in item.bag for term in terms):
            for tail in _tails(literal, item):
                if _HAN.fullmatch(tail[:1]) and tail[0] not in _PARTICLES:
                    after.setdefault(literal + tail[0], Counter())[tail[1:2]] += 1
    return frozenset(
        word
        for word, nexts in after.items()
        if nexts.total() >= FIXED and len(nexts) >= 3 and max(nexts.values()) <= nexts.total() / 2
    )


def _tails(literal: str, item: Evidence) -> list[str]:
    """What follows each occurrence of a seed in a turn, two characters of it."""
    refined = item.turn.refined
    texts = (
        item.own_text,
        item.turn.answer[:ANSWER_CHARS],
        refined.summary,
        *(fact.text for fact in refined.facts),
    )
    return [
        text[match.end() : match.end() + 2]
        for text in dict.fromkeys(texts)
        for match in re.finditer(re.escape(literal), text)
    ]


def _only_in_compounds(seed: Seed, item: Evidence) -> bool:
    tails = _tails(seed.literal, item)
    return bool(tails) and all(seed.literal + tail[:1] in seed.compounds for tail in tails)


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
    if seed.compounds and _only_in_compounds(seed, item):
        return COMPOUND * min(item.bag[term] for term in present)
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
