"""The story of a theme in one paragraph, and its open ends. Made of what the turns say; nothing is
invented.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo

from stages import tokens
from stages.clusters import Place
from stages.cues import carries_on
from stages.model import Cluster, Fact, RefinedTurn, Theme
from stages.page_words import Words, day
from stages.refining.prose import clip, is_chinese

STORY_CHARS = 800
ASK_CHARS = 130
OUTCOME_CHARS = 200
MAX_TURNING_POINTS = 3
MAX_OPEN = 5
CLOSED_OVERLAP = 0.5
"""Share of an open end's terms that later facts must take up to close it."""

_CONTEXT = re.compile(r"\s*[(（][^()（）]*(?:[(（][^()（）]*[)）][^()（）]*)*[)）]\s*$")
_LABEL = re.compile(r"^\s*(?:decision|decided|决定|结论)\s*[:：]\s*", re.IGNORECASE)
_ANSWERED = re.compile(r"\s*[(（](?:on: |承接：).*[)）][.。]?\s*$", re.DOTALL)
_HOPE = re.compile(
    r"\bshould (?:now|then|no longer)?\s*(?:be|work|resolve|fix|connect|show|see|start)|应该(?:已|就|能)"
)
_ENDS = (".", "!", "?", "…", "。", "！", "？")


def parts(summary: str) -> tuple[str, str]:
    """A summary as what was asked (without what it answered, in brackets) and what came of it; either may
    be empty.
    """
    asked, arrow, outcome = " ".join(summary.split()).partition(" → ")
    if not arrow:
        return "", asked
    return _CONTEXT.sub("", asked), outcome


def without_label(text: str) -> str:
    """A decision's sentence without a leading “Decision:” or “决定：”, and without what it answered, in
    brackets.
    """
    return _ANSWERED.sub("", _LABEL.sub("", text))


def story(theme: Theme, turns: Mapping[Place, RefinedTurn], words: Words, zone: tzinfo) -> str:
    """How it began, where it turned, where it stands; empty for a theme without clusters."""
    clusters = [cluster for cluster in theme.clusters if cluster.summary]
    if not clusters:
        return ""
    first, last = clusters[0], clusters[-1]
    sentences = [_began(first, _opening(first, turns), words, zone)]
    budget = STORY_CHARS - len(sentences[0]) - (200 if last is not first else 0)
    told = day(_date(first.start, zone), words)
    decided_on = ""
    for cluster, text in _turning_points(clusters):
        when = day(_date(cluster.start, zone), words)
        if text and is_told(text, " ".join(sentences)):
            continue
        sentence = _turned(cluster, text, words, "" if when == told else when)
        if len(sentence) > budget:
            continue
        budget -= len(sentence)
        if text and when == decided_on:
            said = _quote(without_label(text), OUTCOME_CHARS)
            sentences[-1] = sentences[-1][:-1] + (f"；{said}。" if words.chinese else f"; and {said}.")
        else:
            sentences.append(sentence)
        told, decided_on = when, when if text else ""
    if last is not first:
        sentences.append(_stands(last, _closing(last, turns), words, zone, told, " ".join(sentences)))
    return ("" if words.chinese else " ").join(filter(None, sentences))


def is_told(text: str, where: str) -> bool:
    """Whether a decision, without its label and full stop, is quoted whole in a text on one line."""
    said = " ".join(without_label(text).split()).rstrip(".。").replace("<", "&lt;")
    return bool(said) and said in where


def _opening(cluster: Cluster, turns: Mapping[Place, RefinedTurn]) -> str:
    """The summary of the first turn that opens a subject rather than following up; else the cluster's own."""
    for position in cluster.positions:
        turn = turns.get((cluster.session_id, cluster.agent_id, position))
        if turn is not None and parts(turn.refined.summary)[1] and not carries_on(turn.user_text):
            return turn.refined.summary
    return cluster.summary


def _closing(cluster: Cluster, turns: Mapping[Place, RefinedTurn]) -> str:
    """The summary of the last turn that brought something about; else the cluster's own."""
    for position in reversed(cluster.positions):
        turn = turns.get((cluster.session_id, cluster.agent_id, position))
        if turn is not None and any(
            fact.type in ("result", "changed", "decision") for fact in turn.refined.facts
        ):
            return turn.refined.summary
    return cluster.summary


