"""SIGKILL at random instants, several processes at once, while wires grow, are rewritten and forked: in the end the
store holds what one built from scratch holds.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import orjson
import psutil
import pytest

from pipeline.store.files import LOCK_DIR
from tests.pipeline.store_cases import content
from tests.pipeline.test_kill import integrity
from tests.soak.processes import Server, environment, pipeline
from tests.soak.writer import Writer

AT_ONCE = 3
FINISH_S = 600
LONGEST_S = 2.5
"""A process that is killed lived at most this long: from its start to the end of all it has to do."""


class Crowd:
    """Processes of all kinds on one store, of which one is killed at a time."""

    def __init__(self, env: dict[str, str], rng: random.Random) -> None:
        self.env = env
        self.rng = rng
        self.alive: list[subprocess.Popen[bytes]] = []
        self.killed = 0
        self.ended = 0
        self._starts: tuple[Callable[[], subprocess.Popen[bytes]], ...] = (
            lambda: pipeline(env, "watch"),
            lambda: pipeline(env, "watch"),
            lambda: pipeline(
                env, "run", "--all", "--theme", "ports", "--keywords", "port,proxy", "--jobs", "1"
            ),
            lambda: pipeline(env, "index", "--jobs", "2"),
            lambda: pipeline(env, "rebuild", "--jobs", "1"),
            lambda: Server(env).process,
        )

    def start(self) -> None:
        self.alive.append(self.rng.choice(self._starts)())

    def kill_one(self) -> None:
        """Let a random one live a random while longer, then kill it, and sometimes its worker first."""
        process = self.alive.pop(self.rng.randrange(len(self.alive)))
        try:
            process.wait(timeout=self.rng.uniform(0.0, LONGEST_S))
            self.ended += 1
        except subprocess.TimeoutExpired:
            children = psutil.Process(process.pid).children() if self.rng.random() < 0.3 else []
            for child in children[:1]:
                self._kill(child.pid)
            self._kill(process.pid)
            self.killed += 1
        _close(process)

    def end(self) -> None:
        for process in self.alive:
            process.kill()
            _close(process)

    @staticmethod
    def _kill(pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _close(process: subprocess.Popen[bytes]) -> None:
    process.wait(timeout=30)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


def finish(env: dict[str, str]) -> None:
    process = pipeline(env, "run", "--all", "--theme", "ports", "--keywords", "port,proxy", "--jobs", "1")
    _, errors = process.communicate(timeout=FINISH_S)
    assert process.returncode == 0, errors.decode()


def store_of(root: Path) -> Path:
    return next(root.glob("workspace-*"))


def killed(tmp_path: Path, kills: int, steps: int) -> None:
    rng = random.Random(kills)
    writer = Writer(tmp_path / "home", seed=kills)
    for _ in range(30):
        writer.step()
    env = environment(tmp_path / "home", tmp_path / "store")
    crowd = Crowd(env, rng)
    try:
        while crowd.killed < kills:
            while len(crowd.alive) < AT_ONCE:
                crowd.start()
            for _ in range(steps):
                writer.step()
            crowd.kill_one()
    finally:
        crowd.end()
    writer.finish()
    finish(env)
    store = store_of(tmp_path / "store")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    key = (tmp_path / "store" / "redaction.key").read_bytes()
    (scratch / "redaction.key").write_bytes(key)
    finish(environment(tmp_path / "home", scratch))
    database, fresh = (root / "refined" / "refined.sqlite" for root in (store, store_of(scratch)))
    assert content(database) == content(fresh)
    assert integrity(database) == "ok"
    for path in store.rglob("*.json"):
        if path.parent.name != LOCK_DIR:
            orjson.loads(path.read_bytes())  # none is torn
    assert set(writer.operations) >= {"turn", "half"}


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_few_kills_of_several_processes_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    killed(tmp_path, 8, 4)


@pytest.mark.soak
def test_two_hundred_kills_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    killed(tmp_path, 200, 6)
