"""Search as a service: catch up within a budget, find, rank, look closer at the best, cluster, answer.

``Searcher`` belongs to one store and keeps what makes the next search fast (see ``pipeline.store.postings``).
It reads the store and nothing else; catching up is the caller's, who hands in how fresh the store is.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from anyio import to_thread

from pipeline.answers import ABOUT_CHARS, ANSWER_CHARS, SNIPPET_CHARS, TEXT_CHARS, Answer, Around, Detail, Hit
from pipeline.errors import StoreError
from pipeline.search_clusters import clusters_around
from pipeline.search_request import SearchRequest, conditions_of, cursor_at, exclusive, offset_of
from pipeline.store import codec
from pipeline.store.conditions import Key
from pipeline.store.postings import connect
from pipeline.store.search import Place, Ranking, Scored, TurnSearch
from stages.document import Document, document
from stages.model import Turn, final_text
from stages.query import Query, parse, parse_text
from stages.snippet import Excerpt, Matcher, Span, defuse, one_line, shorten
from stages.tokens import is_paired

LIMIT_MOST = 100
CLOSER = 16
"""Best turns whose texts are looked at: do the terms stand together, and in what the person asked?"""
NEAR_CHARS = 100
QUESTION_CHARS = 1500
QUESTION_SPAN = 300
FLOOR, NEAR, ASKED = 0.1, 1.0, 1.0
"""The factors of a turn's bm25 once its text is at hand: unconditional, for the share of the query within
``NEAR_CHARS``, and for the share that the person's question holds."""
PHRASE_BONUS = 0.25
"""For the query's words standing in the text just as they were typed."""
FIRST_LINE_BYTES = 40
"""An answer's first line that is shorter (“Done:”) says little: the next one is shown with it."""
PARTS_MOST = 6
"""Sub-agents' turns of one hit that are looked into."""


@dataclass(frozen=True, slots=True)
class Freshness:
    """How far the store is behind the wires, and why."""

    stale: bool = False
    incomplete: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Closer:
    """A ranked turn with its text at hand."""

    scored: Scored
    score: float
    turn: Turn
    excerpt: Excerpt
    from_agent: str
    asked: bool
    """The excerpt is from the question."""


