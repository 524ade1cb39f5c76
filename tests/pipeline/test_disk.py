"""A full disk and a read-only store: told once and clearly, nothing damaged, gone by itself once there is room."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pipeline.store import files
from pipeline.store.database import Database
from tests import wires
from tests.pipeline.command_line import environment, pipeline
from tests.pipeline.store_cases import content
from tests.pipeline.test_forgetting import CWD, MARK, build, run, store_of, traces, turns_in, vault
from tests.wires import bash, read, say


@pytest.fixture
def home(tmp_path: Path) -> wires.Home:
    return vault(tmp_path / "home")


@pytest.fixture
def env(tmp_path: Path, home: wires.Home) -> dict[str, str]:
    return environment(home.root, tmp_path / "store") | {"KIMI_MEMORY_JOBS": "1"}


def large(root: Path, sessions: int = 8) -> wires.Home:
    """A home whose store is a few megabytes."""
    home = wires.Home(root, seed=4)
    for number in range(sessions):
        session = home.session(CWD, at=1_796_000_000_000 + number * 86_400_000)
        for turn in range(60):
            noise = "".join(home.ids.uuid() for _ in range(20))
            session.main.turn(
                f"question {turn} of {number}: {noise[:300]}",
                say("I look.", read(f"src/m{turn}.py", "x = 1\n" * 50), bash("make", noise[:300])),
                say(f"Answer {turn}: {noise}"),
                gap=60_000,
            )
    home.write()
    return home


def whole(path: Path) -> bool:
    connection = sqlite3.connect(path)
    try:
        connection.execute("INSERT INTO turn_fts(turn_fts) VALUES('integrity-check')")
        said: str = connection.execute("PRAGMA integrity_check").fetchone()[0]
        return said == "ok"
    finally:
        connection.close()


def told_once(result: Any, word: str = "full") -> bool:
    lines = [line for line in result.err.split("\n") if line.startswith("error:")]
    return result.code == 4 and len(lines) == 1 and word in lines[0] and "Traceback" not in result.err


class _Usage(NamedTuple):
    total: int
    used: int
    free: int


def test_a_backfill_that_cannot_fit_is_not_begun(
    env: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("pipeline.catchup.BACKFILL_BYTES", 10_000)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _path: _Usage(10**9, 10**9 - 10_000, 10_000))
        result = pipeline(env, "index", "--workspace", CWD)
        assert told_once(result) and "MB are needed" in result.err and "MEMORY_STORE_ROOT" in result.err
        assert turns_in(store_of(env)) == []
        found = pipeline(env, "search", "vault", "--workspace", CWD, "--json")
        assert found.json["stale"] and "full" in found.json["reason"]
    run(env, "index")
    assert turns_in(store_of(env))


def small_database(monkeypatch: pytest.MonkeyPatch, pages: Callable[[], int]) -> None:
    prepare = Database._prepare

    async def with_limit(self: Database) -> None:
        await prepare(self)
        await self.execute(f"PRAGMA max_page_count={pages()}")

    monkeypatch.setattr(Database, "_prepare", with_limit)


def test_a_disk_that_fills_up_during_a_backfill_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = environment(large(tmp_path / "home").root, tmp_path / "store") | {"KIMI_MEMORY_JOBS": "1"}
    with monkeypatch.context() as patch:
        small_database(patch, lambda: 40)
        result = pipeline(env, "run", "--all", "--workspace", CWD)
        assert told_once(result), result.err
    database = store_of(env) / "refined" / "refined.sqlite"
    assert whole(database)
    run(env, "run", "--all")
    assert whole(database)
    other = env | {"MEMORY_STORE_ROOT": str(tmp_path / "other")}
    shutil.copytree(tmp_path / "store", tmp_path / "other", ignore=shutil.ignore_patterns("workspace-*"))
    run(other, "run", "--all")
    assert content(database) == content(store_of(other) / "refined" / "refined.sqlite")


def test_files_that_cannot_be_written_leave_the_old_ones(
    env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    build(env)
    theme = store_of(env) / "themes" / "vault.json"
    before = theme.read_bytes()

    def full(_path: Path, _data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(files, "_replace_with", full)
        result = pipeline(env, "run", "--theme", "vault", "--keywords", "fork", "--workspace", CWD)
        assert told_once(result)
    assert theme.read_bytes() == before
    run(env, "run", "--theme", "vault", "--keywords", "fork")
    assert theme.read_bytes() != before


@pytest.mark.parametrize("where", ["tombstones", "rows", "files", "bytes"])
def test_forgetting_on_a_full_disk_is_before_or_is_finished(
    where: str, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    build(env)
    store = store_of(env)
    before = turns_in(store)
    no_space = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def full(*_: object) -> None:
        raise files.refusal(no_space, store, "write")

    async def full_database(*_: object) -> bool:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        target = {
            "tombstones": ("pipeline.store.tombstones.write", full),
            "rows": ("pipeline.upkeep.index_anew", full_database),
            "files": ("pipeline.forgetting.clean", full),
            "bytes": ("pipeline.store.database.Database.shed", full_database),
        }[where]
        patch.setattr(*target)
        assert told_once(pipeline(env, "forget", "--match", MARK, "--yes", "--workspace", CWD))
        if where in ("tombstones", "rows"):
            assert turns_in(store) == before
    assert whole(store / "refined" / "refined.sqlite")
    run(env, "index")
    if where == "tombstones":
        assert turns_in(store) == before and traces(store)
    else:
        assert len(turns_in(store)) < len(before) and traces(store) == []


# --- real file systems ---------------------------------------------------------------------------------------


def mounted(*arguments: str) -> None:
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting needs root on Linux")
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount here: {done.stderr.strip()}")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1.5 MB."""
    place = tmp_path / "small"
    place.mkdir()
    mounted("-t", "tmpfs", "-o", "size=1536k", "tmpfs", str(place))
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_small_disk_fills_up_and_is_made_larger(small_disk: Path, tmp_path: Path) -> None:
    home = large(tmp_path / "home")
    env = environment(home.root, small_disk / "store") | {"KIMI_MEMORY_JOBS": "1"}
    for _ in range(2):
        result = pipeline(env, "run", "--all", "--workspace", CWD)
        assert told_once(result), result.err
    database = store_of(env) / "refined" / "refined.sqlite"
    assert pipeline(env, "status", "--workspace", CWD).code == 0
    assert pipeline(env, "doctor", "--workspace", CWD).code == 4, "the disk is full"
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    assert whole(database)
    run(env, "run", "--all")
    assert len({row[0] for row in turns_in(store_of(env))}) == len(home.sessions) and whole(database)


