"""The processes of a soak: commands, servers that are asked over stdio, and what they use of the machine."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import orjson
import psutil

from tests.soak.writer import CWD

ANSWER_S = 60.0
"""The client's own patience."""


def environment(home: Path, store: Path, **more: str) -> dict[str, str]:
    """Look at one home only; background work begins at once and may use a whole core."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("KIMI_", "MEMORY_"))}
    return kept | {
        "HOME": "/home/dev",
        "KIMI_CODE_HOME": str(home),
        "KIMI_SHARE_DIR": str(home / "none"),
        "MEMORY_STORE_ROOT": str(store),
        "KIMI_MEMORY_QUIET_SECONDS": "0",
        "KIMI_MEMORY_CPU_SHARE": "100",
        **more,
    }


def pipeline(env: Mapping[str, str], *arguments: str) -> subprocess.Popen[bytes]:
    """A `pipeline` command; its stderr is kept."""
    command = [sys.executable, "-m", "pipeline.cli", *arguments, "--workspace", CWD]
    return subprocess.Popen(
        command, env=dict(env), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


class Server:
    """A server over stdin and stdout. ``ask`` raises nothing: what went wrong is in ``errors``."""

    def __init__(self, env: Mapping[str, str], stderr: int = subprocess.DEVNULL) -> None:
        command = [sys.executable, "-m", "server.cli", "serve", "--workspace", CWD]
        self.process = subprocess.Popen(
            command, env=dict(env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr
        )
        self.errors: list[str] = []
        self.asked = 0
        self._number = 0
        self._answers: Queue[dict[str, Any] | None] = Queue()
        threading.Thread(target=self._read, daemon=True).start()
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "soak", "version": "0"},
        }
        self._request("initialize", hello)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, tool: str, **arguments: Any) -> str:
        """The text of a tool's answer."""
        self.asked += 1
        answer = self._request("tools/call", {"name": tool, "arguments": arguments})
        if answer is None:
            self.errors.append(f"{tool}: no answer")
            return ""
        result = answer.get("result") or {}
        text = "".join(part.get("text", "") for part in result.get("content", []))
        if result.get("isError") or "error" in answer:
            self.errors.append(f"{tool} {arguments}: {answer.get('error') or text[:300]}")
        return text

    def end(self) -> int:
        """SIGTERM, as Kimi does; the exit code."""
        self.process.terminate()
        with suppress(OSError):
            if self.process.stdin is not None:
                self.process.stdin.close()
        code = self.process.wait(timeout=10)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code

    def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        while True:
            try:
                answer = self._answers.get(timeout=ANSWER_S)
            except Empty:
                return None
            if answer is None or answer.get("id") == self._number:
                return answer

    def _send(self, message: dict[str, Any]) -> None:
        with suppress(OSError):
            if self.process.stdin is not None:
                self.process.stdin.write(json.dumps(message).encode() + b"\n")
                self.process.stdin.flush()

    def _read(self) -> None:
        with suppress(ValueError, OSError):
            for line in self.process.stdout or ():
                self._answers.put(orjson.loads(line))
        self._answers.put(None)


@dataclass(frozen=True, slots=True)
class Use:
    """What one process uses: megabytes resident, open descriptors, threads."""

    megabytes: float
    descriptors: int
    threads: int


def use_of(pid: int) -> Use:
    process = psutil.Process(pid)
    with process.oneshot():
        return Use(process.memory_info().rss / 1e6, process.num_fds(), process.num_threads())


def some_call(rng: random.Random) -> tuple[str, dict[str, Any]]:
    """A call such as a session makes."""
    number = rng.randrange(1, 400)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("search_context", {"query": f"module_{number} port"}),
        ("search_context", {"query": "why does it fail", "detail": "full"}),
        ("bootstrap_workspace", {}),
        ("recall_recent", {}),
        ("list_sessions", {}),
        ("load_workspace_context", {}),
        ("remember", {"key": f"note-{number % 20}", "content": f"The port is {4000 + number}."}),
        ("search", {"query": "port"}),
        ("list", {}),
        ("propose_memories", {}),
        ("run_theme", {"theme": "ports", "keywords": ["port", "proxy"]}),
        ("list_themes", {}),
        ("pipeline_status", {}),
    ]
    return rng.choice(calls)
