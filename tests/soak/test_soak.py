"""Servers, one `pipeline watch` and a writer that imitates the CLI, for half an hour: no error, nothing grows, and what
was written is soon there once the sessions are quiet.
"""

from __future__ import annotations

import os
import random
import sqlite3
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from pipeline.background_status import background_status
from tests.pipeline.store_cases import content
from tests.pipeline.test_kill import integrity
from tests.soak.processes import Server, Use, environment, pipeline, some_call, use_of
from tests.soak.test_kills import finish, store_of
from tests.soak.writer import Writer

QUIET_S = 1.0
LAG_S = 2.0
LAG_DEADLINE_S = 60.0
WARM_UP = 0.3
"""The part of the time in which caches fill."""
MORE_MB, MORE_SHARE = 12.0, 1.15
MORE_DESCRIPTORS, MORE_THREADS = 6, 4


@dataclass(slots=True)
class Figures:
    """What was measured: use by process name, lags in seconds, calls made."""

    uses: dict[str, list[tuple[float, Use]]] = field(default_factory=dict)
    lags: list[float] = field(default_factory=list)
    calls: int = 0
    children: int = 0

    def grown(self, begin: float, end: float) -> list[str]:
        """Processes that use more at the end than after the warm-up."""
        found = []
        for name, samples in self.uses.items():
            early = _between(
                samples, begin + (end - begin) * WARM_UP, begin + (end - begin) * (WARM_UP + 0.25)
            )
            late = _between(samples, end - (end - begin) * 0.25, end)
            if not early or not late:
                continue
            before, after = _middle(early), _middle(late)
            if after.megabytes > before.megabytes * MORE_SHARE + MORE_MB:
                found.append(f"{name}: {before.megabytes:.0f} to {after.megabytes:.0f} MB")
            if after.descriptors > before.descriptors + MORE_DESCRIPTORS:
                found.append(f"{name}: {before.descriptors} to {after.descriptors} descriptors")
            if after.threads > before.threads + MORE_THREADS:
                found.append(f"{name}: {before.threads} to {after.threads} threads")
        return found

    def lines(self, begin: float, end: float) -> Iterator[str]:
        lags = sorted(self.lags)
        if lags:
            yield (
                f"lag once idle: p50 {lags[len(lags) // 2]:.2f} s, p99 {lags[int(len(lags) * 0.99)]:.2f} s, "
                f"max {lags[-1]:.2f} s of {len(lags)}"
            )
        yield f"{self.calls} calls; at most {self.children} processes for the chores at once"
        for name, samples in self.uses.items():
            early = _between(
                samples, begin + (end - begin) * WARM_UP, begin + (end - begin) * (WARM_UP + 0.25)
            )
            late = _between(samples, end - (end - begin) * 0.25, end)
            if early and late:
                yield f"{name}: {_middle(early)} → {_middle(late)}"


def _between(samples: list[tuple[float, Use]], begin: float, end: float) -> list[Use]:
    return [use for at, use in samples if begin <= at <= end]


def _middle(uses: list[Use]) -> Use:
    return Use(
        statistics.median(use.megabytes for use in uses),
        int(statistics.median(use.descriptors for use in uses)),
        int(statistics.median(use.threads for use in uses)),
    )


class Sampling(threading.Thread):
    """Notes what the processes use, every ``pause`` seconds."""

    def __init__(self, processes: dict[str, int], figures: Figures, pause: float) -> None:
        super().__init__(daemon=True)
        self._processes = processes
        self._figures = figures
        self._pause = pause
        self.stop = threading.Event()

    def run(self) -> None:
        while not self.stop.wait(self._pause):
            now, children = time.monotonic(), 0
            for name, pid in self._processes.items():
                try:
                    self._figures.uses.setdefault(name, []).append((now, use_of(pid)))
                    children += len(psutil.Process(pid).children(recursive=True))
                except psutil.Error:
                    continue
            self._figures.children = max(self._figures.children, children)


class Asking(threading.Thread):
    """Calls a server's tools, one after the other with short pauses, as a session does."""

    def __init__(self, server: Server, seed: int, pause: float) -> None:
        super().__init__(daemon=True)
        self._server = server
        self._rng = random.Random(seed)
        self._pause = pause
        self.stop = threading.Event()

    def run(self) -> None:
        while not self.stop.wait(self._rng.uniform(0.2, 1.8) * self._pause):
            tool, arguments = some_call(self._rng)
            self._server.ask(tool, **arguments)


