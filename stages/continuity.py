"""Continuity inside a session: which turns carry on the discussion before them, and what that says of a
theme.

Each session is a chain with two states, in the theme or not. Between neighbours the state is copied with
probability ``link`` (the later turn continues the earlier one) and drawn afresh otherwise (a new
discussion). A turn's own evidence pulls its state; a turn with few words of its own pulls weakly and so
follows its neighbours: “commit it”, “还是报错”. Forward–backward gives each turn's probability, and a
mention in passing, alone between foreign turns, needs to be strong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from stages.cues import carries_on, comes_back, turns_away
from stages.evidence import Evidence, Stats, similarity

PRIOR = 0.111
"""Probability that a new discussion is about the theme before any evidence."""
PULL = 5.58
"""Log-odds of the evidence of a typical member; the best have MOST times as much."""
MOST = 1.2
AGAINST = 0.8
"""Log-odds, as a share of PULL, of a turn that has nothing of the theme and says something new aloud."""
FULL_VOICE = 3.4
"""New terms, weighted by rarity, from which a turn speaks fully for itself."""
KNOWN_VOICE = 0.313
"""How much a term counts that the talk before had already."""
TOLD_VOICE = 0.683
"""Loudness of a paste without own words, which speaks through its summary."""
FOLLOWING_VOICE = 0.5
SHORT_CHARS = 80
"""A short message that carries on (“commit it”, “提交一下”) speaks mostly for what it follows."""
PAIR_VOICE = 0.263
"""A pair of Chinese characters is about half a word."""
SAME_VOICE = 0.28
"""What touching the same things as the turns before takes from a turn's own voice."""
CONTEXT = 4
"""Turns before it that a turn may be continuing."""
LONG_PAUSE_MS = 6 * 3_600_000
LINK_BASE, LINK_VOICE, LINK_LAST, LINK_NEAR, LINK_SAME = 1.57, 2.24, 3.75, 1.15, 0.075
"""Log-odds that a turn continues: of any, by its voice, by the root of its similarity to the last turn and to the
closest one, by the same things touched. Fitted to labelled pairs of neighbours, both languages.
"""
LINK_ON, LINK_AWAY, LINK_PAUSE = 0.8, 1.32, 1.0
"""Log-odds of words that carry on, of words that turn away or come back to something, of a long pause."""
MOST_LINK = 0.97
GROUND = 1
"""Share of the similarity of strangers that is no similarity."""
CARRY, QUIET, QUIET_VOICE = 0.55, 0.65, 0.3
"""How surely membership carries over to a linked turn, and to a quiet one (voice below QUIET_VOICE)."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The score that parts a theme from its background, and the mean score of what lies above it."""

    at: float
    high: float


def voice(item: Evidence, before: Sequence[Evidence], stats: Stats) -> float:
    """How much a turn speaks for itself, in 0..1: rare terms of its own that the talk before it did not have.

    A paste without own words speaks through its summary, at half the loudness.
    """
    terms, loudness = (item.own, 1.0) if item.own else (item.told, TOLD_VOICE)
    if before and carries_on(item.own_text) and len(item.own_text) <= SHORT_CHARS:
        loudness *= FOLLOWING_VOICE
    known = [other.bag for other in before[-CONTEXT:]]
    new = sum(
        stats.rarity(term)
        * (KNOWN_VOICE if any(term in bag for bag in known) else 1.0)
        * (1.0 if term.isascii() else PAIR_VOICE)
        for term in sorted(terms)
    )
    same = same_things(item, before, stats)
    return loudness * min(1.0, new / FULL_VOICE) * (1.0 - SAME_VOICE * same)


def same_things(item: Evidence, before: Sequence[Evidence], stats: Stats) -> float:
    """Which part, by rarity, of the files, symbols and other things a turn touched the turns before touched
    too.
    """
    touched = [term for term in item.bag if ":" in term]
    whole = sum(stats.rarity(term) for term in touched)
    if not whole:
        return 0.0
    known = [other.bag for other in before[-CONTEXT:]]
    return sum(stats.rarity(term) for term in touched if any(term in bag for bag in known)) / whole


