"""A kill, or an error, at any file operation of a setup or an undo: before or after, never between."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import BadInput, StoreError
from server.setup import agents_md, disk, hooks_toml, journal, mcp_json, record
from server.setup.model import Plan
from server.setup.plan import PATHS, plan_setup, plan_undo
from tests.server.setup.homes import ENGLISH, OTHER_BLOCK, tree, write

OPERATIONS = ("open", "write", "fsync", "replace", "unlink", "mkdir", "rmdir", "fchmod")
HOMES: dict[str, dict[str, bytes | None]] = {
    "empty": {"sessions/keep": b""},
    "full": {
        mcp_json.PATH: b'{"mcpServers":{"a":{"command":"x"}}}',
        agents_md.PATH: OTHER_BLOCK.encode(),
        "skills/other/SKILL.md": b"other",
        hooks_toml.PATH: b"# mine\r\n[a]\r\n",
    },
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here ends with a power cut, so nothing need reach the platter."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)


class Killed(BaseException):
    """The process is dead: from here on no operation of it reaches the disk."""


@contextmanager
def failing(
    at: int, monkeypatch: pytest.MonkeyPatch, error: Callable[[], BaseException], *, dead: bool
) -> Iterator[list[int]]:
    """Let the ``at``-th file operation fail; ``dead``: all later ones too. Yields a list whose item counts them."""
    count = [0]

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def operation(*args: Any, **named: Any) -> Any:
            count[0] += 1
            if count[0] == at or (dead and count[0] > at > 0):
                raise error()
            return real(*args, **named)

        return operation

    with monkeypatch.context() as patch:
        for name in OPERATIONS:
            patch.setattr(os, name, counted(getattr(os, name)))
        yield count


def planned(home: Path, undo: bool) -> Plan:
    files: Mapping[str, bytes | None] = {name: disk.read(home, name) for name in PATHS}
    folders = [name for name in (".", "skills", "skills/memory-manage") if (home / name).is_dir()]
    return plan_undo(files, ENGLISH) if undo else plan_setup(files, folders, ENGLISH)


def prepared(folder: Path, files: Mapping[str, bytes | None], undo: bool) -> tuple[Path, Plan]:
    """A home, and the plan that is to be carried out on it."""
    if folder.exists():
        shutil.rmtree(folder)
    write(folder, files)
    if undo:
        journal.apply(folder, planned(folder, False))
    return folder, planned(folder, undo)


@pytest.mark.parametrize("undo", [False, True])
@pytest.mark.parametrize("name", HOMES)
def test_a_kill_at_any_operation_leaves_before_or_after(
    name: str, undo: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, plan = prepared(tmp_path / "home", HOMES[name], undo)
    before = tree(home)
    with failing(0, monkeypatch, Killed, dead=True) as count:
        journal.apply(home, plan)
    after, operations = tree(home), count[0]
    assert operations > 20
    seen = set()
    for at in range(1, operations + 1):
        home, plan = prepared(tmp_path / "home", HOMES[name], undo)
        with failing(at, monkeypatch, Killed, dead=True), pytest.raises(Killed):
            journal.apply(home, plan)
        committed = journal.pending(home)
        if not committed:  # a person who looks now sees one of the two
            assert without_ours(tree(home)) in (without_ours(before), without_ours(after))
        journal.recover(home)
        assert tree(home) in (before, after), f"operation {at}"
        seen.add(tree(home) == after)
        assert not committed or tree(home) == after
    assert seen == {True, False}


def without_ours(found: Mapping[str, bytes | str | None]) -> dict[str, bytes | str]:
    """The files of a home that are Kimi's and the person's."""
    return {
        name: data for name, data in found.items() if data is not None and not name.startswith(record.FOLDER)
    }


def test_recovery_itself_may_be_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, plan = prepared(tmp_path / "home", HOMES["full"], False)
    journal.apply(home, plan)
    after = tree(home)
    for at in range(1, 60, 3):
        home, plan = prepared(tmp_path / "home", HOMES["full"], False)
        with failing(12, monkeypatch, Killed, dead=True), pytest.raises(Killed):
            journal.apply(home, plan)
        assert journal.pending(home)
        with failing(at, monkeypatch, Killed, dead=True), suppress(Killed):
            journal.recover(home)
        journal.recover(home)
        assert tree(home) == after


@pytest.mark.parametrize("undo", [False, True])
@pytest.mark.parametrize("name", HOMES)
def test_an_error_at_any_operation_puts_everything_back(
    name: str, undo: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> OSError:
        return OSError(errno.ENOSPC, "No space left on device")

    home, plan = prepared(tmp_path / "home", HOMES[name], undo)
    before = tree(home)
    with failing(0, monkeypatch, full, dead=False) as count:
        journal.apply(home, plan)
    after = tree(home)
    for at in range(1, count[0] + 1):
        home, plan = prepared(tmp_path / "home", HOMES[name], undo)
        with failing(at, monkeypatch, full, dead=False):
            try:
                journal.apply(home, plan)
            except StoreError as error:
                assert "the disk is full" in str(error)
                assert tree(home) == before, f"operation {at}"
            else:  # only what makes a rename durable, or tidies up, may fail without a word
                journal.recover(home)
                assert without_ours(tree(home)) == without_ours(after)


def test_what_a_person_changed_before_the_recovery_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, plan = prepared(tmp_path / "home", HOMES["full"], False)
    with failing(12, monkeypatch, Killed, dead=True), pytest.raises(Killed):
        journal.apply(home, plan)
    (home / hooks_toml.PATH).write_bytes(b"# changed in between\n")
    assert journal.recover(home) == (hooks_toml.PATH,)
    assert (home / hooks_toml.PATH).read_bytes() == b"# changed in between\n"
    assert b"kimi-memory" in (home / mcp_json.PATH).read_bytes()
    assert journal.recover(home) is None


def test_a_file_changed_after_planning_stops_the_setup(tmp_path: Path) -> None:
    home, plan = prepared(tmp_path / "home", HOMES["full"], False)
    (home / mcp_json.PATH).write_bytes(b"{}")
    before = tree(home)
    with pytest.raises(BadInput, match="changed a moment ago"):
        journal.apply(home, plan)
    assert tree(home) == before


KILLER = """
import os, sys
from pathlib import Path
from server.setup import disk, journal
from tests.server.setup.test_kill import planned
real, left = os.replace, [int(sys.argv[2])]
def replace(*args):
    left[0] -= 1
    if left[0] < 0:
        os.kill(os.getpid(), 9)
    real(*args)
disk.os.replace = replace
journal.apply(Path(sys.argv[1]), planned(Path(sys.argv[1]), False))
"""


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL is POSIX")
def test_the_server_finishes_at_its_start_what_a_killed_setup_began(tmp_path: Path) -> None:
    from server.setup.startup import finish_setup

    home, plan = prepared(tmp_path / "home", HOMES["full"], False)
    before = tree(home)
    journal.apply(home, plan)
    after = tree(home)
    for renames in (0, 1, 2):
        home, _ = prepared(tmp_path / "home", HOMES["full"], False)
        done = subprocess.run([sys.executable, "-c", KILLER, str(home), str(renames)], check=False)
        assert done.returncode == -9
        finish_setup({"KIMI_CODE_HOME": str(home)})
        journal.recover(home)  # what was not committed leaves a temporary file at most
        assert tree(home) == (after if renames else before)
