"""The story of a theme in one paragraph, and its open ends. Made of what the turns say; nothing is
invented.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo

from stages import tokens
from stages.clusters import Place
from stages.model import Cluster, Fact, RefinedTurn, Theme
from stages.page_words import Words, day
from stages.refining.prose import clip

STORY_CHARS = 700
MAX_TURNING_POINTS = 3
MAX_OPEN = 5
CLOSED_OVERLAP = 0.5
"""Share of an open end's terms that later facts must take up to close it."""


def story(theme: Theme, words: Words, zone: tzinfo) -> str:
    """How it began, where it turned (decisions), where it stands; empty for a theme without clusters."""
    clusters = [cluster for cluster in theme.clusters if cluster.summary]
    if not clusters:
        return ""
    first, last = clusters[0], clusters[-1]
    sentences = [_began(first, words, zone)]
    budget = STORY_CHARS - len(sentences[0]) - (160 if last is not first else 0)
    for cluster, text in _turning_points(clusters):
        sentence = _decided(cluster, text, words, zone)
        if len(sentence) <= budget:
            sentences.append(sentence)
            budget -= len(sentence)
    if last is not first and not any(last.summary in sentence for sentence in sentences):
        sentences.append(_stands(last, words, zone))
    return ("" if words.chinese else " ").join(sentences)


def _turning_points(clusters: Sequence[Cluster]) -> list[tuple[Cluster, str]]:
    """The decisions that tell most: one a cluster, spread over the clusters, in time order."""
    deciding = [(cluster, cluster.decisions[-1][1]) for cluster in clusters if cluster.decisions]
    if len(deciding) <= MAX_TURNING_POINTS:
        return deciding
    by_weight = sorted(range(len(deciding)), key=lambda i: (-len(deciding[i][0].turn_ids), i))[
        :MAX_TURNING_POINTS
    ]
    return [deciding[i] for i in sorted(by_weight)]


def _began(cluster: Cluster, words: Words, zone: tzinfo) -> str:
    when = day(_date(cluster.start, zone), words)
    text = _close(clip(cluster.summary, 240), words)
    return f"始于{when}：{text}" if words.chinese else f"It began on {when}: {_lower(text)}"


def _decided(cluster: Cluster, text: str, words: Words, zone: tzinfo) -> str:
    when = day(_date(cluster.start, zone), words)
    said = _close(clip(text, 180), words)
    return f"{when}决定：{said}" if words.chinese else f"On {when} it was decided: {_lower(said)}"


def _stands(cluster: Cluster, words: Words, zone: tzinfo) -> str:
    when = day(_date(cluster.end, zone), words)
    text = _close(clip(cluster.summary, 200), words)
    return f"最近（{when}）：{text}" if words.chinese else f"Most recently ({when}): {_lower(text)}"


def _lower(text: str) -> str:
    """Lower-case the first letter of an ordinary word (not of a name, an identifier or “I”)."""
    head = text.split(" ", 1)[0]
    plain = head.rstrip(",:;.")
    if (
        plain != "I"
        and plain[:1].isupper()
        and plain[1:].islower()
        and plain.isalpha()
        and plain.lower() in _ORDINARY
    ):
        return text[0].lower() + text[1:]
    return text


_ORDINARY = frozenset(
    re.findall(
        r"\w+",
        "the a an this that it we you they there added created updated fixed removed changed moved set made"
        " implemented asked explained use using keep stop start install installed replaced wrote built now",
    )
)


def _close(text: str, words: Words) -> str:
    flat = " ".join(text.split()).replace("<", "&lt;")
    return (
        flat
        if flat.endswith((".", "!", "?", "…", "。", "！", "？"))
        else flat + ("。" if words.chinese else ".")
    )


def _date(at: int, zone: tzinfo) -> datetime:
    return datetime.fromtimestamp(at / 1000, zone)


def open_ends(theme: Theme, turns: Mapping[Place, RefinedTurn]) -> list[tuple[RefinedTurn, Fact]]:
    """“Next” facts that nothing later in the theme took up, newest first, at most MAX_OPEN."""
    members = sorted(
        (
            turn
            for cluster in theme.clusters
            for position in cluster.positions
            if (turn := turns.get((cluster.session_id, cluster.agent_id, position))) is not None
        ),
        key=lambda turn: (turn.timestamp, turn.key.position),
    )
    found: list[tuple[RefinedTurn, Fact]] = []
    for index, turn in enumerate(members):
        later = members[index + 1 :]
        found += [(turn, f) for f in turn.refined.facts if f.type == "next" and not _closed(f, later)]
    return list(reversed(found))[:MAX_OPEN]


def _closed(fact: Fact, later: Sequence[RefinedTurn]) -> bool:
    wanted = _terms(fact.text)
    if not wanted:
        return True
    for turn in later:
        texts = [
            turn.refined.summary,
            *(f.text for f in turn.refined.facts if f.type in ("changed", "result", "decision")),
        ]
        if len(wanted & _terms(" ".join(texts))) >= CLOSED_OVERLAP * len(wanted):
            return True
    return False


def _terms(text: str) -> frozenset[str]:
    return frozenset(term for term in tokens.tokens(text) if len(term) > 1 and term not in tokens.STOP_WORDS)
