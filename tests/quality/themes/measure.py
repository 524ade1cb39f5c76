"""How good themes are: precision, recall and F1 against labels, beside two baselines (see README.md here).

python -m tests.quality.themes.measure [--sessions PATH] [--labels FILE …] [--json] [--wrong] [--discover]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from stages.aggregate import aggregate
from stages.discover import discover
from tests.quality.themes.baselines import any_seed, bm25, key_of
from tests.quality.themes.bilingual import THEMES, bilingual_corpus
from tests.quality.themes.corpus import CorpusTurn, read_corpus
from tests.quality.themes.labels import Key, Label, read_labels

HERE = Path(__file__).parent
VARIABLE = "MEMORY_QUALITY_SESSIONS"
CORPUS_VARIABLE = "KIMI_MEMORY_CORPUS"
"""A KIMI_CODE_HOME-shaped folder with the recorded project that labels_tnyoffice.json is about."""
OUTPOST = HERE.parent / "bilingual"
BUNDLED = {name: HERE / f"labels_{name}.json" for name in THEMES} | {"outpost": OUTPOST / "labels.json"}
FOUND = 0.5
"""A labelled theme is found by a suggestion whose turns reach this F1."""


@dataclass(frozen=True, slots=True)
class Score:
    """Precision, recall and F1; ``returned`` counts what was judged (turns acceptable either way left
    out).
    """

    precision: float
    recall: float
    f1: float
    returned: int


def score(found: set[Key], label: Label) -> Score:
    """``found`` against a label; turns acceptable either way count neither for nor against."""
    judged = found - label.either
    hits = len(judged & label.members)
    precision = hits / len(judged) if judged else 0.0
    recall = hits / len(label.members) if label.members else 0.0
    f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
    return Score(precision, recall, f1, len(judged))


def macro(scores: Sequence[Score]) -> Score:
    """The plain mean over themes."""
    n = max(1, len(scores))
    return Score(
        sum(s.precision for s in scores) / n,
        sum(s.recall for s in scores) / n,
        sum(s.f1 for s in scores) / n,
        sum(s.returned for s in scores),
    )


def members(label: Label, turns: Sequence[CorpusTurn]) -> set[Key]:
    """What the aggregator says belongs to the theme."""
    theme = aggregate(label.theme, label.seeds, [turn.refined for turn in turns])
    return {(p.key.session_id, p.key.agent_id, p.key.turn_id) for p in theme.pointers}


@dataclass(frozen=True, slots=True)
class Row:
    """One theme's scores: ours, every turn with a seed, bm25's best forty."""

    theme: str
    ours: Score
    seeds: Score
    bm25: Score
    false: tuple[Key, ...]
    missed: tuple[Key, ...]


def measure(labels: Sequence[Label], turns: Sequence[CorpusTurn]) -> list[Row]:
    """Every label's row."""
    rows = []
    for label in labels:
        found = members(label, turns)
        rows.append(
            Row(
                label.theme,
                score(found, label),
                score(any_seed(label.seeds, turns), label),
                score(bm25(label.seeds, turns), label),
                tuple(sorted(found - label.either - label.members)),
                tuple(sorted(label.members - found)),
            )
        )
    return rows


def discovered(labels: Sequence[Label], turns: Sequence[CorpusTurn]) -> tuple[int, int, int]:
    """Labelled themes that a suggestion finds (built from its own name and seeds), of how many; suggestions
    made.
    """
    refined = [turn.refined for turn in turns]
    suggestions = discover(refined)
    themes = [
        {
            (p.key.session_id, p.key.agent_id, p.key.turn_id)
            for p in aggregate(s.name, s.seeds, refined).pointers
        }
        for s in suggestions
    ]
    hits = sum(any(score(found, label).f1 >= FOUND for found in themes) for label in labels)
    return hits, len(labels), len(suggestions)


def show(name: str, rows: Sequence[Row], turns: Sequence[CorpusTurn], wrong: bool) -> None:
    print(f"\n{name}: {len(turns)} turns")
    print(f"{'theme':28} {'P':>5} {'R':>5} {'F1':>5} | seed F1 | bm25-40 F1")
    whole = Row(
        "macro",
        macro([row.ours for row in rows]),
        macro([row.seeds for row in rows]),
        macro([row.bm25 for row in rows]),
        (),
        (),
    )
    texts = {key_of(turn): " ".join(turn.refined.user_text.split())[:90] for turn in turns}
    for row in [*rows, whole]:
        ours = row.ours
        print(
            f"{row.theme[:28]:28} {ours.precision:5.2f} {ours.recall:5.2f} {ours.f1:5.2f}"
            f" | {row.seeds.f1:7.2f} | {row.bm25.f1:7.2f}"
        )
        for mark, keys in (("+", row.false), ("-", row.missed)) if wrong else ():
            for key in keys:
                print(f"    {mark} {key[0][:16]} {key[2]:3}  {texts.get(key, '(no such turn)')}")


def bundled(corpus: str) -> list[CorpusTurn]:
    """The turns of a corpus that ships with the tests."""
    return read_corpus(OUTPOST / "home" / "sessions") if corpus == "outpost" else bilingual_corpus(corpus)


def report() -> None:
    """For ``make quality``: the bundled bilingual corpora, and the recorded project where it is at hand."""
    for corpus, path in BUNDLED.items():
        turns = bundled(corpus)
        labels = read_labels(path)[1]
        show(corpus, measure(labels, turns), turns, wrong=False)
        print("discovered: {} of {} labelled themes, {} suggestions".format(*discovered(labels, turns)))
    home = os.environ.get(CORPUS_VARIABLE)
    if not home:
        print(f"\ntnyoffice: skipped, {CORPUS_VARIABLE} names no folder")
        return
    turns = read_corpus(Path(home) / "sessions")
    labels = read_labels(HERE / "labels_tnyoffice.json")[1]
    show("tnyoffice", measure(labels, turns), turns, wrong=False)
    print("discovered: {} of {} labelled themes, {} suggestions".format(*discovered(labels, turns)))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sessions", type=Path, default=os.environ.get(VARIABLE))
    parser.add_argument("--labels", type=Path, nargs="*")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--wrong", action="store_true", help="list false hits (+) and misses (-)")
    parser.add_argument(
        "--discover", action="store_true", help="also: how many labelled themes are discovered"
    )
    options = parser.parse_args(argv)
    report = {}
    external = read_corpus(Path(options.sessions)) if options.sessions else None
    for path in options.labels or sorted(HERE.glob("labels_*.json")):
        corpus, labels = read_labels(path)
        turns = bilingual_corpus(corpus) if corpus in THEMES else external
        if turns is None:
            print(f"{path.name}: skipped, its corpus is not here (--sessions or {VARIABLE})", file=sys.stderr)
            continue
        rows = measure(labels, turns)
        report[path.stem] = [asdict(row) for row in rows]
        if not options.json:
            show(path.stem, rows, turns, options.wrong)
            if options.discover:
                print(
                    "discovered: {} of {} labelled themes, {} suggestions".format(*discovered(labels, turns))
                )
    if options.json:
        print(json.dumps(report, ensure_ascii=False, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
