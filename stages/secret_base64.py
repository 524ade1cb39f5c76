"""Base64 in a text: does it start like text, where does it begin and end, what is in it.

Everything works on bytes; a piece of base64 is judged by its first HEAD characters before any is decoded.
"""

from __future__ import annotations

import re
from binascii import Error as Base64Error
from binascii import a2b_base64

HEAD = 20
BLOB_BYTES = 256 * 1024
"""Base64 longer than this is decoded no further."""

BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-"
LONGER = frozenset(b"+/")
"""What base64 holds besides the characters of a run."""

TEXT_IN_BASE64 = re.compile(
    rb"(?:[A-Za-f][A-HQ-Xg-nw-z0-3][ABEFIJMNQRUVYZcdghklopstwx014589][A-Za-z0-9+/_-]){5}"
)
"""HEAD characters of base64 that decode to ASCII: of each four, the bits that make a byte's highest are 0."""

_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_LINE = re.compile(rb"(?:\r?\n|\\n)[ \t]*([A-Za-z0-9+/]{4,}={0,2})(?![^\s\"'\\])")


def readable(data: bytes, at: int) -> bool:
    """Whether the base64 at ``at`` (at least HEAD characters) starts like text: nearly nothing else does, so
    it is hardly ever decoded further.
    """
    return TEXT_IN_BASE64.match(data, at) is not None


def base64_start(data: bytes, start: int) -> int:
    """Where base64 starts that holds one of LONGER before the run at ``start``."""
    if data[start - 1] not in LONGER:
        return start
    before = data[max(0, start - HEAD) : start]
    return start - len(before) + len(before.rstrip(BASE64))


def unpacked(data: bytes, low: bytes, start: int, end: int) -> tuple[int, bytes, bytes | None]:
    """Where base64 really ends (wrapped lines joined), all of it, and its plain text (of UTF-16 too).

    No plain text for what is none: images and other ``data:`` URLs are not decoded unless they are text.
    """
    if not readable(data, start) or low.rfind(b"data:image/", max(0, start - 40), start) >= 0:
        return end, b"", None
    parts, stop = [data[start:end]], end
    while stop - start < BLOB_BYTES and (line := _LINE.match(data, stop)):
        parts.append(line[1])
        stop = line.end()
    whole = b"".join(parts)[:BLOB_BYTES].translate(_URL_SAFE).rstrip(b"=")
    try:
        return stop, whole, a2b_base64(whole + b"=" * (-len(whole) % 4)).replace(b"\0", b"")
    except Base64Error:
        return stop, whole, None
