"""What the index says of a query's terms: which turns hold them, how rare they are, how strongly they speak.

Sets of turns are integers with one byte a turn (``Flags``): unions, intersections and counts cost next to
nothing at any size that a person's history reaches. A sub-agent's turn counts for the turn that called it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pipeline.store.postings import COLUMNS, Posting, Postings, Snapshot
from stages import tokens
from stages.query import Term

Norms: TypeAlias = Sequence[tuple[int, Sequence[tuple[str, float]]]]
"""For a turn and the turns that count for it: what an occurrence in each column counts."""
Flags: TypeAlias = int
"""A set of turns: byte n (little-endian) is 1 if turn n is in it."""

K1 = 1.2
WEIGHTS: Mapping[str, float] = {"user": 2.0, "agent": 1.2, "actions": 0.8, "errors": 1.2}
"""What an occurrence counts, by column."""
NORMS: Mapping[str, float] = {"user": 0.35, "agent": 0.55, "actions": 0.75, "errors": 0.4}
"""How much a column's length takes from it (bm25's b)."""
COMMON_FREQUENCY = 1.0
"""The weighted frequency taken for a token too common to be counted."""
LENT_TO_PARENT = 0.6
"""What an occurrence in a sub-agent's turn counts for the turn that called it."""
COMMON_ASKED = 0.3
"""How likely a common token of a turn stands in the person's own words."""
ALSO_SHARE = 0.6
"""What a synonym counts beside the word."""
IDF_POWER = 0.8
"""Rarity counts a little less than its logarithm: in a small history rare words are rare by chance."""
PARTS_SHARE = 0.5
"""What an identifier's parts count beside its whole."""
STOP_SHARE = 0.05


def to_flags(turns: Iterable[int], size: int) -> Flags:
    """The set of those ``turns`` that are below ``size``."""
    flags = bytearray(size)
    for turn in turns:
        if turn < size:
            flags[turn] = 1
    return int.from_bytes(flags, "little")


