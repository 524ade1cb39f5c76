"""Patterns that are only tried where they can match: on texts that hold one of the words that every match holds.

A sentence is folded to lower case once and its words are looked up once; whether a pattern can match it is then one
test of a bit. The cues of a pattern stand beside it; a test derives from the pattern that every match holds one.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import TypeVar

_Cue = TypeVar("_Cue", str, bytes)

ALWAYS = 1
"""The bit of the patterns without cues, which every text has."""
STEM = 5
"""Letters of a word that are looked at in a text that is not all English."""

_STEMS = re.compile(rf"([a-z]{{1,{STEM}}})[a-z]*")
_LETTERS = re.compile("[a-z]+")
_WHOLE_WORDS = re.compile(r"[a-z]+(?:'[a-z]+)?")
_ODD = re.compile("[İıſK]")
_EVEN = str.maketrans("İıſK", "iisk")
_SPACED = bytes(byte if chr(byte).isalpha() else ord(" ") for byte in range(128)) + bytes(128)


_words: dict[bytes, int] = {}
_whole_words: dict[str, int] = {}
_stems: dict[str, int] = {}
"""The patterns, as bits, that have a word (in ``_whole_words`` one with what is behind its apostrophe; in ``_stems``
the beginning of one, or a Chinese character) among their cues.
"""
_known: set[bytes] = set()
_bits = itertools.count(1)


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
    if not text.isascii():
        for cue in {*_STEMS.findall(folded), *folded}:
            found |= _stems.get(cue, 0)
        return found | _whole_bits(), folded
    for word in _known.intersection(folded.encode().translate(_SPACED).split()):
        found |= _words[word]
    if "'" in folded:
        found &= ~_whole_bits()
        for whole in _WHOLE_WORDS.findall(folded):
            found |= _whole_words.get(whole, 0)
    return found, folded


@cache
def _whole_bits() -> int:
    bits = 0
    for bit in _whole_words.values():
        bits |= bit
    return bits


def words_of(text: str) -> list[str]:
    """The words of a text, of small English letters."""
    lower = text.lower()
    return lower.encode().translate(_SPACED).decode().split() if text.isascii() else _LETTERS.findall(lower)


def holds(text: str, words: frozenset[str]) -> bool:
    """Whether a long text holds one of the words, whole; one that is not all English always may."""
    if not text.isascii():
        return True
    if "'" in text:
        return not words.isdisjoint(_WHOLE_WORDS.findall(text.lower()))
    return not words.isdisjoint(words_of(text))


class Cued:
    """A pattern, in lower case, that ignores case; it is tried on texts only that hold one of its cues.

    ``cues``: words (``crash*``: all that hold it) and Chinese characters, parted by spaces, of which each match holds
    one; ``""``: it is always tried. ``whole``: words of which an English text must hold one for the pattern to count
    at all (``b'failed'`` is none). ``cased``: upper and lower case are as written. Matches are of the folded text
    unless ``cased``: use their offsets.
    """

    __slots__ = ("_begun", "_match", "_search", "_whole_bit", "bit", "cased", "cues", "pattern", "whole")

    def __init__(self, pattern: str, cues: str = "", *, whole: str = "", cased: bool = False) -> None:
        self.pattern = re.compile(pattern)
        self._match, self._search = self.pattern.match, self.pattern.search
        self.cues = frozenset(cues.split())
        self.whole = frozenset(whole.split())
        self.cased = cased
        self._begun = tuple(cue[:-1] for cue in self.cues if cue.endswith("*"))
        self.bit = _register(self.cues) if cues else ALWAYS
        self._whole_bit = _register_whole(self.whole) if whole else ALWAYS

    def search(
        self, text: str, pos: int = 0, end: int = sys.maxsize, *, within: str | None = None
    ) -> re.Match[str] | None:
        """The first match. ``within``: the longer text that this is of, which is to hold the cues."""
        found, folded = glance(text)
        if within is not None and within is not text:
            found = glance(within)[0]
        if not found & self._whole_bit or not (found & self.bit or (self._begun and self._is_begun(folded))):
            return None
        return self._search(text if self.cased else folded, pos, end)

    def match(self, text: str) -> re.Match[str] | None:
        """The match at its beginning, ``whole`` words or not."""
        found, folded = glance(text)
        if not (found & self.bit or self._is_begun(folded)):
            return None
        return self._match(text if self.cased else folded)

    def _is_begun(self, folded: str) -> bool:
        return any(begun in folded for begun in self._begun)


def _register(cues: frozenset[str]) -> int:
    bit = ALWAYS << next(_bits)
    _put(_stems, (cue.rstrip("*")[:STEM] for cue in cues), bit)
    _put(_words, (cue.encode() for cue in cues), bit)
    return bit


def _register_whole(words: frozenset[str]) -> int:
    bit = ALWAYS << next(_bits)
    _put(_whole_words, words, bit)
    _put(_words, (word.encode() for word in words), bit)
    return bit


def _put(index: dict[_Cue, int], cues: Iterable[_Cue], bit: int) -> None:
    for cue in cues:
        index[cue] = index.get(cue, 0) | bit
    _known.update(_words)
    glance.cache_clear()
    _whole_bits.cache_clear()