@contextmanager
def everybody(env: dict[str, str], servers: int) -> Iterator[tuple[dict[str, Server], int]]:
    """The servers by name, and the process id of `pipeline watch`. All must end well."""
    watch = pipeline(env, "watch")
    started = {f"server {number}": Server(env) for number in range(servers)}
    try:
        yield started, watch.pid
        assert watch.poll() is None, watch.stderr.read().decode() if watch.stderr else ""
        assert [server.process.poll() for server in started.values()] == [None] * servers
    finally:
        codes = [server.end() for server in started.values()]
        watch.terminate()
        watch.communicate(timeout=20)
    assert codes == [0] * servers
    assert watch.returncode == 0


def offset_of(database: Path, wire: Path) -> int:
    """How far a wire is read."""
    connection = sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)
    try:
        row = connection.execute("SELECT offset FROM source WHERE path=?", (str(wire),)).fetchone()
    except sqlite3.OperationalError:
        return -1
    finally:
        connection.close()
    return -1 if row is None or row[0] is None else int(row[0])


def lag_once_idle(writer: Writer, database: Path, tick: threading.Event) -> float:
    """Write one turn, then nothing: seconds from the end of the quiet time until it is read (0: before)."""
    wire, size = writer.marker()
    written = time.monotonic()
    while offset_of(database, wire) < size:
        tick.wait(0.02)
        assert time.monotonic() - written < LAG_DEADLINE_S, "the turn was never read"
    return max(0.0, time.monotonic() - written - QUIET_S)


def soak(tmp_path: Path, *, minutes: float, servers: int, pause: float) -> Figures:
    writer = Writer(tmp_path / "home", seed=servers)
    for _ in range(40):
        writer.step()
    env = environment(tmp_path / "home", tmp_path / "store", KIMI_MEMORY_QUIET_SECONDS=str(QUIET_S))
    env["KIMI_MEMORY_CPU_SHARE"] = "20"
    finish(env)
    store = store_of(tmp_path / "store")
    database = store / "refined" / "refined.sqlite"
    figures, tick, rng = Figures(), threading.Event(), random.Random(servers)
    with everybody(env, servers) as (started, watch):
        pids = {name: server.process.pid for name, server in started.items()} | {"watch": watch}
        sampling = Sampling(pids, figures, pause=min(5.0, minutes * 1.5))
        asking = [Asking(server, seed, pause) for seed, server in enumerate(started.values())]
        begin = time.monotonic()
        end = begin + minutes * 60
        for thread in (sampling, *asking):
            thread.start()
        while time.monotonic() < end:
            for _ in range(rng.randrange(5, 40)):
                writer.step()
                tick.wait(rng.uniform(0, 0.3) * pause)
            figures.lags.append(lag_once_idle(writer, database, tick))
        sampling.stop.set()
        for one in asking:
            one.stop.set()
        for thread in (sampling, *asking):
            thread.join(timeout=90)
        figures.calls = sum(server.asked for server in started.values())
        errors = [error for server in started.values() for error in server.errors]
        status = background_status(store)
    for line in figures.lines(begin, end):
        print(line)
    assert errors[:10] == []
    assert status is not None and status["leader"] is not None and status["lastError"] is None
    assert figures.grown(begin, end) == [] or minutes < 1
    _equal_to_scratch(tmp_path, writer, env, database)
    assert not [one for one in psutil.process_iter(["cmdline"]) if _is_left(one, tmp_path)]
    return figures


def _equal_to_scratch(tmp_path: Path, writer: Writer, env: dict[str, str], database: Path) -> None:
    writer.finish()
    finish(env)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (scratch / "redaction.key").write_bytes((tmp_path / "store" / "redaction.key").read_bytes())
    finish(env | {"MEMORY_STORE_ROOT": str(scratch)})
    assert content(database) == content(store_of(scratch) / "refined" / "refined.sqlite")
    assert integrity(database) == "ok"


def _is_left(process: psutil.Process, tmp_path: Path) -> bool:
    """Whether a process for the chores of this store outlived everything."""
    try:
        return "pipeline.chore_process" in (process.info["cmdline"] or ()) and process.cwd().startswith(
            str(tmp_path)
        )
    except psutil.Error:
        return False


def test_a_short_soak_is_without_errors_and_catches_up(tmp_path: Path) -> None:
    figures = soak(tmp_path, minutes=0.15, servers=2, pause=0.2)
    assert figures.calls > 5
    assert min(figures.lags) <= LAG_S


@pytest.mark.soak
def test_half_an_hour_without_errors_growth_or_lag(tmp_path: Path) -> None:
    minutes = float(os.environ.get("KIMI_MEMORY_SOAK_MINUTES", "30"))
    figures = soak(tmp_path, minutes=minutes, servers=4, pause=1.0)
    lags = sorted(figures.lags)
    assert lags[int(len(lags) * 0.99)] <= LAG_S
