"""What a query asks for: words in any language, and a few operators that are hard to write by accident.

Everything is text, except

- ``"a quoted phrase"`` in straight quotes: the turn must hold it;
- ``NOT word`` (or ``NOT "phrase"``): the turn must not;
- a known filter in lower case with its value and no space: ``file:`` ``tool:`` ``error:`` ``session:``
  ``agent:``
  ``decision:true`` ``since:`` ``until:`` (dates as ``2026``, ``2026-06``, ``2026-06-21`` or with ``T10:30``).

So ``-x``, ``error: x``, ``NOTE``, ``since:yesterday`` and unbalanced quotes are text. ``parse`` never raises.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

from stages import synonyms, tokens

QUERY_LIMIT = 4_000
"""Characters of a query that are looked at."""
TERM_LIMIT = 40
"""Distinct terms of a query: a pasted page is searched by its first words."""

FilterName: TypeAlias = Literal["file", "tool", "error", "session", "agent", "decision", "since", "until"]

_DATE = (
    r"\d{4}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01])(?:T(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d)?Z?)?)?)?"
)
_DATE_VALUE = re.compile(_DATE, re.ASCII)
_OPERATOR = re.compile(
    r"""(?:(?<=\s)|^)(?:
        (?P<name>file|tool|error|session|agent|decision|since|until):(?:"(?P<quoted>[^"\n]+)"|(?P<value>[^\s"]\S*))
      | NOT\s+(?:"(?P<not_phrase>[^"\n]+)"|(?P<not_word>[^\s"]+))
      | "(?P<phrase>[^"\n]+)"
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Term:
    """One thing to look for. A turn holds it if it has any token of ``whole``, or every token of ``parts``.

    ``also`` are tokens that stand for the same: they help to find and to rank, at less weight.
    """

    text: str
    whole: tuple[str, ...]
    parts: tuple[str, ...] = ()
    also: tuple[str, ...] = ()

    @property
    def tokens(self) -> tuple[str, ...]:
        return (*self.whole, *self.parts)


@dataclass(frozen=True, slots=True)
class Phrase:
    """Tokens that stand side by side. ``text`` is as typed."""

    text: str
    tokens: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on the turn. ``value`` is as typed; that of ``since``/``until`` is a valid date prefix."""

    name: FilterName
    value: str


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query. ``terms`` includes the words of phrases, so that ranking sees them.

    ``only_stop_words`` tells that nothing in it carries meaning and its stop words had to stand in.
    """

    text: str
    terms: tuple[Term, ...]
    phrases: tuple[Phrase, ...] = ()
    excluded: tuple[Phrase, ...] = ()
    filters: tuple[Filter, ...] = ()
    only_stop_words: bool = False

    @property
    def operators(self) -> bool:
        """Whether anything but text was asked for."""
        return bool(self.phrases or self.excluded or self.filters)


def parse(text: str) -> Query:
    """The query that ``text`` asks. Total: any string gives one, possibly without terms."""
    text = text[:QUERY_LIMIT]
    rest: list[str] = []
    phrases: list[Phrase] = []
    excluded: list[Phrase] = []
    filters: list[Filter] = []
    end = 0
    for match in _OPERATOR.finditer(text):
        taken = True
        if name := match["name"]:
            condition = _filter(name, match["quoted"] or match["value"])
            taken = condition is not None
            filters.extend([condition] if condition else [])
        elif negated := match["not_phrase"] or match["not_word"]:
            taken = _collect(negated, excluded)
        else:
            taken = _collect(match["phrase"], phrases)
            rest.append(f"{text[end : match.start()]} {match['phrase']}")
            end = match.end()
            continue
        if taken:
            rest.append(text[end : match.start()])
            end = match.end()
    rest.append(text[end:])
    terms, only_stop_words = _terms(" ".join(rest))
    return Query(text, terms, tuple(phrases), tuple(excluded), tuple(filters), only_stop_words)


def parse_text(text: str) -> Query:
    """``text`` as nothing but text: what a query with operators means when nothing meets them."""
    text = text[:QUERY_LIMIT]
    terms, only_stop_words = _terms(text)
    return Query(text, terms, only_stop_words=only_stop_words)


def _collect(text: str, into: list[Phrase]) -> bool:
    found = tuple(tokens.tokens(text))[: tokens.PARTS_LIMIT]
    if found:
        into.append(Phrase(text, found))
    return bool(found)


def _filter(name: str, value: str) -> Filter | None:
    """The filter, or ``None`` if the value makes it text after all."""
    match name:
        case "decision":
            return Filter("decision", value) if value == "true" else None
        case "since" | "until":
            return Filter(name, value) if _DATE_VALUE.fullmatch(value) and value[:4] > "0000" else None
        case "file" | "tool" | "error" | "session" | "agent":
            if value.startswith("//") or not tokens.tokens(value):
                return None
            return Filter(name, value)
    return None


def _terms(text: str) -> tuple[tuple[Term, ...], bool]:
    """The distinct content terms, or all terms if every one is a stop word (then the flag is set)."""
    everything: dict[tuple[str, ...], Term] = {}
    content: dict[tuple[str, ...], Term] = {}
    for raw, found in tokens.words(text):
        for term in _paired_terms(raw, found) if tokens.is_paired(raw) else [_term(raw, found)]:
            everything.setdefault(term.tokens, term)
            if not _is_stop(term):
                content.setdefault(term.tokens, term)
        if len(content) >= TERM_LIMIT:
            break
    chosen = tuple((content or everything).values())[:TERM_LIMIT]
    return chosen, bool(chosen) and not content


def _term(raw: str, found: list[str]) -> Term:
    text = raw.strip("./\\+'-_") or raw
    return Term(text, (found[0],), tuple(dict.fromkeys(found[1:])), synonyms.of_token(found[0]))


def _is_stop(term: Term) -> bool:
    return all(token in tokens.STOP_WORDS for token in term.tokens)


def _paired_terms(raw: str, found: list[str]) -> Iterator[Term]:
    """A run of Han (or the like) falls apart at its function words; what is left is one term a pair."""
    folded = tokens.simplify(raw)
    if len(folded) == 1:
        yield Term(raw, (found[0],))
        return
    also = dict(synonyms.in_run(folded))
    for start, end in [match.span() for match in _between().finditer(folded)] or [(0, len(folded))]:
        if end - start == 1:  # a function character that is part of a word: 目的, 存在
            start, end = max(0, start - 1), min(len(folded), end + 1)
        for i in range(start, end - 1):
            yield Term(raw[i : i + 2], (folded[i : i + 2],), also=also.get(i, ()))


@cache
def _between() -> re.Pattern[str]:
    """Matches each stretch of a run that holds no function word."""
    words = sorted(tokens.FUNCTION_WORDS, key=len, reverse=True)
    return re.compile(rf"(?:{'|'.join(tokens.WHOLE_WORDS)}|(?!{'|'.join(map(re.escape, words))}).)+")
