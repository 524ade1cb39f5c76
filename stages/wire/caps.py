"""Bounds of what one turn keeps, and the one way to shorten a text.

A turn can be 100 MB long, an open turn is saved with every checkpoint, and what is kept is compressed into
the store: so every field has a cap. Head and tail stay, because people put the question first or last and
programs put the reason of a failure last. Whole texts stay in the wire (``pipeline show``).
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from stages.wire.contract import Redact

Room: TypeAlias = Literal["full", "short", "none"]
"""What a turn still keeps of a call."""

PROMPT = (20_000, 8_000)
"""Head and tail of a prompt, characters: a pasted log keeps its question before and after it."""
AGENT_HEAD = 12_000
AGENT_TAIL = 14_000
"""Agent text of one turn: its first parts and its last ones (the answer is last)."""
AGENT_PART = (10_000, 4_000)
"""One of the last parts."""
ARGS = (3_000, 1_000)
"""One call's arguments: an edit's old and new text mostly fit, a whole written file does not."""
ARGS_SHORT = (300, 100)
"""The same once the turn has used up ``ACTIONS``: paths and flags still fit."""
COMMAND = (3_000, 1_000)
COMMAND_SHORT = (300, 100)
COMMAND_BARE = (100, 0)
ERROR = 2_000
ERROR_SHORT = 300
"""Decisive lines of a failed call's output."""
OUTCOME = 400
"""Last lines of a good command's output: the verdict of a test run, not its dots."""
STEER = (3_000, 1_000)
STEERS = 64
"""Steers that keep their text in one turn; no person steers more often."""
COMPACTION = (4_000, 2_000)
COMPACTIONS = 4
"""Summaries kept per turn; each repeats the ones before it, the last are the ones that count."""
ACTIONS = 24_000
"""Arguments, commands, errors and outcomes of one turn together, before they are kept short."""
ACTIONS_SHORT = 36_000
"""The same, before a call keeps only its path and the beginning of its command."""
CALLS = 2_000
STEPS = 2_000
"""Calls and steps of one turn that are kept at all; what comes later is counted as ``turn-too-long``."""
TOUCHES = 200
"""Paths of one call."""
ID = 200
"""Characters of an id, a tool name, a path segment … that the engine made: longer is not one."""
PATH = 1_000
PATHS = 4_096
"""Redacted paths remembered."""
UNKNOWN_TYPES = 100
"""Distinct unknown record types that are counted by name."""

MARGIN = 8_192
"""How much more than it keeps a cut shows to the redactor, characters: longer than any one-line secret."""

_LONG_SECRETS = ("PRIVATE KEY", "<private")


def clip(text: str, head: int, tail: int, redact: Redact) -> str:
    """``text`` redacted, and if longer than ``head + tail`` cut in the middle with a note of what is missing.

    Secrets are taken out before the cut, with a margin that is then thrown away, so that a cut never leaves
    part of one. Texts with spans that may be longer than the margin (keys, ``<private>``) are shown whole.
    Text outside ASCII counts double, so that the saved state stays within its bound.
    """
    size = len(text)
    if not text.isascii():
        head, tail = head // 2, tail // 2
    if size <= head + tail:
        return redact(text)
    if size <= head + tail + 2 * MARGIN or any(mark in text for mark in _LONG_SECRETS):
        return _cut(redact(text), head, tail)
    front = redact(text[: head + MARGIN])
    back = redact(text[-(tail + MARGIN) :]) if tail else ""
    front = front[: max(0, len(front) - MARGIN)][:head]
    back = back[MARGIN:][-tail:] if tail else ""
    return f"{front}…[{size - len(front) - len(back)} characters left out]…{back}"


def _cut(text: str, head: int, tail: int) -> str:
    left_out = len(text) - head - tail
    if left_out <= 0:
        return text
    return f"{text[:head]}…[{left_out} characters left out]…{text[len(text) - tail :]}"


def weight(text: str) -> int:
    """What a kept text costs against a cap: its characters, doubled outside ASCII."""
    return len(text) if text.isascii() else 2 * len(text)
