"""Which decisions are later ones on the same subject: the quick way finds what comparing each with each finds."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages import clusters
from stages.clusters import LATER_MOST, SAME_FILES, SAME_SUBJECT, later_decisions
from stages.model import Cluster, Theme

WORDS = ("parser", "lexer", "socket", "window", "ledger", "bridge", "kernel", "mirror", "falcon", "pepper")
FILES = ("a.py", "b.py", "c.py")


def cluster(number: int, decisions: list[str], files: list[str]) -> Cluster:
    said = tuple((number, text) for text in decisions)
    return Cluster(
        f"{number:012d}", "s", "main", (number,), (number,), number, number, "", True, said, tuple(files)
    )


def theme_of(clusters: list[Cluster]) -> Theme:
    return Theme("t", ("seed",), (), tuple(clusters))


def each_with_each(theme: Theme) -> dict[tuple[str, int], list[str]]:
    """By definition, in exact numbers: the share of the lighter decision's mass that both have."""
    rows = [(c, n, text) for c in theme.clusters for n, (_, text) in enumerate(c.decisions)]
    spread = Counter(word for _, _, text in rows for word in set(text.split()))

    def mass(words: set[str]) -> Fraction:
        return sum((Fraction(1, spread[word]) for word in words), Fraction(0))

    found: dict[tuple[str, int], list[str]] = {}
    for index, (one, ordinal, text) in enumerate(rows):
        words = set(text.split())
        for other, _, said in rows[index + 1 :]:
            theirs = set(said.split())
            share = SAME_FILES if set(one.files) & set(other.files) else SAME_SUBJECT
            lighter = min(mass(words), mass(theirs))
            if one.id != other.id and text != said and words & theirs:
                near = mass(words & theirs) - Fraction(str(share)) * lighter
                if near >= 0:
                    found.setdefault((one.id, ordinal), []).append(said)
    return {key: said[:LATER_MOST] for key, said in found.items()}


texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6, unique=True).map(" ".join)
rows = st.lists(
    st.tuples(st.lists(texts, min_size=1, max_size=3), st.lists(st.sampled_from(FILES), max_size=2)),
    max_size=24,
)


@settings(max_examples=200)
@given(rows)
def test_the_quick_way_finds_what_comparing_each_with_each_finds(
    made: list[tuple[list[str], list[str]]],
) -> None:
    theme = theme_of([cluster(number, *row) for number, row in enumerate(made)])
    found = {key: [each.text for each in later] for key, later in later_decisions(theme).items()}
    assert found == each_with_each(theme)


def test_thousands_of_decisions_about_everything_take_few_comparisons(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = 0

    def counted(*decisions: Any) -> bool:
        nonlocal compared
        compared += 1
        return same_subject(*decisions)

    same_subject = clusters._same_subject
    monkeypatch.setattr(clusters, "_same_subject", counted)
    made = [cluster(n, [f"use proxy{n % 700} and cache{n % 900}"], []) for n in range(4_500)]
    listed = later_decisions(theme_of(made))
    assert len(listed) > 3_000
    assert max(map(len, listed.values())) == LATER_MOST
    assert compared < 50_000  # each with each: ten million
