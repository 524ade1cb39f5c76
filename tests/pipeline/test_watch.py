"""`pipeline watch`: one workspace or all, ended as a service manager ends it, and what `pipeline status` tells of it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from pipeline.background import Tuning
from pipeline.background_status import background_lines, background_status
from pipeline.settings import Settings
from pipeline.watch import watch_workspaces
from pipeline.workspaces import workspace_id
from tests import wires
from tests.pipeline.command_line import environment, pipeline
from tests.pipeline.store_cases import settings as settings_for_home
from tests.wires import say

ONE, OTHER = "/home/dev/one", "/home/dev/other"
DEADLINE_S = 120
QUICK = Tuning(begin_s=0, contend_s=0.05, beat_s=0.1, status_s=0, retry_s=0.01, appear_s=0.05, debounce_ms=50)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def home(tmp_path: Path) -> wires.Home:
    made = wires.Home(tmp_path / "home", seed=11, journal=False)
    add(made, ONE)
    return made


def add(home: wires.Home, cwd: str) -> None:
    session = home.session(cwd, at=1_796_000_000_000 + len(home.sessions) * 86_400_000, title="a session")
    session.main.turn("Which port?", say("Port 4711."))
    session.write()
    home.write_indexes()


def settings_of(home: wires.Home, store: Path) -> Settings:
    return replace(settings_for_home(home.root, store), quiet_seconds=0.0, cpu_share=100.0)


class Said:
    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []
        self._event = anyio.Event()

    def __call__(self, label: str, text: str) -> None:
        self.lines.append((label, text))
        self._event.set()

    async def until(self, label: str, text: str) -> None:
        with anyio.fail_after(DEADLINE_S):
            while not any(one == label and text in told for one, told in self.lines):
                self._event = anyio.Event()
                await self._event.wait()


@pytest.mark.anyio
async def test_all_workspaces_are_kept_up_and_a_new_one_is_taken_in(home: wires.Home, tmp_path: Path) -> None:
    store, said = tmp_path / "store", Said()

    def settings(_: str | None) -> Settings:
        return settings_of(home, store)

    async with anyio.create_task_group() as tasks:
        chosen = {workspace_id(ONE, "/home/dev"): ONE}
        tasks.start_soon(watch_workspaces, settings, chosen, True, said, QUICK)
        await said.until(ONE, "up to date")
        add(home, OTHER)
        await said.until(OTHER, "up to date")
        tasks.cancel_scope.cancel()
    for cwd in (ONE, OTHER):
        assert (store / workspace_id(cwd, "/home/dev") / "refined" / "refined.sqlite").is_file()


@contextmanager
def watching(
    env: dict[str, str], *arguments: str
) -> Iterator[tuple[subprocess.Popen[str], Callable[[str], str]]]:
    """`pipeline watch`, and waiting for a line of what it says."""
    command = [sys.executable, "-m", "pipeline.cli", "watch", "--workspace", ONE, *arguments]
    process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)

    def line_with(text: str) -> str:
        assert process.stderr is not None
        for line in process.stderr:
            if text in line:
                return line
        raise AssertionError(f"it ended without saying {text!r}")

    try:
        yield process, line_with
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_it_ends_at_a_signal_and_status_tells_of_it(
    number: signal.Signals, code: int, home: wires.Home, tmp_path: Path
) -> None:
    env = environment(home.root, tmp_path / "store") | {"KIMI_MEMORY_QUIET_SECONDS": "0", "HOME": "/home/dev"}
    with watching(env) as (process, line_with):
        assert ONE in line_with("up to date")
        status = pipeline(env, "status", "--workspace", ONE, "--json").json[0]
        assert status["background"]["leader"]["pid"] == process.pid
        assert status["background"]["leader"]["role"] == "watch"
        assert (status["lagBytes"], status["complete"], status["unrefined"]) == (0, 1.0, 0)
        shown = pipeline(env, "status", "--workspace", ONE).out
        assert f"led by process {process.pid} (watch)" in shown
        with watching(env) as (_, second):
            assert f"process {process.pid} (watch) does the work" in second("standing by")
        process.send_signal(number)
        assert process.wait(timeout=20) == code
    after = pipeline(env, "status", "--workspace", ONE, "--json").json[0]
    assert after["background"]["leader"] is None


def test_status_tells_lag_by_session_and_writes_nothing(home: wires.Home, tmp_path: Path) -> None:
    env = environment(home.root, tmp_path / "store") | {"HOME": "/home/dev"}
    assert pipeline(env, "index", "--workspace", ONE).code == 0
    home.sessions[0].main.turn("And now?", say("Now."))
    home.sessions[0].write()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "store").rglob("*.json")}
    status = pipeline(env, "status", "--workspace", ONE, "--json").json[0]
    assert status["lagWires"] == 1 and status["lagBytes"] == status["lag"][0]["bytes"] > 0
    assert status["lag"][0]["sessionId"] == home.sessions[0].session_id
    assert status["background"] is None and 0 < status["complete"] < 1
    assert "never ran here" in pipeline(env, "status", "--workspace", ONE).out
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "store").rglob("*.json")} == before


def test_the_lines_of_a_status_that_has_little_to_tell(tmp_path: Path) -> None:
    assert background_status(tmp_path) is None
    leader: dict[str, Any] = {"pid": 7, "host": "box", "role": "server", "since": 1}
    stalled = {
        "leader": leader,
        "progressAt": 1,
        "stalled": True,
        "lastError": {"at": 1, "what": "read: full"},
    }
    lines = list(background_lines(stalled))
    assert "another process will take over" in lines[0] and "read: full" in lines[-1]
