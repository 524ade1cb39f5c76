"""What a search answers, and how it is written: for a model or a person as text, for programs as JSON.

Both keep a hard bound on characters. Texts are shortened first, then the lowest-ranked hits are left out; as
long as there is a hit and room for one, one is shown. Everything recalled is cleaned of control
characters and stands inside the fence (see ``stages.snippet``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

import orjson

from stages.snippet import FENCE_CLOSE, FENCE_OPEN, Matcher, clean, defuse, one_line, shorten

Detail: TypeAlias = Literal["compact", "normal", "full"]
DETAILS: tuple[Detail, ...] = ("compact", "normal", "full")

SNIPPET_CHARS = {"compact": 220, "normal": 320, "full": 400}
TEXT_CHARS = {"compact": 0, "normal": 280, "full": 4_000}
"""How much of a turn's question and answer is shown beside the snippet, each."""
ANSWER_CHARS = {**TEXT_CHARS, "compact": 160}
"""The same for the answer: compact shows how it begins, where the snippet is the question that it answers."""
ABOUT_CHARS = {"compact": 0, "normal": 120, "full": 300}
"""How much of a neighbouring turn's question is shown."""
SCALES = (1.0, 0.8, 0.64, 0.5, 0.4, 0.3, 0.22, 0.16, 0.1, 0.06, 0.04)
"""Shares of those lengths that are tried until an answer fits."""
LEAST = frozenset({"sessionId", "agentId", "turnId", "position", "timestamp", "score"})
"""What stays of a hit, with an empty snippet, where nothing else fits."""
LEAST_CHARS = 400
"""A bound in which one hit fits, as JSON and as text."""
QUERY_CHARS = 300
TITLE_CHARS = 40


@dataclass(frozen=True, slots=True)
class Around:
    """A neighbouring turn of a hit: its number, distance in turns, and how its question begins."""

    turn_id: int
    position: int
    about: str = ""


@dataclass(frozen=True, slots=True)
class Hit:
    """One turn that answers. ``at`` is in ms; all texts are clean and on one line."""

    session_id: str
    agent_id: str
    turn_id: int
    position: int
    at: int | None
    score: float
    why: str
    matched: tuple[str, ...]
    snippet: str
    title: str = ""
    status: str = "completed"
    decision: bool = False
    question: str = ""
    answer: str = ""
    before: Around | None = None
    after: Around | None = None
    from_agent: str = ""
    """The sub-agent whose words matched, if they were not the turn's own."""
    wire_gone: bool = False
    """The wire is gone: what the index kept answers."""