class Searcher:
    """Searches one store. Safe to share between tasks and threads: one search at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._search: TurnSearch | None = None
        self._identity: tuple[int, int] | None = None

    async def search(self, request: SearchRequest, freshness: Freshness | None = None) -> Answer:
        """``answer`` off the event loop."""
        return await to_thread.run_sync(self.answer, request, freshness)

    def answer(self, request: SearchRequest, freshness: Freshness | None = None) -> Answer:
        """The answer to one question. Raises BadInput for a cursor of another query, StoreError if the store
        cannot be read."""
        with self._lock:
            try:
                index = self._opened()
                with index.reading():
                    answer = self._answer(index, request)
            except sqlite3.Error as error:
                self._drop()
                raise StoreError(
                    self.path, str(error), hint="`pipeline index` makes or mends the index of this workspace."
                ) from error
        state = freshness or Freshness()
        return replace(answer, stale=state.stale, incomplete=state.incomplete, reason=state.reason)

    def close(self) -> None:
        """Close the connection; a later search opens it anew."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        if self._search is not None:
            self._search.connection.close()
            self._search = None

    def _opened(self) -> TurnSearch:
        """The open index; opened anew if the file was replaced (a rebuild may do that)."""
        try:
            stat = self.path.stat()
        except OSError as error:
            raise sqlite3.OperationalError(f"unable to open: {error.strerror}") from error
        if self._search is None or (stat.st_dev, stat.st_ino) != self._identity:
            self._drop()
            self._search = TurnSearch(connect(self.path))
            self._identity = (stat.st_dev, stat.st_ino)
        return self._search

    # --- one search -----------------------------------------------------------------------------------------

    def _answer(self, index: TurnSearch, request: SearchRequest) -> Answer:
        limit = max(1, min(request.limit, LIMIT_MOST))
        offset = offset_of(request)
        query = parse(request.query)
        conditions = conditions_of(request, query, offset + limit + 2 * CLOSER)
        ranking = index.rank(query, conditions)
        note = ""
        if not ranking.turns and query.operators:
            note = _relaxed_note(ranking)
            query = parse_text(request.query)
            ranking = index.rank(
                query, replace(conditions, since=request.since, until=exclusive(request.until))
            )
        elif any(condition.name == "decision" for condition in query.filters) and (
            unknown := index.unrefined()
        ):
            note = f"{unknown} turns are not refined yet: whether they decide is not known."
        if query.only_stop_words:
            note = f"{note} Only common words: they weigh next to nothing.".strip()
        matcher = Matcher(query.terms, ranking.weights or (0.0,) * len(query.terms))
        closer, left_out = self._closer(index, ranking, matcher, request)
        rest = [turn for turn in ranking.turns[CLOSER:] if turn.place.key not in left_out]
        best: list[_Closer | Scored] = [*closer, *rest]
        page = best[offset : offset + limit]
        hits = self._hits(index, page, query, matcher, request.detail)
        total = max(ranking.total - len(left_out), 0)
        more = offset + len(page) < len(best)
        return Answer(
            query=request.query,
            total=total,
            mode=ranking.mode,
            hits=tuple(hits),
            clusters=tuple(clusters_around(index, [_place(item) for item in page], ranking, request)),
            next_cursor=cursor_at(request, offset + len(page)) if more and page else None,
            note=note,
            detail=request.detail,
            matcher=matcher,
            more_from=tuple(cursor_at(request, offset + count) for count in range(1, len(page) + 1)),
        )

    def _closer(
        self, index: TurnSearch, ranking: Ranking, matcher: Matcher, request: SearchRequest
    ) -> tuple[list[_Closer], set[Key]]:
        """The best turns ordered by their texts, and the turns that are only asking this very question."""
        best = ranking.turns[:CLOSER]
        bodies = index.bodies([turn.place.content_id for turn in best])
        found, left_out = [], set[Key]()
        for scored in best:
            body = bodies.get(scored.place.content_id)
            if body is None:
                continue
            turn = codec.unpack(body)
            if scored.place.open and _is_asking(turn, request.query):
                left_out.add(scored.place.key)
                continue
            found.append(self._look(index, scored, turn, matcher, request))
        found.sort(key=lambda item: -item.score)
        return found, left_out

    def _look(
        self, index: TurnSearch, scored: Scored, turn: Turn, matcher: Matcher, request: SearchRequest
    ) -> _Closer:
        width = SNIPPET_CHARS[request.detail]
        texts = document(turn)
        near, asked, excerpt, name = _closeness(texts, matcher, width)
        weight = sum(matcher.weights) or 1.0
        from_agent = ""
        if scored.parts and excerpt.weight < weight:
            for agent_id, other in self._parts(index, scored.parts):
                theirs, _, quote, _ = _closeness(document(other), matcher, width)
                if quote.weight > excerpt.weight:
                    near, excerpt, from_agent = max(near, theirs), quote, agent_id
        factor = FLOOR + NEAR * near / weight + ASKED * asked / weight
        if _verbatim(request.query, texts):
            factor += PHRASE_BONUS
        bonus = scored.score and scored.boost
        score = scored.base * factor * (1 + bonus)
        return _Closer(scored, score, turn, excerpt, from_agent, name == "user" and not from_agent)

    def _parts(self, index: TurnSearch, parts: Sequence[int]) -> Iterable[tuple[str, Turn]]:
        some = parts[:PARTS_MOST]
        places, bodies = index.places(some), index.bodies(some)
        for part in some:
            if part in places and part in bodies:
                yield places[part].agent_id, codec.unpack(bodies[part])

    # --- hits -----------------------------------------------------------------------------------------------

    def _hits(
        self,
        index: TurnSearch,
        page: Sequence[_Closer | Scored],
        query: Query,
        matcher: Matcher,
        detail: Detail,
    ) -> list[Hit]:
        plain = [item.place.content_id for item in page if isinstance(item, Scored)]
        bodies = index.bodies(plain) if plain else {}
        sessions = index.sessions({_place(item).session_id for item in page})
        gone = _gone(index.wires([_place(item) for item in page]))
        found = []
        for item in page:
            if isinstance(item, Scored):
                body = bodies.get(item.place.content_id)
                if body is None:
                    continue
                turn = codec.unpack(body)
                _, _, excerpt, name = _closeness(document(turn), matcher, SNIPPET_CHARS[detail])
                item = _Closer(item, item.score, turn, excerpt, "", name == "user")
            hit = _hit(item, query, detail, sessions.get(item.scored.place.session_id, ""))
            hit = replace(hit, wire_gone=item.scored.place.key in gone)
            found.append(self._with_neighbours(index, hit, item.scored.place, detail))
        return found

    def _with_neighbours(self, index: TurnSearch, hit: Hit, place: Place, detail: Detail) -> Hit:
        """The hit with the turns before and after it; their questions are read only where they are shown."""
        width = ABOUT_CHARS[detail]
        if not width:
            return hit
        around = [other for other in index.neighbours(place, 1) if other.position != place.position]
        bodies = index.bodies([other.content_id for other in around])
        for other in around:
            body = bodies.get(other.content_id)
            question = codec.unpack(body).opening_text if body else ""
            turn = Around(other.turn_id, other.position, _line(question, width))
            hit = replace(hit, before=turn) if other.position < place.position else replace(hit, after=turn)
        return hit


