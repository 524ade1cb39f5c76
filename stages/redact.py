"""Takes secrets out of text, before anything is stored, indexed, shown or sent.

``Redactor(key)`` is called with a text and gives the text with placeholders such as
``[secret:github-token:3f9a1c22]``: the kind, and a keyed digest that is equal for equal secrets under one key
and says nothing about them. A ``<private>…</private>`` span becomes ``[private]``. What is recognised and
what is kept: docs/secrets.md.

Give a text whole: a rule cannot see over the border of two calls. What spans lines (key blocks,
``<private>``, continued and concatenated strings, YAML blocks, Kubernetes manifests) needs all its lines in
one call.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b

from stages.secret_covered import may_be_coloured, scan_coloured, scan_encoded
from stages.secret_names import NEEDLES_CJK, may_assign, may_name, scan_names
from stages.secret_rules import scan_runs
from stages.secret_shapes import may_shape, scan_shapes
from stages.secret_tokens import Span
from stages.secret_values import random_looking

RULES_VERSION = 2
"""Grows with every change of what is recognised: stores made with a smaller one are rebuilt."""

DIGEST_CHARS = 8
PASSES = 4
"""A replaced text is scanned again until nothing changes, so that redacting twice is redacting once."""
NEARBY = 9 * 1024
"""Bytes: no rule looks further from a value than this (a manifest of Kubernetes: 8000)."""
ECHOES = 64
"""At most so many of a text's secrets are looked for in the rest of the text, where no name tells them."""

ECHO_BYTES = 4 * 1024 * 1024
"""… and only as many as make this many bytes of searching (but at least 4)."""

_OURS = re.compile(rb"\[secret:[a-z0-9-]{1,40}:[0-9a-f]{8}\]|\[private\]")
_EDGE = re.compile(rb"(?:<|&lt;)(/?)private(?:\s[^<>]{0,200}?)?(?:>|&gt;)")
_BLOCK_KINDS = frozenset(("private", "private-key"))


