"""The process: nothing heavy before it answers, protocol alone on stdout, gone within a second."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline import demo
from tests.server.cases import env_of, leftovers
from tests.server.processes import COMMAND, HELLO, ROOT, clean_env, file_locks_held, request, running

HEAVY = (
    "pipeline.store",
    "pipeline.sessions",
    "aiosqlite",
    "opencc",
    "Stemmer",
    "rich",
    "ruamel",
    "filelock",
    "sqlite3",
)
EXIT_S = 2.5
"""A second is promised (tests/bench/bench_server.py measures it); the rest is for a loaded machine."""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    home = tmp_path / "home"
    shutil.copytree(demo.home(), home)
    return clean_env(env_of(home, tmp_path / "store"))


def test_nothing_heavy_is_loaded_before_the_first_call() -> None:
    code = (
        "import sys, server.cli, server.logs, server.stdio, server.setup.startup\n"
        "from server.app import create_server, _which_tools\n"
        "create_server({'HOME': '/nowhere'}, '/')\n"
        "_which_tools({'HOME': '/nowhere'}, '/')\n"
        f"print(*[name for name in {HEAVY!r} if any(m == name or m.startswith(name + '.') for m in sys.modules)])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert run.stdout.split() == []


def test_starting_and_listing_touches_no_file(env: dict[str, str], tmp_path: Path) -> None:
    with running(env, tmp_path) as server:
        answer = server.initialize()["result"]
        assert answer["protocolVersion"] == "2025-11-25" and answer["serverInfo"]["name"] == "kimi-memory"
        assert answer["capabilities"]["resources"]["listChanged"] is True
        assert len(server.ask("tools/list")["result"]["tools"]) == 34
        assert server.end() == 0
    assert not (tmp_path / "store").exists()


def test_stdout_carries_protocol_alone_under_load(env: dict[str, str], tmp_path: Path) -> None:
    """Prints of our own code and of children go elsewhere; hundreds of calls interleave, each is answered once."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        "import os, sys, threading\n"
        "def noise():\n"
        "    import server.tools.context as context\n"
        "    search = context.search_context\n"
        "    async def loud(call):\n"
        "        print('noise'); os.write(1, b'raw noise\\n'); os.system('echo child noise')\n"
        "        return await search(call)\n"
        "    context.search_context = loud\n"
        "class Finder:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'server.tools.context':\n"
        "            sys.meta_path.remove(self)\n"
        "            import importlib.util\n"
        "            spec = importlib.util.find_spec(name)\n"
        "            run = spec.loader.exec_module\n"
        "            def loaded(module):\n"
        "                run(module); sys.modules[name] = module; noise()\n"
        "            spec.loader.exec_module = loaded\n"
        "            return spec\n"
        "sys.meta_path.insert(0, Finder())\n",
        encoding="utf-8",
    )
    noisy = {**env, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}"}
    calls: list[tuple[str, dict[str, object]]] = [
        ("search_context", {"query": "cookie"}),
        ("list", {}),
        ("nope", {}),
        ("remember", {"key": "k", "content": "x\ny", "mode": "append"}),
    ]
    lines = [request(0, "initialize", HELLO), request(None, "notifications/initialized")]
    for number in range(1, 201):
        name, arguments = calls[number % 4]
        arguments = {**arguments, "workspace": demo.WORKSPACE}
        lines.append(request(number, "tools/call", {"name": name, "arguments": arguments}))
    process = subprocess.Popen(
        COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=noisy,
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    process.stdin.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    process.stdin.flush()
    seen: list[int] = []
    while len(seen) < 201:
        message = json.loads(process.stdout.readline())
        if "id" in message:
            seen.append(message["id"])
    process.stdin.close()
    rest = process.stdout.read()
    noise = process.stderr.read()
    process.wait(5)
    process.stdout.close()
    process.stderr.close()
    assert sorted(seen) == list(range(201)) and rest == b""
    assert b"raw noise" in noise and b"child noise" in noise


@pytest.mark.parametrize("ending", ["eof", "SIGTERM", "SIGINT", "SIGHUP"])
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_it_is_gone_within_a_second(env: dict[str, str], tmp_path: Path, ending: str, busy: bool) -> None:
    with running(env, tmp_path) as server:
        server.initialize()
        assert not server.tool("remember", key="k", content="kept", workspace=demo.WORKSPACE)[1]
        assert not server.tool("search_context", query="cookie", workspace=demo.WORKSPACE)[1]
        if busy:
            for number in range(40):
                arguments = {"theme": f"t{number}", "keywords": ["cookie"], "workspace": demo.WORKSPACE}
                server.send("tools/call", {"name": "run_theme", "arguments": arguments})
        pid, began = server.process.pid, time.monotonic()
        if ending == "eof":
            server.stdin.close()
        else:
            server.process.send_signal(getattr(signal, ending))
        code = server.process.wait(5)
        took = time.monotonic() - began
    assert code == 0
    assert took < EXIT_S, took
    assert not file_locks_held(pid)
    assert leftovers(tmp_path / "store") == []
    assert (
        (tmp_path / "store" / "workspace-e828acfc792e" / "memory" / "k.md")
        .read_text("utf-8")
        .endswith("kept\n")
    )


def test_it_ends_though_nobody_reads_its_answers(env: dict[str, str], tmp_path: Path) -> None:
    with running(env, tmp_path) as server:
        server.initialize()
        for _ in range(60):  # more than a pipe holds
            server.send("tools/list")
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(5) == 0
        assert time.monotonic() - began < EXIT_S


def test_a_client_that_vanishes_ends_it(env: dict[str, str], tmp_path: Path) -> None:
    with running(env, tmp_path) as server:
        server.initialize()
        assert server.process.stdout is not None
        server.process.stdout.close()
        server.send("tools/list")
        assert server.process.wait(5) == 0


def test_piped_requests_get_their_answers_before_the_end(env: dict[str, str], tmp_path: Path) -> None:
    lines = [
        request(0, "initialize", HELLO),
        request(None, "notifications/initialized"),
        request(1, "tools/list"),
    ]
    run = subprocess.run(
        COMMAND,
        input="".join(json.dumps(line) + "\n" for line in lines),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**env, "PYTHONPATH": str(ROOT)},
        timeout=20,
        check=True,
    )
    assert [json.loads(line)["id"] for line in run.stdout.splitlines()] == [0, 1]