def _place(item: _Closer | Scored) -> Place:
    return item.place if isinstance(item, Scored) else item.scored.place


def _closeness(texts: Document, matcher: Matcher, width: int) -> tuple[float, float, Excerpt, str]:
    """Weight of the terms standing together anywhere, of those in the question, the best excerpt, and of which of
    the texts it is.
    """
    near, asked, best, source = 0.0, 0.0, Excerpt("", -1.0, frozenset()), ""
    for name in ("user", "agent", "errors", "actions"):
        text: str = getattr(texts, name)
        if not text:
            continue
        spans = matcher.spans(text)
        if not spans and best.weight >= 0:
            continue
        near = max(near, matcher.nearest(spans, NEAR_CHARS))
        if name == "user":
            asked = matcher.nearest(_up_to(spans, QUESTION_CHARS), QUESTION_SPAN)
        if matcher.nearest(spans, width) > best.weight + 1e-9 or best.weight < 0:
            best, source = matcher.excerpt(text, width, spans), name
    return near, asked, best if best.weight >= 0 else Excerpt("", 0.0, frozenset()), source


def _up_to(spans: Sequence[Span], end: int) -> list[Span]:
    return [span for span in spans if span[0] < end]


def _verbatim(query: str, texts: Document) -> bool:
    wanted = one_line(query).strip('"').lower()
    return len(wanted) > 3 and any(
        wanted in text.lower() for text in (texts.user, texts.agent, texts.actions)
    )


def _hit(item: _Closer, query: Query, detail: Detail, title: str) -> Hit:
    scored, place, turn = item.scored, item.scored.place, item.turn
    matched = _matched(query, scored.shares)
    width = TEXT_CHARS[detail]
    answer = final_text(turn.live_steps) or ""
    if not width:
        answer = _first_line(answer) if item.asked else ""
    return Hit(
        session_id=place.session_id,
        agent_id=place.agent_id,
        turn_id=place.turn_id,
        position=place.position,
        at=place.at,
        score=item.score,
        why=_why(matched, scored, item),
        matched=matched,
        snippet=defuse(item.excerpt.text),
        title=defuse(one_line(title)[:200]),
        status=place.status,
        decision=scored.decision,
        question=_line(turn.user_text or turn.opening_text, width) if width else "",
        answer=_line(answer if width else _first_line(answer), ANSWER_CHARS[detail])
        if width or item.asked
        else "",
        from_agent=item.from_agent,
    )


def _matched(query: Query, shares: Sequence[float]) -> tuple[str, ...]:
    """The terms that the turn holds, as typed; neighbouring pairs of a Han word are put together again."""
    found: list[str] = []
    last = -2
    for number, (term, share) in enumerate(zip(query.terms, shares, strict=True)):
        if share < 0.99:
            continue
        text = one_line(term.text)
        if last == number - 1 and is_paired(text) and found[-1][-1] == text[0] and len(text) == 2:
            found[-1] += text[1]
        else:
            found.append(text)
        last = number
    return tuple(found)


def _first_line(text: str) -> str:
    """The first line of a text, with the next ones while it says little."""
    found = ""
    for line in filter(None, map(str.strip, text.splitlines())):
        found = f"{found} {line}".strip()
        if (
            len(found.encode("utf-8", "replace")) >= FIRST_LINE_BYTES
        ):  # a Han character says as much as three letters
            break
    return found


def _line(text: str, width: int) -> str:
    return shorten(defuse(one_line(text)), width)


def _why(matched: Sequence[str], scored: Scored, item: _Closer) -> str:
    reasons = [f"matched: {' · '.join(matched[:8])}"] if matched else []
    held = sum(share >= 0.99 for share in scored.shares)
    if held < len(scored.shares):
        reasons.append(f"{held} of {len(scored.shares)} terms")
    if scored.lent > 0.3:
        reasons.append("its neighbours match")
    if item.from_agent:
        reasons.append("said by its sub-agent")
    return "; ".join(reasons)


# --- the turn that is asking -------------------------------------------------------------------------------


def _is_asking(turn: Turn, query: str) -> bool:
    """Whether an open turn is waiting for this answer: a call of our own server, or our command in a shell.

    The arguments of our own calls are not kept, so any that still waits counts.
    """
    wanted = query.strip()
    return any(
        call.result is None and (call.own or ("search" in call.command and wanted in call.command))
        for call in turn.tools
    )


def _relaxed_note(ranking: Ranking) -> str:
    if ranking.unmet:
        return f"No turn meets {', '.join(ranking.unmet)}: searched for the words instead."
    return "No turn meets all conditions: searched for the words instead."


def _gone(wires: Mapping[Key, str]) -> frozenset[Key]:
    return frozenset(key for key, path in wires.items() if not os.path.isfile(path))  # noqa: PTH113 (speed)
