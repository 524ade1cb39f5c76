"""Secrets that their name tells: ``DB_PASSWORD=…``, ``"apiKey": "…"``, ``--token …``, ``密码是 …``.

The text is searched for a few short needles (NEEDLES, in the lower-cased bytes); a bounded pattern then decides at
each hit whether a name ends there, what separates it from a value, and where the value ends. Spans are byte offsets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stages.secret_rules import Span
from stages.secret_values import Form, Name, is_secret, name_strength, placeholder

NEEDLES = (b"pass", b"pwd", b"secret", b"token", b"key", b"auth", b"cred")
NEEDLES_CJK = ("密".encode(), "令".encode())
JOINS = 50
"""A value written in pieces is followed over this many joins."""

_AFTER = re.compile(
    rb"[a-z0-9_-]{0,40}(?P<close>\\{0,3}[\"'`]?\]?(?:\[\d{0,4}\])?\*{0,2}>?)"
    rb"(?P<sep>[ \t]*(?:=>|:=|={1,3}|!==?|\xef\xbc\x9a|:|\xef\xbc\x9d)[ \t]*|[ \t]{1,8}(?:is|was)[ \t:]{1,8}|"
    rb"[ \t]*(?:\xe6\x98\xaf|\xe4\xb8\xba)[\xef\xbc\x9a: \t]{0,8}|[ \t]{1,8}|\([ \t]*(?=\\{0,3}[\"'`])|,[ \t]*(?=\\{0,3}[\"'`])|(?<=>))"
)
_CJK_NAME = re.compile(
    "(?:密码|口令|密钥|密匙|令牌|通行码)".encode()
    + rb"(?P<close>\\{0,3}[\"'`]?\]?\*{0,2})(?:\([^()\n]{0,40}\)|\xef\xbc\x88[^\n]{0,40}?\xef\xbc\x89)?"
    + b"(?P<sep>[ \t]*(?:"
    + "(?:就|应该|现在)?(?:是|为|设为|设置为|设成|改成|改为|用的是|用)".encode()
    + rb"[ \t]*(?:\xef\xbc\x9a|:)?|\xef\xbc\x9a|\xef\xbc\x9d|:|={1,3}|=>)[ \t]*|[ \t]{1,8})"
    + "(?:[“‘「『【《]{0,1})".encode().replace("[“‘「『【《]".encode(), "(?:“|‘|「|『|【|《)".encode())
)
_BEFORE = re.compile(rb"[A-Za-z0-9_-]*$")
_BARE = re.compile(
    rb"[^\s\"'`<>,;&|(){}\[\]\\\x00-\x20\x7f-\xff][^\s\"'`<>,;&|(){}\[\]\\\x00-\x20\x7f-\xff]{0,511}"
)
_BARE_WIDE = re.compile(rb"[^\s\"'`\\\x00-\x20\x7f-\xff]{1,512}")
_QUOTE = re.compile(rb"(?:[rbfuRBFU]{1,2}|@|\$)?(?P<open>\\{0,7}(?P<quote>\"\"\"|'''|[\"'`]))")
_BODY = {
    b'"': re.compile(rb"(?:[^\"\\\n]|\\(?s:.)){0,2000}"),
    b"'": re.compile(rb"(?:[^'\\\n]|\\(?s:.)){0,2000}"),
    b"`": re.compile(rb"(?:[^`\\]|\\(?s:.)){0,2000}"),
}
_CONCAT = re.compile(
    rb"[ \t]*(?:(?:[+.]|\\{1,2}(?=\r?\n|n))?(?:[ \t]*(?:\r?\n|\\{1,2}n))?[ \t]*[+.]?[ \t]*)(?P<open>\\{0,7}[\"'`])"
)
_CONTINUED = re.compile(rb"\\{1,2}(?:\r?\n|\\?n)[ \t]*")
_SCHEME = re.compile(rb"(?:bearer|basic|token|apikey|digest|negotiate|aws4-hmac-sha256)[ \t]+", re.IGNORECASE)
_ANNOTATED = re.compile(
    rb"[ \t]*&?(?:'static )?[A-Za-z_][A-Za-z_0-9.]{0,40}(?:\[[^\[\]\n]{0,40}\])?(?:[ \t]*\|[ \t]*[A-Za-z]{1,16})?\??[ \t]*=[ \t]*"
)
_BLOCK = re.compile(
    rb"[|>][+-]?[1-9]?[ \t]*\r?\n(?P<indent>[ \t]+)(?P<text>\S[^\n]{0,4000}(?:\n(?P=indent)\S[^\n]{0,4000}){0,200})"
)
_LOGIN = re.compile(rb"(?:^|\s)(?:login|machine|default)\s+\S+[\s\S]{0,120}$")
_ENV_NAME = re.compile(rb"[A-Z][A-Z0-9_]*$")

_MARKS = {b"ivate ": "key-block", b"-user-": "putty", b"kind: ": "kubernetes"}
_MARK_ENDS = b" -"


def scan_names(data: bytes, low: bytes, cjk: bool, marks: set[str]) -> Iterator[Span]:
    """Values behind telling names. ``low`` is ``data`` in lower case, same length; ``cjk``: Chinese names too.

    Adds to ``marks`` what ``scan_shapes`` should look for, since the needles were searched anyway.
    """
    for needle in NEEDLES:
        at = low.find(needle)
        while at >= 0:
            step = at + len(needle)
            if data[at - 1] in _MARK_ENDS and (mark := _MARKS.get(low[at - 6 : at])):
                marks.add(mark)
            after = _AFTER.match(low, step)
            if after is not None and (span := _behind(data, low, at, after)):
                yield span
                step = max(step, span.end)
            at = low.find(needle, step)
    if cjk:
        for needle in NEEDLES_CJK:
            at = low.find(needle)
            while at >= 0:
                start = at - 3 if low[at - 3 : at] == "口".encode() else at
                named = _CJK_NAME.match(low, start)
                if named is not None and (span := _chinese(data, start, named)):
                    yield span
                at = low.find(needle, at + 3)


def _chinese(data: bytes, start: int, named: re.Match[bytes]) -> Span | None:
    word = data[start : start + 6].decode("utf-8", "replace")
    strong = word in ("密码", "口令", "通行码")
    return _value(
        data,
        named.end(),
        Name.PASSWORD if strong else Name.TOKEN,
        Form.LOOSE,
        (strong and "password") or "token",
    )


def _behind(data: bytes, low: bytes, at: int, after: re.Match[bytes]) -> Span | None:
    """The secret behind the name around the needle at ``at``; ``after`` matched the rest of the name and a separator."""
    left = _BEFORE.search(data, max(0, at - 48), at)
    start = left.start() if left else at
    name_end = after.start("close")
    strength = name_strength(data[start:name_end])
    if strength == Name.NOTHING:
        return None
    sep = after["sep"].strip()
    value_at = after.end()
    flag = data[start : start + 1] == b"-"
    if after["close"].endswith(b">"):
        if sep or data[start - 1 : start] != b"<":
            return None
        form = Form.QUOTED
    elif not sep:
        if not flag and not (strength >= Name.PASSWORD and _LOGIN.search(low, max(0, start - 160), start)):
            return None
        form = Form.TIGHT
    elif sep in (b"(", b","):
        form = Form.LOOSE
    else:
        tight = after["sep"] == b"=" and not data[value_at - 2 : value_at - 1].isspace()
        form = Form.TIGHT if tight else Form.LOOSE
    wide = form == Form.TIGHT and bool(_ENV_NAME.match(data[start:name_end]))
    if (
        sep == b":"
        and (annotated := _ANNOTATED.match(data, value_at))
        and data[annotated.end() - 1 : annotated.end() + 1] != b"=="
    ):
        value_at = annotated.end()
    return _value(data, value_at, strength, form, _kind(strength, low[start:name_end]), wide=wide)


def _kind(strength: Name, name: bytes) -> str:
    if strength >= Name.PASSWORD:
        return "secret" if b"secret" in name else "password"
    return "key" if b"key" in name else "token"


def _value(data: bytes, at: int, name: Name, form: Form, kind: str, *, wide: bool = False) -> Span | None:
    """The value that starts at ``at``, if it is a secret: quoted (pieces joined), a YAML block, or bare."""
    opened = _QUOTE.match(data, at)
    if opened is not None:
        return _quoted(data, opened, name, form, kind)
    if (block := _BLOCK.match(data, at)) is not None:
        value = re.sub(rb"\s+", b"", block["text"])
        return (
            Span(block.start("text"), block.end("text"), kind, value)
            if is_secret(value, name, Form.QUOTED)
            else None
        )
    scheme = _SCHEME.match(data, at)
    if scheme is not None:
        at = scheme.end()
    bare = (_BARE_WIDE if wide else _BARE).match(data, at)
    if bare is None:
        return None
    value, end = bare[0].rstrip(b".,;:!?)]}" if wide else b".,:!?"), bare.end()
    end = at + len(value)
    while (joint := _CONTINUED.match(data, end)) and (more := _BARE.match(data, joint.end())):
        value, end = value + more[0], more.end()
    if scheme is not None:
        good = (
            len(value) >= 4
            and not placeholder(value)
            and (name == Name.TOKEN or is_secret(value, name, Form.TIGHT))
        )
        return Span(at, end, "authorization", value) if good and not value.isalpha() else None
    if form != Form.QUOTED and _is_code(data, end, form):
        return None
    return Span(at, end, kind, value) if is_secret(value, name, form) else None


def _is_code(data: bytes, end: int, form: Form) -> bool:
    """Whether what follows a bare value shows an expression: a call, an index, a keyword argument."""
    following = data[end : end + 1]
    if following in (b"(", b"["):
        return True
    return False


def _quoted(data: bytes, opened: re.Match[bytes], name: Name, form: Form, kind: str) -> Span | None:
    start, end, stop = _string(data, opened.end(), opened["open"])
    if end < 0:
        return None
    pieces = [data[start:end]]
    for _ in range(JOINS):
        joint = _CONCAT.match(data, stop)
        if joint is None or (joint.end("open") - joint.start("open") == 1 and stop == joint.start("open")):
            break
        piece, piece_end, piece_stop = _string(data, joint.end(), joint["open"])
        if piece_end < 0 or data[piece_stop : piece_stop + 1] in (b":", b"="):
            break
        pieces.append(data[piece:piece_end])
        end, stop = piece_end, piece_stop
    value = re.sub(rb"\\{1,2}(?:\r?\n|\\?n)[ \t]*", b"", b"".join(pieces))
    scheme = _SCHEME.match(value)
    if scheme is not None and scheme.end() < len(value):
        rest = value[scheme.end() :]
        good = (
            name >= Name.AUTH
            and len(rest) >= 4
            and not placeholder(rest)
            and b" " not in rest
            and not rest.isalpha()
        )
        return Span(start + scheme.end(), end, "authorization", rest) if good else None
    strong = (
        Form.LOOSE
        if form == Form.LOOSE and data[opened.start() - 1 : opened.start()] in (b"(", b",")
        else Form.QUOTED
    )
    return Span(start, end, kind, value) if is_secret(value, name, strong) else None


def _string(data: bytes, at: int, opening: bytes) -> tuple[int, int, int]:
    """Start and end of a string's text, and the offset behind its closing quote; end is -1 if it is not closed."""
    if len(opening) == 1:
        body = _BODY[opening].match(data, at)
        end = body.end() if body else at
        return (at, end, end + 1) if data[end : end + 1] == opening else (at, -1, at)
    end = data.find(opening, at, at + 2000)
    return (at, end, end + len(opening)) if end >= 0 else (at, -1, at)
