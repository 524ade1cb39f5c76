"""kill -9 at any instant of a backfill, then finishing: the store's logical content is an uninterrupted
run's.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import wires
from tests.pipeline.store_cases import content
from tests.wires import bash, edit, read, say

CWD = "/home/dev/killed"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dozen sessions with tools, undos and forks: about half a second of work."""
    root = tmp_path_factory.mktemp("killed") / "home"
    made = wires.Home(root, seed=7)
    for number in range(12):
        session = made.session(CWD, at=1_796_000_000_000 + number * 86_400_000, title=f"session {number}")
        for turn in range(40):
            session.main.turn(
                f"question {turn} of session {number}: why does module_{turn} fail?",
                say("Let me look.", read(f"src/module_{turn}.py", "x = 1\n" * 200)),
                say("", edit(f"src/module_{turn}.py", "x = 1", f"x = {turn}"), bash("make test", "3 passed")),
                say(f"Fixed module_{turn}: the value was wrong, now it is {turn}."),
                gap=60_000,
            )
            if turn % 13 == 12:
                session.main.undo(1)
        if number % 4 == 3:
            session.fork(session.main.now + 1000)
    made.write()
    return root


def command(home: Path, store: Path) -> subprocess.Popen[bytes]:
    env = {
        **os.environ,
        "KIMI_CODE_HOME": str(home),
        "KIMI_SHARE_DIR": str(home / "none"),
        "MEMORY_STORE_ROOT": str(store),
    }
    arguments = [
        "run",
        "--all",
        "--theme",
        "values",
        "--keywords",
        "module_7,value",
        "--workspace",
        CWD,
        "--jobs",
        "1",
    ]
    return subprocess.Popen(
        [sys.executable, "-m", "pipeline.cli", *arguments],
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def finish(home: Path, store: Path) -> float:
    began = time.monotonic()
    process = command(home, store)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors.decode()
    return time.monotonic() - began


def database_of(store: Path) -> Path:
    return next(store.glob("workspace-*")) / "refined" / "refined.sqlite"


def killed_runs(home: Path, tmp_path: Path, kills: int) -> None:
    whole = tmp_path / "whole"
    duration = finish(home, whole)
    expected = content(database_of(whole))
    key = (whole / "redaction.key").read_bytes()
    rng = random.Random(kills)
    instants = [rng.uniform(0.1, 1.0) * duration for _ in range(kills)]
    store = tmp_path / "killed-0"
    for number, instant in enumerate(instants):
        if number % 3 == 0:  # some kills hit the same store again and again, others a fresh one
            store = tmp_path / f"killed-{number}"
            store.mkdir()
            (store / "redaction.key").write_bytes(key)
        process = command(home, store)
        try:
            process.wait(timeout=instant)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        if number % 3 == 2 or number == kills - 1:
            finish(home, store)
            assert content(database_of(store)) == expected
            assert integrity(database_of(store)) == "ok"
            leftovers = [path.name for path in store.rglob("*") if path.name.endswith((".tmp", "-journal"))]
            assert leftovers == []


def integrity(path: Path) -> str:
    connection = sqlite3.connect(path)
    try:
        connection.execute("INSERT INTO turn_fts(turn_fts) VALUES('integrity-check')")
        found: str = connection.execute("PRAGMA integrity_check").fetchone()[0]
        return found
    finally:
        connection.close()


def test_ten_kills_lose_nothing_and_repeat_nothing(home: Path, tmp_path: Path) -> None:
    killed_runs(home, tmp_path, 10)


@pytest.mark.soak
def test_fifty_kills_lose_nothing_and_repeat_nothing(home: Path, tmp_path: Path) -> None:
    killed_runs(home, tmp_path, 50)
