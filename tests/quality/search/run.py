"""How well search ranks: hit@1, hit@10 and MRR on labelled questions, beside plain FTS5 bm25 on the same text.

    KIMI_MEMORY_CORPUS=/path/to/corpus python -m tests.quality.search.run [-v]

The corpus is folded into a fresh store each time. See README.md for the labels.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from pipeline.catchup import catch_up
from pipeline.config import load
from pipeline.report import Report
from pipeline.search import Searcher
from pipeline.search_request import SearchRequest
from pipeline.sessions import discover
from pipeline.store import codec
from pipeline.store.database import open_database
from pipeline.workers import Workers
from stages.document import document

ENVIRONMENT = "KIMI_MEMORY_CORPUS"
DEPTH = 30
"""A relevant turn below this rank counts as not found."""
KEY = b"a key for quality runs, 32 bytes"

Place = tuple[str, int]
Ask = Callable[[str], Sequence[Place]]


@dataclass(frozen=True, slots=True)
class Question:
    id: str
    query: str
    kind: str
    relevant: frozenset[Place]


@dataclass(frozen=True, slots=True)
class Measure:
    """What came of some questions. ``ranks`` are 1-based, ``None`` for not found."""

    ranks: tuple[int | None, ...]

    @property
    def hit1(self) -> float:
        return sum(rank == 1 for rank in self.ranks) / len(self.ranks)

    @property
    def hit10(self) -> float:
        return sum(rank is not None and rank <= 10 for rank in self.ranks) / len(self.ranks)

    @property
    def mrr(self) -> float:
        return sum(1 / rank for rank in self.ranks if rank) / len(self.ranks)

    def __str__(self) -> str:
        return f"hit@1 {self.hit1:.3f}  hit@10 {self.hit10:.3f}  MRR {self.mrr:.3f}  n={len(self.ranks)}"


def questions() -> list[Question]:
    """All labelled questions; ids are unique."""
    found = [
        Question(
            item["id"],
            item["query"],
            item["kind"],
            frozenset((place["sessionId"], place["turnId"]) for place in item["relevant"]),
        )
        for path in sorted(Path(__file__).parent.glob("questions*.json"))
        for item in json.loads(path.read_text(encoding="utf-8"))
    ]
    if len({question.id for question in found}) != len(found):
        raise ValueError("two questions share an id")
    return found


def corpus() -> Path | None:
    """The corpus folder named by the environment, if there is one."""
    folder = os.environ.get(ENVIRONMENT)
    return Path(folder) if folder and (Path(folder) / "sessions").is_dir() else None


def fold(folder: Path, store: Path) -> None:
    """A fresh store of the corpus's largest workspace."""

    async def work() -> None:
        settings = load(
            {"HOME": "/home/dev", "KIMI_CODE_HOME": str(folder), "MEMORY_STORE_ROOT": str(store.parent)}
        )
        workspace = max(discover(settings).workspaces, key=lambda space: len(space.sessions))
        async with open_database(store) as database:
            await catch_up(database, workspace.sessions, key=KEY, workers=Workers(1), report=Report())

    anyio.run(work)


def ours(store: Path) -> Ask:
    """Search as it is, whatever is refined (here: nothing)."""
    searcher = Searcher(store)

    def ask(query: str) -> list[Place]:
        hits = searcher.answer(SearchRequest(query, limit=DEPTH)).hits
        return [(hit.session_id, hit.turn_id) for hit in hits]

    return ask


def plain(store: Path) -> Ask:
    """bm25 as FTS5 ships it (porter over unicode61), over the same four columns, OR of the query's words."""
    source = sqlite3.connect(store)
    index = sqlite3.connect(":memory:")
    index.execute(
        "CREATE VIRTUAL TABLE t USING fts5(user, agent, actions, errors, tokenize='porter unicode61')"
    )
    places: dict[int, Place] = {}
    for data in source.execute("SELECT data FROM dictionary"):
        codec.use(data[0])
    for number, body, session, turn in source.execute(
        "SELECT c.id, c.body, o.session_id, o.turn_id FROM content c JOIN occurrence o ON o.id=c.shown"
    ):
        text = document(codec.unpack(body))
        index.execute(
            "INSERT INTO t(rowid, user, agent, actions, errors) VALUES(?,?,?,?,?)",
            (number, text.user, text.agent, text.actions, text.errors),
        )
        places[number] = (session, turn)
    source.close()

    def ask(query: str) -> list[Place]:
        words = re.findall(r"\w+", query)
        if not words:
            return []
        expression = " OR ".join(f'"{word}"' for word in words)
        rows = index.execute("SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT ?", (expression, DEPTH))
        return [places[row[0]] for row in rows]

    return ask


def rank(ask: Ask, question: Question) -> int | None:
    for number, place in enumerate(ask(question.query), 1):
        if place in question.relevant:
            return number
    return None


def measure(ask: Ask, asked: Sequence[Question]) -> Measure:
    return Measure(tuple(rank(ask, question) for question in asked))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="list the questions not answered first")
    report(verbose=parser.parse_args().verbose)


def report(*, verbose: bool = False) -> None:
    """Measure and print; skips, with the reason, without a corpus."""
    folder = corpus()
    if folder is None:
        print(f"search quality: skipped, {ENVIRONMENT} names no folder with sessions/")
        return
    with tempfile.TemporaryDirectory() as temporary:
        store = Path(temporary) / "refined.sqlite"
        fold(folder, store)
        _report(store, verbose)


def _report(store: Path, verbose: bool) -> None:
    everything = questions()
    search, baseline = ours(store), plain(store)
    groups = {
        "all": everything,
        "written before tuning": [q for q in everything if q.id.startswith("own")],
        "by fresh eyes": [q for q in everything if not q.id.startswith("own")],
        **{kind: [q for q in everything if q.kind == kind] for kind in sorted({q.kind for q in everything})},
    }
    for name, asked in groups.items():
        print(f"{name:22}  search  {measure(search, asked)}")
        print(f"{'':22}  bm25    {measure(baseline, asked)}")
    if verbose:
        for question in everything:
            if (found := rank(search, question)) != 1:
                print(f"  {question.id} {found or '-':>3}  {question.query}")


if __name__ == "__main__":
    main()
