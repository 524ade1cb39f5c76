"""Secrets that show by themselves: tokens of known providers, JSON web tokens, base64 around any of them.

Every such token has a run of at least RUN letters, digits, ``_`` and ``-``. Runs are found by one translated
search for RUN zero bytes (2 ms/MB), so no pattern is tried anywhere else. All functions work on UTF-8 bytes,
yield spans in byte offsets, and take time linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from stages.secret_base64 import BASE64, LONGER, base64_start, unpacked
from stages.secret_joins import joined, previous_end
from stages.secret_plain import (
    AROUND,
    ASKED,
    ASKED_ESCAPED,
    CONTEXT,
    DOT,
    ESCAPES,
    HEADLESS,
    HEADS,
    HINTS,
    ODD,
    PLAIN,
    ends_head,
    in_longer,
    telling,
)
from stages.secret_tokens import Span, token_at
from stages.secret_values import mixed, placeholder, random_looking, user_and_password

RUN = 20
MISSES = 64
"""So many heads of tokens that are none may stand in one run before the rest of it is taken for encoded
data.
"""


Nested = Callable[[bytes], bool]
"""Whether decoded text holds a secret."""

_CLASS = bytes(0 if chr(c) in "_-" or (c < 128 and chr(c).isalnum()) else 1 for c in range(256))
_NEEDLE = bytes(RUN)
UUID_CHARS = 36
GITHUB_CHARS = 40
"""A classic token of GitHub."""
_NEXT_LINE = re.compile(rb"\r?\n([A-Za-z0-9]{1,20})(?![A-Za-z0-9_])")
_BLOB = re.compile(rb"[A-Za-z0-9+/_-]+={0,2}")

_HEAD = re.compile(HEADS)
_INNER_HEAD = re.compile(rb"[_/+=-](?=" + HEADS + rb")")
_HEX = re.compile(rb"(?:[0-9a-f-]{20,}+|[0-9A-F-]{20,}+)(?![A-Za-z0-9+/_=])")
_COMMA = 44
_SLASH = 47
_TILDE = 126
_EQUALS = 61
_WEBHOOK = re.compile(
    rb"(?:hooks\.)?(slack|discord)(?:app)?\.com/(?:services|workflows|api/webhooks)/(?:[a-z0-9]{1,20}/){1,3}"
)
_COLOUR = re.compile(rb"(?<=[\[;])[0-9]{1,3}m")
_OPENING = frozenset(b"\"'` \t")
_ASSIGNING = frozenset(b"=:([{,>")
_MARKS = frozenset(b".:")
_SIGNS = frozenset(b"/%~")
_BEFORE_DOT = re.compile(rb"(?:hv[sbr]|dp\.[a-z]{2,5}(?:\.[a-z0-9_-]{2,35})?|SG|ya29|v1)\.$")
_TELEGRAM_ID = re.compile(rb"(?<![0-9])[0-9]{8,10}:$")
_UUID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$", re.IGNORECASE)
_GOOGLE_CODE = re.compile(rb"(?<![A-Za-z0-9/])4(?:/|%2[Ff])0[A-Za-z0-9_-]{30,}")
_AZURE_CLIENT = re.compile(
    rb"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~-])"
)
_UUID_NEAR = re.compile(rb"(heroku)|qyapi\.weixin")
_UUID_HOOK = re.compile(rb"(?:feishu\.cn|larksuite\.com)/[a-z0-9/-]{1,40}/hook/$")
_SIGNATURE = b"x-amz-signature=", b"x-goog-signature="
_SHELL_SK = re.compile(rb"[A-Z0-9]_SK=[\"']?$")
_ESCAPED = re.compile(rb"\\[nrtbf]$|%[0-9A-Fa-f]{2}$|[\[;][0-9]{1,3}m$")
_NEAR = {
    "aws-access-key": (
        "aws-secret-key",
        re.compile(rb"(?<![A-Za-z0-9/+=_-])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=_-])"),
    ),
    "alibaba-access-key": (
        "alibaba-secret-key",
        re.compile(rb"(?<![A-Za-z0-9_-])[A-Za-z0-9]{30}(?![A-Za-z0-9_-])"),
    ),
    "tencent-access-key": (
        "tencent-secret-key",
        re.compile(rb"(?<![A-Za-z0-9_-])[A-Za-z0-9]{32}(?![A-Za-z0-9_-])"),
    ),
}
_NEAR_BYTES = 400
_SCHEME = re.compile(rb"(?:^|[^a-z])(bearer|basic|token|apikey)[ \t]+[\"']?$")
_SESSION = re.compile(rb"(?:sess(?:ion)?[a-z_.-]{0,12}|[a-z._-]{0,12}sid|jsessionid)[\"']?[=:]\s?[\"']?$")
_CODE = re.compile(rb"[?&\s\"'](?:code|device_code|auth_code|authorization_code)[\"']?[=:]\s?[\"']?$")
_OAUTH_NEAR = re.compile(rb"state=|redirect|oauth|callback|grant_type|client_id|scope=")


def scan_runs(data: bytes, low: bytes, nested: Nested | None) -> Sequence[Span]:
    """Secrets in and around every long run. ``low`` is ``data`` in lower case; ``nested`` judges decoded
    base64.

    This loop runs some thousand times a MB: nearly every run is plain.
    """
    runs = data.translate(_CLASS)  # a zero byte for each byte of a run
    at = runs.find(_NEEDLE)
    if at < 0:
        return ()
    spans: list[Span] = []
    find, plain = runs.find, PLAIN.match
    asked = ASKED_ESCAPED if b"\\" in data else ASKED
    decoded = 0
    while at >= 0:
        run = plain(data, at)
        if run is None or (data[at - 1] in asked and telling(data, low, at)):
            end, decoded = _scan_run(data, low, at, decoded, nested, spans)
        else:
            end = run.end()
        at = find(_NEEDLE, end)
    return spans


def _scan_run(
    data: bytes, low: bytes, at: int, decoded: int, nested: Nested | None, spans: list[Span]
) -> tuple[int, int]:
    """Adds to ``spans`` what the run at ``at`` holds; gives its end, and up to where base64 was decoded."""
    run = HEADLESS.match(data, at)
    end = (run or _BLOB.match(data, at)).end()  # type: ignore[union-attr]  # a run is a blob
    before = data[at - 1]
    if before in HINTS and (near := _near_run(data, low, at, end)) is not None:
        spans.append(near)
        return max(end, near.end), decoded
    if before in _SIGNS and (known := _behind_sign(data, low, at, end)) is not None:
        spans.append(known)
        return max(end, known.end), decoded
    if (run is None or before in ODD or (before in LONGER and in_longer(data, low, at))) and not _HEX.match(
        data, at
    ):
        found = list(_in_run(data, low, at, end))
        if not found and nested is not None and at >= decoded:
            whole, decoded = _base64(data, low, at, end, nested)
            found, end = ([whole], max(end, decoded)) if whole else (found, end)
        spans += found
        end = max(end, *(span.end for span in found)) if found else end
    return end, decoded


def _near_run(data: bytes, low: bytes, at: int, end: int) -> Span | None:
    """A secret that what stands before the run tells."""
    before = data[at - 1]
    if before in _MARKS:
        span = _behind_mark(data, at)
        if span is not None:
            return span
    if low[max(0, at - 14) : at].rstrip(AROUND).endswith(CONTEXT):
        span = _by_context(data, low, at, end)
        if span is not None:
            return span
    if before == _EQUALS and low.endswith(_SIGNATURE, max(0, at - 20), at):
        return Span(at, end, "url-signature", data[at:end])
    if end - at == UUID_CHARS and _UUID.match(data, at, end):
        near = _UUID_NEAR.search(low, max(0, at - 64), at)
        if near is not None:
            return Span(at, end, "heroku-key" if near[1] else "wecom-webhook", data[at:end])
    if low.find(b"_sk=", max(0, at - 5), at) >= 0 and _SHELL_SK.search(data[max(0, at - 8) : at]):
        value = data[at:end]
        return Span(at, end, "key", value) if random_looking(value) and mixed(value) else None
    return _split(data, at) if before in _OPENING and data[at - 2] not in _ASSIGNING else None


def _behind_sign(data: bytes, low: bytes, at: int, end: int) -> Span | None:
    """A secret in which the run at ``at`` stands behind a slash, a percent sign or a tilde."""
    before = data[at - 1]
    if before == _SLASH and end - at == UUID_CHARS and _UUID.match(data, at, end):
        hook = _UUID_HOOK.search(low[max(0, at - 64) : at])
        return Span(at, end, "feishu-webhook", data[at:end]) if hook else None
    if before == _TILDE:
        client = _AZURE_CLIENT.match(data, max(0, at - 6))
        return Span(*client.span(), "azure-client-secret", client[0]) if client else None
    code = _GOOGLE_CODE.match(data, max(0, at - 2))
    return Span(*code.span(), "oauth-code", code[0]) if code and random_looking(code[0]) else None


def _split(data: bytes, at: int) -> Span | None:
    """A token whose head stands in the piece before this run: ``"ghp_" + "…"``."""
    stop = previous_end(data, at)
    if stop < 0:
        return None
    left = data[max(0, stop - 64) : stop]
    start = stop - len(left) + len(left.rstrip(BASE64))
    value, end = joined(data, start, stop)
    token = token_at(value, 0)
    return Span(start, end, token.kind, value) if token and token.end == len(value) else None


def _in_run(data: bytes, low: bytes, at: int, end: int) -> Iterator[Span]:
    """Secrets in a run that is not just hexadecimal."""
    before = data[at - 1]
    if (
        before == _SLASH
        and low.find(b".com/", max(0, at - 64), at) >= 0
        and (hook := _WEBHOOK.search(low, max(0, at - 64), at))
        and hook.end() == at
    ):
        yield Span(at, end, f"{hook[1].decode()}-webhook", data[at:end])
        return
    if not (before == _COMMA and low.endswith(b";base64,", max(0, at - 80), at)):
        yield from _in_blob(data, at, end)


def _in_blob(data: bytes, start: int, end: int) -> Iterator[Span]:
    """Tokens in ``[start, end)``: at its start, behind an escape that runs into it, behind a separator."""
    at, misses = start, 0
    first = [start]
    if start and data[start - 1] in ESCAPES:
        first += (start + 1, start + 2)
    elif (colour := _COLOUR.match(data, start)) is not None:
        first.append(colour.end())
    for head in chain(first, (inner.end() for inner in _INNER_HEAD.finditer(data, start, end))):
        if head < at or not _HEAD.match(data, head) or not _boundary(data, head):
            continue
        token = token_at(data, head)
        value, stop = joined(data, head, token.end if token else end)
        if token is None and stop > end:
            token = token_at(value, 0)
        if token is None:
            misses += 1
            if misses == MISSES:
                break
            continue
        if token.kind == "github-token" and len(value) < GITHUB_CHARS:
            value, stop = _wrapped(data, value, stop)
        token = Span(head, stop, token.kind, value)
        at = stop
        yield token
        if token.kind in _NEAR:
            yield from _partners(data, token)


def _wrapped(data: bytes, value: bytes, stop: int) -> tuple[bytes, int]:
    """A classic token of GitHub with what a terminal wrapped to the next line: so much as is missing, no more."""
    rest = _NEXT_LINE.match(data, stop)
    if rest is None or len(value) + len(rest[1]) != GITHUB_CHARS or not mixed(rest[1]):
        return value, stop
    return value + rest[1], rest.end()


def _boundary(data: bytes, at: int) -> bool:
    """Whether a token may start at ``at``: behind a non-word byte, an escape such as ``\\n``, or ``%3D``."""
    if at == 0 or _CLASS[data[at - 1]]:
        return True
    before = data[at - 1 : at]
    if before in (b"_", b"-"):
        return data[at : at + 3] != b"eyJ"
    return bool(_ESCAPED.search(data[max(0, at - 5) : at]))


def _behind_mark(data: bytes, start: int) -> Span | None:
    """Tokens whose head ends in a dot or colon just before the run."""
    before = data[start - 1] if start else 0
    if before == DOT:
        if not ends_head(data, start):
            return None
        head = _BEFORE_DOT.search(data[max(0, start - 48) : start])
        return token_at(data, start - (len(head[0]))) if head else None
    if before == 58 and data[start : start + 2] == b"AA":  # :
        head = _TELEGRAM_ID.search(data[max(0, start - 12) : start])
        return token_at(data, start - len(head[0])) if head else None
    return None


def _by_context(data: bytes, low: bytes, start: int, end: int) -> Span | None:
    """A run that its surroundings tell: an authorization scheme, a session, an OAuth code."""
    before = low[max(0, start - 32) : start]
    last = before[-1:]
    value = data[start:end]
    if last in (b" ", b"\t", b'"', b"'") and (scheme := _SCHEME.search(before)):
        if scheme[1] == b"basic":
            return Span(start, end, "basic-auth", value) if user_and_password(value) else None
        stop = _bearer_end(data, end)
        if not placeholder(value) and (random_looking(value) or (scheme[1] == b"bearer" and mixed(value))):
            return Span(start, stop, "bearer-token", data[start:stop])
    if last in (b"=", b":", b" ", b'"', b"'"):
        if _SESSION.search(before) and random_looking(value) and not _UUID.match(value):
            return Span(start, end, "session", value)
        if _CODE.search(before) and _OAUTH_NEAR.search(low[max(0, start - 300) : end + 300]) and mixed(value):
            return Span(start, end, "oauth-code", value)
    return None


_BEARER = re.compile(rb"[A-Za-z0-9._~+/=-]{0,4096}")


def _bearer_end(data: bytes, at: int) -> int:
    rest = _BEARER.match(data, at)
    end = rest.end() if rest else at
    return end - 1 if data[end - 1 : end] == b"." and end > at else end


def _partners(data: bytes, token: Span) -> Iterator[Span]:
    """The secret half that stands near an access key id (WIRE has both in one tool result as a rule)."""
    kind, pattern = _NEAR[token.kind]
    start = max(0, token.start - _NEAR_BYTES)
    for match in pattern.finditer(data, start, token.end + _NEAR_BYTES):
        value = match[0]
        apart = match.end() <= token.start or match.start() >= token.end
        if apart and random_looking(value) and value != value.lower() and value != value.upper():
            yield Span(match.start(), match.end(), kind, value)


def _base64(data: bytes, low: bytes, start: int, end: int, nested: Nested) -> tuple[Span | None, int]:
    """Base64 whose plain text holds a secret, and where the base64 ends."""
    start = base64_start(data, start)
    stop, whole, plain = unpacked(data, low, start, end)
    found = plain is not None and nested(plain)
    return Span(start, stop, "base64-secret", whole) if found else None, stop
