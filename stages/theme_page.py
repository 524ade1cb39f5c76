"""The page of a theme: Markdown that a person reads with pleasure, made from the theme and its refined turns.

Pure: the same theme gives the same page. It is written in the theme's dominant language. Generated pages
end with a comment that carries their own digest, so that a page a person edited is recognised and never
overwritten.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from stages.clusters import Later, Place, later_decisions
from stages.cues import carries_on
from stages.model import Cluster, RefinedTurn, Theme
from stages.page_words import CHINESE, ENGLISH, Words, day, day_range
from stages.refining.prose import clip, is_chinese
from stages.story import open_ends, parts, story, without_label

MAX_FILES = 8
MAX_LINES = 8
"""Bullets a cluster; the rest is counted."""
ASK_CHARS = 120
OUTCOME_CHARS = 170
SHORT_ASK = 60
TITLE_CHARS = 60

_SLUG = re.compile(r"(?:\d{4}-\d\d-\d\d[T_ -]?[\d-]*Z?[_-])?([^\s-]+(?:-[^\s-]+){2,})")
_MARK = re.compile(r"\n*<!-- kimi-memory-pipeline: generated page, sha256 ([0-9a-f]{16})[^>]*-->\s*\Z")


@dataclass(frozen=True, slots=True)
class Memory:
    """A linked Markdown memory, as the page names it."""

    folder: str
    key: str
    title: str = ""


def page(
    theme: Theme,
    turns: Sequence[RefinedTurn],
    *,
    display_name: str = "",
    memories: Sequence[Memory] = (),
    pinned: frozenset[Place] = frozenset(),
    zone: tzinfo = UTC,
) -> str:
    """The page's Markdown, without the closing comment (``marked`` adds it). Dates are days in ``zone``.

    ``turns`` may be more than the theme's; turns that are missing leave their cluster's summary to speak.
    """
    texts = _Texts(theme, turns, zone)
    parts = [
        f"# {display_name or theme.name}",
        texts.subtitle(),
        story(theme, texts.turns, texts.words, zone),
    ]
    parts += [texts.session(clusters) for clusters in _by_session(theme.clusters)]
    parts.append(texts.footer(memories, pinned))
    return "\n\n".join(part for part in parts if part) + "\n"


def _by_session(clusters: Sequence[Cluster]) -> list[list[Cluster]]:
    """Clusters grouped by session where they follow each other in time: a session resumed later gets a new
    heading.
    """
    groups: list[list[Cluster]] = []
    for cluster in clusters:
        if groups and groups[-1][-1].session_id == cluster.session_id:
            groups[-1].append(cluster)
        else:
            groups.append([cluster])
    return groups


class _Texts:
    """One page in the making: the theme, its turns by place, its language and its cross references."""

    def __init__(self, theme: Theme, turns: Sequence[RefinedTurn], zone: tzinfo) -> None:
        self.theme = theme
        self.zone = zone
        self.turns = {(t.key.session_id, t.key.agent_id, t.key.position): t for t in turns}
        self.words = CHINESE if _chinese(theme) else ENGLISH
        self.later = later_decisions(theme)

    def subtitle(self) -> str:
        sessions = len({cluster.session_id for cluster in self.theme.clusters})
        count = sum(len(cluster.turn_ids) for cluster in self.theme.clusters)
        facts = [self.words.counts(sessions, count)]
        if self.theme.clusters:
            first = min(cluster.start for cluster in self.theme.clusters)
            last = max(cluster.end for cluster in self.theme.clusters)
            facts.append(day_range(self._date(first), self._date(last), self.words))
        line = self.words.comma.join(facts)
        if self.theme.seeds:
            seeds = self.words.comma.join(map(_inline, self.theme.seeds))
            line += f" · {self.words.seeds}{self.words.colon}{seeds}"
        return f"*{line}*"

    def session(self, clusters: Sequence[Cluster]) -> str:
        """One session's heading and what happened in it."""
        first = clusters[0]
        numbers = [turn_id for cluster in clusters for turn_id in cluster.turn_ids]
        title = self._title(first)
        heading = f"## {day(self._date(first.start), self.words)} — {self.words.session(title)}"
        lines = [f"{heading} ({self.words.turns(_ranges(numbers))})"]
        for cluster in clusters:
            lines += self._cluster(cluster)
        return "\n".join(lines)

    def _cluster(self, cluster: Cluster) -> list[str]:
        decided = {text: ordinal for ordinal, (_, text) in enumerate(cluster.decisions)}
        lines: list[tuple[float, str]] = []
        for turn_id, position in zip(cluster.turn_ids, cluster.positions, strict=True):
            turn = self.turns.get((cluster.session_id, cluster.agent_id, position))
            said = [
                (text, ordinal)
                for text, ordinal in decided.items()
                if cluster.decisions[ordinal][0] == turn_id
            ]
            for text, ordinal in said:
                lines.append((9.0, self._decision(cluster, ordinal, text, turn_id)))
            if turn is not None and (told := _telling(turn, [text for text, _ in said])):
                weight, text = told
                lines.append((weight, f"- {_sentence(text)} *({turn_id})*"))
        if not lines and cluster.summary:
            lines.append((1.0, f"- {_sentence(cluster.summary)} *({cluster.turn_ids[0]})*"))
        return _best(lines, self.words)

    def _decision(self, cluster: Cluster, ordinal: int, text: str, turn_id: int) -> str:
        line = f"- **{self.words.decided}**{self.words.colon}{_sentence(without_label(text))} *({turn_id})*"
        later = self.later.get((cluster.id, ordinal), ())
        if later:
            others = self.words.semicolon.join(map(self._later, later[:2]))
            line += f"  *{self.words.later}{self.words.colon}{others}*"
        return line

    def _later(self, later: Later) -> str:
        when = day(self._date(later.at), self.words)
        return f"{when}, {self.words.turn(later.turn_id)} ({_inline(clip(later.text, 80))})"

    def footer(self, memories: Sequence[Memory], pinned: frozenset[Place]) -> str:
        words = self.words
        parts = []
        if files := _files(self.theme, self.turns):
            parts.append(
                f"{words.files}{words.colon}"
                + words.comma.join(f"`{path}` ({n})" for path, n in files[:MAX_FILES])
            )
        if memories:
            parts.append(
                f"{words.memories}{words.colon}" + words.comma.join(f"{m.folder}/{m.key}" for m in memories)
            )
        if marks := [self.turns[spot] for spot in sorted(pinned) if spot in self.turns]:
            shown = (f"{_inline(clip(turn.refined.summary, 80))} *({turn.key.turn_id})*" for turn in marks)
            parts.append(f"{words.pinned}{words.colon}" + words.semicolon.join(shown))
        if ends := open_ends(self.theme, self.turns):
            shown = (
                f"{_inline(clip(fact.text, 160))} *({words.turn(turn.key.turn_id)})*" for turn, fact in ends
            )
            parts.append(f"{words.open}{words.colon}" + words.semicolon.join(shown))
        return "\n\n".join(parts)

    def _title(self, cluster: Cluster) -> str:
        """The session's title; a file-like one (``2025-07-20_11-56Z-we-have-an-api``) as words."""
        for position in cluster.positions:
            turn = self.turns.get((cluster.session_id, cluster.agent_id, position))
            if turn is not None and turn.session_title.strip():
                title = _inline(turn.session_title)
                slug = _SLUG.fullmatch(title)
                return clip(slug[1].replace("-", " ") if slug else title, TITLE_CHARS)
        return cluster.session_id[:16]

    def _date(self, at: int) -> datetime:
        return datetime.fromtimestamp(at / 1000, self.zone)


