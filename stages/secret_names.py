"""Secrets that their name tells: ``DB_PASSWORD=…``, ``"apiKey": "…"``, ``--token …``, ``密码是 …``.

The text is searched for a few short needles (NEEDLES, in the lower-cased bytes); a bounded pattern then
decides at each hit whether a name ends there, what separates it from a value, and where the value ends. Spans
are byte offsets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from stages.secret_joins import JOINS, joined, next_piece
from stages.secret_tables import COLUMNS, may_head, scan_table
from stages.secret_tokens import Span
from stages.secret_values import (
    UUID_OR_HEX,
    VALUE_BYTES,
    Form,
    Name,
    is_secret,
    mixed,
    name_strength,
    placeholder,
    random_looking,
    user_and_password,
)

NEEDLES = (b"pass", b"pw", b"secret", b"token", b"key", b"auth", b"cred")
NEEDLES_ASSIGNED = (b"psk", b"mnemonic")
"""Rare ones, looked for besides only in a text with an equals sign."""
NEEDLES_CJK = ("密", "令", "钥")
_AFTER = re.compile(
    rb"[a-z0-9_-]{0,40}+(?P<close>\\{0,7}[\"'`]?\]?(?:\[\d{0,4}\])?\*{0,2}+>?+)(?P<sep>"
    rb"[ \t]*(?:=>|:=|={1,3}|!==?|\xef\xbc\x9a|:|\xef\xbc\x9d)[ \t]*(?:\(\s{0,40}(?=\\{0,3}[\"']))?"
    rb"|[ \t]{1,8}(?:is|was|-{1,2}>|\xe2\x86\x92)[ \t:]{1,8}"
    rb"|[ \t]*(?:\xe6\x98\xaf|\xe4\xb8\xba)[\xef\xbc\x9a: \t]{0,8}"
    rb"|,?(?:\r?\n|\\{1,2}n)?[ \t]{0,40}\\{0,3}[\"']?value\\{0,3}[\"']?[:=][ \t]*"  # name: X, value: Y
    rb"|[ \t]{1,8}(?:\|[ \t]*)?"
    rb"|[(,][ \t]*(?=\\{0,3}[\"'`])"
    rb"|(?<=>)"
    rb"|(?:'|\xe2\x80\x99)s[ \t]{1,4})"
)
_MADE_NEXT = re.compile(rb"[\"'`]|[!-/:-~]{0,40}[0-9]")
_WORD_BEFORE = re.compile(
    rb"(?:api|access|secret|private|account|auth|signing|encryption|master|shared|storage|deploy|license|ssh) $"
)
_BEFORE_SIGN = ("口".encode(), "秘".encode(), "私".encode())  # 口令, 秘钥, 私钥
_CJK_NAME = re.compile(
    "(?:密码|口令|密钥|密匙|令牌|秘钥|私钥)".encode()
    + rb"(?P<close>\\{0,7}[\"'`]?\]?\*{0,2})(?:\([^()\n]{0,40}\)|\xef\xbc\x88[^\n]{0,40}?\xef\xbc\x89)?"
    + b"(?P<sep>[ \t]*(?:"
    + "(?:就|应该|现在|我|已经|已|被)?(?:是|为|设为|设置为|设成|改成|改为|换成|用的是|用)(?:了)?".encode()
    + rb"[ \t]*(?:\xef\xbc\x9a|:)?|\xef\xbc\x9a|\xef\xbc\x9d|:|={1,3}|=>)[ \t]*|[ \t]{0,8})"
    + "(?:“|‘|「|『|【|《)?".encode()
)
_IDENTIFIER = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_BARE = re.compile(
    rb"[^\s\"'`<>,;&|(){}\[\]\\\x00-\x20\x7f-\xff][^\s\"'`<>,;&|(){}\[\]\\\x00-\x20\x7f-\xff]{0,511}"
)
_BARE_WIDE = re.compile(rb"[^\s\"'`\\\x00-\x20\x7f-\xff]{1,512}")
WRAPPED = 16
"""A value may be wrapped by a terminal if it has so many bytes."""
_QUOTE = re.compile(rb"(?:[rbfuRBFU]{1,2}|@|\$)?(?P<open>\\{0,7}(?P<quote>\"\"\"|'''|[\"'`]))")
_BODY = {
    b'"': re.compile(rb"(?:[^\"\\\n]|\\(?s:.)){0,2000}"),
    b"'": re.compile(rb"(?:[^'\\\n]|\\(?s:.)){0,2000}"),
    b"`": re.compile(rb"(?:[^`\\]|\\(?s:.)){0,2000}"),
}
_LINE_JOIN = re.compile(rb"\\{1,2}(?:\r?\n|\\?n)[ \t]*")
_OPENING = re.compile(rb"\\{0,7}[\"'`]$")
_SCHEME = re.compile(rb"(?:bearer|basic|token|apikey|digest|negotiate|aws4-hmac-sha256)[ \t]+", re.IGNORECASE)
_ANNOTATED = re.compile(
    rb"[ \t]*&?(?:'static )?[A-Za-z_][A-Za-z_0-9.]{0,40}(?:\[[^\[\]\n]{0,40}"
    rb"\])?(?:[ \t]*\|[ \t]*[A-Za-z]{1,16})?\??[ \t]*=[ \t]*"
)
_BLOCK = re.compile(
    rb"[|>][+-]?[1-9]?[ \t]*\r?\n(?P<indent>[ \t]+)(?P<text>\S[^\n]{0,4000}(?:\n(?P=indent)\S[^\n]{0,4000}"
    rb"){0,200})"
)
_LOGIN = re.compile(rb"\blogin\s+\S{1,128}\s+(?:account\s+\S{1,128}\s+)?$")
_LATER = re.compile(
    rb"(?:(?:for|of|on|at|to|in) (?:[\w.@'-]{1,40} ){1,3}?(?:is|was|=|:)"
    rb"|ha(?:s|ve) been (?:changed|set|reset|updated|rotated) to|\{[^{}]{0,300}?\bdefault[ \t]*=)[ \t:]{1,4}"
)
"""What may stand between a name with a space behind it and its value: ``for staging is``, ``{ default =``."""
_LATER_STARTS = frozenset(b"foatih{")
_CHANGED = re.compile(rb"(?:(?:now|been) )?(?:changed|set|reset|updated|rotated) to[ \t:]{1,4}")
_USER = re.compile(rb"\\{0,7}[\"'][^\"'\\\n]{0,128}\\{0,7}[\"'],\s{0,40}")
_URL_KEY = re.compile(rb"[A-Za-z0-9_-]{20,512}")
_PHRASE = re.compile(rb"\\{0,7}[\"']?([a-z]{3,8}(?:[ \t][a-z]{3,8}){11,23})(?![ \t]?[a-z])", re.IGNORECASE)
"""The words of a wallet's seed (BIP 39)."""
_BELOW = re.compile(
    rb"\r?\n(?:[ \t]{0,40}\r?\n)?(?:```\w{0,16}\r?\n)?[ \t]{0,40}`?([^\s\"'`<>,;&|(){}\[\]\\\x00-\x20\x7f-\xff:]{8,512})`?"
    rb"[ \t]{0,40}(?=[\r\n\"\\]|$)"
)
_WRAPPED = re.compile(rb"\r?\n([A-Za-z0-9_+/-]{8,200}={0,2})(?=[\r\n\"']|$)")
_SHELL_NAME = re.compile(rb"[A-Z][A-Z0-9_]*$")

_MARKS = {b"ivate ": "key-block", b"-user-": "putty", b"kind: ": "kubernetes"}
_MARK_ENDS = b" -"
_TELLING = (b"pass", b"secret")


def may_name(text: str) -> bool:
    """Whether one of NEEDLES is in the text. Spelled out: this is asked of every text, and a loop around the
    searches would take as long as they do; a character that half of the texts lack is found several times as fast.
    """
    return (
        ("y" in text and "key" in text)
        or "pass" in text
        or "token" in text
        or "auth" in text
        or ("cre" in text and ("secret" in text or "cred" in text))
        or "pw" in text
    )


def may_assign(text: str) -> bool:
    """Whether one of NEEDLES_ASSIGNED is in the text, and an equals sign."""
    return "=" in text and ("psk" in text or "mnemonic" in text)


def scan_names(
    data: bytes, low: bytes, cjk: Sequence[str], marks: set[str], *, assigned: bool
) -> Iterator[Span]:
    """Values behind telling names. ``low`` is ``data`` in lower case, same length; ``cjk`` says which of
    NEEDLES_CJK are in it, ``assigned`` whether NEEDLES_ASSIGNED are to be looked for.

    Adds to ``marks`` what ``scan_shapes`` should look for, since the needles were searched anyway.
    """
    for needle in (*NEEDLES, *NEEDLES_ASSIGNED) if assigned else NEEDLES:
        at, tabled = low.find(needle), 0
        while at >= 0:
            step = at + len(needle)
            if needle in _TELLING and (mark := _telling(low, at, step)):
                marks.add(mark)
            if data[at - 1] in _MARK_ENDS and (mark := _MARKS.get(low[at - 6 : at])):
                marks.add(mark)
            after = _AFTER.match(low, step)
            if after is not None and (span := _behind(data, low, at, after)):
                yield span
                step = max(step, span.end)
            elif at >= tabled and needle in COLUMNS and may_head(low, step):
                cells, tabled = scan_table(data, at)
                yield from cells
            at = low.find(needle, step)
    for word in cjk:
        sign = word.encode()
        at = low.find(sign)
        while at >= 0:
            start = at - 3 if low[at - 3 : at] in _BEFORE_SIGN else at
            named = _CJK_NAME.match(low, start)
            if named is not None and (span := _chinese(data, start, named)):
                yield span
            at = low.find(sign, at + len(sign))


def _telling(low: bytes, at: int, step: int) -> str | None:
    """What kind of command or manifest the ``pass`` or ``secret`` at ``at`` belongs to."""
    if low[at - 3 : at] == b"ssh" or low.startswith(b"word-stdin", step):
        return "sshpass"
    if low[at - 2 : at] in (b"ch", b"ht") and low.startswith(b"wd", step):
        return low[at - 2 : step + 2].decode()
    if low[at - 3 : at] == b"gh " and low.startswith(b" set ", step):
        return "gh secret set"
    if low[at - 1 : at] == b'"' and low.find(b"kind", max(0, at - 14), at) >= 0:
        return "kubernetes-json"
    return None


def _chinese(data: bytes, start: int, named: re.Match[bytes]) -> Span | None:
    word = data[start : start + 6].decode("utf-8", "replace")
    strong = word in ("密码", "口令")
    strength, kind = (Name.PASSWORD, "password") if strong else (Name.TOKEN, "token")
    form = Form.LOOSE if named["sep"] else Form.SPACED
    return _below(data, named.end(), strength, kind) or _value(data, named.end(), strength, form, kind)


def _behind(data: bytes, low: bytes, at: int, after: re.Match[bytes]) -> Span | None:
    """The secret behind the name around the needle at ``at``; ``after`` matched the rest of the name and a
    separator.
    """
    sep = after["sep"].strip()
    later = (
        _LATER.match(low, after.end())
        if not sep and low[after.end() - 1 : after.end()] in (b" ", b"\t")
        else None
    )
    if (
        later is None
        and sep in (b"", b"|")
        and after["close"][-1:] != b">"
        and not _may_be_argument(data, low, at, after.end())
    ):
        return None
    before = data[max(0, at - 48) : at]
    start = at - len(before) + len(before.rstrip(_IDENTIFIER))
    name = data[start : after.start("close")]
    if start == at and name == data[at : at + 3] and (word := _WORD_BEFORE.search(low, max(0, at - 12), at)):
        name = word[0][:-1] + b"_" + name  # "api key"
    strength = name_strength(name)
    if strength == Name.NOTHING:
        in_url = name == b"key" and after["sep"] == b"=" and data[start - 1 : start] in (b"?", b"&")
        return _url_key(data, after.end()) if in_url else None
    kind = _kind(strength, name.lower())
    if after["close"].endswith(b">"):
        return None if sep else _element(data, start, after.end(), strength, kind)
    if later is not None:
        return _value(data, later.end(), strength, Form.LOOSE, kind)
    if name[-8:].lower() == b"mnemonic":
        return _phrase(data, after.end())
    form = _form(data, low, start, name, strength, after)
    value_at = after.end()
    user = _USER.match(data, value_at) if strength == Name.AUTH and b"(" in after["sep"] else None
    if user and (password := _value(data, user.end(), Name.PASSWORD, Form.CALLED, "password")):
        return password
    if sep in (b"is", b"was") and (changed := _CHANGED.match(low, value_at)):
        value_at = changed.end()
    annotated = _ANNOTATED.match(data, value_at) if sep == b":" else None
    if annotated is not None and data[annotated.end() - 1 : annotated.end() + 1] != b"==":
        value_at = annotated.end()
    span = _below(data, value_at, strength, kind) if sep == b":" else None
    span = span or _value(data, value_at, strength, form, kind)
    # a short name that is also said of other things: only with letters and digits
    return None if span and name[-2:].lower() == b"pw" and not mixed(span.value) else span


def _phrase(data: bytes, at: int) -> Span | None:
    words = _PHRASE.match(data, at)
    return Span(*words.span(1), "mnemonic", words[1]) if words else None


def _below(data: bytes, at: int, name: Name, kind: str) -> Span | None:
    """A value that stands alone in the next line, or fenced below: only what looks random."""
    value = _BELOW.match(data, at) if data[at : at + 1] in (b"\n", b"\r") else None
    if value is None or not is_secret(value[1], name, Form.SPACED):
        return None
    return Span(*value.span(1), kind, value[1])


def _url_key(data: bytes, at: int) -> Span | None:
    """The value of ``?key=`` in a URL, if it looks random and is no hash."""
    value = _URL_KEY.match(data, at)
    if value is None or not is_secret(value[0], Name.TOKEN, Form.SPACED):
        return None
    return Span(at, value.end(), "key", value[0])


def _form(data: bytes, low: bytes, start: int, name: bytes, strength: Name, after: re.Match[bytes]) -> Form:
    """How the value behind ``after`` is written."""
    sep, at = after["sep"].strip(), after.end()
    if sep[-1:] == b"s" and len(sep) in (2, 4) and sep not in (b"is", b"was"):
        return Form.SPACED  # "the password's …"
    if sep in (b"", b"|"):
        login = strength >= Name.PASSWORD and _LOGIN.search(low, max(0, start - 160), start)
        argument = not sep and (data[start : start + 1] == b"-" or login or name == b"requirepass")
        return Form.TIGHT if argument and _ends_argument(data, at) else Form.SPACED
    if sep in (b"(", b","):
        return Form.CALLED
    if after["sep"] != b"=" or data[at - 2 : at - 1].isspace():
        return Form.LOOSE
    return Form.SHELL if _SHELL_NAME.match(name) else Form.TIGHT


def _may_be_argument(data: bytes, low: bytes, at: int, value: int) -> bool:
    """Whether a value may follow after a space alone: behind ``--name``, in .netrc, or if it has a digit."""
    if _MADE_NEXT.match(data, value):
        return True
    return low.rfind(b"-", max(0, at - 24), at) >= 0 or low.rfind(b"login", max(0, at - 160), at) >= 0


_ARGUMENT = re.compile(rb"[\"'`]|[^\s\"'`]{1,512}(?=[ \t]*(?:$|[\r\n\"'`|;&)>\\-]|2>))")


def _ends_argument(data: bytes, at: int) -> bool:
    """Whether the word at ``at`` ends a command or has an option behind it; else it may be prose."""
    return bool(_ARGUMENT.match(data, at))


def _element(data: bytes, start: int, at: int, name: Name, kind: str) -> Span | None:
    """The text of the XML element whose name starts at ``start``."""
    text = _BARE.match(data, at) if data[start - 1 : start] == b"<" else None
    if text is None or data[text.end() : text.end() + 1] != b"<" or not is_secret(text[0], name, Form.QUOTED):
        return None
    return Span(at, text.end(), kind, text[0])


def _kind(strength: Name, name: bytes) -> str:
    if strength >= Name.PASSWORD:
        return "secret" if b"secret" in name else "password"
    return "key" if b"key" in name else "token"


def _value(data: bytes, at: int, name: Name, form: Form, kind: str) -> Span | None:
    """The value that starts at ``at``, if it is a secret: quoted (pieces joined), a YAML block, or bare."""
    opened = _QUOTE.match(data, at)
    if opened is not None:
        return _quoted(data, opened, name, form, kind)
    block = _BLOCK.match(data, at)
    if block is not None:
        value = re.sub(rb"\s+", b"", block["text"])
        start, end = block.span("text")
        return Span(start, end, kind, value) if is_secret(value, name, Form.QUOTED) else None
    scheme = _SCHEME.match(data, at)
    if scheme is not None:
        at = scheme.end()
    bare = (_BARE_WIDE if form == Form.SHELL else _BARE).match(data, at)
    if bare is None:
        return None
    value = bare[0].rstrip(b".,;:!?)]}" if form == Form.SHELL else b".,:!?")
    end = at + len(value)
    mark = data[end : end + 1]
    if mark == b"\\":
        value, end = joined(data, at, end)
    elif mark in (b"\n", b"\r") and form == Form.SHELL and len(value) >= WRAPPED:
        value, end = _wrapped(data, value, end)
    if scheme is not None:
        return Span(at, end, "authorization", value) if _credential(value) else None
    if data[end : end + 1] in (b"(", b"["):  # a call or an index: code
        return None
    return Span(at, end, kind, value) if is_secret(value, name, form) else None


def _wrapped(data: bytes, value: bytes, end: int) -> tuple[bytes, int]:
    """A random value that ends with its line, with the lines below that go on with it: a terminal wrapped it.

    A hash below is one of its own, unless the value is hexadecimal too.
    """
    while random_looking(value) and (line := _WRAPPED.match(data, end)):
        if not (random_looking(line[1]) and mixed(line[1])) or (
            UUID_OR_HEX.match(line[1]) and not UUID_OR_HEX.match(value)
        ):
            break
        value, end = value + line[1], line.end()
        if len(value) > VALUE_BYTES:
            break
    return value, end


def _credential(value: bytes) -> bool:
    """Whether what follows ``Bearer`` or ``Basic`` is one, and no word such as "token" or "$TOKEN"."""
    if len(value) < 4 or b" " in value or placeholder(value):
        return False
    return not value.isalpha() or random_looking(value) or user_and_password(value)


def _quoted(data: bytes, opened: re.Match[bytes], name: Name, form: Form, kind: str) -> Span | None:
    text = _string(data, opened.end(), opened["open"])
    if text is None:
        return None
    start, end, pieces = opened.end(), text.end, [data[opened.end() : text.end]]
    while len(pieces) < JOINS and (more := _next_string(data, text)):
        text = more
        pieces.append(data[text.start : text.end])
        end = text.end
    value = _LINE_JOIN.sub(b"", b"".join(pieces))
    scheme = _SCHEME.match(value)
    if scheme is not None and len(pieces) == 1 and _credential(value[scheme.end() :]):
        return Span(start + scheme.end(), end, "authorization", value[scheme.end() :])
    written = form if form <= Form.CALLED else Form.QUOTED
    return Span(start, end, kind, value) if is_secret(value, name, written) else None


class _Text(NamedTuple):
    """A string's text ``[start, end)`` and its opening mark, which also closes it."""

    start: int
    end: int
    mark: bytes


def _next_string(data: bytes, text: _Text) -> _Text | None:
    """The string that is joined to ``text``."""
    at = next_piece(data, text.end)
    opening = _OPENING.search(data, max(text.end + len(text.mark), at - 8), at) if at > text.end else None
    return _string(data, at, opening[0]) if opening else None


def _string(data: bytes, at: int, mark: bytes) -> _Text | None:
    """The string whose text starts at ``at``; ``None`` if it is not closed within 2000 bytes."""
    if len(mark) == 1:
        body = _BODY[mark].match(data, at)
        end = body.end() if body else at
        return _Text(at, end, mark) if data[end : end + 1] == mark else None
    end = data.find(mark, at, at + 2000)
    return _Text(at, end, mark) if end >= 0 else None