class Redactor:
    """``redactor(text)`` gives the text without secrets. Pure but for ``counts``; same key, same text, same
    result.

    ``counts`` adds up replacements by kind; no value is kept. Takes about 20 ms/MB. Raises nothing, whatever
    the text.
    """

    def __init__(self, key: bytes) -> None:
        self._key = blake2b(key, digest_size=32).digest()
        self.counts: Counter[str] = Counter()

    def __call__(self, text: str) -> str:
        data = text.encode("utf-8", "surrogatepass")
        cjk = () if text.isascii() else tuple(word for word in NEEDLES_CJK if word in text)
        spans = _find(data, cjk)
        if not spans:
            return text
        for _ in range(PASSES):
            data, changed = self._replace(data, spans)
            spans = _again(data, changed, cjk)
            if not spans:
                break
        return data.decode("utf-8", "surrogatepass")

    def _replace(self, data: bytes, spans: list[Span]) -> tuple[bytes, list[int]]:
        """The text with placeholders, and where in it they end."""
        pieces: list[bytes] = []
        ends: list[int] = []
        at = length = 0
        for span in spans:
            self.counts[span.kind] += 1
            pieces += (data[at : span.start], self._placeholder(span))
            length += span.start - at + len(pieces[-1])
            ends.append(length)
            at = span.end
        pieces.append(data[at:])
        return b"".join(pieces), ends

    def _placeholder(self, span: Span) -> bytes:
        if span.kind == "private":
            return b"[private]"
        digest = blake2b(span.value, key=self._key, digest_size=DIGEST_CHARS // 2).hexdigest()
        return f"[secret:{span.kind}:{digest}]".encode()


def _find(data: bytes, cjk: Sequence[str]) -> list[Span]:
    """All spans to replace, in order and apart."""
    spans = _scan(data, cjk, deep=True)
    if not spans:
        return []
    merged = _merge(data, spans)
    echoes = _echoes(data, merged)
    return _merge(data, merged + echoes) if echoes else merged


def _again(data: bytes, changed: list[int], cjk: Sequence[str]) -> list[Span]:
    """What a replaced text still holds: only the NEARBY of a placeholder can read differently than before."""
    if len(data) <= 4 * NEARBY:
        return _find(data, cjk)
    spans: list[Span] = []
    start = end = 0
    for place in [*changed, len(data) + 4 * NEARBY]:
        if place - NEARBY > end:
            window = data[start:end]
            spans += [Span(s.start + start, s.end + start, s.kind, s.value) for s in _find(window, cjk)]
            start = _line_start(data, max(end, place - NEARBY))
        end = max(end, _line_start(data, min(len(data), place + NEARBY)))
    return spans


def _line_start(data: bytes, at: int) -> int:
    """The start of the line at ``at``, or of a character, if that line is very long."""
    line = data.find(b"\n", at, at + NEARBY) + 1 if at < len(data) else at
    while not line and at < len(data) and data[at] & 0xC0 == 0x80:
        at += 1
    return line or at


def _scan(data: bytes, cjk: Sequence[str], *, deep: bool) -> list[Span]:
    # Most texts are short and clean, so little is called for them but tests of what could be there; as a str,
    # since ``in`` takes a third of the time there that it takes in bytes.
    low = data.lower()
    text = low.decode("latin-1")
    private = ("<" in text and "<private" in text) or ("&" in text and "&lt;private" in text)
    spans = _private(low) if private else []
    spans += scan_runs(data, low, _holds_secret if deep else None)
    marks: set[str] = set()
    assigned = "=" in text and may_assign(text)
    if assigned or cjk or may_name(text):
        spans += scan_names(data, low, cjk, marks, assigned=assigned)
    if marks or may_shape(text):
        spans += scan_shapes(data, low, marks)
    if deep and "%" in text:
        spans += scan_encoded(data, _flat)
    if deep and ("\x1b" in text or "\\" in text) and may_be_coloured(text):
        spans += scan_coloured(data, _flat)
    if spans and (b"[secret:" in data or b"[private]" in data):
        ours = [match.span() for match in _OURS.finditer(data)]
        spans = [span for span in spans if span.kind in _BLOCK_KINDS or not _touches(span, ours)]
    return spans


def _flat(plain: bytes) -> list[Span]:
    return _merge(plain, _scan(plain, NEEDLES_CJK, deep=False))


def _holds_secret(plain: bytes) -> bool:
    return bool(_scan(plain, NEEDLES_CJK, deep=False))


def _touches(span: Span, ours: list[tuple[int, int]]) -> bool:
    """Whether the span meets one of ``ours``, which are in order and apart."""
    index = bisect_left(ours, (span.end, 0)) - 1
    return index >= 0 and ours[index][1] > span.start


def _private(low: bytes) -> list[Span]:
    """``<private>`` spans, nested ones as one, an unclosed one to the end of the text.

    An opening that is never closed and stands alone in quotes, or is escaped as HTML, is a mention of the tag:
    ```<private>```.
    """
    spans: list[Span] = []
    start, depth = -1, 0
    last_close = max(low.rfind(b"</private"), low.rfind(b"&lt;/private"))
    for edge in _EDGE.finditer(low):
        if edge[1] and depth:
            depth -= 1
            if depth == 0:
                spans.append(Span(start, edge.end(), "private", b""))
        elif not edge[1] and (edge.start() < last_close or not _mentioned(low, edge.start(), edge.end())):
            start, depth = (edge.start() if depth == 0 else start), depth + 1
    if depth:
        spans.append(Span(start, len(low), "private", b""))
    return spans


def _mentioned(data: bytes, start: int, end: int) -> bool:
    mark = data[end : end + 1]
    quoted = mark == data[start - 1 : start] and mark in (b"`", b'"', b"'")
    return quoted or data.startswith(b"&", start)


def _merge(data: bytes, spans: list[Span]) -> list[Span]:
    """In order; overlapping ones become one of the widest's kind. At equal width the first found (the
    provider) wins.
    """
    merged: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        if not merged or span.start >= merged[-1].end:
            merged.append(span)
            continue
        last = merged[-1]
        if span.end > last.end:
            wide = last if last.end - last.start >= span.end - span.start else span
            merged[-1] = Span(last.start, span.end, wide.kind, data[last.start : span.end])
    return merged


def _echoes(data: bytes, spans: list[Span]) -> list[Span]:
    """Further places in the text where a value that was found stands by itself."""
    values: dict[bytes, str] = {}
    for span in spans:
        if span.kind not in _BLOCK_KINDS and len(span.value) >= 8 and random_looking(span.value):
            values.setdefault(span.value, span.kind)
    echoes: list[Span] = []
    for value in list(values)[: max(4, min(ECHOES, ECHO_BYTES // len(data)))]:
        at = data.find(value)
        while at >= 0:
            echoes.append(Span(at, at + len(value), values[value], value))
            at = data.find(value, at + len(value))
    return echoes
