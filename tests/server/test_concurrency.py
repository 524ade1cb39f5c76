"""Four servers and a shell loop in one workspace at once: nothing is lost, no error is shown, the index is true."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pipeline import demo
from pipeline.store.catalogue import Catalogue
from tests.server.cases import LATEST, PAYMENT, REFRESH, REVIEW, SHOP_ID, env_of, leftovers
from tests.server.processes import ROOT, Process, clean_env, running

SERVERS = 4
TURNS = [
    (session, turn)
    for session, turns in ((REVIEW, 5), (PAYMENT, 5), (REFRESH, 2), (LATEST, 1))
    for turn in range(turns)
]
SHELL = """
n=0
while [ ! -e "$STOP" ]; do
  printf -- '---\\nkey: shell-%s\\ntitle: Shell %s\\n---\\n\\nby hand %s\\n' "$n" "$n" "$n" > "$STORE/memory/.hand"
  mv "$STORE/memory/.hand" "$STORE/memory/shell-$n.md"
  "$PYTHON" -m pipeline.cli run --theme shared --keywords cookie --workspace "$SHOP" >/dev/null 2>"$STOP.err" ||
    { cat "$STOP.err" >&2; exit 2; }
  "$PYTHON" -m pipeline.cli tag shared "$SESSION" 0 --workspace "$SHOP" >/dev/null || exit 1
  n=$((n + 1))
done
"""


class Writer(threading.Thread):
    """One server's client: memories of its own, lines for a shared one, tags, runs; keeps what it was promised."""

    def __init__(self, server: Process, number: int, until: float) -> None:
        super().__init__()
        self.server = server
        self.number = number
        self.until = until
        self.keys: list[str] = []
        self.lines: list[str] = []
        self.tags: set[tuple[str, int]] = set()
        self.errors: list[str] = []

    def run(self) -> None:
        try:
            self._write()
        except Exception as error:  # a thread must tell the test, not die silently
            self.errors.append(f"{type(error).__name__}: {error}")

    def _write(self) -> None:
        turn = 0
        while time.monotonic() < self.until or turn < 2:
            key, line = f"server-{self.number}-{turn}", f"line {self.number}.{turn}."
            self._ask("remember", key=key, folder="knowledge", content=f"text of {key}", tags=["soak"])
            self.keys.append(key)
            self._ask("remember", key="shared", content=line, mode="append", themes=["shared"])
            self.lines.append(line)
            session, number = TURNS[(turn * SERVERS + self.number) % len(TURNS)]
            self._ask("tag_theme", theme="shared", sessionId=session, turnId=number)
            self.tags.add((session, number))
            self._ask("recall", key=key)
            self._ask("search_context", query="cookie")
            self._ask("run_theme", theme="shared", keywords=["cookie", f"word{self.number}"])
            turn += 1

    def _ask(self, tool: str, **arguments: object) -> None:
        text, failed = self.server.tool(tool, workspace=demo.WORKSPACE, **arguments)
        if failed:
            self.errors.append(f"{tool}: {text}")


def write_together(tmp_path: Path, seconds: float) -> None:
    home, store = tmp_path / "home", tmp_path / "store" / SHOP_ID
    shutil.copytree(demo.home(), home)
    (store / "memory").mkdir(parents=True)
    env = clean_env(env_of(home, store.parent, PYTHONPATH=str(ROOT)))
    stop = tmp_path / "stop"
    shell_env = {**env, "STOP": str(stop), "STORE": str(store), "PYTHON": sys.executable}
    shell_env |= {"SESSION": REVIEW, "SHOP": demo.WORKSPACE}
    shell = subprocess.Popen(["/bin/sh", "-c", SHELL], env=shell_env, stderr=subprocess.PIPE)
    writers: list[Writer] = []
    with (
        running(env, tmp_path) as a,
        running(env, tmp_path) as b,
        running(env, tmp_path) as c,
        running(env, tmp_path) as d,
    ):
        servers = (a, b, c, d)
        for server in servers:
            server.initialize()
        until = time.monotonic() + seconds
        writers = [Writer(server, number, until) for number, server in enumerate(servers)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join(seconds + 120)
        stop.touch()
        _, noise = shell.communicate(timeout=60)
        assert shell.returncode == 0, noise.decode()
        assert [error for writer in writers for error in writer.errors] == []
        check_memories(store, writers)
        check_theme(store, writers)
        check_index(store, everything=False)
        assert not a.tool("sync_workspace_index", workspace=demo.WORKSPACE)[1]
        check_index(store, everything=True)
        assert [server.end() for server in servers] == [0, 0, 0, 0]
    assert leftovers(store) == []


def check_memories(store: Path, writers: list[Writer]) -> None:
    for writer in writers:
        for key in writer.keys:
            assert f"text of {key}\n" in (store / "memory" / "knowledge" / f"{key}.md").read_text(
                encoding="utf-8"
            )
    shared = (store / "memory" / "shared.md").read_text(encoding="utf-8")
    for line in (line for writer in writers for line in writer.lines):
        assert shared.count(line) == 1, line


def check_theme(store: Path, writers: list[Writer]) -> None:
    record = json.loads((store / "themes" / "shared.json").read_text(encoding="utf-8"))
    tagged = {(row["sessionId"], row["turnId"]) for row in record["turns"] if row.get("via") == "tagged"}
    assert {tag for writer in writers for tag in writer.tags} <= tagged
    assert set(record["seeds"]) >= {"cookie", "word0", "word1", "word2", "word3"}
    assert [memory["key"] for memory in record["memories"]] == ["shared"]


def check_index(store: Path, *, everything: bool) -> None:
    """The index equals the files; those written by hand count once it was synced."""
    index = json.loads((store / "index.json").read_text(encoding="utf-8"))["index"]
    held = {path: entry for path, entry in index.items() if not path.endswith("/")}
    files = {
        memory.path: {"title": memory.title, "tags": list(memory.tags)} for memory in Catalogue(store).all()
    }
    if not everything:
        files = {path: entry for path, entry in files.items() if "/shell-" not in path}
        held = {path: entry for path, entry in held.items() if "/shell-" not in path}
    assert held == files


def test_four_servers_and_a_shell_write_together(tmp_path: Path) -> None:
    write_together(tmp_path, 0)


@pytest.mark.soak
def test_four_servers_and_a_shell_write_together_for_a_minute(tmp_path: Path) -> None:
    write_together(tmp_path, 60)