@dataclass(frozen=True, slots=True)
class HitCluster:
    """A run of turns around hits in one session. Times are ms."""

    session_id: str
    agent_id: str
    turn_ids: tuple[int, ...]
    hit_turn_ids: tuple[int, ...]
    start: int | None
    end: int | None


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one query.

    ``total`` is exact: turns that hold every content term (mode "all") or, if there is none, any (mode
    "any"); ``hits`` go on with the nearest others. ``matcher`` re-cuts snippets.
    """

    query: str
    total: int
    mode: Literal["all", "any"]
    hits: tuple[Hit, ...] = ()
    clusters: tuple[HitCluster, ...] = ()
    next_cursor: str | None = None
    stale: bool = False
    incomplete: bool = False
    reason: str = ""
    """Why it is stale or incomplete."""
    note: str = ""
    """How the query was read, where that may surprise."""
    detail: Detail = "compact"
    matcher: Matcher = field(default_factory=lambda: Matcher((), ()))
    more_from: tuple[str, ...] = ()
    """Cursor after 1, 2 … hits: what ``next_cursor`` becomes when hits are left out."""

    # --- text -----------------------------------------------------------------------------------------------

    def text(self, limit: int, *, fenced: bool = True) -> str:
        """The answer to read, in at most ``limit`` characters."""
        best = ""
        for answer in self._versions():
            best = answer._text(fenced)
            if len(best) <= limit:
                return best
        return shorten(best, limit)

    def _text(self, fenced: bool) -> str:
        lines = [line for number, hit in enumerate(self.hits, 1) for line in _hit_lines(number, hit)]
        body = "\n".join(map(defuse, lines))
        if fenced and lines:
            body = f"{FENCE_OPEN}\n{body}\n{FENCE_CLOSE}"
        return "\n".join(part for part in (self._heading(), body, *self._closing()) if part)

    def _heading(self) -> str:
        query = shorten(one_line(defuse(self.query)), QUERY_CHARS)
        if not self.total:
            return f"No turn matches “{query}”."
        how = "every term" if self.mode == "all" else "some term"
        return f"“{query}”: {self.total} turn{'s hold' if self.total != 1 else ' holds'} {how}."

    def _closing(self) -> Iterator[str]:
        if self.note:
            yield one_line(self.note)
        for name in ("stale", "incomplete"):
            if getattr(self, name):
                yield f"{name}: {self.reason}" if self.reason else name
        if self.next_cursor and self.hits:
            yield f"more: cursor {self.next_cursor}"

    # --- JSON -----------------------------------------------------------------------------------------------

    def json(self, limit: int | None = None) -> dict[str, Any]:
        """The stable object; with ``limit`` its serialised form has at most that many characters."""
        if limit is None:
            return self._json()
        for answer in self._versions():
            found = answer._json()
            if _size(found) <= limit:
                return found
        for hits in (self.hits[:1], ()):
            found = self._least(hits)
            if _size(found) <= limit:
                return found
        return {}

    def _least(self, hits: tuple[Hit, ...]) -> dict[str, Any]:
        """The documented fields alone, without texts: with one hit some 330 characters."""
        return {
            "query": "",
            "totalMatches": self.total,
            "matchMode": self.mode,
            "stale": self.stale,
            "incomplete": self.incomplete,
            "nextCursor": self._first(len(hits)).next_cursor if hits else None,
            "hits": [
                {
                    **{name: value for name, value in _hit_json(hit).items() if name in LEAST},
                    "snippet": "",
                    "why": "",
                }
                for hit in hits
            ],
            "clusters": [],
            "truncated": True,
        }

    def _json(self) -> dict[str, Any]:
        return {
            "query": shorten(clean(self.query), QUERY_CHARS),
            "totalMatches": self.total,
            "matchMode": self.mode,
            "stale": self.stale,
            "incomplete": self.incomplete,
            "reason": self.reason,
            "note": clean(self.note),
            "nextCursor": self.next_cursor,
            "hits": [_hit_json(hit) for hit in self.hits],
            "clusters": [_cluster_json(cluster) for cluster in self.clusters],
        }

    # --- bounds ---------------------------------------------------------------------------------------------

    def _versions(self) -> Iterator[Answer]:
        """This answer, shorter and shorter: texts first, then clusters, then the lowest-ranked hits."""
        for scale in SCALES:
            yield self._scaled(scale)
        least = replace(self._scaled(SCALES[-1]), clusters=())
        yield least
        count = len(self.hits)
        while count > 1:
            count = max(1, count * 2 // 3)
            yield least._first(count)
        bare = least._first(1) if self.hits else least
        yield replace(
            bare, hits=tuple(_bare(hit) for hit in bare.hits), query=shorten(self.query, 20), note=""
        )

    def _first(self, count: int) -> Answer:
        cursor = self.more_from[count - 1] if count <= len(self.more_from) else self.next_cursor
        return replace(self, hits=self.hits[:count], next_cursor=cursor)

    def _scaled(self, scale: float) -> Answer:
        if scale == 1.0:
            return self
        return replace(self, hits=tuple(self._scaled_hit(hit, scale) for hit in self.hits))

    def _scaled_hit(self, hit: Hit, scale: float) -> Hit:
        def cut(text: str, most: int) -> str:
            return shorten(text, int(most * scale))

        width = max(24, int(SNIPPET_CHARS[self.detail] * scale))
        texts, about = TEXT_CHARS[self.detail], ABOUT_CHARS[self.detail]
        return replace(
            hit,
            snippet=self.matcher.excerpt(hit.snippet, width).text
            if len(hit.snippet) > width
            else hit.snippet,
            question=cut(hit.question, texts),
            answer=cut(hit.answer, ANSWER_CHARS[self.detail]),
            before=hit.before and replace(hit.before, about=cut(hit.before.about, about)),
            after=hit.after and replace(hit.after, about=cut(hit.after.about, about)),
            title=cut(hit.title, TITLE_CHARS * 2),
            why=shorten(hit.why, max(20, int(200 * scale))),
        )


def merged(answers: Sequence[Answer], limit: int) -> Answer:
    """One answer of several stores': their best hits by score. Cursors are one store's and are dropped."""
    if len(answers) == 1:
        return answers[0]
    full = [answer for answer in answers if answer.mode == "all" and answer.total]
    counted = full or list(answers)
    hits = sorted((hit for answer in answers for hit in answer.hits), key=lambda hit: -hit.score)[:limit]
    shown = {(hit.session_id, hit.agent_id, hit.turn_id) for hit in hits}
    clusters = tuple(
        cluster
        for answer in answers
        for cluster in answer.clusters
        if any((cluster.session_id, cluster.agent_id, turn) in shown for turn in cluster.hit_turn_ids)
    )
    return replace(
        answers[0],
        total=sum(answer.total for answer in counted),
        mode="all" if full else "any",
        hits=tuple(hits),
        clusters=clusters,
        next_cursor=None,
        more_from=(),
        stale=any(answer.stale for answer in answers),
        incomplete=any(answer.incomplete for answer in answers),
        reason=next((answer.reason for answer in answers if answer.reason), ""),
        note=next((answer.note for answer in answers if answer.note), ""),
        matcher=next((answer.matcher for answer in answers if answer.hits), answers[0].matcher),
    )


def _bare(hit: Hit) -> Hit:
    return replace(
        hit, snippet="", why="", title="", question="", answer="", before=None, after=None, matched=()
    )


def _hit_lines(number: int, hit: Hit) -> Iterator[str]:
    agent = "" if hit.agent_id == "main" else f" {hit.agent_id}"
    title = f"  {shorten(hit.title, TITLE_CHARS)}" if hit.title else ""
    place = f"{hit.session_id}{agent}  turn {hit.turn_id}"
    yield f"{number}  {local_time(hit.at)}  {place}{title}  {hit.why}".rstrip()
    marks = [
        *(["decided"] if hit.decision else []),
        *([hit.status] if hit.status != "completed" else []),
        *(["its wire is gone: from the index"] if hit.wire_gone else []),
    ]
    if hit.snippet:
        source = f"{hit.from_agent}: " if hit.from_agent else ""
        yield f"   {source}«{hit.snippet}»" + (f"   {' · '.join(marks)}" if marks else "")
    elif marks:
        yield f"   {' · '.join(marks)}"
    if hit.question:
        yield f"   asked: {one_line(hit.question)}"
    if hit.answer:
        yield f"   answered: {one_line(hit.answer)}"
    around = [
        f"{word}: turn {turn.turn_id} {turn.about}".rstrip()
        for word, turn in (("before", hit.before), ("after", hit.after))
        if turn is not None
    ]
    if around:
        yield f"   {' · '.join(around)}"


def _hit_json(hit: Hit) -> dict[str, Any]:
    found: dict[str, Any] = {
        "sessionId": hit.session_id,
        "agentId": hit.agent_id,
        "turnId": hit.turn_id,
        "position": hit.position,
        "timestamp": iso(hit.at),
        "score": round(hit.score, 4),
        "snippet": hit.snippet,
        "why": hit.why,
        "matched": list(hit.matched),
        "title": hit.title,
        "status": hit.status,
        "decision": hit.decision,
    }
    optional = {
        "question": hit.question,
        "answer": hit.answer,
        "fromAgent": hit.from_agent,
        "wireGone": hit.wire_gone,
        "before": hit.before and _around_json(hit.before),
        "after": hit.after and _around_json(hit.after),
    }
    found.update((name, value) for name, value in optional.items() if value)
    return found


def _around_json(turn: Around) -> dict[str, Any]:
    return {"turnId": turn.turn_id, "position": turn.position, "about": turn.about}


def _cluster_json(cluster: HitCluster) -> dict[str, Any]:
    return {
        "sessionId": cluster.session_id,
        "agentId": cluster.agent_id,
        "turnIds": list(cluster.turn_ids),
        "hitTurnIds": list(cluster.hit_turn_ids),
        "start": iso(cluster.start),
        "end": iso(cluster.end),
    }


def _size(value: object) -> int:
    return len(orjson.dumps(value).decode())


def iso(ms: int | None) -> str | None:
    """ISO-8601 in UTC with milliseconds; ``None`` for an unknown or impossible time."""
    moment = _moment(ms)
    return None if moment is None else moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def local_time(ms: int | None) -> str:
    """A local time to the minute, 16 characters, for people."""
    moment = _moment(ms)
    return moment.astimezone().strftime("%Y-%m-%d %H:%M") if moment else "(time unknown)  "


def _moment(ms: int | None) -> datetime | None:
    try:
        return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def jump_commands(hits: Sequence[Hit]) -> list[tuple[str, str]]:
    """For each hit, the command that shows it whole and the one that resumes its session."""
    return [
        (
            f"pipeline show {hit.session_id} {hit.turn_id}"
            + ("" if hit.agent_id == "main" else f" --agent {hit.agent_id}"),
            f"kimi -r {hit.session_id}",
        )
        for hit in hits
    ]
