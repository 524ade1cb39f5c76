"""Patterns that are only tried where they can match: on texts that hold one of the words that every match holds.

A sentence is folded to lower case once and each of its words is looked up once; whether a pattern can match it is then
one test of a bit. The cues of a pattern stand beside it; a test derives from the pattern that every match holds one.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache

STEM = 5
"""Letters of a word that are looked at: longer words count by their beginning."""
ALWAYS = 1
"""The bit of the patterns without cues, which every text has."""

_STEMS = re.compile(rf"([a-z]{{1,{STEM}}})[a-z]*")
_WORDS = re.compile(r"[a-z]+(?:'[a-z]+)?")
_ODD = re.compile("[İıſK]")
_EVEN = str.maketrans("İıſK", "iisk")

_bits: dict[str, int] = {}
"""By stem or Chinese character, the patterns that have it among their cues."""
_cued: list[frozenset[str]] = []


def fold(text: str) -> str:
    """The text in lower case and as long as before, so that offsets stay true.

    A pattern in lower case matches it where the same pattern, ignoring case, matches the text: the four odd letters
    that count as an i, s or k there become one.
    """
    return (text if text.isascii() or _ODD.search(text) is None else text.translate(_EVEN)).lower()


@lru_cache(maxsize=1_024)
def glance(text: str) -> tuple[int, str]:
    """The patterns that may match a text, as bits, and the text folded."""
    folded = fold(text)
    found = ALWAYS
    look = _bits.get
    for stem in _STEMS.findall(folded):
        found |= look(stem, 0)
    if not text.isascii():
        for char in set(folded):
            found |= look(char, 0)
    return found, folded


@lru_cache(maxsize=1_024)
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORDS.findall(text.lower()))


def _has(text: str, words: frozenset[str]) -> bool:
    return not text.isascii() or not words.isdisjoint(_words(text))


def holds(text: str, words: frozenset[str]) -> bool:
    """Whether a long text holds one of the words, whole; one that is not all English always may."""
    return not text.isascii() or not words.isdisjoint(_WORDS.findall(text.lower()))


class Cued:
    """A pattern, in lower case, that ignores case; it is tried on texts only that hold one of its cues.

    ``cues``: words (and Chinese characters), parted by spaces, of which each match holds one; ``""``: it is always
    tried. ``whole``: words of which an English text must hold one as a whole word besides. ``cased``: upper and lower
    case are as written. Matches are of the folded text unless ``cased``: use their offsets.
    """

    __slots__ = ("_match", "_search", "bit", "cased", "cues", "pattern", "whole")

    def __init__(self, pattern: str, cues: str = "", *, whole: str = "", cased: bool = False) -> None:
        self.pattern = re.compile(pattern)
        self._match, self._search = self.pattern.match, self.pattern.search
        self.cues = frozenset(cue[:STEM] for cue in cues.split())
        self.whole = frozenset(whole.split())
        self.cased = cased
        self.bit = _register(self.cues) if cues else ALWAYS

    def search(
        self, text: str, pos: int = 0, end: int = sys.maxsize, *, within: str | None = None
    ) -> re.Match[str] | None:
        """The first match. ``within``: the longer text that this is of, in which whole words are looked for."""
        found, folded = glance(text)
        if not found & self.bit:
            return None
        if self.whole and not _has(text if within is None else within, self.whole):
            return None
        return self._search(text if self.cased else folded, pos, end)

    def match(self, text: str) -> re.Match[str] | None:
        """The match at its beginning."""
        found, folded = glance(text)
        return self._match(text if self.cased else folded) if found & self.bit else None


def _register(cues: frozenset[str]) -> int:
    _cued.append(cues)
    bit = ALWAYS << len(_cued)
    for cue in cues:
        _bits[cue] = _bits.get(cue, 0) | bit
    glance.cache_clear()
    return bit
