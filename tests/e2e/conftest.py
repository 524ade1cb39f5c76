"""What the tests with the real client share."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import pytest

from tests.e2e.install import TESTED, Cli, NoNpm, install
from tests.e2e.kimi import Kimi
from tests.e2e.model_server import ModelServer

CALLED: Counter[str] = Counter()
"""Tools of ours that the real client called."""
_SPENT: list[float] = []


@pytest.fixture(scope="session")
def cli() -> Cli:
    """The real CLI; where there is no npm the tests are skipped."""
    try:
        return install(os.environ.get("KIMI_E2E_VERSION", TESTED))
    except NoNpm as error:
        pytest.skip(f"the real Kimi Code CLI cannot be installed: {error}")


@pytest.fixture
def tmux() -> None:
    if shutil.which("tmux") is None:
        pytest.skip("Kimi's full-screen interface needs a terminal: tmux is not on the PATH")


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def bare(cli: Cli, model: ModelServer, tmp_path: Path) -> Iterator[Kimi]:
    """A machine with Kimi and without us. Afterwards none of our processes is left."""
    began = perf_counter()
    kimi = Kimi(cli, tmp_path, model.url)
    yield kimi
    kimi.wait_for_no_server()
    CALLED.update(name.rpartition("__")[2] for name in model.called if name.startswith("mcp__"))
    _SPENT.append(perf_counter() - began)


@pytest.fixture
def kimi(bare: Kimi) -> Kimi:
    """A machine with Kimi, and us set up."""
    bare.setup("--lang", "en")
    return bare


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _SPENT:
        tools = ", ".join(f"{name} {count}" for name, count in sorted(CALLED.items()))
        terminalreporter.write_line(
            f"real client: {len(_SPENT)} tests, {sum(_SPENT):.0f} s; it called {tools}"
        )
