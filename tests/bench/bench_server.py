"""Start, size and end of the MCP server, beside a bare ``MCPServer`` with one tool in the same run.

    python -m tests.bench.bench_server [--rounds 9]

Alternates the two, so that a busy machine slows both. ``ratio`` is what must stay at or below 1.20 and ``rss`` at
or below 95 MB; ``call`` is the first tool call of a process, ``again`` the second; exits are from the signal.
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
from pathlib import Path

import psutil

from pipeline import demo
from tests.server.cases import demo_env
from tests.server.processes import COMMAND, HELLO, ROOT, Process, clean_env, request, running

ROUNDS = 9
BARE = """
from mcp.server import MCPServer
server = MCPServer("bare")
@server.tool()
def echo(text: str) -> str:
    return text
server.run()
"""


def started(command: list[str], env: dict[str, str]) -> tuple[float, float]:
    """Milliseconds until ``initialize`` is answered, and the resident size (MB) then."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(json.dumps(request(0, "initialize", HELLO)).encode() + b"\n")
    process.stdin.flush()
    assert b'"result"' in process.stdout.readline()
    took = (time.perf_counter() - began) * 1000
    size = psutil.Process(process.pid).memory_info().rss / 1e6
    process.stdin.close()
    process.wait(10)
    process.stdout.close()
    return took, size


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
                took, size = started(command, env)
                samples.setdefault(f"{label} start", []).append(took)
                samples.setdefault(f"{label} rss", []).append(size)
            for key, value in used(env, folder, ("eof", "SIGTERM", "SIGINT")[number % 3]).items():
                samples.setdefault(key, []).append(value)
    medians = {key: statistics.median(values) for key, values in samples.items()}
    medians["ratio"] = medians["ours start"] / medians["bare start"]
    for key, value in medians.items():
        unit = "" if key == "ratio" else "MB" if "rss" in key else "ms"
        print(f"{key:14} {value:8.2f} {unit}")
    return medians


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    main(parser.parse_args().rounds)
