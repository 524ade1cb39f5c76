"""Secrets with a shape of their own: key blocks, URL credentials, cookies, command lines, Kubernetes Secrets.

Byte offsets throughout; every scan is linear in the text, because each search window has a bound or starts
where the last one ended.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stages.secret_commands import scan_commands
from stages.secret_tokens import Span
from stages.secret_values import mixed, placeholder, random_looking

_PEM_HEAD = re.compile(
    rb"-{4,5} ?begin (?:[a-z0-9]{1,16} ){0,3}private key(?: block)? ?-{4,5}", re.IGNORECASE
)
_PEM_LINE = re.compile(rb"[A-Za-z0-9+/=]{16}")
_PEM_TAIL = re.compile(rb"-{4,5} ?end [a-z0-9 ]{0,60}-{4,5}", re.IGNORECASE)
_PEM_BODY = re.compile(
    rb"(?:[\s\"'+>|,]|\\+[nrt]|\\+$|\\+(?=[\r\n])|(?:Proc-Type|DEK-Info|Comment|Version|Hash|Charset|"
    rb"X-[A-Za-z-]{1,30}): ?[^\n\\]{0,200}|"
    rb"[A-Za-z0-9+/=]{16,}|[A-Za-z0-9+/=]{1,15}(?=\s*(?:[\r\n\"']|\\+[nr]|$)))*"
)
_PUTTY = re.compile(
    rb"PuTTY-User-Key-File-\d.{0,2000}?Private-Lines:[ \t]*\d+\s{1,2}((?:[A-Za-z0-9+/=]{1,128}(?:\s{1,2}|"
    rb"\\n|$)){1,400})(?:Private-MAC: ?[0-9a-f]+)?",
    re.DOTALL | re.IGNORECASE,
)
_URL = re.compile(
    rb"://(?P<user>[^\s/@:\"'`<>\\?#|]{0,128}):(?!\d{1,5}(?:[/?#]|$))(?P<password>[^\s@\"'`<>\\|]{1,256})"
    rb"@(?=[\[A-Za-z0-9$%{_-])"
)
_ORACLE = re.compile(
    rb"(?:thin:|sqlplus[ \t]+(?:-\w{1,8}[ \t]+){0,3}|(?:exp|imp)(?:dp)?[ \t]+|sqlldr[ \t]+(?:userid=)?)\\{0,7}[\"']?"
    rb"[\w$#]{1,64}/(?P<password>[^\s/\"'@]{3,128})$"
)
_NO_PASSWORD = frozenset(b" \t\r\n\"'`<>|@/(")
_URL_TOKEN = re.compile(rb"://(?P<password>[A-Za-z0-9_-]{16,256})@")
_DOC_PASSWORDS = frozenset((b"password", b"pass", b"pwd", b"passwd", b"secret", b"token", b"xxx", b"pw"))
_COOKIE = re.compile(rb"(?:cookies?|cookie-?jar)[\"'`]?(?:[ \t]*[:=][ \t]*|[ \t]+)[\"'`]?(?=[\w.%-]{1,80}=)")
_PAIR = re.compile(rb"([\w.%-]{1,80})=(\"?)([^;\s\"'`,\\]{0,4096})\2(?:;[ \t]*|(?=[\s\"'`,\\])|$)")
_FLAGS = re.compile(rb"(?:;[ \t]*)?(?:httponly|secure|partitioned)(?:;[ \t]*|$)", re.IGNORECASE)
_ATTRIBUTES = frozenset(b"path domain expires max-age samesite priority version comment".split())
_SESSION_NAME = re.compile(rb"sess|sid|auth|token|jwt|csrf|xsrf|remember|connect|login|user", re.IGNORECASE)
_SIG = re.compile(rb"[?&;]sig=([A-Za-z0-9%+/=_-]{16,256})")
_PGPASS = re.compile(
    rb"^[A-Za-z0-9.*_-]{1,253}:(?:\d{2,5}|\*):[^:\s]{1,64}:[^:\s]{1,64}:([^:\s]{3,128}?)(?:\\{0,7}[\"'][\"'}\],]*)?[ \t]*$",
    re.MULTILINE,
)
_PGPASS_WITHIN = re.compile(
    rb"(?<=[\s\"':=>|])[A-Za-z0-9.*_-]{1,253}:5432:[^:\s\"\\]{1,64}:[^:\s\"\\]{1,64}:"
    rb"([^:\s\"\\]{3,128})(?=[\s\"\\]|$)"
)
_HOST = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.*_-"
_K8S = re.compile(rb"(?:^|\n)(?:data|stringdata):[ \t]*\r?\n((?:[ \t]+[^\n]{0,8000}(?:\n|$)){1,200})")
_K8S_KIND = re.compile(rb"kind\\{0,7}\":\s{0,8}\\{0,7}\"secret\\{0,7}\"")
_K8S_OBJECT = re.compile(rb"\"(?:data|stringdata)\\{0,7}\":\s{0,8}\{([^{}]{1,8000})\}")
_K8S_PAIR = re.compile(
    rb"\"[\w.-]{1,253}\\{0,7}\":\s{0,8}\\{0,7}\"([A-Za-z0-9+/=!#-\[\]-~]{4,8000}?)\\{0,7}\""
)
_K8S_LINE = re.compile(
    rb"^[ \t]+[\w.-]{1,253}:[ \t]*[\"']?([A-Za-z0-9+/=!-~]{4,8000}?)[\"']?[ \t]*$", re.MULTILINE
)


def may_shape(text: str) -> bool:
    """Whether ``scan_shapes`` could find anything without marks: each of its scans starts at one of these, and a value
    behind ``identified by`` is quoted. One character is found several times as fast as a word.
    """
    return (
        "@" in text
        or "cookie" in text
        or ("=" in text and "sig=" in text)
        or ("5" in text and ":5432:" in text)
        or ("-" in text and ("-u" in text or "redis-cli" in text))
        or ("q" in text and "mysql" in text)
        or ("|" in text and "| sudo" in text)
        or (("'" in text or '"' in text) and "identified by" in text)
    )


def scan_shapes(data: bytes, low: bytes, marks: set[str]) -> Iterator[Span]:
    """Everything of this module that needs no decoding. ``low`` is ``data`` in lower case, ``marks`` what to
    expect.
    """
    if "key-block" in marks:
        yield from _key_blocks(data, low)
    if "putty" in marks:
        for block in _PUTTY.finditer(data):
            yield Span(block.start(1), block.end(), "private-key", block[1])
    if "kubernetes" in marks:
        yield from _kubernetes(data, low)
    if "kubernetes-json" in marks:
        yield from _kubernetes_json(data, low)
    yield from _urls(data)
    yield from _cookies(data, low)
    yield from _signatures(data, low)
    yield from scan_commands(data, low, marks)
    yield from _pgpass(data)


def _hits(data: bytes, needle: bytes, start: int = 0) -> Iterator[int]:
    at = data.find(needle, start)
    while at >= 0:
        yield at
        at = data.find(needle, at + len(needle))


def _key_blocks(data: bytes, low: bytes) -> Iterator[Span]:
    end, tail = 0, -2
    needle = b"-- end" if b"-- end" in low else b"---end"
    for at in _hits(low, b"private key"):
        head = _PEM_HEAD.search(data, max(end, at - 60), at + 32)
        if head is None or head.end() <= at:
            continue
        if tail == -2 or 0 <= tail < head.end():
            tail = low.find(needle, head.end())
        end = _block_end(data, low, head.end(), tail)
        if _PEM_LINE.search(data, head.end(), min(end, head.end() + 1000)):
            yield Span(head.start(), end, "private-key", data[head.start() : end])


def _block_end(data: bytes, low: bytes, at: int, tail: int) -> int:
    """End of the block whose header ends at ``at``; ``tail`` is the next END line, or -1: then the base64
    lines end it.
    """
    if tail >= 0 and low.find(b"-- begin" if low[tail + 3 : tail + 4] == b" " else b"---begin", at, tail) < 0:
        closing = _PEM_TAIL.search(data, max(at, tail - 3), tail + 80)
        if closing is not None:
            return closing.end()
    body = _PEM_BODY.match(data, at)
    end = body.end() if body else at
    return at + len(data[at:end].rstrip(b" \t\r\n\"'+>|,"))


def _urls(data: bytes) -> Iterator[Span]:
    """Passwords in front of an ``@``, which is rarer than ``://`` and found fastest."""
    done = 0
    for at in _hits(data, b"@"):
        if at < done or data[at - 1] in _NO_PASSWORD:
            continue
        start = data.rfind(b"://", max(done, at - 400), at)
        if start < 0:
            match = (
                _ORACLE.search(data, max(done, at - 200), at)
                if data.find(b"/", max(done, at - 130), at) >= 0
                else None
            )
        else:
            match = _URL.match(data, start) or _URL_TOKEN.match(data, start)
        if match is None:
            continue
        done = match.end()
        password = match["password"]
        if placeholder(password) or password.lower() in _DOC_PASSWORDS:
            continue
        if match.re is not _URL_TOKEN or random_looking(password):
            yield Span(match.start("password"), match.end("password"), "url-password", password)