def test_bad_requests_do_not_end_it(env: dict[str, str], tmp_path: Path) -> None:
    with running(env, tmp_path) as server:
        server.initialize()
        server.stdin.write(b"not json\n\xff\xfe\n{}\n[]\n\n")
        server.stdin.flush()
        assert "error" in server.ask("no/such/method")
        server.send("notifications/cancelled", {"requestId": 999, "reason": "AbortError"}, notify=True)
        assert server.tool("nope")[0].startswith("nope: no such tool")
        text, failed = server.tool("list", workspace=demo.WORKSPACE)
        assert (text, failed) == ("No memory.", False)
        assert server.end() == 0


def test_a_cancelled_call_changes_nothing_for_the_others(env: dict[str, str], tmp_path: Path) -> None:
    with running(env, tmp_path) as server:
        server.initialize()
        arguments = {"theme": "t", "keywords": ["cookie"], "workspace": demo.WORKSPACE}
        number = server.send("tools/call", {"name": "run_theme", "arguments": arguments})
        server.send("notifications/cancelled", {"requestId": number}, notify=True)
        text, failed = server.tool("run_theme", theme="t", keywords=["cookie"], workspace=demo.WORKSPACE)
        assert not failed and "theme “t”: " in text
        assert server.end() == 0


def test_the_log_goes_to_a_file_without_secrets(env: dict[str, str], tmp_path: Path) -> None:
    code = (
        "import logging, os\n"
        "from server import logs\n"
        "logs.set_up(os.environ)\n"
        "logging.getLogger('server.x').info('token ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8 used')\n"
        "logging.getLogger('server.x').warning('careful')\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, env=env, check=True
    )
    text = (tmp_path / "store" / "logs" / "kimi-memory.log").read_text(encoding="utf-8")
    assert "used" in text and "ghp_A1b2" not in text
    assert "careful" in run.stderr and "used" not in run.stderr and run.stdout == ""
