"""From search tokens back to words a person would type: ``deploi`` → ``deploy``, ``file:a/b.py`` → ``b.py``."""

from __future__ import annotations

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from stages import tokens
from stages.evidence import parted
from stages.model import RefinedTurn

MAX_CHARS = 40
_WORD = re.compile(r"[A-Za-z][\w.+#/-]*[A-Za-z0-9+#]|[A-Za-z]")
_HAN = re.compile(r"[\u3400-\u9fff]{2,}")
LONGER = 0.7
"""A longer Chinese word is taken when it occurs this often as often as the pair it grew from."""


class Surfaces:
    """The words of some turns, by the tokens they give."""

    def __init__(self, turns: Sequence[RefinedTurn]) -> None:
        self._words: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._han: Counter[str] = Counter()
        for turn in turns:
            self._read(turn)

    def _read(self, turn: RefinedTurn) -> None:
        own, _ = parted(turn.user_text)
        text = "\n".join((own, turn.refined.summary, *(fact.text for fact in turn.refined.facts)))
        for word, found in tokens.words(text):
            match = _WORD.fullmatch(word.strip("-./+#'_"))
            if match and len(found) >= 1 and len(word) <= MAX_CHARS:
                self._words[found[0]][match[0]] += 1
        grams: set[str] = set()
        for run in _HAN.findall(text):
            for size in (2, 3, 4):
                grams.update(run[start : start + size] for start in range(len(run) - size + 1))
        self._han.update(grams)

    def of(self, terms: Iterable[str]) -> list[str]:
        """The most usual word for each term, in order; terms that no word gives are left out."""
        found: list[str] = []
        for term in terms:
            kind, colon, value = term.partition(":")
            word = _entity(kind, value) if colon else self._word(term)
            if word and word not in found:
                found.append(word)
        return found

    def _word(self, term: str) -> str:
        if _HAN.fullmatch(term):
            return self._grown(term)
        spelled = self._words.get(term)
        if not spelled:
            return ""
        word, _ = min(spelled.items(), key=lambda pair: (-pair[1], len(pair[0]), pair[0]))
        return word.lower() if word.istitle() else word

    def _grown(self, pair: str) -> str:
        """The longest word around a pair that is nearly as frequent: 上下 → 上下文."""
        best = pair
        for gram, times in sorted(self._han.items()):
            if pair in gram and len(gram) > len(best) and times >= 2 and times >= LONGER * self._han[pair]:
                best = gram
        return best


def _entity(kind: str, value: str) -> str:
    if kind == "file":
        return posixpath.basename(value.rstrip("/"))
    if kind in ("symbol", "package", "issue") and len(value) <= MAX_CHARS and " " not in value:
        return value
    return ""
