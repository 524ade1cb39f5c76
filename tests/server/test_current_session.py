"""Which session is asking: by word, by the hooks' map, by the call in its log, by the one turn that runs."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from pipeline.store.files import write_json
from server.current_session import open_calls
from tests.server.cases import Asked, asked, env_of
from tests.wires import Home, Session, say

pytestmark = pytest.mark.anyio
CWD = "/home/dev/app"


class Two:
    """Two sessions of one directory, each with a turn that runs right now."""

    def __init__(self, root: Path) -> None:
        now = time.time_ns() // 1_000_000
        self.home = Home(root / "home")
        self.store = root / "store"
        self.one, self.two = (self.home.session(CWD, at=now - 5_000 * n, title=f"work {n}") for n in (2, 1))
        for session in (self.one, self.two):
            session.main.turn("carry on", say("I do."))
        self.home.write()
        for session in (self.one, self.two):
            self.end(session)

    @property
    def env(self) -> dict[str, str]:
        return env_of(self.home.root, self.store)

    def wire(self, session: Session) -> Path:
        return session.folder / "agents" / "main" / "wire.jsonl"

    def end(self, session: Session) -> None:
        """Cut what follows the answer: the turn is still open."""
        lines = self.wire(session).read_bytes().splitlines(keepends=True)
        keep = next(place for place, line in enumerate(lines) if b'"turn.ended"' in line)
        self.wire(session).write_bytes(b"".join(lines[:keep]))

    def append(self, session: Session, event: dict[str, Any]) -> None:
        record = {
            "type": "context.append_loop_event",
            "agentId": "main",
            "event": event,
            "time": time.time_ns() // 1_000_000,
        }
        with self.wire(session).open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    def calls(self, session: Session, tool: str, args: dict[str, Any], call_id: str = "call_9") -> None:
        called = {"toolCallId": call_id, "name": f"mcp__kimi-memory__{tool}", "args": args}
        self.append(session, {"type": "tool.call", "turnId": "0", "step": 1, **called})

    def results(self, session: Session, call_id: str = "call_9") -> None:
        self.append(session, {"type": "tool.result", "toolCallId": call_id, "result": {"output": "x"}})

    def mapped(self, *entries: tuple[Session, str, int]) -> None:
        sessions = {
            s.session_id: {"cwd": cwd, "kimiPid": pid, "at": place}
            for place, (s, cwd, pid) in enumerate(entries)
        }
        write_json(self.store / "sessions-map.json", {"sessions": sessions})


@pytest.fixture
def two(tmp_path: Path) -> Two:
    return Two(tmp_path)


async def told(server: Asked, **arguments: Any) -> str:
    return (await server.ask("get_current_workspace", **arguments)).partition("\nsession: ")[2]


async def test_two_sessions_that_run_are_ambiguous_and_named(two: Two) -> None:
    async with asked(two.env, CWD) as server:
        text = await told(server)
        assert text.startswith("ambiguous: 2 sessions may be asking")
        assert two.one.session_id in text and two.two.session_id in text


async def test_the_caller_may_say_it(two: Two) -> None:
    async with asked(two.env, CWD) as server:
        text = await told(server, session_id=two.one.session_id)
        assert text == f"{two.one.session_id} (given as session_id)"
        assert "session_id: no session session_x" in await server.fails(
            "get_current_workspace", session_id="session_x"
        )


async def test_the_map_names_the_session_of_our_kimi(two: Two) -> None:
    pid = os.getppid()
    async with asked(two.env, CWD) as server:
        two.mapped((two.one, CWD, pid), (two.two, CWD, pid + 1))
        assert (await told(server)).startswith(f"{two.one.session_id} (the hooks' session map")
        two.mapped((two.one, CWD, pid), (two.two, "/elsewhere", pid))
        assert (await told(server)).startswith(two.one.session_id), (
            "a session of another directory does not count"
        )
        two.mapped((two.one, CWD, pid), (two.two, CWD, pid))
        assert (await told(server)).startswith("ambiguous: 2"), "one Kimi may have several sessions here"
        (two.store / "sessions-map.json").write_text('{"sessions": {"x": 1, ', encoding="utf-8")
        assert (await told(server)).startswith("ambiguous: 2"), "a torn map is no map"


async def test_the_log_that_holds_this_very_call_decides(two: Two) -> None:
    async with asked(two.env, CWD) as server:
        two.calls(two.two, "get_current_workspace", {"workspace": CWD})
        assert (await told(server, workspace=CWD)).startswith(
            f"{two.two.session_id} (its log holds this very call)"
        )
        assert (await told(server)).startswith("ambiguous"), "other arguments are another call"
        two.results(two.two)
        assert (await told(server, workspace=CWD)).startswith("ambiguous"), "a call with a result is over"
        two.calls(two.one, "get_current_workspace", {"workspace": CWD}, "call_a")
        two.calls(two.two, "get_current_workspace", {"workspace": CWD}, "call_b")
        assert (await told(server, workspace=CWD)).startswith("ambiguous: 2"), "both ask the same at once"


async def test_the_call_may_be_a_sub_agents(two: Two) -> None:
    folder = two.one.folder / "agents" / "agent-0"
    folder.mkdir()
    two.calls(two.one, "get_current_workspace", {"workspace": CWD})
    wire = two.wire(two.one)
    *lines, last = wire.read_bytes().splitlines(keepends=True)
    wire.write_bytes(b"".join(lines))
    (folder / "wire.jsonl").write_bytes(lines[0] + last)
    async with asked(two.env, CWD) as server:
        assert (await told(server, workspace=CWD)).startswith(two.one.session_id)


async def test_the_only_turn_that_runs_is_asking(two: Two) -> None:
    two.home.write([two.one])
    async with asked(two.env, CWD) as server:
        assert (await told(server)).startswith(f"{two.two.session_id} (it alone has a turn that runs)")
        two.home.write([two.two])
        assert (await told(server)).startswith("unknown: no session has a turn that runs")


async def test_the_newest_file_alone_proves_nothing(two: Two) -> None:
    two.home.write()
    os.utime(two.wire(two.one))
    async with asked(two.env, CWD) as server:
        assert (await told(server)).startswith("unknown")


async def test_bootstrap_shows_the_session_before_the_one_that_asks(two: Two) -> None:
    async with asked(two.env, CWD) as server:
        two.calls(two.two, "bootstrap_workspace", {})
        text = await server.ask("bootstrap_workspace")
        assert f"This session: {two.two.session_id}" in text
        assert f"Previous session: {two.one.session_id}" in text


async def test_a_memory_names_the_session_and_turn_that_asked_for_it(two: Two) -> None:
    arguments = {"key": "k", "content": "kept"}
    two.calls(two.two, "remember", arguments)
    async with asked(two.env, CWD) as server:
        await server.ask("remember", **arguments)
        text = await server.ask("recall", key="k")
        assert f"source: session {two.two.session_id}, tool remember, turn 0" in text


async def test_a_plugins_server_finds_its_workspace_by_the_map(two: Two, tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    plugin.mkdir()
    async with asked({**two.env, "KIMI_PLUGIN_ROOT": str(plugin)}, str(plugin)) as server:
        text = await server.fails("list")
        assert "workspace: this server runs in a plugin's folder" in text and CWD in text
        assert "workspace: /home/dev/app" in await server.ask("get_current_workspace", workspace=CWD)
        two.mapped((two.one, CWD, os.getppid()))
        assert "workspace: /home/dev/app" in await server.ask("get_current_workspace")
        two.mapped((two.one, CWD, os.getppid()), (two.two, "/home/dev/other", os.getppid()))
        assert "cannot tell which project" in await server.fails("list")
        named = await server.ask("bootstrap_workspace", session_id=two.one.session_id)
        assert "Workspace /home/dev/app" in named, "a session tells its workspace"


def test_kimi_cli_logs_count_too() -> None:
    call = {
        "type": "ToolCall",
        "payload": {"id": "t1", "function": {"name": "recall", "arguments": '{"key": "k"}'}},
    }
    result = {"type": "ToolResult", "payload": {"tool_call_id": "t1"}}
    lines = [json.dumps({"timestamp": 1.0, "message": message}).encode() for message in (call, result)]
    assert open_calls(lines[0], "recall", {"key": "k"}) == {"t1": None}
    assert open_calls(b"\n".join([*lines, b"{torn tool_call recall"]), "recall", {"key": "k"}) == {}