def _telling(turn: RefinedTurn, said: Sequence[str]) -> tuple[float, str] | None:
    """What a turn's bullet says: what was asked and what came of it, with its weight.

    A follow-up (“commit it”) tells only what came of it; a turn whose decision line says it all tells
    nothing.
    """
    asked, outcome = parts(turn.refined.summary)
    if not asked and not outcome:
        return None
    said = [without_label(text).rstrip("。.!！ ") for text in said]
    whole = asked + outcome
    if any(text in whole or (outcome and outcome in text) for text in said):
        if not outcome or any(outcome in text or text in outcome for text in said):
            outcome = ""
        asked = "" if any(asked == text or text in asked for text in said) else asked
        if not outcome and (not asked or carries_on(asked)):
            return None
    if outcome and (len(asked) < 4 or (carries_on(asked) and len(asked) <= SHORT_ASK)):
        asked = ""
    kinds = Counter(fact.type for fact in turn.refined.facts)
    weight = 1.0 + kinds["result"] + 0.8 * kinds["reason"] + 0.6 * kinds["error"] + 0.3 * kinds["changed"]
    texts = [clip(asked, ASK_CHARS)] * bool(asked) + [clip(outcome, OUTCOME_CHARS)] * bool(outcome)
    return min(5.0, weight), " → ".join(texts)


