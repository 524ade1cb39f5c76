"""Start, size and end of the MCP server, beside a bare ``MCPServer`` with one tool in the same run.

    python -m tests.bench.bench_server [--rounds 9]

Alternates the two, so that a busy machine slows both; ``cpu`` hardly depends on it. ``ratio`` is what must stay
at or below 1.20 and ``rss`` at or below 95 MB; ``call`` is the first tool call of a process, ``again`` the second;
exits are from the signal.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from pipeline import demo
from pipeline.config import load
from pipeline.sessions import discover
from tests.server.cases import demo_env, env_of
from tests.server.processes import COMMAND, HELLO, ROOT, Process, clean_env, request, running

ROUNDS = 9
COLD_S = 120.0
BARE = """
from mcp.server import MCPServer
server = MCPServer("bare")
@server.tool()
def echo(text: str) -> str:
    return text
server.run()
"""


def started(command: list[str], env: dict[str, str]) -> tuple[float, float, float]:
    """Milliseconds until ``initialize`` is answered, the processor's part of them, and the resident size (MB)."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(json.dumps(request(0, "initialize", HELLO)).encode() + b"\n")
    process.stdin.flush()
    assert b'"result"' in process.stdout.readline()
    took = (time.perf_counter() - began) * 1000
    measured = psutil.Process(process.pid)
    size, times = measured.memory_info().rss / 1e6, measured.cpu_times()
    process.stdin.close()
    process.wait(10)
    process.stdout.close()
    return took, (times.user + times.system) * 1000, size


def timed(server: Process, tool: str, **arguments: object) -> float:
    began = time.perf_counter()
    text, failed = server.tool(tool, workspace=demo.WORKSPACE, **arguments)
    assert not failed, text
    return (time.perf_counter() - began) * 1000


def ended(server: Process, ending: str) -> float:
    began = time.perf_counter()
    if ending == "eof":
        server.stdin.close()
    else:
        server.process.send_signal(getattr(signal, ending))
    assert server.process.wait(10) == 0
    return (time.perf_counter() - began) * 1000


def used(env: dict[str, str], folder: Path, ending: str) -> dict[str, float]:
    """One process in use: calls, sizes, and how long it takes to end."""
    with running(env, folder) as server:
        server.initialize()
        server.ask("tools/list")
        found = {"rss idle": psutil.Process(server.process.pid).memory_info().rss / 1e6}
        found["call"] = timed(server, "bootstrap_workspace")
        found["again"] = timed(server, "bootstrap_workspace")
        found["search"] = timed(server, "search_context", query="SameSite cookie")
        found["rss used"] = psutil.Process(server.process.pid).memory_info().rss / 1e6
        found[f"exit {ending}"] = ended(server, ending)
    return found


def main(rounds: int) -> dict[str, float]:
    """The medians, printed as a table and returned."""
    samples: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = {**clean_env(demo_env(folder / "store")), "PYTHONPATH": str(ROOT)}
        for number in range(rounds):
            for label, command in (("bare", [sys.executable, "-c", BARE]), ("ours", COMMAND)):
                took, cpu, size = started(command, env)
                samples.setdefault(f"{label} start", []).append(took)
                samples.setdefault(f"{label} cpu", []).append(cpu)
                samples.setdefault(f"{label} rss", []).append(size)
            for key, value in used(env, folder, ("eof", "SIGTERM", "SIGINT")[number % 3]).items():
                samples.setdefault(key, []).append(value)
    medians = {key: statistics.median(values) for key, values in samples.items()}
    medians["ratio"] = medians["ours start"] / medians["bare start"]
    medians["ratio cpu"] = medians["ours cpu"] / medians["bare cpu"]
    for key, value in medians.items():
        unit = "" if "ratio" in key else "MB" if "rss" in key else "ms"
        print(f"{key:14} {value:8.2f} {unit}")
    return medians


def report(homes: Sequence[Path]) -> None:
    """For ``make bench``: the medians, then a cold store over each generated home."""
    print("server: start, calls, size, end (medians; ours beside a bare MCPServer)")
    main(ROUNDS)
    for home in homes:
        cold(home)


def cold(home: Path) -> None:
    """The first calls over a large home that was never read: no answer waits for the backfill."""
    settings = load({"HOME": "/home/dev", "KIMI_CODE_HOME": str(home), "KIMI_SHARE_DIR": str(home / "none")})
    largest = max(discover(settings).workspaces, key=lambda space: len(space.sessions))
    with tempfile.TemporaryDirectory() as name:
        env = {**clean_env(env_of(home, Path(name) / "store")), "PYTHONPATH": str(ROOT)}
        with running(env, Path(name)) as server:
            server.initialize()
            for tool, arguments in (
                ("bootstrap_workspace", {}),
                ("search_context", {"query": "port"}),
                ("list", {}),
            ):
                began = time.perf_counter()
                server.tool(tool, workspace=largest.label, **arguments)
                print(f"{home.name:14} first {tool}: {(time.perf_counter() - began) * 1000:.0f} ms")
            began, text = time.perf_counter(), ""
            while "index: up to date" not in text and time.perf_counter() - began < COLD_S:
                text = server.tool("pipeline_status", workspace=largest.label)[0]
            size = psutil.Process(server.process.pid).memory_info().rss / 1e6
            print(
                f"{home.name:14} read in the background in {time.perf_counter() - began:.1f} s, then {size:.0f} MB"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    main(parser.parse_args().rounds)
