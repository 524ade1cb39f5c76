"""Which sense of its seeds a theme means: discussions with a seed are told apart by the company they keep.

“token” is an access token, a language model's token, a token bucket. Discussions of one sense are alike in
other words (tables, files, functions), so a discussion with a seed that is like no other one with a seed is
probably another sense. The theme's name is a hint, no more: where its words occur, the sense is the one that was
meant; a name that says nothing changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from stages.continuity import PRIOR, Thread
from stages.discussions import Discussion, Likeness, company, discussions
from stages.evidence import NARRATION, Stats, content_terms

ALONE = 0.58
"""What a seed is worth in a discussion without any company, where others have company."""
LEARN = 0.41
"""How far such a discussion is learnt from."""
LIFT, LIFT_POWER, LIFT_ALL = 0.19, 1.5, 0.278
"""What a turn gains where its discussion keeps the theme's company: LIFT, or LIFT_ALL of it without a witness
term of its own.
"""
AKIN = 0.4
"""Prior probability that a discussion which keeps the best company is about the theme (of any other: PRIOR)."""
SHELTER, HEARD = 0.9, 0.05
"""How much less a turn without evidence speaks against the theme in a discussion that keeps its company, and in
one where a seed occurs.
"""
NAMED, NAMED_UNHEARD = 0.869, 0
"""How much company the words of the theme's name are, and the share of it in a discussion without any seed."""
PASS = 0.16
"""How much of the theme a discussion without a seed hands on to its own kin."""
FAINT = 0.06
"""Company that is as good as none."""
PASSES = 3


def hints(name: str, known: frozenset[str]) -> frozenset[str]:
    """The words of a theme's name that its seeds do not say already."""
    return frozenset(content_terms(name.replace("-", " ").replace("_", " "))) - known - NARRATION


class Senses:
    """The discussions of a corpus under one theme: where each turn stands, and what company that is.

    ``where`` gives the discussion of each turn, ``priors`` how likely a discussion begun there is the theme's.
    ``seeded`` are the turns' own scores by their seeds, ``known`` the seeds' terms, ``named`` the name's hints.
    """

    def __init__(
        self,
        found: Sequence[Thread],
        seeded: Sequence[float],
        stats: Stats,
        known: frozenset[str],
        named: frozenset[str],
    ) -> None:
        among = discussions(found, known)
        self.where = [number for number, each in enumerate(among) for _ in each.turns]
        self._heard = [max(seeded[index] for index in each.turns) for each in among]
        hinted = [
            _hinted(each, named, stats) * (1.0 if heard > 0 else NAMED_UNHEARD)
            for each, heard in zip(among, self._heard, strict=True)
        ]
        self._worth = [1.0] * len(among)
        self._bond = [0.0] * len(among)
        self._settle(Likeness(among, stats), hinted)
        self.priors = [PRIOR + (AKIN - PRIOR) * self._bond[number] for number in self.where]

    def _settle(self, likeness: Likeness, hinted: Sequence[float]) -> None:
        """Let the discussions with a seed vouch for one another, a few times over: the largest sense wins,
        or the one that was named. ``_worth`` is a discussion's company beside the best that a seed keeps.
        """
        heard = self._heard
        top = max(hinted, default=0.0)
        sure = [each * (1.0 - NAMED * (top - hint)) for each, hint in zip(heard, hinted, strict=True)]
        for _ in range(PASSES):
            kept = [
                max(kept, NAMED * hint) for kept, hint in zip(company(likeness, sure), hinted, strict=True)
            ]
            most = max((k for k, h in zip(kept, heard, strict=True) if h > 0), default=0.0)
            self._worth = [min(1.0, (k + FAINT) / (most + FAINT)) for k in kept]
            self._bond = [min(1.0, k / (most + FAINT)) for k in kept]
            sure = [
                max(h * (ALONE + (1.0 - ALONE) * worth), PASS * k)
                for h, worth, k in zip(heard, self._worth, kept, strict=True)
            ]

    def taught(self, index: int, score: float) -> float:
        """How far a turn with this score is to be learnt from."""
        return score * (LEARN + (1.0 - LEARN) * self._worth[self.where[index]])

    def meant(self, index: int, score: float) -> float:
        """A turn's own score by its seeds, less where its discussion is of another sense."""
        return score * (ALONE + (1.0 - ALONE) * self._worth[self.where[index]])

    def lifted(self, index: int, score: float, support: float) -> float:
        """A turn's score with what its discussion proves; ``support`` is what the turn has of witness terms."""
        own = LIFT_ALL + (1.0 - LIFT_ALL) * min(1.0, 3.0 * support)
        lift: float = LIFT * self._bond[self.where[index]] ** LIFT_POWER * own
        return 1.0 - (1.0 - score) * (1.0 - lift)

    def sheltered(self, index: int, score: float, cut: float) -> float:
        """A turn's score below the cut, raised towards it (never above) where its discussion is the theme's."""
        number = self.where[index]
        shelter = min(1.0, SHELTER * self._bond[number] + HEARD * self._heard[number])
        return score if score >= cut else score + (cut - score) * shelter


def _hinted(discussion: Discussion, named: frozenset[str], stats: Stats) -> float:
    """How much of the name's hints, by rarity, a discussion has."""
    total = sum(discussion.bag.get(term, 0.0) * stats.rarity(term) for term in sorted(named))
    return total / max(1, len(named))