def _best(lines: Sequence[tuple[float, str]], words: Words) -> list[str]:
    """At most MAX_LINES of a cluster's lines in their order: how it began, how it ended, and the weightiest
    between; then how many were left out.
    """
    if len(lines) <= MAX_LINES:
        return [line for _, line in lines]
    between = sorted(range(1, len(lines) - 1), key=lambda i: (-lines[i][0], i))[: MAX_LINES - 2]
    chosen = sorted({0, *between, len(lines) - 1})
    return [*(lines[i][1] for i in chosen), f"- *{words.more(len(lines) - MAX_LINES)}*"]


def _files(theme: Theme, turns: Mapping[Place, RefinedTurn]) -> list[tuple[str, int]]:
    """Files by the number of the theme's turns that wrote them; read ones only where nothing was written."""
    wrote: Counter[str] = Counter()
    read: Counter[str] = Counter()
    for cluster in theme.clusters:
        for position in cluster.positions:
            turn = turns.get((cluster.session_id, cluster.agent_id, position))
            if turn is not None:
                wrote.update(turn.refined.entities.files_written)
                read.update(turn.refined.entities.files_read)
    chosen = wrote or read
    return sorted(chosen.items(), key=lambda pair: (-pair[1], pair[0]))


def _chinese(theme: Theme) -> bool:
    """Whether more of the theme's clusters speak Chinese than not."""
    told = [cluster.summary for cluster in theme.clusters if cluster.summary]
    return sum(map(is_chinese, told)) * 2 > len(told) if told else is_chinese(theme.name)


def _ranges(numbers: Sequence[int]) -> str:
    """``3, 5–7``."""
    ordered = sorted(set(numbers))
    spans: list[list[int]] = []
    for number in ordered:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in spans)


def _sentence(text: str) -> str:
    """One line that begins and ends like a sentence and cannot break out of its bullet."""
    flat = _inline(text)
    head = flat.split(" ", 1)[0]
    if head.isascii() and head.islower() and re.fullmatch(r"[a-z]+(?:['’][a-z]+)?[,:]?", head):
        flat = flat[0].upper() + flat[1:]
    return (
        flat
        if flat.endswith((".", "!", "?", "…", "。", "！", "？", ":", "：", "”", "）", ")"))
        else flat + _stop(flat)
    )


def _stop(text: str) -> str:
    return "。" if is_chinese(text) else "."


def _inline(text: str) -> str:
    """Text on one line, harmless in Markdown: no HTML, no heading, no comment end."""
    return " ".join(text.split()).replace("<", "&lt;").replace("-->", "--&gt;")


# --- generated or edited ----------------------------------------------------------------------------


def marked(text: str) -> str:
    """The page with the comment that says it is generated; the comment's digest is that of the text before
    it.
    """
    body = text.rstrip("\n")
    return (
        f"{body}\n\n<!-- kimi-memory-pipeline: generated page, sha256 {_digest(body)}."
        " Edit it and it is yours: an edited page is never overwritten. -->\n"
    )


def is_generated(text: str) -> bool:
    """Whether a page carries the comment of a generated one (edited since, or not)."""
    return _MARK.search(_newlines(text)) is not None


def edited(text: str) -> bool:
    """Whether a person wrote or changed this page since it was generated."""
    plain = _newlines(text)
    match = _MARK.search(plain)
    return match is None or match[1] != _digest(plain[: match.start()].rstrip("\n"))


def _newlines(text: str) -> str:
    return text.replace("\r\n", "\n")


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode("utf-8", "replace")).hexdigest()[:16]
