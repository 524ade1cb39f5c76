"""Search against ``rg -iF`` over the same wires, in one run: warm latencies by kind, misses, the commonest word, the
first search on a cold store, and a catch-up after one appended turn.

Warm search is in process and includes the formatted answer. ripgrep counts matches (``--count``), so that writing
them out is not held against it.
"""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio

from pipeline.config import load
from pipeline.search import Searcher
from pipeline.search_freshness import catch_up_within, freshen
from pipeline.search_request import SearchRequest
from pipeline.sessions import Workspace, discover
from pipeline.settings import Settings
from pipeline.store.database import open_database
from pipeline.store.layout import Layout, redaction_key
from tests.bench.corpus import WORKSPACE, Manifest, queries
from tests.bench.measure import environment, run

QUERIES = 200
WARM_UP = 80
CHARS = 6_000
APPENDED = 21
BUDGET = 0.2


def report(homes: Sequence[Path]) -> None:
    """Measure every corpus and print its lines; the second and later ones are compared with the first."""
    slowest: list[float] = []
    for number, home in enumerate(homes):
        with tempfile.TemporaryDirectory(prefix="bench-search-") as folder:
            slowest.append(_one(home, Path(folder), cold=number == 0))
    for home, value in zip(homes[1:], slowest[1:], strict=True):
        print(f"search {home.name}: p95 is {value / slowest[0]:.2f} × that of {homes[0].name}")


def _one(home: Path, folder: Path, *, cold: bool) -> float:
    env = environment(home, folder / "store")
    run(["index", "--workspace", WORKSPACE], env)
    settings, workspace = _scope(env)
    manifest = Manifest.load(home / "manifest.json")
    searcher = Searcher(Layout(settings.store(workspace.id)).database)
    print(f"search {home.name}: {sum(1 for _ in _wires(workspace))} wires of {WORKSPACE}")
    _needles(searcher, manifest)
    p95 = _latencies(searcher, workspace, manifest)
    searcher.close()
    if cold:
        _cold(home, folder)
        _appended(home, folder)
    return p95


def _scope(env: dict[str, str]) -> tuple[Settings, Workspace]:
    settings = load(env)
    return settings, next(space for space in discover(settings).workspaces if space.cwd == WORKSPACE)


def _wires(workspace: Workspace) -> list[Path]:
    return [agent.wire for session in workspace.sessions for agent in session.agents]


# --- correctness first -------------------------------------------------------------------------------------


def _needles(searcher: Searcher, manifest: Manifest) -> None:
    """Every planted needle must be among the first ten; a sub-agent's counts for its session's main turn."""
    asked = found = first = 0
    for needle in manifest.needles:
        for query in needle.queries:
            hits = searcher.answer(_request(query)).hits
            ranks = [
                rank
                for rank, hit in enumerate(hits)
                if hit.session_id == needle.session_id
                and (hit.turn_id == needle.turn_id or needle.agent_id != "main")
            ]
            asked, found, first = asked + 1, found + bool(ranks), first + (0 in ranks)
    print(f"  needles: {found} of {asked} found, {first} of them first")


# --- warm --------------------------------------------------------------------------------------------------


