"""Is the foreground hurt? `search_context` through the server, with background work going on and without, in turns.

The harder case on purpose: the work is done by another process (`pipeline watch`), which does not know of the calls and
so never yields to them; nothing is refined yet, no quiet is waited for, and the share of the processor is lifted. A
turn is appended now and then in both.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

import anyio
import psutil
from mcp import Client

from pipeline.background_status import background_status
from pipeline.config import load
from pipeline.sessions import discover
from pipeline.store.database import open_database
from pipeline.store.layout import Layout
from server.app import create_server
from tests.bench.bench_search import append_turn
from tests.bench.corpus import WORKSPACE, Manifest, queries
from tests.bench.measure import environment, run

ROUNDS = 3
QUERIES = 150
WARM_UP = 40
GAP_S = 0.03
APPEND_EVERY = 25
WANTED = 1.3
BEGIN_DEADLINE_S = 60


def report(homes: Sequence[Path]) -> None:
    """Measure the first corpus and print the two distributions and their ratio."""
    with tempfile.TemporaryDirectory(prefix="bench-background-") as name:
        folder = Path(name)
        home = folder / "home"
        shutil.copytree(homes[0], home)
        env = environment(home, folder / "indexed") | {"HOME": "/home/dev"}
        run(["index", "--workspace", WORKSPACE], env)
        times: dict[bool, list[float]] = {False: [], True: []}
        refined = cpu = 0.0
        for number in range(ROUNDS * 2):
            working = number % 2 == 1
            store = folder / f"store-{number}"
            shutil.copytree(folder / "indexed", store)
            found, more, used = anyio.run(_measure, home, store, working, number)
            times[working] += found
            refined, cpu = refined + more, cpu + used
            shutil.rmtree(store)
    without, with_it = (sorted(times[working]) for working in (False, True))
    print(f"background {homes[0].name}: search_context through the server, {len(without)} calls each")
    print(f"  while it was searched, {refined:.0f} turns were refined, with {cpu:.1f} s of processor")
    for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        ours, alone = (each[int(len(each) * share)] for each in (with_it, without))
        verdict = (
            "" if name != "p95" else f" (wanted ≤ {WANTED}) {'ok' if ours <= WANTED * alone else 'MISSED'}"
        )
        print(
            f"  {name}: {ours:.1f} ms with background work, {alone:.1f} ms without: {ours / alone:.2f}{verdict}"
        )
    spread = statistics.quantiles(without, n=20)
    print(f"  spread without: {spread[0]:.1f} to {spread[-1]:.1f} ms")


async def _measure(home: Path, store: Path, working: bool, number: int) -> tuple[list[float], float, float]:
    env = environment(home, store) | {
        "HOME": "/home/dev",
        "KIMI_MEMORY_BACKGROUND": "0",
        "KIMI_MEMORY_QUIET_SECONDS": "0",
        "KIMI_MEMORY_CPU_SHARE": "100",
    }
    settings = load(env)
    workspace = next(space for space in discover(settings).workspaces if space.cwd == WORKSPACE)
    wire = max((s.agents[0].wire for s in workspace.sessions), key=lambda path: path.stat().st_mtime_ns)
    layout = Layout(settings.store(workspace.id))
    manifest = Manifest.load(home / "manifest.json")
    server, _ = create_server(env, WORKSPACE)
    times = []
    async with Client(server) as client:
        for query in queries(manifest, 1, WARM_UP):
            await client.call_tool("search_context", {"query": query.text})
        with _watch(env) if working else nullcontext() as watch:
            if working:
                await _until_it_works(layout.root)
            before = await _refined(layout)
            for count, query in enumerate(queries(manifest, 2 + number // 2, QUERIES)):
                if count % APPEND_EVERY == 0:
                    append_turn(wire, f"zq{number}x{count}")
                await anyio.sleep(GAP_S)
                began = time.perf_counter()
                await client.call_tool("search_context", {"query": query.text})
                times.append((time.perf_counter() - began) * 1000)
            after = await _refined(layout)
            cpu = _processor(watch.pid) if watch is not None else 0.0
    return times, after - before, cpu


@contextmanager
def _watch(env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "pipeline.cli", "watch", "--workspace", WORKSPACE]
    process = subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def _processor(pid: int) -> float:
    """Seconds that the watching process and its children have used."""
    watching = psutil.Process(pid)
    return sum(sum(each.cpu_times()[:2]) for each in (watching, *watching.children()))


async def _until_it_works(store: Path) -> None:
    with anyio.fail_after(BEGIN_DEADLINE_S):
        while (background_status(store) or {}).get("queue", {}).get("unrefinedTurns", 0) == 0:  # noqa: ASYNC110 - a file
            await anyio.sleep(0.05)


async def _refined(layout: Layout) -> int:
    async with open_database(layout.database, write=False) as database:
        return int((await database.row("SELECT count(*) FROM refined"))[0])
