"""The server as its client starts it: a process with pipes, asked in JSON-RPC lines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

COMMAND = [sys.executable, "-W", "error::ResourceWarning", "-m", "server.cli"]
ROOT = Path(__file__).parents[2]


HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "kimi-code", "version": "0.0.0"},
}
"""What Kimi Code 2.1.0 sends first."""


def request(number: int | None, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A JSON-RPC request; without a number a notification."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": dict(params or {})}
    return message if number is None else {**message, "id": number}


class Process:
    """One server process. ``ask`` sends a request and returns its answer; other messages are kept aside."""

    def __init__(self, env: Mapping[str, str], cwd: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env={**env, "PYTHONPATH": str(ROOT)},
        )
        self.others: list[dict[str, Any]] = []
        self._id = 0

    @property
    def stdin(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin

    def send(self, method: str, params: Mapping[str, Any] | None = None, *, notify: bool = False) -> int:
        self._id += not notify
        message = request(None if notify else self._id, method, params)
        self.stdin.write(json.dumps(message, ensure_ascii=False).encode() + b"\n")
        self.stdin.flush()
        return self._id

    def read(self) -> dict[str, Any]:
        """The next line of stdout, which must be a JSON-RPC message and nothing else."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.stderr()
        message: dict[str, Any] = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    def answer(self, number: int) -> dict[str, Any]:
        while True:
            message = self.read()
            if message.get("id") == number:
                return message
            self.others.append(message)

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return self.answer(self.send(method, params))

    def initialize(self) -> dict[str, Any]:
        answer = self.ask("initialize", HELLO)
        self.send("notifications/initialized", notify=True)
        return answer

    def tool(self, name: str, **arguments: Any) -> tuple[str, bool]:
        result = self.ask("tools/call", {"name": name, "arguments": arguments})["result"]
        return result["content"][0]["text"], result.get("isError", False)

    def end(self, timeout: float = 5.0) -> int:
        """Close stdin and wait."""
        if not self.stdin.closed:
            self.stdin.close()
        return self.process.wait(timeout)

    def stderr(self) -> str:
        self.process.kill()
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()


@contextmanager
def running(env: Mapping[str, str], cwd: Path, *arguments: str) -> Iterator[Process]:
    """A process that is gone at the end, whatever happened."""
    server = Process(env, cwd, *arguments)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
        server.process.wait(5)
        for stream in (server.process.stdin, server.process.stdout, server.process.stderr):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()


def file_locks_held(pid: int) -> bool:
    """Whether a process holds any file lock (Linux)."""
    try:
        return any(
            f" {pid} " in line for line in Path("/proc/locks").read_text(encoding="ascii").splitlines()
        )
    except OSError:
        return False


def clean_env(env: Mapping[str, str]) -> dict[str, str]:
    """``env`` plus what a child process needs of ours."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "SYSTEMROOT") if name in os.environ}
    return {**kept, **env}