def _request(query: str) -> SearchRequest:
    return SearchRequest(query, now=time.time_ns() // 1_000_000)


def _latencies(searcher: Searcher, workspace: Workspace, manifest: Manifest) -> float:
    folders = sorted({str(session.dir.parent) for session in workspace.sessions})

    def search(query: str) -> None:
        searcher.answer(_request(query)).text(CHARS)

    def ripgrep(query: str) -> None:
        subprocess.run(
            ["rg", "-iF", "--count", "--", query, *folders], stdout=subprocess.DEVNULL, check=False
        )

    for query in queries(manifest, 1, WARM_UP):
        search(query.text)
    ripgrep("warm up")
    ours: dict[str, list[float]] = defaultdict(list)
    theirs: dict[str, list[float]] = defaultdict(list)
    for query in queries(manifest, 2, QUERIES):
        ours[query.kind].append(_ms(search, query.text))
        theirs[query.kind].append(_ms(ripgrep, query.text))
    common = statistics.median(_ms(search, manifest.common) for _ in range(9))
    common_rg = statistics.median(_ms(ripgrep, manifest.common) for _ in range(9))
    mine = sorted(value for values in ours.values() for value in values)
    other = sorted(value for values in theirs.values() for value in values)
    _line("p50", _share(mine, 0.5), _share(other, 0.5), 0.3)
    _line("p95", _share(mine, 0.95), _share(other, 0.95), 0.8)
    _line("miss", statistics.median(ours["miss"]), statistics.median(theirs["miss"]), 0.15)
    _line(f"commonest word “{manifest.common}”", common, common_rg, 1.0)
    for kind, values in sorted(ours.items()):
        print(f"    {kind:10} p50 {statistics.median(values):6.2f} ms  max {max(values):6.2f} ms")
    return _share(mine, 0.95)


def _ms(action: Callable[[str], None], query: str) -> float:
    began = time.perf_counter()
    action(query)
    return (time.perf_counter() - began) * 1000


def _share(values: Sequence[float], share: float) -> float:
    return values[min(len(values) - 1, int(len(values) * share))]


def _line(name: str, ours: float, theirs: float, wanted: float) -> None:
    verdict = "ok" if ours <= wanted * theirs else "MISSED"
    print(
        f"  {name}: {ours:.2f} ms, rg {theirs:.2f} ms, ratio {ours / theirs:.3f} (wanted ≤ {wanted}) {verdict}"
    )


# --- cold and fresh ----------------------------------------------------------------------------------------


def _cold(home: Path, folder: Path) -> None:
    """The first search of all: nothing is indexed, the budget is spent, an answer comes."""
    settings, workspace = _scope(environment(home, folder / "cold"))
    layout = Layout(settings.store(workspace.id))
    began = time.perf_counter()
    freshness = anyio.run(freshen, layout, workspace.sessions, settings, BUDGET)
    searcher = Searcher(layout.database)
    answer = searcher.answer(_request("port"), freshness)
    spent = (time.perf_counter() - began) * 1000
    searcher.close()
    print(
        f"  first search on a cold store: {spent:.0f} ms (budget {BUDGET * 1000:.0f}), incomplete={answer.incomplete}"
    )


def _appended(home: Path, folder: Path) -> None:
    """Discovery and catch-up after one more turn in one wire, then the search that finds it."""
    copy = folder / "home"
    shutil.copytree(home, copy)
    env = environment(copy, folder / "store")
    settings, workspace = _scope(env)
    layout = Layout(settings.store(workspace.id))
    wire = max(
        (s.agents[0].wire for s in workspace.sessions if not s.forked_from),
        key=lambda path: path.stat().st_mtime_ns,
    )
    searcher = Searcher(layout.database)

    async def rounds() -> tuple[list[float], list[float]]:
        finding, reading = [], []
        key = redaction_key(settings.store_root, create=True)
        async with open_database(layout.database) as database:
            await catch_up_within(database, workspace.sessions, key=key, budget=60)
            for number in range(APPENDED):
                word = f"zq{chr(ord('a') + number)}appendix"
                append_turn(wire, word)
                began = time.perf_counter()
                _, space = _scope(env)
                found = time.perf_counter()
                await catch_up_within(database, space.sessions, key=key, budget=BUDGET)
                finding.append((found - began) * 1000)
                reading.append((time.perf_counter() - found) * 1000)
                assert searcher.answer(_request(word)).total == 1, word
        return finding, reading

    finding, reading = anyio.run(rounds)
    searcher.close()
    median = statistics.median(reading)
    print(f"  catch-up after one turn: median {median:.1f} ms, max {max(reading):.1f} ms (wanted ≤ 20)")
    print(f"    beside it, discovery of all sessions: median {statistics.median(finding):.1f} ms")


def append_turn(wire: Path, word: str) -> None:
    """Repeat the wire's last turn under the next number, with ``word`` in its question."""
    lines = wire.read_text(encoding="utf-8").splitlines()
    start = max(number for number, line in enumerate(lines) if line.startswith('{"type":"turn.prompt"'))
    turn = lines[start:]
    number = int(re.findall(r'"turnId":(\d+)', turn[0])[0])
    more = [
        line.replace(f'"turnId":{number}', f'"turnId":{number + 1}').replace(
            f'"turnId":"{number}"', f'"turnId":"{number + 1}"'
        )
        for line in turn
    ]
    more[0] = re.sub(r'("type":"text","text":")', rf"\g<1>{word} ", more[0], count=1)
    more[1] = re.sub(r'("type":"text","text":")', rf"\g<1>{word} ", more[1], count=1)
    with wire.open("a", encoding="utf-8") as file:
        file.write("\n".join(more) + "\n")
