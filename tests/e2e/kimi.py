"""Drives the real Kimi Code CLI in a home, a project and a store of its own, against a scripted model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import psutil

from tests.e2e.install import Cli, cache_folder
from tests.e2e.model_server import DEADLINE_S

T = TypeVar("T")
REPOSITORY = Path(__file__).parents[2]


def wait_until(look: Callable[[], T | None], what: str, deadline_s: float = DEADLINE_S) -> T:
    """What ``look`` returns as soon as it is true. Raises TimeoutError naming ``what``."""
    end = time.monotonic() + deadline_s
    while not (found := look()):
        if time.monotonic() > end:
            raise TimeoutError(f"waited {deadline_s:g} s for {what}")
        time.sleep(0.02)
    return found


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command said."""

    code: int
    out: str
    err: str

    def checked(self) -> Ran:
        """Itself, when it succeeded."""
        assert self.code == 0, f"exit code {self.code}\n{self.out}\n{self.err}"
        return self


class Kimi:
    """One person's machine: ``home`` is Kimi's, ``user`` the person's, ``project`` where kimi is started."""

    def __init__(self, cli: Cli, root: Path, model_url: str) -> None:
        self.cli = cli
        self.root = root
        self.home = root / "kimi"
        self.user = root / "user"
        self.project = root / "project"
        self.store_root = root / "store"
        for folder in (self.user, self.project):
            folder.mkdir(parents=True)
        dead = "http://127.0.0.1:9"  # whatever leaves loopback fails at once
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.user),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "KIMI_CODE_HOME": str(self.home),
            "KIMI_SHARE_DIR": str(root / "no-legacy"),
            "MEMORY_STORE_ROOT": str(self.store_root),
            "KIMI_DISABLE_TELEMETRY": "1",
            "KIMI_CODE_NO_AUTO_UPDATE": "1",
            "KIMI_MODEL_NAME": "mock",
            "KIMI_MODEL_API_KEY": "x",
            "KIMI_MODEL_BASE_URL": model_url,
            "KIMI_MODEL_PROVIDER_TYPE": "openai",
            "KIMI_MEMORY_HOOK_MS": "10000",  # this machine runs other tests too
            "NODE_COMPILE_CACHE": str(cache_folder() / "compiled"),
            "HTTPS_PROXY": dead,
            "HTTP_PROXY": dead,
            "NO_PROXY": "127.0.0.1,localhost",
        }

    # --- commands --------------------------------------------------------------------------------------

    def run(self, *words: str, cwd: Path | None = None) -> Ran:
        """`kimi WORDS…` to its end."""
        return self._run([*self.cli.words, *words], cwd or self.project)

    def prompt(self, text: str, *flags: str, cwd: Path | None = None) -> Ran:
        """`kimi FLAGS… -p TEXT`; it must succeed."""
        return self.run(*flags, "-p", text, cwd=cwd).checked()

    @contextmanager
    def started(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """`kimi WORDS…` while it runs; killed at the end if it has not ended."""
        process = subprocess.Popen(
            [*self.cli.words, *words],
            cwd=self.project,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def setup(self, *words: str) -> Ran:
        """`kimi-memory setup WORDS…`; it must succeed."""
        return self.ours("server.cli", "setup", *words).checked()

    def ours(self, module: str, *words: str) -> Ran:
        """A command of ours in the project."""
        return self._run([sys.executable, "-P", "-m", module, *words], self.project)

    def _run(self, words: Sequence[str], cwd: Path) -> Ran:
        done = subprocess.run(
            words,
            cwd=cwd,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    # --- what is on disk -------------------------------------------------------------------------------

    def sessions(self) -> list[str]:
        """Session ids, oldest first."""
        found = [path.parent for path in self.home.glob("sessions/*/*/state.json")]
        return [path.name for path in sorted(found, key=lambda path: _created(path / "state.json"))]

    def wire(self, session: str, agent: str = "main") -> Path:
        """A session's log."""
        return next(self.home.glob(f"sessions/*/{session}")) / "agents" / agent / "wire.jsonl"

    def turns(self, *flags: str) -> list[dict[str, Any]]:
        """`pipeline turns --json FLAGS…`."""
        done = self.ours("pipeline.cli", "turns", "--json", *flags).checked()
        return [json.loads(line) for line in done.out.splitlines()]

    @property
    def store(self) -> Path:
        """The project's store."""
        return next(self.store_root.glob("workspace-*"))

    # --- processes -------------------------------------------------------------------------------------

    def servers(self) -> list[psutil.Process]:
        """Our servers that run in this person's store."""
        return [process for process in psutil.process_iter() if self._is_server(process)]

    def _is_server(self, process: psutil.Process) -> bool:
        try:
            words = process.cmdline()
            if not any(word.endswith("server/cli.py") for word in words):
                return False
            return process.environ().get("MEMORY_STORE_ROOT") == str(self.store_root)
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            return False

    def wait_for_no_server(self) -> None:
        """Return when no server of this person is left; orphans raise TimeoutError."""
        wait_until(lambda: not self.servers(), "the servers' end", 10)


def _created(state: Path) -> float:
    value: Mapping[str, Any] = json.loads(state.read_text("utf-8"))
    return float(value.get("createdAt", 0))
