"""Answers within their bounds: long texts in pages by cursor, sections shortened in a stated order."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.errors import BadInput
from stages.snippet import FENCE_CLOSE, FENCE_OPEN, boundary, clean, defuse, shorten

FENCE_CHARS = len(FENCE_OPEN) + len(FENCE_CLOSE) + 2
FULL_CHARS = 12_000
"""The bound for which sections state what they keep at least; below it they keep a share of that."""
TAIL_CHARS = 120
"""Room for the line that names the next cursor."""


def fenced(text: str) -> str:
    """Recalled text as data: cleaned of control characters, between the fence's lines; "" stays ""."""
    return f"{FENCE_OPEN}\n{defuse(clean(text))}\n{FENCE_CLOSE}" if text.strip() else ""


def paged(text: str, limit: int, cursor: str | None, about: str, *, head: str = "") -> str:
    """One page of a recalled text, fenced, in at most ``limit`` characters, with the cursor of the next one.

    ``about`` names what is paged: a cursor of something else is refused (BadInput). ``head`` comes first, whole.
    """
    text = defuse(clean(text))
    start = offset_of(cursor, about)
    if start and start >= len(text):
        return f"{head}\nthere is no more".strip()
    room = max(200, limit - len(head) - FENCE_CHARS - TAIL_CHARS)
    end = start + room
    if end < len(text):
        line_end = text.rfind("\n", start + room // 2, end)
        end = line_end + 1 if line_end > 0 else boundary(text, end)
    part = text[start:end].strip("\n")
    lines = [head] if head else []
    lines.append(f"{FENCE_OPEN}\n{part}\n{FENCE_CLOSE}")
    if end < len(text):
        lines.append(f"more: cursor {cursor_at(end, about)} ({end} of {len(text)} characters shown)")
    return "\n".join(lines)


def cursor_at(offset: int, about: str) -> str:
    """A cursor: an offset and a digest of what it is an offset in."""
    return f"{offset}.{hashlib.sha256(about.encode('utf-8', 'replace')).hexdigest()[:8]}"


def offset_of(cursor: str | None, about: str) -> int:
    """The offset a cursor names; 0 without one. Raises BadInput for a cursor of something else."""
    if not cursor:
        return 0
    offset, _, _ = cursor.partition(".")
    if not offset.isdigit() or cursor != cursor_at(int(offset), about):
        raise BadInput(
            f"cursor: {shorten(cursor, 40)!r} is not one of this call",
            hint="Leave it out to begin, then pass the cursor of the answer, with the other arguments unchanged.",
        )
    return int(offset)


@dataclass(slots=True)
class Section:
    """A part of an answer. ``render(limit)`` gives it in at most about ``limit`` characters; ``least`` is what it
    keeps when others need the room. ``rank`` orders the shortening: the lowest gives way first.
    """

    name: str
    rank: int
    least: int
    render: Callable[[int], str]


def fitted(head: str, sections: Sequence[Section], limit: int) -> str:
    """``head`` and the sections in at most ``limit`` characters; what was shortened is named at the end."""
    texts = {section.name: section.render(limit) for section in sections}
    shortened: list[str] = []
    for section in sorted(sections, key=lambda each: each.rank):
        over = _length(head, texts, shortened) - limit
        if over <= 0:
            break
        whole = texts[section.name]
        wanted = max(int(section.least * min(1.0, limit / FULL_CHARS)), len(whole) - over - TAIL_CHARS)
        if wanted < len(whole):
            shortened.append(section.name)
            texts[section.name] = section.render(wanted)
    answer = "\n\n".join(text for text in (head, *texts.values(), _note(shortened)) if text)
    return answer if len(answer) <= limit else _closed(shorten(answer, limit - len(FENCE_CLOSE) - 1))


def _length(head: str, texts: dict[str, str], shortened: Sequence[str]) -> int:
    return len(head) + sum(len(text) + 2 for text in texts.values() if text) + len(_note(shortened)) + 2


def _note(shortened: Sequence[str]) -> str:
    return f"(shortened to fit: {', '.join(shortened)})" if shortened else ""


def _closed(text: str) -> str:
    """A cut text whose fence is closed again."""
    return f"{text}\n{FENCE_CLOSE}" if text.count(FENCE_OPEN) > text.count(FENCE_CLOSE) else text


def counted(number: int, word: str) -> str:
    """``1 turn``, ``2 turns``."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def some_lines(lines: Sequence[str], limit: int, more: str = "{} more") -> str:
    """As many whole lines as fit, then how many are left out (``more`` with their number)."""
    text = "\n".join(lines)
    if len(text) <= limit:
        return text
    kept, used = [], len(more) + 12
    for line in lines:
        used += len(line) + 1
        if used > limit:
            break
        kept.append(line)
    return "\n".join([*kept, "… " + more.format(len(lines) - len(kept))])
