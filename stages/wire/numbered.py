"""Text with a number before each line, as Read gives it: redacted without the numbers, shown with them.

The numbers stand in the way of what spans lines: wrapped base64, manifests, blocks, continued strings (WIRE §4.3).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from stages.wire.contract import Redact

_NUMBERED = re.compile(r"( *\d{1,9}\t)(.*)", re.DOTALL)
_FIRST = re.compile(r" *\d{1,9}\t")


def redacted(text: str, redact: Redact) -> str:
    """``text`` redacted; lines whose numbers count up from the first one's are redacted without their numbers.

    A line in which a secret of several lines was keeps the first number of these; the lines behind have their own.
    """
    if _FIRST.match(text) is None:
        return redact(text)
    numbers: list[str] = []
    plain: list[str] = []
    lines = text.split("\n")
    for line in lines:
        parts = _NUMBERED.fullmatch(line)
        if parts is None or (numbers and int(parts[1]) != int(numbers[-1]) + 1):
            break
        numbers.append(parts[1])
        plain.append(parts[2])
    rest = lines[len(plain) :]
    whole = "\n".join([*plain, *rest])
    shown = redact(whole)
    return text if shown == whole else _with_numbers(shown.split("\n"), [*plain, *rest], numbers)


def _with_numbers(shown: Sequence[str], lines: list[str], numbers: Sequence[str]) -> str:
    """The redacted lines with the numbers of the lines they were; those behind the numbered ones had none.

    Redaction makes lines fewer, never more: behind one with a placeholder, the next without is looked for among as
    many as are missing.
    """
    missing = len(lines) - len(shown)
    made, at = [], 0
    for line in shown:
        if missing and line != lines[at] and "[secret:" not in line and "[private]" not in line:
            found = next((i for i in range(at, at + missing + 1) if lines[i] == line), at)
            missing, at = missing - (found - at), found
        made.append(numbers[at] + line if at < len(numbers) else line)
        at += 1
    return "\n".join(made)
