"""`kimi-memory hook`: fast, silent, open; the map and the nudges it keeps."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter

import pytest

from server import hook
from server.session_map import mapped_sessions, read_map
from server.setup.wiring import this_installation

LATER = 3_600_000


def event(name: str, session: str = "session_1", **more: object) -> bytes:
    return json.dumps(
        {"hook_event_name": name, "session_id": session, "cwd": "/home/dev/项目", **more}
    ).encode()


def send(root: Path, data: bytes, pid: str = "4711") -> int:
    return hook.main([pid], {"MEMORY_STORE_ROOT": str(root)}, io.BytesIO(data))


def run(command: str, data: bytes, env: Mapping[str, str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command, shell=True, input=data, capture_output=True, env={**os.environ, **env}, check=False
    )


def test_a_session_start_is_in_the_map_that_the_server_reads(tmp_path: Path) -> None:
    send(tmp_path, event("SessionStart", "session_a"))
    send(tmp_path, event("SessionStart", "session_b"), "12")
    send(tmp_path, event("SessionStart", "session_a", cwd="/home/dev/other"))
    assert {entry.session_id: (entry.cwd, entry.kimi_pid) for entry in read_map(tmp_path)} == {
        "session_a": ("/home/dev/other", 4711),
        "session_b": ("/home/dev/项目", 12),
    }
    assert [entry.session_id for entry in mapped_sessions(tmp_path, 12)] == ["session_b"]


@pytest.mark.parametrize("name", ["Stop", "SessionEnd"])
def test_the_end_of_a_turn_or_session_nudges(name: str, tmp_path: Path) -> None:
    send(tmp_path, event(name))
    nudge = tmp_path / "nudges" / "session_1"
    os.utime(nudge, (0, 0))
    send(tmp_path, event(name))
    assert nudge.stat().st_mtime > 0 and nudge.stat().st_mode & 0o777 == 0o600


def test_the_map_and_the_nudges_stay_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook, "MAP_LIMIT", 5)
    monkeypatch.setattr(hook, "NUDGE_LIMIT", 3)
    for number in range(9):
        send(tmp_path, event("Stop", f"session_{number}"))
        os.utime(tmp_path / "nudges" / f"session_{number}", (LATER * number, LATER * number))
        send(tmp_path, event("SessionStart", f"session_{number}"))
    assert [entry.session_id for entry in read_map(tmp_path)] == [
        f"session_{number}" for number in range(4, 9)
    ]
    assert len(list((tmp_path / "nudges").iterdir())) <= 3


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"null",
        b"{",
        event("SessionStart", "../../etc/passwd"),
        event("SessionStart", ""),
        event("Stop", ".."),
        event("SessionStart", cwd=None),
        event("SessionStart", cwd=["x"]),
        event("SomethingNew"),
        b'{"hook_event_name": "Stop"}',
        b"[" * 100_000,
    ],
)
def test_a_broken_event_is_ignored(data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert send(tmp_path, data) == 0
    assert capsys.readouterr() == ("", "")
    assert read_map(tmp_path) == ()
    assert not list(tmp_path.rglob("session*/*")) and not (tmp_path / "nudges").exists()


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"sessions": []}', b'{"sessions": {"x": 1}}', b"\x00" * 99]
)
def test_a_torn_map_is_begun_anew(content: bytes, tmp_path: Path) -> None:
    (tmp_path / hook.MAP_NAME).write_bytes(content)
    send(tmp_path, event("SessionStart"))
    assert [entry.session_id for entry in read_map(tmp_path)] == ["session_1"]


def test_a_broken_store_is_nobodys_trouble(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    for name in ("SessionStart", "Stop"):
        assert send(tmp_path / "file", event(name)) == 0
        assert hook.main(["1"], {"MEMORY_STORE_ROOT": "/proc/none"}, io.BytesIO(event(name))) == 0
    assert capsys.readouterr() == ("", "")


def test_many_sessions_at_once_are_all_in_the_map(tmp_path: Path) -> None:
    command = this_installation({}).hook_command()
    env = {"MEMORY_STORE_ROOT": str(tmp_path), "KIMI_MEMORY_HOOK_MS": "20000"}

    def start(number: int) -> subprocess.CompletedProcess[bytes]:
        return run(command, event("SessionStart", f"session_{number}"), env)

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(start, range(40)))
    assert all((each.returncode, each.stdout, each.stderr) == (0, b"", b"") for each in done)
    assert len(read_map(tmp_path)) == 40
    assert {entry.kimi_pid for entry in read_map(tmp_path)} == {os.getpid()}
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".tmp"] == []


def test_it_answers_in_time_and_needs_the_standard_library_only(tmp_path: Path) -> None:
    command = this_installation({}).hook_command()
    times = []
    for name in ("SessionStart", "Stop", "SessionEnd") * 3:
        began = perf_counter()
        assert run(command, event(name), {"MEMORY_STORE_ROOT": str(tmp_path)}).returncode == 0
        times.append((perf_counter() - began) * 1000)
    assert min(times) < 150  # what the hook needs; a busy machine is not its fault
    root = str(Path(hook.__file__).parent.parent)
    script = f"import sys; sys.path.insert(0, {root!r}); import server.hook; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-ISc", script], capture_output=True, check=True, text=True
    ).stdout.split()
    assert {name.partition(".")[0] for name in loaded} <= {*sys.stdlib_module_names, "server", "__main__"}
    assert not {"pathlib", "asyncio", "subprocess", "logging"} & set(loaded)


@pytest.mark.skipif(os.name == "nt", reason="no timer signal on Windows")
def test_a_store_that_blocks_is_given_up_in_time(tmp_path: Path) -> None:
    import fcntl

    send(tmp_path, event("SessionStart"))
    with (tmp_path / f".{hook.MAP_NAME}.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        began = perf_counter()
        done = run(
            this_installation({}).hook_command(),
            event("SessionStart", "x"),
            {"MEMORY_STORE_ROOT": str(tmp_path)},
        )
        assert perf_counter() - began < 2
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert len(read_map(tmp_path)) == 1


def test_an_installation_that_is_gone_blocks_no_turn(tmp_path: Path) -> None:
    command = this_installation({}).hook_command()
    for gone in (command.replace("hook.py", "gone.py"), command.replace(sys.executable, "/nowhere/python")):
        assert run(gone, event("Stop"), {"MEMORY_STORE_ROOT": str(tmp_path)}).returncode == 0


def test_the_command_does_the_same(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "server.cli", "hook", "99", str(tmp_path)]
    done = subprocess.run(words, input=event("SessionStart"), capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert [entry.kimi_pid for entry in read_map(tmp_path)] == [99]
