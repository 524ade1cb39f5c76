"""Ranked search over memories: BM25 over weighted fields, scanned whole (a store holds thousands, not
millions).

The search tokens of a memory are kept while its file is untouched, as two number arrays (a few KiB each).
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

from pipeline.store.catalogue import Memory, Stamp
from stages import tokens

WEIGHTS = (("title", 4.0), ("tags", 5.0), ("key", 3.0), ("body", 1.0))
K1, B = 1.2, 0.6
QUERY_TOKENS = 64
PHRASE_BONUS, FULL_BONUS = 1.35, 1.5
RERANKED = 50
"""Best candidates that are looked at word by word for phrases."""

SNIPPET_CHARS = 200
SNIPPETS = 3
SNIPPET_LINES = 400


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory that matches. ``score`` is comparable within one answer; ``snippets`` are its best lines, in
    order."""

    memory: Memory
    score: float
    snippets: tuple[str, ...]
    matched: tuple[str, ...]
    """The query's tokens that it holds."""


@dataclass(frozen=True, slots=True)
class _Terms:
    stamp: Stamp
    ids: array[int]
    weights: array[float]
    length: int

    def weight(self, term: int) -> float:
        place = bisect_left(self.ids, term)
        return self.weights[place] if place < len(self.ids) and self.ids[place] == term else 0.0


class MemorySearch:
    """Keeps the tokens of the memories it has seen. Safe to use from several threads."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._terms: dict[str, _Terms] = {}
        self._lock = Lock()

    def find(self, memories: Sequence[Memory], query: str, limit: int) -> tuple[tuple[Hit, ...], int]:
        """The best ``limit`` memories for a query in any language, and how many match; archived ones come
        last.

        Tokens are alternatives; more of them, and rarer ones, rank higher, then whole phrases.
        """
        wanted = query_tokens(query)
        with self._lock:
            terms = [self._terms_of(memory) for memory in memories]
            self._forget(memories)
            scores = self._scores(terms, [self._ids.get(token) for token in wanted])
        ranked = sorted(
            (
                (score, found, memory)
                for (score, found), memory in zip(scores, memories, strict=True)
                if found
            ),
            key=lambda one: (one[2].archived, -one[0], -one[2].changed_at, one[2].path),
        )
        phrase = tokens.fold(" ".join(query.split()))
        best = [
            Hit(memory, score * _bonus(memory, phrase), (), tuple(wanted[index] for index in found))
            for score, found, memory in ranked[: max(RERANKED, limit)]
        ]
        best.sort(key=lambda hit: (hit.memory.archived, -hit.score, -hit.memory.changed_at, hit.memory.path))
        return tuple(_with_snippets(hit, set(wanted)) for hit in best[:limit]), len(ranked)

    def _scores(
        self, docs: Sequence[_Terms], wanted: Sequence[int | None]
    ) -> list[tuple[float, tuple[int, ...]]]:
        """Per memory: its score and the indices of the query tokens it holds."""
        average = sum(doc.length for doc in docs) / len(docs) if docs else 1.0
        scores = [0.0] * len(docs)
        found: dict[int, list[int]] = {}
        for index, term in enumerate(wanted):
            if term is None:
                continue
            weights = [(place, weight) for place, doc in enumerate(docs) if (weight := doc.weight(term))]
            rarity = math.log(1 + (len(docs) - len(weights) + 0.5) / (len(weights) + 0.5))
            for place, weight in weights:
                norm = K1 * (1 - B + B * docs[place].length / max(average, 1.0))
                scores[place] += rarity * weight * (K1 + 1) / (weight + norm)
                found.setdefault(place, []).append(index)
        total = max(len(wanted), 1)
        return [
            (score * (0.5 + len(found.get(place, ())) / total / 2), tuple(found.get(place, ())))
            for place, score in enumerate(scores)
        ]

    def _terms_of(self, memory: Memory) -> _Terms:
        known = self._terms.get(memory.path)
        if known is not None and known.stamp == memory.stamp:
            return known
        weights: Counter[int] = Counter()
        length = 0
        texts: Mapping[str, str] = {
            "title": memory.title,
            "tags": " ".join(memory.tags),
            "key": f"{memory.key} {memory.folder}",
            "body": memory.body,
        }
        for name, weight in WEIGHTS:
            words = tokens.encode(texts[name]).split()
            length += len(words)
            for word in words:
                weights[self._ids.setdefault(word, len(self._ids))] += weight  # type: ignore[assignment]
        ids = sorted(weights)
        terms = _Terms(memory.stamp, array("l", ids), array("f", [weights[one] for one in ids]), length)
        self._terms[memory.path] = terms
        return terms

    def _forget(self, memories: Sequence[Memory]) -> None:
        """Drop what belongs to files that are gone, once they are many (a folder filter hides, it does not
        remove)."""
        if len(self._terms) > 2 * len(memories) + 4096:
            present = {memory.path for memory in memories}
            self._terms = {path: terms for path, terms in self._terms.items() if path in present}


def query_tokens(query: str) -> list[str]:
    """The distinct tokens of a query, without stop words unless it holds nothing else; at most
    QUERY_TOKENS."""
    distinct = list(dict.fromkeys(tokens.tokens(query)))
    telling = [token for token in distinct if token not in tokens.STOP_WORDS]
    return (telling or distinct)[:QUERY_TOKENS]


def _bonus(memory: Memory, phrase: str) -> float:
    if not phrase:
        return 1.0
    if phrase in (tokens.fold(memory.key), tokens.fold(memory.title), *map(tokens.fold, memory.tags)):
        return FULL_BONUS
    return PHRASE_BONUS if phrase in tokens.fold(f"{memory.title}\n{memory.body}") else 1.0


def _with_snippets(hit: Hit, wanted: set[str]) -> Hit:
    lines = [line.strip() for line in hit.memory.body.split("\n")[:SNIPPET_LINES]]
    scored = [
        (len(wanted.intersection(tokens.encode(line[:2000]).split())), place)
        for place, line in enumerate(lines)
        if line
    ]
    best = sorted((one for one in scored if one[0]), key=lambda one: (-one[0], one[1]))[:SNIPPETS]
    shown = [_window(lines[place], wanted) for _, place in sorted(best, key=lambda one: one[1])]
    if not shown:  # it matched by title, tag or key: show how it begins
        shown = [line[:SNIPPET_CHARS] for line in lines if line and not line.startswith("#")][:1]
    return Hit(hit.memory, hit.score, tuple(shown), hit.matched)


def _window(line: str, wanted: set[str]) -> str:
    """The part of a long line around its first matching word."""
    if len(line) <= SNIPPET_CHARS:
        return line
    start = 0
    for word, found in tokens.words(line):
        if not wanted.isdisjoint(found):
            start = max(0, line.find(word) - SNIPPET_CHARS // 3)
            break
    start = min(start, len(line) - SNIPPET_CHARS)
    cut = line[start : start + SNIPPET_CHARS]
    return ("…" if start else "") + cut + ("…" if start + SNIPPET_CHARS < len(line) else "")
