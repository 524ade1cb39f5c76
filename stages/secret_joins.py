"""Values written in pieces: string concatenation, adjacent strings, a backslash at the line's end.

A text may itself be an escaped string, so a line end is also ``\\n`` spelled out, and quotes may carry
backslashes.
"""

from __future__ import annotations

import re

from stages.secret_values import random_looking

JOINS = 50
"""A value is followed over this many joins."""

JOINT_BYTES = 48
"""Between two pieces there are at most so many."""

_END = rb"(?:\r?\n|\\{1,2}n)"
_CONCAT = re.compile(
    rb"\\{0,7}[\"'`][ \t]*(?P<operator>[+.&][ \t]*)?(?:\\{0,2}" + _END + rb"[ \t]*)?(?P<after>[+.&][ \t]*)?"
    rb"(?:[rbfuRBFU]{1,2})?\\{0,7}[\"'`]"
)
_CONTINUED = re.compile(rb"\\{1,2}" + _END + rb"[ \t]*")
_PIECE = re.compile(rb"[A-Za-z0-9_+/=.~-]{1,4096}")
_OPEN = re.compile(
    rb"(?:\\{0,7}[\"'`][ \t]*(?:[+.&][ \t]*)?(?:\\{0,2}" + _END + rb"[ \t]*)?(?:[+.&][ \t]*)?\\{0,7}[\"'`]"
    rb"|\\{1,2}" + _END + rb"[ \t]*)$"
)
_FILLER = b" \t\r\n+.&\\n"
_QUOTES = (b'"', b"'", b"`")
_LINE_ENDS = (b"\\\n", b"\\\r\n", b"\\\\n")
"""How a line that continues ends."""


def next_piece(data: bytes, at: int) -> int:
    """Where the text goes on that stops at ``at`` (before a closing quote or a backslash); -1 if it ends
    there.

    Two strings side by side without an operator are one only if the second looks random.
    """
    mark = data[at : at + 1]
    if mark == b"\\" and (continued := _CONTINUED.match(data, at)):
        return continued.end()
    if not mark or mark not in b"\"'`\\":
        return -1
    joint = _CONCAT.match(data, at)
    if joint is None:
        return -1
    if joint["operator"] is None and joint["after"] is None:
        piece = _PIECE.match(data, joint.end())
        if piece is None or not random_looking(piece[0]):
            return -1
    return joint.end()


def joined(data: bytes, start: int, end: int) -> tuple[bytes, int]:
    """The value that starts as ``data[start:end]``, with all its pieces, and the offset where it really
    ends.
    """
    value = data[start:end]
    for _ in range(JOINS):
        at = next_piece(data, end)
        piece = _PIECE.match(data, at) if at >= 0 else None
        if piece is None:
            break
        value, end = value + piece[0], piece.end()
    return value, end


def previous_end(data: bytes, at: int) -> int:
    """Where the piece before the one that starts at ``at`` ends; -1 if nothing is joined there."""
    before = data[max(0, at - JOINT_BYTES) : at]
    if not before[:-1].rstrip(_FILLER).endswith(_QUOTES) and b"\\" not in before:
        return -1
    joint = _OPEN.search(before)
    return at - len(before) + joint.start() if joint else -1


def continued(data: bytes, at: int) -> bool:
    """Whether ``at`` may be where a continued line goes on, behind its indentation."""
    return data[max(0, at - JOINT_BYTES) : at].rstrip(b" \t").endswith(_LINE_ENDS)
