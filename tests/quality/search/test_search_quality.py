"""Search beats plain bm25 clearly on the labelled questions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.quality.search import run


def test_the_labels_are_well_formed() -> None:
    asked = run.questions()
    assert len(asked) >= 60
    assert all(question.query.strip() and question.relevant for question in asked)
    assert {question.kind for question in asked} <= {"natural", "keywords", "identifier", "chinese"}


@pytest.mark.skipif(run.corpus() is None, reason=f"{run.ENVIRONMENT} names no folder with sessions/")
def test_search_beats_plain_bm25(tmp_path: Path) -> None:
    folder = run.corpus()
    assert folder is not None
    store = tmp_path / "refined.sqlite"
    run.fold(folder, store)
    asked = run.questions()
    search, baseline = run.measure(run.ours(store), asked), run.measure(run.plain(store), asked)
    print(f"\nsearch {search}\nbm25   {baseline}")
    assert search.hit1 >= baseline.hit1 + 0.05
    assert search.hit10 >= baseline.hit10
    assert search.mrr >= baseline.mrr + 0.04
