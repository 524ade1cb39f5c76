"""Clusters: runs of a theme's turns in one session about one thing, with their summary, decisions and
files.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from stages import tokens
from stages.continuity import link
from stages.evidence import Evidence, Stats
from stages.model import Cluster, RefinedTurn, Theme
from stages.refining.prose import clip

MAX_FILES = 12
SUMMARY_CHARS = 280
BREAK = 0.3
"""Below this link two neighbouring members start different clusters."""
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
    """For each decision ``(cluster id, ordinal in it)`` the later ones on the same subject, in time order."""
    rows = [
        (cluster, ordinal, turn_id, text, frozenset(_subject(text)))
        for cluster in sorted(theme.clusters, key=lambda cluster: (cluster.start, cluster.id))
        for ordinal, (turn_id, text) in enumerate(cluster.decisions)
    ]
    spread = Counter(term for *_, terms in rows for term in terms)
    found: dict[tuple[str, int], tuple[Later, ...]] = {}
    for index, (cluster, ordinal, _, text, terms) in enumerate(rows):
        later = tuple(
            Later(other.id, other.session_id, turn_id, other.start, said)
            for other, _, turn_id, said, others in rows[index + 1 :]
            if other.id != cluster.id
            and said != text
            and _overlap(terms, others, spread)
            >= (SAME_FILES if set(cluster.files) & set(other.files) else SAME_SUBJECT)
        )
        if later:
            found[cluster.id, ordinal] = later
    return found


def _subject(text: str) -> list[str]:
    return [
        term
        for term in tokens.tokens(text)
        if term not in tokens.STOP_WORDS and (len(term) > 2 or not term.isascii())
    ]


def _overlap(left: frozenset[str], right: frozenset[str], spread: Mapping[str, int]) -> float:
    def mass(terms: frozenset[str]) -> float:
        return sum(1.0 / spread[term] for term in sorted(terms))  # one order, one rounding

    smaller = min(mass(left), mass(right))
    return mass(left & right) / smaller if smaller else 0.0


def _place(turn: RefinedTurn) -> Place:
    return (turn.key.session_id, turn.key.agent_id, turn.key.position)