def _cookies(data: bytes, low: bytes) -> Iterator[Span]:
    done = 0
    for at in _hits(low, b"cookie"):
        head = _COOKIE.match(low, at) if at >= done else None
        pos = head.end() if head else -1
        while pos >= 0:
            done = max(done, pos)
            pair = _PAIR.match(data, pos)
            if pair is None:
                flag = _FLAGS.match(data, pos)
                pos = flag.end() if flag and flag.end() > pos else -1
                continue
            pos = pair.end()
            name, value = pair[1].lower(), pair[3]
            telling = _SESSION_NAME.search(name) and len(value) >= 6 and mixed(value)
            if name not in _ATTRIBUTES and not placeholder(value) and (telling or random_looking(value)):
                yield Span(pair.start(3), pair.end(3), "cookie", value)


def _signatures(data: bytes, low: bytes) -> Iterator[Span]:
    for at in _hits(low, b"sig="):
        match = _SIG.match(data, at - 1) if at else None
        if match and mixed(match[1]) and not placeholder(match[1]):
            yield Span(match.start(1), match.end(1), "azure-signature", match[1])


def _pgpass(data: bytes) -> Iterator[Span]:
    """Lines ``host:port:database:user:password`` in a text that has the usual port; within other text (which may be
    ``app.log:5432:…``) only with that port and a password of letters and digits.
    """
    done = 0
    for at in _hits(data, b":5432:"):
        if not done:
            for line in _PGPASS.finditer(data):
                yield Span(line.start(1), line.end(1), "password", line[1])
        before = data[max(done, at - 254) : at]
        within = _PGPASS_WITHIN.match(data, at - len(before) + len(before.rstrip(_HOST)))
        done = within.end() if within else at
        if within and mixed(within[1]) and not placeholder(within[1]):
            yield Span(within.start(1), within.end(1), "password", within[1])


