"""Discussions: the runs of turns of a session that carry on with one another, and how much alike they are.

A single turn says little (“commit it”); the discussion that it stands in says what it is about. Discussions of
different sessions, in either language, are about one subject when they share rare terms: files, tables,
functions, words. Two of them that merely share an ambiguous seed are not.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from stages.continuity import CARRY, Thread
from stages.evidence import Stats

BREAK = 0.39
"""Below this link a new discussion begins."""
LONGEST = 5
"""Turns of a discussion; a longer one is compared in pieces, or it would be like everything."""
LONG, STRONG = 4, 0.447
"""In a discussion of LONG turns a term of a single one is left out unless that turn makes much of it."""
STRANGERS, KIN = 2.36, 6.0
"""Multiples of the corpus' mean likeness up to which two discussions are strangers, and from which they are kin."""
IMAGINED, STRANGE = 30, 0.018
"""Discussions of other talk imagined beside a small corpus, and the mean likeness there."""
FEW = 1.11
"""Kin, in full ties, below which their share says less."""
THING, PAIR = 2.0, 0.465
"""Weight of a shared file, symbol or other entity, and of a pair of Chinese characters, beside a word."""
PIVOT = 0.747
"""Share of the mean length that is added to each discussion's own."""
SAME_SESSION = 0.6
"""Likeness within a session goes without saying."""
COMMON = 0.3
"""Terms of more than this share of the discussions bring none of them together."""


@dataclass(frozen=True, slots=True)
class Discussion:
    """``turns`` are indexes into the turns judged, ascending; ``bag`` adds up what its turns offer."""

    session: str
    turns: tuple[int, ...]
    bag: Mapping[str, float]


def discussions(found: Sequence[Thread], apart: Collection[str] = ()) -> list[Discussion]:
    """The threads cut where their links break. The terms ``apart`` (the seeds' own) are left out of the bags."""
    cut: list[Discussion] = []
    start = 0
    for thread in found:
        links = [min(CARRY, each) for each in thread.links]
        cut += [_discussion(thread, start, run, apart) for run in _runs(links, range(len(links)))]
        start += len(thread.items)
    return cut


def _runs(links: Sequence[float], run: Sequence[int]) -> list[Sequence[int]]:
    """A run cut at its weakest links: all below BREAK, and more while it is longer than LONGEST. Of equally weak
    ones the first is cut: what opens a discussion states its subject by itself.
    """
    weakest = min(range(1, len(run)), key=lambda at: (links[run[at]], at), default=0)
    if not weakest or (links[run[weakest]] >= BREAK and len(run) <= LONGEST):
        return [run]
    return _runs(links, run[:weakest]) + _runs(links, run[weakest:])


def _discussion(thread: Thread, start: int, run: Sequence[int], apart: Collection[str]) -> Discussion:
    total: defaultdict[str, float] = defaultdict(float)
    times: defaultdict[str, int] = defaultdict(int)
    for index in run:
        for term, weight in thread.items[index].bag.items():
            if tells(term) and term not in apart:
                total[term] += weight
                times[term] += 1
    need = 1 if len(run) < LONG else 2
    kept = {
        term: min(1.0, total[term]) for term in sorted(total) if times[term] >= need or total[term] >= STRONG
    }
    session = thread.items[0].turn.key.session_id
    return Discussion(session, tuple(start + index for index in run), kept)


def tells(term: str) -> bool:
    """Whether a term counts for likeness: a path's punctuated forms only repeat its typed entity."""
    return ":" in term or not ("/" in term or "." in term)


class Likeness:
    """How much alike discussions are: cosine under squared rarity, over an inverted index."""

    def __init__(self, among: Sequence[Discussion], stats: Stats) -> None:
        weighed = _weighed(among, stats)
        where: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
        for index, bag in enumerate(weighed):
            for term, weight in bag.items():
                where[term].append((index, weight))
        room = max(8, int(COMMON * len(among)))
        self.alike: list[dict[int, float]] = []
        """For each discussion, the others that share terms with it, with likeness in 0..1."""
        for index, bag in enumerate(weighed):
            alike: defaultdict[int, float] = defaultdict(float)
            for term, weight in bag.items():
                if len(where[term]) <= room:
                    for other, theirs in where[term]:
                        alike[other] += weight * theirs
            alike.pop(index, None)
            self.alike.append(
                {
                    other: value * (SAME_SESSION if among[other].session == among[index].session else 1.0)
                    for other, value in sorted(alike.items())
                }
            )
        self._strangers = self._background()

    def _background(self) -> float:
        """The likeness of any two discussions; few of them are eked out by imagined strangers."""
        size = len(self.alike)
        mean = sum(sum(each.values()) for each in self.alike) / max(1, size * (size - 1))
        return (size * mean + IMAGINED * STRANGE) / (size + IMAGINED)

    def kinship(self, alike: float) -> float:
        """Likeness as evidence of one subject, in 0..1."""
        low, high = STRANGERS * self._strangers, KIN * self._strangers
        return min(1.0, max(0.0, (alike - low) / (high - low)))


def _weighed(among: Sequence[Discussion], stats: Stats) -> list[dict[str, float]]:
    """The bags by rarity, at unit length; a short discussion stays shorter, or one shared word would be a bond."""
    weighed = [
        {
            term: weight * stats.rarity(term) * (THING if ":" in term else 1.0 if term.isascii() else PAIR)
            for term, weight in each.bag.items()
        }
        for each in among
    ]
    lengths = [math.sqrt(sum(weight * weight for weight in bag.values())) for bag in weighed]
    usual = PIVOT * sum(lengths) / max(1, len(lengths))
    return [
        {term: weight / (math.hypot(length, usual) or 1.0) for term, weight in bag.items()}
        for bag, length in zip(weighed, lengths, strict=True)
    ]


def company(likeness: Likeness, heard: Sequence[float]) -> list[float]:
    """For each discussion, in 0..1: the share of its kin that are ``heard`` (how surely each is about the theme).
    What is akin to everything keeps nobody's company.
    """
    kept = []
    for alike in likeness.alike:
        ties = {other: likeness.kinship(value) for other, value in alike.items()}
        own = sum(heard[other] * tie for other, tie in ties.items())
        kept.append(own / max(FEW, sum(ties.values())))
    return kept
