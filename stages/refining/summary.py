"""One or two readable sentences: what was asked, and what came of it."""

from __future__ import annotations

import re
from collections.abc import Callable

from stages.model import Fact, Turn
from stages.refining import actions, asking, failures
from stages.refining.answers import Answer
from stages.refining.asking import Ask
from stages.refining.claims import Say
from stages.refining.phrases import Phrases
from stages.refining.prose import CJK, clip, joined
from stages.refining.reading import Reading

SUMMARY_LENGTH = 280
VAGUE_LENGTH = 60
"""Requests up to this length that point at something ("implement this") get what came before beside them."""
ARROW = " → "
_TELLING = ("changed", "result", "error", "decision", "reason", "next")
"""In which order facts tell what came of a turn that does not say it itself."""
_VAGUE = re.compile(
    r"(?:^| )(?:this|that|it|these|those|them|the (?:plan|approach|change|fix|same)|continue)"
    r"(?=$|[.,!?]| (?:in|to|with|from|and|please|now|too|as well|on|for|again|implementation|plan|approach"
    r"|clearer|one|instead)\b)"
    r"|^(?:start|begin|keep|go on|proceed)\b(?! (?:the|a|an|with)\b)|这个|那个|它|继续|这样|同样|一样"
    r"|再(?:来|试)|^还是",
    re.IGNORECASE,
)


def summarise(
    reading: Reading,
    before: Callable[[], str],
    asked: Ask,
    answer: Answer | None,
    say: Say,
    facts: tuple[Fact, ...],
    words: Phrases,
) -> str:
    """At most ``SUMMARY_LENGTH`` characters, in the conversation's language; never empty."""
    head = clip(_head(asked, answer, before, words), SUMMARY_LENGTH // 2 + 10)
    state = _state(reading, say, words) if asked.kind not in ("interrupted", "shell") else ""
    room = SUMMARY_LENGTH - len(head) - len(ARROW) - (len(state) + 2 if state else 0)
    said = _with_polarity(say.outcome, say.polar) if asking.asks(asked.text) else say.outcome
    explained = any(fact.type == "reason" for fact in facts)
    tell = not say.announced and reading.turn.status != "cancelled" and (say.spoken or not explained)
    came = (
        _came(said, say, facts, room, words, tell=tell) if asked.kind != "interrupted" or say.outcome else ""
    )
    if state and state not in came:
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


def _head(asked: Ask, answer: Answer | None, before: Callable[[], str], words: Phrases) -> str:
    if asked.kind == "interrupted":
        return f"{asked.text}: {before()}" if before() else asked.text
    if answer is None:
        vague = len(asked.text) <= VAGUE_LENGTH and asked.kind == "said" and _VAGUE.search(asked.text)
        if not vague or not before():
            return asked.text
        return words.context.format(text=asked.text.rstrip(".。"), about=clip(before(), 90))
    if answer.kind == "option":
        chosen = words.chose.format(number=answer.number, option=answer.text)
        return f"{chosen} ({answer.rest})" if answer.rest else chosen
    if answer.kind == "yes" and answer.text:
        return words.agreed.format(question=answer.text)
    if answer.kind == "no" and answer.text:
        return words.declined.format(question=answer.text)
    context = (before() or answer.text) if answer.kind == "go" else (answer.text or before())
    return (
        words.context.format(text=asked.text.rstrip(".。!！"), about=clip(context, 110))
        if context
        else asked.text
    )


def asked_before(previous: Turn | None, words: Phrases) -> str:
    """What the turn before asked, short; ``""`` if it was no request of a person."""
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
    if say.announced:
        return words.midway.format(line=clip(say.announced, 80))
    return _turned_down(reading, words)


def _turned_down(reading: Reading, words: Phrases) -> str:
    """That the person refused the last thing the agent wanted to do, when it said nothing after."""
    last = reading.actions[-1] if reading.actions else None
    if last is None or last.call.result != "error" or not failures.was_rejected(last.call.error):
        return ""
    after = reading.said and reading.said[-1].step > last.step
    if after or (last.span is not None and reading.said and reading.said[-1].start > last.span[0]):
        return ""
    text = words.plan_rejected if actions.is_plan(last) else words.rejected.format(what=actions.what(last))
    return text.rstrip(".。")


def _with_polarity(outcome: tuple[str, ...], polar: str) -> tuple[str, ...]:
    """The sentences behind the yes or no that answers a question (elsewhere it only acknowledges)."""
    if not polar or not outcome or outcome[0].lower().startswith(polar.lower()):
        return outcome
    mark = "，" if CJK.search(outcome[0]) else ": "
    return (f"{polar}{mark}{outcome[0]}", *outcome[1:])


def _came(
    said: tuple[str, ...], say: Say, facts: tuple[Fact, ...], room: int, words: Phrases, *, tell: bool
) -> str:
    """The outcome in the agent's words, else (or when it stopped midway) in the facts' words."""
    told = ""
    for sentence in said if tell else ():
        longer = joined([told, sentence]) if told else sentence
        if told and len(longer) > room:
            break
        told = longer
        if len(told) >= room * 0.55:
            break
    if not told:
        by_type = sorted(
            (fact for fact in facts if fact.source != "user"), key=lambda fact: fact.type == "reason"
        )
        told = words.join.join(fact.text.rstrip(".。") for fact in by_type[:3]) or (
            joined(list(say.outcome[:2])) if say.announced else ""
        )
    return clip(told, max(room, 20))
