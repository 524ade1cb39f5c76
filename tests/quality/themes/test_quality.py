"""The figures that must not sink: themes of the bilingual corpus against both baselines, and discovery on
it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.quality.themes.bilingual import THEMES, bilingual_corpus, labels_json
from tests.quality.themes.labels import Label, read_labels
from tests.quality.themes.measure import BUNDLED, Score, bundled, discovered, macro, measure, score

LABELS = Path(__file__).with_name("labels_bilingual.json")


@pytest.mark.parametrize("corpus", THEMES)
def test_label_file_is_what_the_corpus_says(corpus: str) -> None:
    assert LABELS.with_name(f"labels_{corpus}.json").read_text(encoding="utf-8") == labels_json(corpus)


@pytest.mark.parametrize(("corpus", "least"), [("bilingual", 0.87), ("clinic", 0.65), ("outpost", 0.65)])
def test_themes_beat_both_baselines(corpus: str, least: float) -> None:
    rows = measure(read_labels(BUNDLED[corpus])[1], bundled(corpus))
    ours, seeds, bm25 = (macro([getattr(row, name) for row in rows]).f1 for name in ("ours", "seeds", "bm25"))
    assert ours >= least
    assert ours >= max(seeds, bm25) + 0.08


def test_labelled_themes_are_discovered() -> None:
    hits, labelled, suggestions = discovered(read_labels(LABELS)[1], bilingual_corpus())
    assert (hits, labelled) == (2, 2) and suggestions <= 4


def test_turns_acceptable_either_way_count_neither_for_nor_against() -> None:
    key = [("s", "main", number) for number in range(5)]
    label = Label("t", ("x",), frozenset(key[:3]), frozenset({key[3]}))
    assert score({key[0], key[3]}, label) == Score(1.0, 1 / 3, 0.5, 1)
    assert score({key[0], key[4]}, label).precision == 0.5
    assert score(set(), label) == Score(0.0, 0.0, 0.0, 0)


BUILD = """
from stages.aggregate import aggregate
from stages.discover import discover
from stages.theme_page import page
from tests.quality.themes.bilingual import bilingual_corpus
turns = [turn.refined for turn in bilingual_corpus()]
theme = aggregate("note-sync-conflicts", ["sync", "同步", "conflict"], turns)
print(theme, page(theme, turns), discover(turns))
"""


def test_same_evidence_gives_the_same_bytes_in_any_process() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", BUILD],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
            cwd=Path(__file__).parents[3],
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1 and outputs.pop()
