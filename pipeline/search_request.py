"""What may be asked of a search: the request, its dates and cursors."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta

from pipeline.answers import Detail
from pipeline.errors import BadInput
from pipeline.store.conditions import Key
from pipeline.store.search import Conditions
from stages.query import Query


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One question. Times are ms (``until`` inclusive).

    ``exclude`` are turns not to be listed, by session, agent and position. The turn that is asking is left
    out by itself.
    """

    query: str
    limit: int = 10
    since: int | None = None
    until: int | None = None
    detail: Detail = "compact"
    cursor: str | None = None
    cluster_gap_seconds: float = 90
    max_cluster_size: int = 15
    exclude: frozenset[Key] = frozenset()
    now: int = 0


def conditions_of(request: SearchRequest, query: Query, least: int) -> Conditions:
    since, until = request.since, exclusive(request.until)
    for condition in query.filters:
        if condition.name == "since":
            since = max(since or 0, local_period(condition.value)[0])
        elif condition.name == "until":
            end = local_period(condition.value)[1]
            until = end if until is None else min(until, end)
    default = Conditions()
    return Conditions(since, until, request.exclude, request.now, max(default.pool, least))


def exclusive(until: int | None) -> int | None:
    return None if until is None else until + 1


def local_period(value: str) -> tuple[int, int]:
    """``[from, to)`` in ms of a date prefix: a local year, month, day, minute or second (UTC with ``Z``)."""
    utc, text = value.endswith("Z"), value.rstrip("Z")
    forms = {4: "%Y", 7: "%Y-%m", 10: "%Y-%m-%d", 16: "%Y-%m-%dT%H:%M", 19: "%Y-%m-%dT%H:%M:%S"}
    try:
        start = datetime.strptime(text, forms[len(text)])
    except ValueError:  # 2026-02-31: the first of the month after it is meant as a bound
        start = datetime.strptime(text[:7], "%Y-%m") + timedelta(days=31)
        start = start.replace(day=1)
        return _ms(start, utc=utc), _ms(start, utc=utc)
    match len(text):
        case 4:
            end = start.replace(year=start.year + 1) if start.year < 9999 else start + timedelta(days=364)
        case 7:
            end = (start + timedelta(days=31)).replace(day=1) if start.year < 9999 else start
        case 10:
            end = start + timedelta(days=1) if start.year < 9999 else start
        case 16:
            end = start + timedelta(minutes=1)
        case _:
            end = start + timedelta(seconds=1)
    return _ms(start, utc=utc), _ms(end, utc=utc)


def _ms(moment: datetime, *, utc: bool) -> int:
    if utc:
        return int((moment - datetime(1970, 1, 1)).total_seconds() * 1000)
    try:
        return int(moment.timestamp() * 1000)
    except (OverflowError, OSError, ValueError):  # before what this system's clock knows
        return int((moment - datetime(1970, 1, 1)).total_seconds() * 1000)


def cursor_at(request: SearchRequest, offset: int) -> str:
    return base64.urlsafe_b64encode(f"{offset}.{_digest(request)}".encode()).decode().rstrip("=")


def _digest(request: SearchRequest) -> str:
    told = f"{request.query}\x00{request.since}\x00{request.until}".encode("utf-8", "replace")
    return hashlib.sha256(told).hexdigest()[:8]


def offset_of(request: SearchRequest) -> int:
    """The place a cursor names. Raises BadInput unless it was made for this query."""
    if request.cursor is None:
        return 0
    try:
        padded = request.cursor + "=" * (-len(request.cursor) % 4)
        offset, _, digest = base64.urlsafe_b64decode(padded.encode()).decode().partition(".")
        place = int(offset)
    except ValueError:
        place, digest = -1, ""
    if digest != _digest(request) or not 0 <= place <= 1_000_000:
        raise BadInput("cursor: not one of this query", hint="Ask without a cursor, then use its nextCursor.")
    return place
