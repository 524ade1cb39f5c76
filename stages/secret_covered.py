"""Secrets in text with something within: URL encoding (``password%3D…``), the colours of a terminal.

The text is uncovered, judged, and what is found there mapped back. Byte offsets throughout; linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from urllib.parse import unquote_to_bytes

from stages.secret_tokens import Span

Nested = Callable[[bytes], list[Span]]

_WORD = re.compile(rb"[!#-&(-;=?-\[\]-_a-~]{1,2048}")
_ESCAPE = re.compile(
    rb"(?:\x1b|\\{1,7}(?:u00|x)1[bB])(?:\[[0-9;?]{0,32}[A-Za-z]|\][^\x07\x1b\n\\]{0,256}(?:\x07|\x1b\\))"
)


def may_be_coloured(text: str) -> bool:
    """Whether an escape of a terminal may be in the text, or one spelled out (``\\u001b[``)."""
    return "\x1b" in text or ("\\" in text and "1b[" in text)


def scan_coloured(data: bytes, nested: Nested) -> Iterator[Span]:
    """Secrets in a text with escapes of a terminal in it, as one reads it there (``password\\x1b[0m: …``)."""
    starts: list[int] = []  # in the text without escapes, with where each piece stood
    places: list[int] = []
    pieces: list[bytes] = []
    at = length = 0
    for escape in _ESCAPE.finditer(data):
        starts.append(length)
        places.append(at)
        pieces.append(data[at : escape.start()])
        length += escape.start() - at
        at = escape.end()
    if not at:
        return
    starts.append(length)
    places.append(at)
    for span in nested(b"".join((*pieces, data[at:]))):
        first = bisect_right(starts, span.start) - 1
        last = bisect_right(starts, span.end - 1) - 1
        start = span.start - starts[first] + places[first]
        yield Span(start, span.end - starts[last] + places[last], span.kind, span.value)


def scan_encoded(data: bytes, nested: Nested) -> Iterator[Span]:
    """Secrets in URL-encoded words (``password%3D…``): decoded, judged by ``nested``, mapped back."""
    done = 0
    at = -1
    while (at := data.find(b"%", at + 1)) >= 0:
        if at < done or data[at + 1 : at + 2] != b"3":
            continue
        start = at
        while start > max(done, at - 512) and _WORD.match(data, start - 1, start):
            start -= 1
        word = _WORD.match(data, start)
        done = word.end() if word else at + 2
        offsets, plain = _decoded(data[start:done])
        for span in nested(plain):
            yield Span(start + offsets[span.start], start + offsets[span.end], span.kind, span.value)


def _decoded(word: bytes) -> tuple[list[int], bytes]:
    """The word without ``%XX``, and for each of its bytes (and its end) the offset in the word."""
    offsets: list[int] = []
    plain = bytearray()
    at = 0
    while at < len(word):
        step = 3 if word[at] == 37 and re.match(rb"%[0-9A-Fa-f]{2}", word[at : at + 3]) else 1
        offsets.append(at)
        plain += unquote_to_bytes(word[at : at + step])
        at += step
    offsets.append(len(word))
    return offsets, bytes(plain)