@pytest.fixture
def read_only(env: dict[str, str], tmp_path: Path) -> Iterator[Callable[[bool], None]]:
    """The store on a file system that can be made read-only and writable again."""
    place = tmp_path / "store"
    place.mkdir()
    mounted("-t", "tmpfs", "-o", "size=64m,mode=700", "tmpfs", str(place))

    def make(yes: bool) -> None:
        subprocess.run(["mount", "-o", f"remount,{'ro' if yes else 'rw'}", str(place)], check=True)

    yield make
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_read_only_store_answers_and_says_that_it_is_one(
    read_only: Callable[[bool], None], env: dict[str, str], home: wires.Home
) -> None:
    build(env)
    read_only(True)
    home.sessions[1].main.turn("news about the vault", say("None."), gap=1000)
    home.write()
    answered: tuple[tuple[str, ...], ...] = (
        ("search", "vault"),
        ("trace", "vault"),
        ("themes",),
        ("status",),
        ("turns", "--json"),
        ("sessions",),
        ("forget", "--match", MARK),
    )
    for command in answered:
        result = run(env, *command)
        assert result.out, command
    assert "read-only" in pipeline(env, "search", "vault", "--json", "--workspace", CWD).out
    refused: tuple[tuple[str, ...], ...] = (
        ("index",),
        ("run", "--all"),
        ("forget", "--match", MARK, "--yes"),
        ("rebuild",),
    )
    for command in refused:
        result = pipeline(env, *command, "--workspace", CWD)
        assert told_once(result, "read") and "MEMORY_STORE_ROOT" in result.err, (command, result.err)
    examined = pipeline(env, "doctor", "--workspace", CWD)
    assert examined.code == 4 and "read-only" in examined.out
    read_only(False)
    run(env, "index")
    assert (home.sessions[1].session_id, "main", home.sessions[1].main.turns - 1) in turns_in(store_of(env))
    assert pipeline(env, "doctor", "--workspace", CWD).code == 0


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_store_without_write_permission_answers(env: dict[str, str]) -> None:
    build(env)
    folder = store_of(env) / "refined"
    folder.chmod(0o500)
    try:
        assert run(env, "search", "vault").out and run(env, "status").out
        assert pipeline(env, "index", "--workspace", CWD).code in (0, 4)
    finally:
        folder.chmod(0o700)
