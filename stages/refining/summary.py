"""One or two readable sentences: what was asked, and what came of it."""

from __future__ import annotations

import re

from stages.model import Fact, Turn
from stages.refining import asking
from stages.refining.answers import Answer
from stages.refining.asking import Ask
from stages.refining.claims import Say
from stages.refining.phrases import Phrases
from stages.refining.prose import clip
from stages.refining.reading import Reading

SUMMARY_LENGTH = 280
VAGUE_LENGTH = 60
"""Requests up to this length that point at something ("implement this") get what came before beside them."""
ARROW = " → "
_VAGUE = re.compile(
    r"\b(?:this|that|it|these|those|them|the same|again|continue|the (?:plan|approach|change|fix)|begin|start implementing)\b"
    r"|这个|那个|它|继续|这样|同样|一样|还是|再(?:来|试)",
    re.IGNORECASE,
)


def summarise(
    reading: Reading,
    previous: Turn | None,
    asked: Ask,
    answer: Answer | None,
    say: Say,
    facts: tuple[Fact, ...],
    words: Phrases,
) -> str:
    """At most ``SUMMARY_LENGTH`` characters, in the conversation's language; never empty."""
    head = clip(_head(asked, answer, previous, words), SUMMARY_LENGTH // 2 + 10)
    state = _state(reading, say, words)
    room = SUMMARY_LENGTH - len(head) - len(ARROW) - (len(state) + 2 if state else 0)
    came = _came(say, facts, room, words) if asked.kind != "interrupted" or say.outcome else ""
    if state:
        came = f"{came.rstrip('.。')}{words.join}{state}" if came else state
    if head and came:
        return clip(f"{head}{ARROW}{came}", SUMMARY_LENGTH)
    return clip(
        head
        or came
        or clip(reading.turn.opening_text.strip(), 120)
        or reading.turn.origin
        or words.unfinished,
        SUMMARY_LENGTH,
    )


def _head(asked: Ask, answer: Answer | None, previous: Turn | None, words: Phrases) -> str:
    if asked.kind == "interrupted":
        before = _asked_before(previous, words)
        return f"{asked.text}: {before}" if before else asked.text
    if answer is None:
        vague = len(asked.text) <= VAGUE_LENGTH and asked.kind == "said" and _VAGUE.search(asked.text)
        before = clip(_asked_before(previous, words), 90) if vague else ""
        return words.context.format(text=asked.text.rstrip(".。"), about=before) if before else asked.text
    if answer.kind == "option":
        chosen = words.chose.format(number=answer.number, option=answer.text)
        return f"{chosen} ({answer.rest})" if answer.rest else chosen
    context = answer.text or _asked_before(previous, words)
    return f"{asked.text.rstrip('.。!！')} ({context})" if context else asked.text


def _asked_before(previous: Turn | None, words: Phrases) -> str:
    if previous is None or previous.user_text is None:
        return ""
    before = asking.ask(previous, previous.user_text[:4_000], words)
    return clip(before.text, 110) if before.kind == "said" else ""


def _state(reading: Reading, say: Say, words: Phrases) -> str:
    turn = reading.turn
    if turn.status == "failed":
        return (
            words.turn_failed.format(line=clip(turn.error.strip().split("\n", 1)[0], 120))
            if turn.error
            else words.turn_failed.format(line="?")
        )
    if turn.status == "blocked":
        return words.blocked.format(line=clip(turn.error.strip(), 100))
    if turn.status == "cancelled":
        return words.cancelled
    if turn.status == "unfinished" or (turn.open and turn.status != "completed"):
        return words.unfinished
    return words.midway.format(line=clip(say.announced, 80)) if say.announced else ""


def _came(say: Say, facts: tuple[Fact, ...], room: int, words: Phrases) -> str:
    """The outcome in the agent's words, else (or when it stopped midway) in the facts' words."""
    told = ""
    for sentence in () if say.announced else say.outcome:
        longer = f"{told} {sentence}" if told else sentence
        if told and len(longer) > room:
            break
        told = longer
        if len(told) >= room * 0.55:
            break
    if not told:
        by_type = sorted((fact for fact in facts if fact.source != "user"), key=lambda fact: fact.type == "reason")
        told = words.join.join(fact.text.rstrip(".。") for fact in by_type[:3]) or " ".join(say.outcome[:2])
    return clip(told, max(room, 20))
