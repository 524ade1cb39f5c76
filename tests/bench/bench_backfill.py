"""Backfill against its floor: ``orjson.loads`` on every line of the same files, alternating, best of three.

Prints MB/s, the ratio to the floor, peak memory and the store's share of the wires' bytes.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import orjson

from tests.bench.measure import Cost, environment, run, size_of

ROUNDS = 3
CASES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("pipeline index", ("index",)),
    ("pipeline run --all --jobs 1", ("run", "--all", "--jobs", "1")),
    ("pipeline run --all --jobs 2", ("run", "--all", "--jobs", "2")),
)


def wires(home: Path) -> list[Path]:
    return sorted(home.glob("sessions/*/*/agents/*/wire.jsonl"))


def floor(paths: Sequence[Path]) -> float:
    """Seconds that orjson takes for every line."""
    began = time.perf_counter()
    for path in paths:
        with path.open("rb") as file:
            for line in file:
                orjson.loads(line)
    return time.perf_counter() - began


def once(home: Path, arguments: Sequence[str]) -> tuple[Cost, int]:
    """One backfill into a fresh store: its cost and the store's bytes."""
    store = Path(tempfile.mkdtemp(prefix="bench-store-"))
    try:
        cost = run([*arguments, "--all-workspaces"], environment(home, store))
        return cost, size_of(store)
    finally:
        shutil.rmtree(store)


def report(home: Path, rounds: int = ROUNDS) -> None:
    """Measure every case on one corpus and print a line each."""
    paths = wires(home)
    total = sum(path.stat().st_size for path in paths)
    floors: list[float] = []
    costs: dict[str, list[tuple[Cost, int]]] = {name: [] for name, _ in CASES}
    for _ in range(rounds):
        floors.append(floor(paths))
        for name, arguments in CASES:
            costs[name].append(once(home, arguments))
    best = total / min(floors) / 1e6
    print(f"{total / 1e6:.0f} MB in {len(paths)} wires; orjson.loads on every line: {best:.0f} MB/s")
    for name, _ in CASES:
        cost, size = min(costs[name], key=lambda each: each[0].seconds)
        speed = total / cost.seconds / 1e6
        print(
            f"  {name:30} {speed:6.1f} MB/s = {speed / best:.3f} of the floor, {cost.cpu:.1f} s of processor, "
            f"peak {max(c.rss_mb for c, _ in costs[name]):.0f} MB, store {size / total:.3f} of the wires"
        )
    one, two = (min(c.seconds for c, _ in costs[CASES[i][0]]) for i in (1, 2))
    print(f"  --jobs 2 is {one / two:.2f} times --jobs 1")
