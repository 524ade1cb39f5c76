"""Running a command and saying what it cost: wall time, processor time and peak memory of the process itself."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of wall clock and processor (workers included), and MB of peak resident memory (main process)."""

    seconds: float
    cpu: float
    rss_mb: float


def environment(home: Path, store: Path) -> dict[str, str]:
    """An environment that looks at one home only."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("KIMI_", "MEMORY_"))}
    return kept | {
        "KIMI_CODE_HOME": str(home),
        "KIMI_SHARE_DIR": str(home / "no-legacy"),
        "MEMORY_STORE_ROOT": str(store),
    }


def run(arguments: Sequence[str], env: dict[str, str]) -> Cost:
    """Run ``pipeline …``; raises CalledProcessError unless it ends with 0."""
    before = os.times()
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "pipeline.cli", *arguments],
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, ["pipeline", *arguments])
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Cost(time.perf_counter() - began, cpu, usage.ru_maxrss / 1024)


def size_of(folder: Path) -> int:
    """Bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
