"""Passwords on command lines: ``curl -u user:…``, ``mysql -p…``, ``docker login -p …``, ``echo … | sudo -S``.

Each starts at a literal (a program's name, an option); the patterns are tried in the line around it, at most
2 * LINE bytes. Byte offsets throughout.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from stages.secret_tokens import Span
from stages.secret_values import Form, Name, is_secret, placeholder

LINE = 400
"""A command is looked at so many bytes before and behind what tells it."""

_CURL = re.compile(rb"\b(?:curl|wget|https?|xh|lftp|smbclient|mosquitto_\w{3})\b")
_CURL_USER = re.compile(rb"\s(?:-u|--user|--proxy-user|-U)[ =]?[\"']?([^\s\"':]{1,128}):([^\s\"']{1,256})")
_DASH_P = re.compile(rb"\s(?:-p|-a)(?:[\"']([^\"'\n]{3,128})[\"']|([^\s\"'=:/]{4,128}))(?=[\s\"';|&]|$)")
_DASH_P_SPACE = re.compile(
    rb"\s(?:-p|-a|-w|-P)[ =](?:[\"']([^\"'\n]{3,128})[\"']|([^\s\"'\-/:][^\s\"']{2,127}))(?=[\s\"';|&)]|$)"
)
_SQL_CLIENT = re.compile(
    rb"\b(?:mysql|mariadb|mysqldump|mysqladmin|mysqlimport|mycli|mongo|mongosh|mongodump|sqlcmd)\b"
)
_LOGIN_CLIENT = re.compile(
    rb"\b(?:sshpass|redis-cli|(?:docker|podman|helm|az|nerdctl|skopeo|buildah|oc|cf)[ \t][^\n]{0,40}?login|"
    rb"ldapsearch|sqlcmd|mongo\w{0,4}|7z|zip|unzip)\b"
)
_ECHO = rb"\b(?:echo|printf)[ \t]+(?:-[ne][ \t]+)?\\{0,7}[\"']?"
_SAID = rb"(?:[^\s\"'|$\\]|\\(?!n?\\{0,7}[\"']))"
_PIPE = rb"(?:\\n)?\\{0,7}[\"']?[ \t]*\|"
_END = rb"(?:\\{0,7}[\"']|(?=[\s;|&)]|$))"
_WHOLE = (
    re.compile(_ECHO + rb"(" + _SAID + rb"{4,512})" + _PIPE + rb"[^\n|]{0,200}--password-stdin"),
    re.compile(
        _ECHO
        + rb"("
        + _SAID
        + rb"{4,512})"
        + _PIPE
        + rb"[ \t]*sudo[ \t]+(?:-[A-Za-z]+[ \t]+){0,4}-[A-Za-z]{0,8}S\b"
    ),
    re.compile(
        _ECHO + rb"[^\s\"':|$]{1,64}:(" + _SAID + rb"{3,256})" + _PIPE + rb"[ \t]*(?:sudo[ \t]+)?chpasswd\b"
    ),
    re.compile(  # with -n the password stands second, else it has the file before it
        rb"\bhtpasswd[ \t]+(?:-[A-Zac-mo-z]{0,8}b[A-Zac-mo-z]{0,8}[ \t]+[^\s\"']{1,256}"
        rb"|-[A-Za-z]{0,4}(?:n[A-Za-z]?b|b[A-Za-z]?n))"
        rb"[ \t]+[^\s\"'-][^\s\"']{0,64}[ \t]+\\{0,7}[\"']?([^\s\"'\\]{3,256})" + _END
    ),
    re.compile(
        rb"\bgh secret set[^\n|]{0,200}?[ \t](?:--body[ =]|-b[ =]?)\\{0,7}[\"']?([^\s\"'$\\]{3,512})" + _END
    ),
    re.compile(
        rb"\blftp[^\n|]{0,200}?[ \t]-u[ \t]*\\{0,7}[\"']?[^\s,\"'\\]{1,64},([^\s\"'\\]{3,256})" + _END
    ),
)
"""Patterns that are a whole command, with the secret in their group."""

_IDENTIFIED = re.compile(
    rb"\bidentified[ \t]+by[ \t]+(?:password[ \t]+)?\\{0,7}['\"]([^'\"\\\n]{3,256})\\{0,7}['\"]",
    re.IGNORECASE,
)
"""SQL; but a sentence may say the same of a name."""
_ALWAYS = (b"-u", b"mysql", b"redis-cli", b"| sudo", b"identified by")
_MARKED = {
    "sshpass": (b"sshpass", b"--password-stdin"),
    "chpasswd": (b"chpasswd",),
    "htpasswd": (b"htpasswd",),
    "gh secret set": (b"gh secret set",),
}


def scan_commands(data: bytes, low: bytes, marks: Collection[str]) -> Iterator[Span]:
    """Passwords of commands. ``low`` is ``data`` in lower case; ``marks`` tells which further literals are there."""
    for needle in (*_ALWAYS, *(needle for mark in marks for needle in _MARKED.get(mark, ()))):
        done, at = 0, low.find(needle)
        while at >= 0:
            if at >= done and (needle != b"-u" or data[at - 1] in b" -"):
                start = max(low.rfind(b"\n", max(0, at - LINE), at) + 1, at - LINE, 0)
                end = low.find(b"\n", at, at + LINE)
                done = end = min(len(low), at + LINE) if end < 0 else end
                yield from _command(data, low, start, end)
            at = low.find(needle, at + len(needle))


def _command(data: bytes, low: bytes, start: int, end: int) -> Iterator[Span]:
    line = low[start:end]
    if _CURL.search(line):
        for match in _CURL_USER.finditer(data, start, end):
            if not placeholder(match[2]):
                yield Span(match.start(2), match.end(2), "password", match[2])
    for pattern in _WHOLE:
        for match in pattern.finditer(data, start, end):
            if not placeholder(match[1]):
                yield Span(match.start(1), match.end(1), "password", match[1])
    for match in _IDENTIFIED.finditer(data, start, end):
        if is_secret(match[1], Name.PASSWORD, Form.LOOSE):
            yield Span(match.start(1), match.end(1), "password", match[1])
    for client, pattern in ((_SQL_CLIENT, _DASH_P), (_LOGIN_CLIENT, _DASH_P), (_LOGIN_CLIENT, _DASH_P_SPACE)):
        found = client.search(line)
        if found is None:
            continue
        for match in pattern.finditer(data, start + found.end(), end):
            group = 1 if match[1] is not None else 2
            if not placeholder(match[group]) and not match[group].isdigit():
                yield Span(match.start(group), match.end(group), "password", match[group])