def members(flags: Flags) -> list[int]:
    """The turns of a set, in order."""
    data = flags.to_bytes((flags.bit_length() + 7) // 8, "little")
    found: list[int] = []
    turn = data.find(1)
    while turn >= 0:
        found.append(turn)
        turn = data.find(1, turn + 1)
    return found


def newest(flags: Flags, limit: int) -> list[int]:
    """The ``limit`` greatest turns of a set, newest first."""
    data = flags.to_bytes((flags.bit_length() + 7) // 8, "little")
    found: list[int] = []
    turn = data.rfind(1)
    while turn >= 0 and len(found) < limit:
        found.append(turn)
        turn = data.rfind(1, 0, turn)
    return found


@dataclass(slots=True)
class TokenEvidence:
    """One token's turns. ``weight`` is its idf; a common token has ``common`` bytes instead of counts."""

    weight: float
    flags: Flags
    counts: Mapping[tuple[int, str], int] | None
    common: bytes


@dataclass(slots=True)
class TermEvidence:
    """One term's turns: ``held`` are those that hold it, ``touched`` those with any token or synonym of it.

    ``weight`` is its idf.
    """

    term: Term
    whole: list[TokenEvidence]
    parts: list[TokenEvidence]
    also: list[TokenEvidence]
    held: Flags
    held_bytes: bytes
    touched: Flags
    weight: float


class Evidence:
    """Reads terms for one query. ``fold``: sub-agents' turns count for their parents and are not listed."""

    def __init__(self, postings: Postings, snapshot: Snapshot, *, fold: bool) -> None:
        self.postings = postings
        self.snapshot = snapshot
        self.size = len(snapshot.live)
        self.fold = fold and bool(snapshot.parents)
        live = int.from_bytes(snapshot.live, "little")
        self.listed = live & ~to_flags(snapshot.parents, self.size) if self.fold else live
        self._tokens: dict[str, TokenEvidence] = {}

    def terms(self, terms: Sequence[Term]) -> list[TermEvidence]:
        """Evidence of each term, in order."""
        return [self._term(term) for term in terms]

    def folded(self, turns: Iterable[int]) -> Flags:
        """The listed turns that ``turns`` stand for."""
        if self.fold:
            parents = self.snapshot.parents
            turns = [parents.get(turn, turn) for turn in turns]
        return to_flags(turns, self.size) & self.listed

    def _term(self, term: Term) -> TermEvidence:
        whole = [found for token in term.whole if (found := self._token(token)).flags]
        parts = [self._token(token) for token in term.parts]
        held, touched = 0, 0
        if parts:
            held = parts[0].flags
            for part, name in zip(parts, term.parts, strict=True):
                held &= part.flags
                # The 5 of qwx5 and the ts of TS2345 alone are no trace of them.
                touched |= part.flags if len(name) > 2 and not name.isdigit() else 0
        for token in whole:
            held |= token.flags
        touched |= held
        also = [found for token in term.also if (found := self._token(token)).flags]
        for token in also:
            touched |= token.flags
        parts = [part for part in parts if part.flags]
        weight = max(
            *(token.weight for token in (*whole, *parts)),
            *(token.weight * ALSO_SHARE for token in also),
            0.0,
            0.0,
        )
        return TermEvidence(
            term, whole, parts, also, held, held.to_bytes(self.size, "little"), touched, weight
        )

    def _token(self, token: str) -> TokenEvidence:
        found = self._tokens.get(token)
        if found is None:
            found = self._tokens[token] = self._read(token, self.postings.posting(token))
        return found

    def _read(self, token: str, posting: Posting) -> TokenEvidence:
        if posting.counts is None:
            flags = self._folded_common(posting.flags)
        else:
            flags = self.folded(posting.turns)
        count = flags.bit_count()
        weight = (
            math.log(1 + (max(self.snapshot.total, count) - count + 0.5) / (count + 0.5)) ** IDF_POWER + 0.02
        )
        if token in tokens.STOP_WORDS:
            weight *= STOP_SHARE
        common = flags.to_bytes(self.size, "little") if posting.counts is None else b""
        return TokenEvidence(weight, flags, posting.counts, common)

    def _folded_common(self, data: bytes) -> Flags:
        if self.fold:
            folded = bytearray(data)
            for child, parent in self.snapshot.parents.items():
                if data[child]:
                    folded[parent] = 1
            data = bytes(folded)
        return int.from_bytes(data, "little") & self.listed


@dataclass(frozen=True, slots=True)
class Vector:
    """What one turn says of each term: its score, how much of the term it holds (0..1), and how much of that
    the person's own words hold."""

    scores: tuple[float, ...]
    shares: tuple[float, ...]
    asked: tuple[float, ...]


class Scorer:
    """How strongly a turn speaks of each term: bm25 over weighted columns, term by term."""

    def __init__(self, evidence: Evidence, terms: Sequence[TermEvidence]) -> None:
        self.evidence = evidence
        self.terms = terms
        self._children = evidence.snapshot.children if evidence.fold else {}
        self._known: dict[int, Vector] = {}
        total = sum(term.weight for term in terms) or 1.0
        self._weights = [term.weight / total for term in terms]
        self._columns = [
            (name, WEIGHTS[name], NORMS[name], average)
            for name, average in zip(COLUMNS, evidence.postings.averages, strict=True)
        ]

    def prepare(self, turns: Iterable[int]) -> None:
        """Read the lengths of these turns in one go."""
        wanted = [
            part
            for turn in turns
            if turn not in self._known
            for part in (turn, *self._children.get(turn, ()))
        ]
        self.evidence.postings.lengths(wanted)

    def vector(self, turn: int) -> Vector:
        """What this turn says of each term."""
        found = self._known.get(turn)
        if found is None:
            found = self._known[turn] = self._score(turn)
        return found

    def parts(self, turn: int) -> tuple[int, ...]:
        """The sub-agents' turns that count for this one."""
        return tuple(self._children.get(turn, ()))

    def coverage(self, held: Sequence[float]) -> float:
        """Weighted share of the query that ``held`` says is there."""
        covered = 0.0
        for share, weight in zip(held, self._weights, strict=True):
            if share:
                covered += share * weight
        return covered

    def _score(self, turn: int) -> Vector:
        norms = self._norms(turn)
        scores, shares, asked = [], [], []
        for term in self.terms:
            score = share = said = 0.0
            for token in term.whole:
                value, in_user = self._token(token, turn, norms)
                if value > score:
                    score, share = value, 1.0
                said = max(said, in_user)
            if score == 0.0:
                for token in term.also:
                    value, in_user = self._token(token, turn, norms)
                    if value * ALSO_SHARE > score:
                        score, share, said = value * ALSO_SHARE, ALSO_SHARE, in_user * ALSO_SHARE
            if term.parts:
                value, held, in_user = self._parts(term, turn, norms)
                score += value
                share = max(share, held)
                said = max(said, in_user)
            scores.append(score)
            shares.append(share)
            asked.append(said)
        return Vector(tuple(scores), tuple(shares), tuple(asked))

    def _parts(self, term: TermEvidence, turn: int, norms: Norms) -> tuple[float, float, float]:
        """Score of an identifier's parts, how much of it they hold, and how much of that the person said."""
        score = there = said = every = 0.0
        for part in term.parts:
            value, in_user = self._token(part, turn, norms)
            score += value
            every += part.weight
            said += part.weight * in_user
            there += part.weight if value else 0.0
        held = 1.0 if term.held_bytes[turn] else 0.8 * there / every
        return PARTS_SHARE * score / math.sqrt(len(term.parts)), held, 0.8 * said / every

    def _norms(self, turn: int) -> Norms:
        """For the turn and its sub-agents' turns: what an occurrence in each column counts."""
        lenders = [(part, self._factors(part, LENT_TO_PARENT)) for part in self._children.get(turn, ())]
        return [(turn, self._factors(turn, 1.0)), *lenders]

    def _factors(self, turn: int, share: float) -> tuple[tuple[str, float], ...]:
        return tuple(
            (name, share * weight / (1 - norm + norm * length / average))
            for (name, weight, norm, average), length in zip(
                self._columns, self.evidence.postings.length(turn), strict=True
            )
        )

    def _token(self, token: TokenEvidence, turn: int, norms: Norms) -> tuple[float, float]:
        """bm25 of one token in one turn, and how sure it is that the person said it."""
        if token.counts is None:
            if not token.common[turn]:
                return 0.0, 0.0
            frequency, said = COMMON_FREQUENCY, COMMON_ASKED
        else:
            frequency, counts = 0.0, token.counts
            for part, factors in norms:
                for name, factor in factors:
                    count = counts.get((part, name))
                    if count:
                        frequency += factor * count
            if not frequency:
                return 0.0, 0.0
            said = 1.0 if (turn, "user") in counts else 0.0
        return token.weight * frequency * (K1 + 1) / (frequency + K1), said
