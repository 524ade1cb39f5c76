"""Patterns with cues find what they would find without them: every match holds a cue, and folding keeps offsets."""

from __future__ import annotations

import importlib
import itertools
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages import refine
from stages.refining import asking, categories, cues, decisions, filler, wording
from stages.refining.cues import STEM, Cued, fold

PARSER: Any = importlib.import_module("re._parser")
CODES: Any = importlib.import_module("re._constants")
ANYTHING, EDGE = "\0", "\1"
MANY, FEW = 80_000, 6
"""Of more ways only how they begin and end is looked at: at the widest place, and where all may be left out."""

PATTERNS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": value
    for module in (refine, asking, categories, decisions, filler, wording)
    for name, value in vars(module).items()
    if isinstance(value, Cued) and value.cues
}


def paths(parsed: Any) -> list[str]:
    """All ways through a pattern as texts, with ``ANYTHING`` for what may vary and ``EDGE`` for ends of words."""
    parts = [part for node in parsed if (part := list(_ways(*node))) != [""]]
    while len(parts) > 1 and _product(parts) > MANY:
        widest = max(range(len(parts)), key=lambda index: len(parts[index]))
        parts[widest] = sorted({_shape(way) for way in parts[widest]})
    return list({"".join(way) for way in itertools.product(*parts)})


def _product(parts: list[list[str]]) -> int:
    size = 1
    for part in parts:
        size *= len(part)
    return size


def _shape(way: str) -> str:
    """A way by how it begins and ends alone."""
    return "".join((_outside(way[0]), ANYTHING, _outside(way[-1]))) if way else ""


def _outside(char: str) -> str:
    return ANYTHING if "a" <= char <= "z" else char


def _ways(op: Any, value: Any) -> Iterator[str]:
    if op is CODES.LITERAL:
        yield chr(value).lower()
    elif op is CODES.IN:
        yield from _class(value)
    elif op is CODES.BRANCH:
        yield from (way for branch in value[1] for way in paths(branch))
    elif op is CODES.SUBPATTERN:
        yield from paths(value[3])
    elif op in (CODES.MAX_REPEAT, CODES.MIN_REPEAT):
        least, most, inner = value
        once = paths(inner)
        if not least:
            yield ""
        yield from once if least or len(once) <= FEW else ()
        if most > 1 or len(once) > FEW:
            yield from {_shape(way) for way in once}
    elif op is CODES.AT:
        yield EDGE
    elif op in (CODES.ASSERT, CODES.ASSERT_NOT):
        yield ""
    else:
        yield ANYTHING


def _class(members: Any) -> Iterator[str]:
    for op, value in members:
        if op is CODES.LITERAL:
            yield chr(value).lower()
        elif op is CODES.RANGE and value[1] - value[0] < 10:
            yield from (chr(code).lower() for code in range(value[0], value[1] + 1))
        else:
            yield ANYTHING


def words_of(way: str) -> Iterator[tuple[str, bool]]:
    """The words of a way that begin for certain, and whether they end for certain."""
    for match in re.finditer("[a-z]+", way):
        before, after = way[: match.start()][-1:], way[match.end() :][:1]
        if before and before != ANYTHING:
            yield match[0], bool(after) and after != ANYTHING


def holds_cue(way: str, cued: Cued, *, whole: bool) -> bool:
    begun = [cue[:-1] for cue in cued.cues if cue.endswith("*")]
    stems = {cue.rstrip("*")[:STEM] for cue in cued.cues}
    if any(cue in way for cue in begun) or any(char in cued.cues for char in way if char > "\u3000"):
        return True
    for word, ended in words_of(way):
        if whole:
            if ended and word in cued.cues:
                return True
        elif word[:STEM] in stems and (ended or len(word) >= STEM):
            return True
    return False


@pytest.mark.parametrize("name", PATTERNS)
def test_every_match_holds_a_cue(name: str) -> None:
    cued = PATTERNS[name]
    for way in paths(PARSER.parse(cued.pattern.pattern)):
        assert holds_cue(way, cued, whole=False), way
        assert cued.whole or holds_cue(way, cued, whole=True), way


def test_a_pattern_without_a_cue_for_one_of_its_ways_is_noticed() -> None:
    ways = paths(PARSER.parse(r"\b(?:fix(?:es|ed)?|bug\w*)\b|修复"))
    assert [holds_cue(way, Cued("x", "fix fixes fixed 修"), whole=True) for way in ways].count(False) >= 1
    assert all(holds_cue(way, Cued("x", "fix fixes fixed bug* 修"), whole=True) for way in ways)


def test_interjections_begin_as_they_are_looked_for() -> None:
    for way in paths(PARSER.parse(filler._INTERJECTION.pattern)):
        assert not way[:2].isascii() or way[:1] in filler._INTERJECTS, way
        assert not way[:2].isascii() or way[:2] in filler._INTERJECTS_ENGLISH, way


def test_announcements_begin_as_they_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "FEW", 400)  # what may be left out in front begins some
    for way in paths(PARSER.parse(filler._ANNOUNCES.pattern)):
        assert way[:2] in filler._ANNOUNCES_FROM, way


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns_are_in_lower_case(name: str) -> None:
    cued = PATTERNS[name]
    written = re.sub(r"\\[A-Za-z]", "", cued.pattern.pattern)
    assert cued.cased or written == written.lower()


SCRAPS = sorted(
    {word for cued in PATTERNS.values() for word in (*cued.cues, *cued.whole)}
    | set("’'\"`*_-,.;:!?。，？ 一这不用改")
    | {"for now", "instead of", "b'failed'", "Kelvin", "ﬁx", "iſſue", "İs", "ıf"}
)


@given(st.lists(st.sampled_from(SCRAPS), max_size=9), st.sampled_from([" ", "", "'"]), st.booleans())
def test_a_text_is_searched_as_if_without_cues(scraps: list[str], between: str, shout: bool) -> None:
    text = between.join(scraps).upper() if shout else between.join(scraps)
    for name, cued in PATTERNS.items():
        plain = re.compile(cued.pattern.pattern, 0 if cued.cased else re.IGNORECASE).search(text)
        found = cued.search(text)
        if not cued.whole or found is not None:
            assert (found and found.span()) == (plain and plain.span()), name


@given(st.text())
def test_folding_keeps_offsets(text: str) -> None:
    assert len(fold(text)) == len(text)
    assert all(
        re.fullmatch(re.escape(low), char, re.IGNORECASE) for low, char in zip(fold(text), text, strict=True)
    )


def test_a_quoted_word_is_no_claim() -> None:
    assert wording.ERROR.search("it failed on start") and not wording.ERROR.search(
        "it prints b'failed' on start"
    )
    assert cues.holds("it failed", wording.ERROR.whole) and not cues.holds("b'failed'", wording.ERROR.whole)