def _kubernetes(data: bytes, low: bytes) -> Iterator[Span]:
    """All values under ``data:`` or ``stringData:`` of a manifest that says ``kind: Secret``."""
    done = 0
    for at in _hits(low, b"kind: secret"):
        if at < done:
            continue
        start = max(low.rfind(b"\n---", max(0, at - 8000), at), at - 8000, done)
        stop = low.find(b"\n---", at, at + 8000)
        done = stop if stop >= 0 else at + 8000
        for block in _K8S.finditer(low, start, done):
            for line in _K8S_LINE.finditer(data, block.start(1), block.end(1)):
                if not placeholder(line[1]):
                    yield Span(line.start(1), line.end(1), "kubernetes-secret", line[1])


def _kubernetes_json(data: bytes, low: bytes) -> Iterator[Span]:
    """The same in JSON (escaped, too): all texts in the object behind ``"data":`` or ``"stringData":``."""
    done = 0
    for kind in _K8S_KIND.finditer(low):
        if kind.start() < done:
            continue
        start, done = max(kind.start() - 8000, done), kind.end() + 8000
        for block in _K8S_OBJECT.finditer(low, start, done):
            for pair in _K8S_PAIR.finditer(data, block.start(1), block.end(1)):
                if not placeholder(pair[1]):
                    yield Span(pair.start(1), pair.end(1), "kubernetes-secret", pair[1])
