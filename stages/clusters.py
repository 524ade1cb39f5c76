"""Clusters: runs of a theme's turns in one session about one thing, with their summary, decisions and
files.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from math import fsum
from typing import NamedTuple

from stages import tokens
from stages.continuity import link
from stages.evidence import Evidence, Stats
from stages.model import Cluster, RefinedTurn, Theme
from stages.refining.prose import clip

MAX_FILES = 12
SUMMARY_CHARS = 280
BREAK = 0.3
"""Below this link two neighbouring members start different clusters."""
LATER_MOST = 8
"""Later decisions that are told of one: the subject of a busy theme comes back a thousand times."""
SAME_SUBJECT = 0.3
SAME_FILES = 0.15
"""Share of a decision's terms (by rarity among decisions) that a later one must take up; less where both
touched one file.
"""

Place = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Later:
    """A decision taken later on the same subject: listed, never called superseding."""

    cluster_id: str
    session_id: str
    turn_id: int
    at: int
    text: str


def clusters_of(
    items: Sequence[Evidence], members: Mapping[Place, float], stats: Stats
) -> tuple[Cluster, ...]:
    """The clusters of ``members`` (place → score), in time order. ``items`` are ordered by place."""
    found: list[Cluster] = []
    for _, group in groupby(items, key=lambda item: _place(item.turn)[:2]):
        found += [_cluster(run, members) for run in _runs(list(group), members, stats)]
    return tuple(sorted(found, key=lambda cluster: (cluster.start, cluster.session_id, cluster.positions)))


def _runs(session: Sequence[Evidence], members: Mapping[Place, float], stats: Stats) -> list[list[Evidence]]:
    """Cut a session's members where foreign talk lies between, or the thread breaks."""
    runs: list[list[Evidence]] = []
    broken = True
    for item in session:
        if _place(item.turn) not in members:
            broken = broken or bool(item.own)
            continue
        if broken or link(runs[-1], item, stats) < BREAK:
            runs.append([])
        runs[-1].append(item)
        broken = False
    return runs


def _cluster(run: Sequence[Evidence], members: Mapping[Place, float]) -> Cluster:
    turns = [item.turn for item in run]
    first = turns[0]
    decisions = tuple(pair for turn in turns for pair in _decisions(turn))
    return Cluster(
        id=cluster_id(first),
        session_id=first.key.session_id,
        agent_id=first.key.agent_id,
        turn_ids=tuple(turn.key.turn_id for turn in turns),
        positions=tuple(turn.key.position for turn in turns),
        start=min(turn.timestamp for turn in turns),
        end=max(turn.ended_at or turn.timestamp for turn in turns),
        summary=_summary(turns, members),
        decision=any(turn.refined.decision for turn in turns),
        decisions=decisions,
        files=_files(turns),
    )


def cluster_id(first: RefinedTurn) -> str:
    """Twelve hex digits from the first turn's key."""
    key = first.key
    text = "\x1f".join((key.session_id, key.agent_id, str(key.position), key.opener_digest))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _decisions(turn: RefinedTurn) -> list[tuple[int, str]]:
    """The decision sentences of a turn; its summary when it decided without a sentence of its own."""
    said = [fact.text for fact in turn.refined.facts if fact.type == "decision"]
    if not said and turn.refined.decision:
        said = [turn.refined.summary]
    return [(turn.key.turn_id, text) for text in said]


def _summary(turns: Sequence[RefinedTurn], members: Mapping[Place, float]) -> str:
    """The summary of the turn that says most: score, deeds and decisions; the earlier one when equal."""

    def weight(turn: RefinedTurn) -> float:
        facts = turn.refined.facts
        told = sum(
            {"decision": 2.0, "result": 0.7, "reason": 0.7, "changed": 0.4}.get(fact.type, 0.1)
            for fact in facts
        )
        return (
            (0.3 + members.get(_place(turn), 0.0))
            * (1.0 + min(3.0, told))
            * (1.0 if turn.refined.summary else 0.0)
        )

    best = max(turns, key=lambda turn: (weight(turn), -turn.key.position))
    return clip(" ".join(best.refined.summary.split()), SUMMARY_CHARS)


