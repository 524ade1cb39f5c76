import errno
import multiprocessing
import os
import signal
import stat
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import ExitCode, PipelineError
from pipeline.store import files

SPAWN = multiprocessing.get_context("spawn")


def test_a_write_makes_private_files_and_directories(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "c.md"
    assert files.write_text(path, "héllo\r\n")
    assert path.read_bytes() == "héllo\r\n".encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [one.name for one in path.parent.iterdir()] == ["c.md"]


def test_the_same_bytes_are_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    assert files.write_json(path, {"a": 1})
    before = path.stat()
    assert not files.write_json(path, {"a": 1})
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_symbolic_link_is_replaced_not_followed(tmp_path: Path) -> None:
    outside, link = tmp_path / "outside", tmp_path / "store" / "x.md"
    outside.write_text("precious", encoding="utf-8")
    link.parent.mkdir()
    link.symlink_to(outside)
    files.write_text(link, "precious")
    assert outside.read_text(encoding="utf-8") == "precious" and not link.is_symlink()


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "disk is full"),
        (errno.EDQUOT, "quota"),
        (errno.EROFS, "read-only"),
        (errno.EACCES, "permission denied"),
    ],
)
def test_what_the_disk_refuses_is_named_and_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    path = tmp_path / "x.md"
    files.write_text(path, "old")

    def refuse(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(PipelineError, match=words) as caught:
        files.write_text(path, "new")
    assert caught.value.exit_code == ExitCode.FAILED and str(path) in caught.value.message
    assert caught.value.hint
    assert path.read_text(encoding="utf-8") == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["x.md"]


def test_a_file_held_by_another_program_on_windows_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = []
    replace = Path.replace

    def held(source: Path, target: Path) -> Path:
        tries.append(target)
        if len(tries) < 3:
            error = PermissionError(errno.EACCES, "in use")
            error.winerror = 32  # type: ignore[attr-defined,unused-ignore]
            raise error
        return replace(source, target)

    monkeypatch.setattr(Path, "replace", held)
    assert files.write_text(tmp_path / "x", "text")
    assert len(tries) == 3


def test_a_permission_error_elsewhere_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = []

    def denied(source: Path, target: Path) -> Path:
        tries.append(target)
        raise PermissionError(errno.EACCES, "denied")

    monkeypatch.setattr(Path, "replace", denied)
    with pytest.raises(PipelineError, match="permission denied"):
        files.write_text(tmp_path / "x", "text")
    assert len(tries) == 1


def test_reading_what_is_not_there_or_no_regular_file_gives_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert files.read_bytes(tmp_path / "none") is None
    assert files.read_bytes(tmp_path / "fifo") is None
    assert files.read_bytes(tmp_path) is None
    assert files.read_json(tmp_path / "none") is None


def test_torn_json_reads_as_nothing_and_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "torn.json").write_bytes(b'{"a": [1, 2')
    (tmp_path / "bom").write_bytes(b"\xef\xbb\xbf{}")
    assert files.read_json(tmp_path / "torn.json") is None
    assert files.read_json(tmp_path / "bom") == {}
    assert files.read_text(tmp_path / "bom") == "{}"


def test_only_old_temporary_files_are_swept(tmp_path: Path) -> None:
    old, young, other = tmp_path / ".tmp-1-a", tmp_path / ".tmp-1-b", tmp_path / "x.md"
    for path in (old, young, other):
        path.write_text("x", encoding="utf-8")
    now = young.stat().st_mtime
    os.utime(old, (now - files.STALE_TEMP_S, now - files.STALE_TEMP_S))
    os.utime(other, (0, 0))
    assert files.sweep(tmp_path, now) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [".tmp-1-b", "x.md"]


def test_a_lock_is_refused_in_time_and_free_afterwards(tmp_path: Path) -> None:
    with (
        files.locked(tmp_path, "memory/X.md"),
        pytest.raises(PipelineError, match="locked"),
        files.locked(tmp_path, "memory/x.md", timeout=0.02),
    ):
        pass
    with files.locked(tmp_path, "memory/x.md", timeout=0.02):
        pass


def test_locks_of_different_top_folders_nest_and_their_files_are_bounded(tmp_path: Path) -> None:
    with files.locked(tmp_path, "memory/a", "archive/a"), files.locked(tmp_path, "index.json", timeout=0.1):
        pass
    for number in range(500):
        with files.locked(tmp_path, f"memory/{number}"):
            pass
    assert len(list((tmp_path / files.LOCK_DIR).iterdir())) <= files.LOCK_STRIPES + 2


def _hold(root: Path, held: Event) -> None:
    with files.locked(root, "memory/x.md"):
        held.set()
        signal.pause()


def test_the_lock_of_a_killed_process_is_free_at_once(tmp_path: Path) -> None:
    held = SPAWN.Event()
    process = SPAWN.Process(target=_hold, args=(tmp_path, held))
    process.start()
    assert held.wait(30)
    process.kill()
    process.join(30)
    with files.locked(tmp_path, "memory/x.md", timeout=1):
        pass


def _write_for_ever(path: Path, started: Event) -> None:
    for number in range(10**9):
        files.write_text(path, f"{number % 10}" * 200_000)
        started.set()


def test_a_kill_in_the_middle_of_writes_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "x.md"
    for _ in range(3):
        started = SPAWN.Event()
        process = SPAWN.Process(target=_write_for_ever, args=(path, started))
        process.start()
        assert started.wait(30)
        process.kill()
        process.join(30)
        data = path.read_bytes()
        assert len(data) == 200_000 and len(set(data)) == 1
    left = [one for one in tmp_path.iterdir() if one != path]
    assert all(one.name.startswith(files.TEMP_PREFIX) for one in left)
    assert files.sweep(tmp_path, path.stat().st_mtime + files.STALE_TEMP_S + 60) == len(left)
    assert list(tmp_path.iterdir()) == [path]
