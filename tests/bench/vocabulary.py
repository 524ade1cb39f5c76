"""Words for generated wires: Zipf-distributed English, identifiers, paths, code lines, Chinese sentences.

Term frequencies and compressibility follow real sessions roughly: a few hundred words of the trade
(words.txt) carry most of the text, a long tail of rare ones, built from syllables, is what people search for.
"""

import random
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

_ENGLISH, _HAN = Path(__file__).with_name("words.txt").read_text(encoding="utf-8").split("\n\n")
TRADE = tuple(_ENGLISH.split())
CHINESE = tuple(_HAN.split())

_ONSETS = (
    "b",
    "br",
    "c",
    "cl",
    "d",
    "dr",
    "f",
    "fl",
    "g",
    "gr",
    "h",
    "l",
    "m",
    "n",
    "p",
    "pl",
    "r",
    "s",
    "st",
    "t",
    "tr",
    "v",
)
_NUCLEI = ("a", "e", "i", "o", "u", "ai", "ea", "ou")
_CODAS = ("", "", "n", "r", "l", "s", "t", "m", "nd", "rk", "st", "ck")

_LINKS = ("的", "了", "在", "和", "把", "对", "从", "到", "用", "是", "也", "就", "再", "先", "不")


def _zipf(count: int) -> list[float]:
    return list(accumulate(1 / (rank + 2.7) for rank in range(count)))


def _syllables(rng: random.Random) -> str:
    return "".join(
        rng.choice(_ONSETS) + rng.choice(_NUCLEI) + rng.choice(_CODAS)
        for _ in range(rng.choice((2, 2, 3, 3, 4)))
    )


class Vocabulary:
    """The words of one corpus, from its seed; streams of them are drawn per session."""

    def __init__(self, seed: int, tail: int = 30_000) -> None:
        rng = random.Random(f"vocabulary {seed}")
        self.common = list(dict.fromkeys(TRADE))
        rare = dict.fromkeys(_syllables(rng) for _ in range(tail))
        self.words = list(dict.fromkeys([*self.common, *rare]))
        self.weights = _zipf(len(self.words))
        han = sorted(set("".join(CHINESE)))
        unusual = ("".join(rng.choices(han, k=rng.choice((2, 2, 2, 3)))) for _ in range(4_000))
        self.chinese = list(dict.fromkeys([*CHINESE, *unusual]))
        self.chinese_weights = _zipf(len(self.chinese))
        self.code = [_code_line(rng, self._identifier(rng), self._identifier(rng)) for _ in range(40_000)]

    def _identifier(self, rng: random.Random) -> str:
        parts = rng.choices(self.words[60:4000], k=rng.choice((1, 2, 2, 3)))
        style = rng.random()
        if style < 0.45:
            return "_".join(parts)
        camel = "".join(part.capitalize() for part in parts)
        return camel if style < 0.6 else camel[0].lower() + camel[1:]


def _code_line(rng: random.Random, one: str, other: str) -> str:
    depth = "    " * rng.choice((0, 1, 1, 1, 2, 2, 3))
    shape = rng.randrange(12)
    if shape < 3:
        return f"{depth}{one} = {other}({rng.choice(TRADE)}, {rng.randrange(100)})"
    return (
        depth
        + (
            f"def {one}(self, {rng.choice(TRADE)}: {other}) -> None:",
            f"return {one}.{other}",
            f"if {one} is not None and {other}.{rng.choice(TRADE)}:",
            f"for {rng.choice(TRADE)} in {one}.{other}():",
            f'raise ValueError(f"{rng.choice(TRADE)} {rng.choice(TRADE)}: {{{other}}}")',
            "",
            f"# {' '.join(rng.choices(TRADE, k=8))}",
            f"await self.{one}({other}={rng.choice(('True', 'False', 'None'))})",
            f"from {one}.{rng.choice(TRADE)} import {other}",
        )[shape - 3]
    )


def _clock(seconds: int) -> str:
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


class Speech:
    """One session's words: fresh prose from the shared vocabulary, and names of its own."""

    def __init__(self, vocabulary: Vocabulary, rng: random.Random) -> None:
        self.vocabulary = vocabulary
        self.rng = rng
        self._english: list[str] = []
        self._han: list[str] = []
        self.identifiers = [vocabulary._identifier(rng) for _ in range(60)]
        self.paths = [self._path() for _ in range(24)]

    def _path(self) -> str:
        rng, words = self.rng, self.vocabulary.words
        stem = "_".join(rng.choices(words[40:2500], k=2))
        folder = "/".join(rng.choices(words[40:300], k=rng.choice((1, 2, 2))))
        top, suffix = rng.choice(("src", "src", "tests", "lib")), rng.choice(("py", "py", "ts", "go", "md"))
        return f"{top}/{folder}/{stem}.{suffix}"

    def words(self, count: int) -> list[str]:
        """The next ``count`` words of an endless Zipf stream."""
        if len(self._english) < count:
            words, weights = self.vocabulary.words, self.vocabulary.weights
            self._english = self.rng.choices(words, cum_weights=weights, k=max(6_000, count))
        taken = self._english[-count:]
        del self._english[-count:]
        return taken

    def _chinese(self) -> str:
        count = self.rng.randrange(5, 14)
        if len(self._han) < count:
            words, weights = self.vocabulary.chinese, self.vocabulary.chinese_weights
            self._han = self.rng.choices(words, cum_weights=weights, k=3_000)
        taken = self._han[-count:]
        del self._han[-count:]
        taken.insert(count // 2, self.rng.choice(_LINKS))
        if count % 3 == 0:
            taken.insert(2, f" {self.rng.choice(self.identifiers)} ")
        return "".join(taken) + "。"

    def sentence(self) -> str:
        """15 % Chinese; some English ones name an identifier or a path."""
        chance = self.rng.random()
        if chance < 0.15:
            return self._chinese()
        words = self.words(self.rng.randrange(6, 18))
        if chance < 0.35:
            words[len(words) // 2] = f"`{self.rng.choice(self.identifiers)}`"
        elif chance < 0.45:
            words[-1] = self.rng.choice(self.paths)
        words[0] = words[0].capitalize()
        return " ".join(words) + "."

    def prose(self, sentences: int) -> str:
        return " ".join([self.sentence() for _ in range(sentences)])

    def code_lines(self, count: int) -> list[str]:
        """A run of the shared code with some lines of the session's own names."""
        code = self.vocabulary.code
        start = self.rng.randrange(max(1, len(code) - count))
        lines = code[start : start + count]
        for index in range(3, len(lines), 11):
            lines[index] = f"    {self.rng.choice(self.identifiers)} = {lines[index].strip()}"
        return lines

    def log_lines(self, count: int) -> list[str]:
        words, rng = self.words(count * 5), self.rng
        clock = rng.randrange(80_000)
        return [
            f"{_clock(clock + n)} {'INFO' if n % 7 else 'WARN'} {' '.join(words[5 * n : 5 * n + 5])} "
            f"took {rng.randrange(2000)} ms"
            for n in range(count)
        ]

    def choice(self, options: Sequence[str]) -> str:
        return self.rng.choice(options)
