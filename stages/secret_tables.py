"""Passwords in tables: a column of CSV, Markdown or a terminal's table whose heading tells.

A heading is looked at where a telling word ends a cell; its rows are those below with as many cells, at most
TABLE_BYTES. Byte offsets throughout.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from stages.secret_tokens import Span
from stages.secret_values import Form, Name, is_secret, mixed, name_strength

COLUMNS = frozenset((b"pass", b"pw", b"secret", b"token"))
"""The needles of names at which a heading may stand."""
TABLE_BYTES = 8000
HEAD_BYTES = 500
"""A heading is so long at most."""

_CELL_END = re.compile(rb"[a-z0-9_]{0,12}\\{0,3}[\"'*`]{0,3}[ \t]{0,40}(?:[,;\t|\r\n]|\xe2\x94\x82)")
_BAR = "│".encode()
_HEADING = re.compile(rb"[\s\\\"'*`]*([A-Za-z][\w .-]{0,40}?)[\s\\\"'*`]*$")
_FIRST_HEADING = re.compile(rb"(?:^|[^\w.-])([A-Za-z][\w.-]{0,40})[\s\\\"'*`]*$")
_RULE = re.compile(
    rb"[-+=|: \t\r]*(?:[-=]{3}|\xe2[\x94\x95][\x80-\xbf])(?:[-+=|: \t\r]|\xe2[\x94\x95][\x80-\xbf])*$"
)
_CLOSED = re.compile(rb"[ \t\r]*(?:$|\\{0,7}[\"'`])")
"""Behind the last mark of a row: nothing, or the string ends in which the table stands."""
_VALUE = re.compile(rb"[\s\\\"'`]*([^\s\\\"'`]{4,512})[\s\\\"'`]*$")


def may_head(low: bytes, at: int) -> bool:
    """Whether a cell ends behind the needle that ends at ``at``."""
    return _CELL_END.match(low, at) is not None


def scan_table(data: bytes, at: int) -> tuple[Sequence[Span], int]:
    """The secrets of the table whose heading has a cell at ``at``, and up to where a table has been looked for."""
    start = max(data.rfind(b"\n", max(0, at - HEAD_BYTES), at) + 1, at - HEAD_BYTES, 0)
    end = data.find(b"\n", at, at + HEAD_BYTES)
    if end < 0:
        return (), min(len(data), at + HEAD_BYTES)
    line = data[start:end]
    mark = next((mark for mark in (_BAR, b"|", b"\t", b";", b",") if mark in line), None)
    if mark is None:
        return (), end
    columns, count = _columns(line.rstrip(b"\r"), mark)
    if not any(columns):
        return (), end
    stop = min(len(data), end + 1 + TABLE_BYTES)
    return _rows(data, end + 1, stop, mark, columns, count)


def _columns(line: bytes, mark: bytes) -> tuple[list[Name], int]:
    """What each heading tells about its column, from the right, and how many there are.

    Text may stand before the first heading: headings are counted from the end of the line.
    """
    told: list[Name] = []
    cells = _framed(line, mark)[0].split(mark)
    if not cells[-1].strip():
        return [], 0
    for cell in reversed(cells):
        heading = _HEADING.match(cell)
        if heading is None:
            first = _FIRST_HEADING.search(cell)
            told += [name_strength(first[1])] if first and mark not in (_BAR, b"|") else []
            break
        told.append(name_strength(heading[1].replace(b" ", b"_")))
    return (told, len(told)) if len(told) > 1 else ([], 0)


def _framed(line: bytes, mark: bytes) -> tuple[bytes, int]:
    """The row without the marks at both ends, and how many bytes were before it; as it is if it has none there."""
    end = line.rfind(mark)
    if mark not in (_BAR, b"|") or end < 0 or not _CLOSED.match(line, end + len(mark)):
        return line, 0
    start = line.find(mark) + len(mark)
    return (line[start:end], start) if start <= end else (line, 0)


def _rows(
    data: bytes, at: int, stop: int, mark: bytes, columns: Sequence[Name], count: int
) -> tuple[list[Span], int]:
    """The secrets in the rows from ``at`` on, until a line is none, and where that is."""
    spans: list[Span] = []
    drawn = mark in (_BAR, b"|")
    while at < stop:
        end = data.find(b"\n", at, stop)
        end = stop if end < 0 else end
        line = data[at:end].rstrip(b" \t\r")
        if drawn and _RULE.match(line):
            at = end + 1
            continue
        if not drawn and b'"' in line and not line.lstrip().startswith((b'"', b"\\")):
            line = line[: line.index(b'"')].rstrip(b"\\")  # the table stands in a string, which ends here
        line, left = _framed(line, mark)
        cells = line.split(mark)
        if len(cells) != count:
            break
        place = at + left + len(line)
        for name, cell in zip(columns, reversed(cells), strict=False):
            place -= len(cell)
            value = _VALUE.match(cell) if name else None
            form = Form.LOOSE if drawn else Form.SPACED
            if value is not None and mixed(value[1]) and is_secret(value[1], name, form):
                spans.append(Span(place + value.start(1), place + value.end(1), _kind(name), value[1]))
            place -= len(mark)
        at = end + 1
    return spans, min(at, stop)


def _kind(name: Name) -> str:
    return "password" if name >= Name.PASSWORD else "token"