def _files(turns: Sequence[RefinedTurn]) -> tuple[str, ...]:
    """Files by number of turns that wrote them, then that read them."""
    touched: Counter[str] = Counter()
    for turn in turns:
        for path in turn.refined.entities.files_written:
            touched[path] += 3
        for path in turn.refined.entities.files_read:
            touched[path] += 1
    return tuple(
        path for path, _ in sorted(touched.items(), key=lambda pair: (-pair[1], pair[0]))[:MAX_FILES]
    )


def later_decisions(theme: Theme) -> dict[tuple[str, int], tuple[Later, ...]]:
    """For each decision ``(cluster id, ordinal in it)`` the later ones on the same subject, in time order, the first
    ``LATER_MOST`` of them.
    """
    rows = [
        _Decision(cluster, frozenset(cluster.files), ordinal, turn_id, text, frozenset(_subject(text)))
        for cluster in sorted(theme.clusters, key=lambda cluster: (cluster.start, cluster.id))
        for ordinal, (turn_id, text) in enumerate(cluster.decisions)
    ]
    spread = Counter(term for row in rows for term in row.terms)
    rarity = {term: 1.0 / count for term, count in spread.items()}
    masses = [_mass(row.terms, rarity) for row in rows]
    telling = [_telling(row.terms, mass, rarity) for row, mass in zip(rows, masses, strict=True)]
    by_term, by_telling = _postings(row.terms for row in rows), _postings(telling)
    found: dict[tuple[str, int], tuple[Later, ...]] = {}
    for index, row in enumerate(rows):
        near = {other for term in telling[index] for other in by_term[term]}
        near.update(other for term in row.terms for other in by_telling.get(term, ()))
        later = (
            Later(
                rows[n].cluster.id,
                rows[n].cluster.session_id,
                rows[n].turn_id,
                rows[n].cluster.start,
                rows[n].text,
            )
            for n in sorted(other for other in near if other > index)
            if _same_subject(row, rows[n], min(masses[index], masses[n]), rarity)
        )
        if first := tuple(islice(later, LATER_MOST)):
            found[row.cluster.id, row.ordinal] = first
    return found


def _telling(terms: frozenset[str], mass: float, rarity: Mapping[str, float]) -> frozenset[str]:
    """The terms without the commonest ones that together are too light: who shares only those shares too little."""
    kept, light = set(terms), 0.0
    for term in sorted(terms, key=rarity.__getitem__):
        light += rarity[term]
        if light >= SAME_FILES * mass * (1 - 1e-9):  # sums are rounded
            break
        kept.discard(term)
    return frozenset(kept)


def _postings(rows: Iterable[frozenset[str]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for number, terms in enumerate(rows):
        for term in terms:
            found.setdefault(term, []).append(number)
    return found


class _Decision(NamedTuple):
    cluster: Cluster
    files: frozenset[str]
    ordinal: int
    turn_id: int
    text: str
    terms: frozenset[str]


def _same_subject(one: _Decision, other: _Decision, smaller: float, rarity: Mapping[str, float]) -> bool:
    """Whether two decisions of different clusters share enough of the ``smaller`` one's mass."""
    if one.cluster.id == other.cluster.id or one.text == other.text:
        return False
    share = SAME_SUBJECT if one.files.isdisjoint(other.files) else SAME_FILES
    return _mass(one.terms & other.terms, rarity) >= share * smaller


def _mass(terms: frozenset[str], rarity: Mapping[str, float]) -> float:
    return fsum(map(rarity.__getitem__, terms))  # rounded once: the order of a set does not matter


def _subject(text: str) -> list[str]:
    return [
        term
        for term in tokens.tokens(text)
        if term not in tokens.STOP_WORDS and (len(term) > 2 or not term.isascii())
    ]


def _place(turn: RefinedTurn) -> Place:
    return (turn.key.session_id, turn.key.agent_id, turn.key.position)