def link(before: Sequence[Evidence], after: Evidence, stats: Stats, loudness: float | None = None) -> float:
    """Probability in 0..1 that ``after`` continues what the turns ``before`` (the latest last) were about.

    ``loudness`` is the turn's voice, if known already.
    """
    if not before:
        return 0.0
    ground = GROUND * stats.ground
    near = [
        max(0.0, similarity(item.bag, after.bag, stats) - ground) / (1.0 - ground)
        for item in before[-CONTEXT:]
    ]
    odds = (
        LINK_BASE
        - LINK_VOICE * (voice(after, before, stats) if loudness is None else loudness)
        + LINK_LAST * math.sqrt(near[-1])
        + LINK_NEAR * math.sqrt(max(near))
        + LINK_SAME * same_things(after, before, stats)
    )
    if comes_back(after.own_text) or turns_away(after.own_text):
        odds -= LINK_AWAY
    elif carries_on(after.own_text):
        odds += LINK_ON
    last = before[-1].turn
    if after.turn.timestamp - (last.ended_at or last.timestamp) > LONG_PAUSE_MS:
        odds -= LINK_PAUSE
    return min(MOST_LINK, max(0.05, 1.0 / (1.0 + math.exp(-odds))))


def pull(score: float, cut: Cut, loudness: float) -> float:
    """Log-odds of a turn's own evidence. Against the theme it speaks only as loudly as it has something
    new.
    """
    if score >= cut.at:
        return PULL * min(MOST, (score - cut.at) / max(1e-6, cut.high - cut.at))
    return -PULL * AGAINST * loudness * (cut.at - score) / cut.at


@dataclass(frozen=True, slots=True)
class Thread:
    """One agent's turns in order, with each turn's link to those before it and its own voice."""

    items: tuple[Evidence, ...]
    links: tuple[float, ...]
    voices: tuple[float, ...]


def threads(items: Sequence[Evidence], stats: Stats) -> list[Thread]:
    """The threads of turns ordered by session, agent and position."""
    found = []
    for _, group in groupby(items, key=lambda item: (item.turn.key.session_id, item.turn.key.agent_id)):
        run = tuple(group)
        before = [run[max(0, index - CONTEXT) : index] for index in range(len(run))]
        voices = tuple(voice(item, b, stats) for b, item in zip(before, run, strict=True))
        links = tuple(
            min(QUIET if v < QUIET_VOICE else CARRY, link(b, item, stats, v))
            for b, item, v in zip(before, run, voices, strict=True)
        )
        found.append(Thread(run, links, voices))
    return found


def probabilities(
    found: Sequence[Thread], scores: Sequence[float], cut: Cut, priors: Sequence[float]
) -> list[float]:
    """Each turn's probability of belonging, given its own score and, should it begin a new discussion, how
    likely that is about the theme before any evidence. Both run through all threads in order.
    """
    chances: list[float] = []
    for thread in found:
        span = slice(len(chances), len(chances) + len(thread.items))
        chances += _chain(thread, scores[span], cut, priors[span])
    return chances


def _chain(thread: Thread, scores: Sequence[float], cut: Cut, priors: Sequence[float]) -> list[float]:
    """Forward–backward over one thread."""
    odds = [math.exp(pull(score, cut, loud)) for score, loud in zip(scores, thread.voices, strict=True)]
    steps = list(zip(thread.links, odds, priors, strict=True))
    forward: list[tuple[float, float]] = []
    inside = outside = 0.5
    for chain, ratio, prior in steps:
        inside, outside = _step(inside / (inside + outside), chain, prior)
        inside *= ratio
        forward.append((inside, outside))
    backward = [(1.0, 1.0)]
    for chain, ratio, prior in reversed(steps[1:]):
        after_in, after_out = backward[-1][0] * ratio, backward[-1][1]
        fresh = (1.0 - chain) * (prior * after_in + (1.0 - prior) * after_out)
        step_in, step_out = chain * after_in + fresh, chain * after_out + fresh
        total = step_in + step_out
        backward.append((step_in / total, step_out / total))
    backward.reverse()
    return [
        front_in * back_in / (front_in * back_in + front_out * back_out)
        for (front_in, front_out), (back_in, back_out) in zip(forward, backward, strict=True)
    ]


def _step(inside: float, chain: float, prior: float) -> tuple[float, float]:
    stays = chain * inside + (1.0 - chain) * prior
    return stays, 1.0 - stays