def _turning_points(clusters: Sequence[Cluster]) -> list[tuple[Cluster, str]]:
    """Where it turned: one decision a cluster; where nobody decided anything, the biggest clusters'
    outcomes.
    """
    deciding = [(cluster, said) for cluster in clusters if (said := _weightiest(cluster))]
    if not deciding:
        deciding = [(cluster, "") for cluster in clusters[1:-1] if len(cluster.turn_ids) > 1]
    if len(deciding) <= MAX_TURNING_POINTS:
        return deciding
    order = sorted(range(len(deciding)), key=lambda i: (-len(deciding[i][0].turn_ids), i))[
        :MAX_TURNING_POINTS
    ]
    return [deciding[i] for i in sorted(order)]


def _weightiest(cluster: Cluster) -> str:
    """The decision that says most by itself (not “yes, do that”); the later one when equal; empty without
    any.
    """
    telling = [text for _, text in cluster.decisions if not (carries_on(text) or len(_terms(text)) < 3)]
    return max(reversed(telling), key=lambda text: min(12, len(_terms(text))), default="")


def _began(cluster: Cluster, summary: str, words: Words, zone: tzinfo) -> str:
    when = day(_date(cluster.start, zone), words)
    asked, outcome = parts(summary)
    said = _close(clip(outcome, OUTCOME_CHARS))
    if not asked:
        return f"始于{when}：{said}" if words.chinese else f"It began on {when}: {said}"
    quoted = _quote(asked)
    return f"始于{when}的{quoted}：{said}" if words.chinese else f"It began on {when} with {quoted}: {said}"


def _turned(cluster: Cluster, decided: str, words: Words, when: str) -> str:
    """A decision with its day (empty: the day just told), or what a cluster came to."""
    if decided:
        said = _quote(without_label(decided), OUTCOME_CHARS)
        if words.chinese:
            return f"{when or '同日'}决定：{said}。"
        return f"On {when} it was decided: {said}." if when else f"The same day it was decided: {said}."
    asked, outcome = parts(cluster.summary)
    said = _close(clip(outcome, OUTCOME_CHARS))
    if words.chinese:
        return f"{when or '同日'}，{_quote(asked)}：{said}" if asked else f"{when or '同日'}：{said}"
    lead = f"On {when}" if when else "The same day"
    return f"{lead}, {_quote(asked)}: {said}" if asked else f"{lead}: {said}"


def _stands(cluster: Cluster, summary: str, words: Words, zone: tzinfo, told: str, before: str) -> str:
    """Where it stands; only the day (if it is a new one) where that was told ``before``."""
    when = day(_date(cluster.end, zone), words)
    asked, outcome = parts(summary)
    said = _close(clip(outcome or asked, OUTCOME_CHARS))
    if is_told(said, before):
        if when == told:
            return ""
        return f"最后一次谈到是{when}。" if words.chinese else f"It was last taken up on {when}."
    if words.chinese:
        return f"最后（{when}）：{said}"
    return f"It was last taken up {'the same day' if when == told else f'on {when}'}: {said}"


def _quote(text: str, limit: int = ASK_CHARS) -> str:
    return f"“{clip(' '.join(text.split()).rstrip('.。').replace('<', '&lt;'), limit)}”"


def _close(text: str) -> str:
    flat = " ".join(text.split()).replace("<", "&lt;")
    return flat if flat.endswith(_ENDS) else flat + ("。" if is_chinese(flat) else ".")


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
        found += [
            (turn, f)
            for f in turn.refined.facts
            if f.type == "next" and not _HOPE.search(f.text) and not _closed(f, turn, later)
        ]
    return list(reversed(found))[:MAX_OPEN]


def _closed(fact: Fact, turn: RefinedTurn, later: Sequence[RefinedTurn]) -> bool:
    """Taken up by what a later turn did; or accepted at once (“go on”, “就这么做”) and something was done."""
    wanted = _terms(fact.text)
    if not wanted:
        return True
    if later and later[0].key.session_id == turn.key.session_id:
        answer = later[0]
        if carries_on(answer.user_text) and any(
            f.type in ("changed", "result") for f in answer.refined.facts
        ):
            return True
    for each in later:
        done = (f.text for f in each.refined.facts if f.type in ("changed", "result", "decision"))
        if len(wanted & _terms(" ".join((each.refined.summary, *done)))) >= CLOSED_OVERLAP * len(wanted):
            return True
    return False


def _terms(text: str) -> frozenset[str]:
    return frozenset(term for term in tokens.tokens(text) if len(term) > 1 and term not in tokens.STOP_WORDS)
