"""What the world does to wires and homes between two runs: moved, archived, deleted, restored, clocks that jump."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import orjson
import pytest

from tests import wires
from tests.pipeline.command_line import environment, pipeline
from tests.pipeline.store_cases import content
from tests.pipeline.test_forgetting import CWD, build, run, store_of, turns_in, vault
from tests.wires import say


@pytest.fixture
def home(tmp_path: Path) -> wires.Home:
    return vault(tmp_path / "home")


@pytest.fixture
def env(tmp_path: Path, home: wires.Home) -> dict[str, str]:
    env = environment(home.root, tmp_path / "store") | {"KIMI_MEMORY_JOBS": "1"}
    build(env)
    return env


def logical(env: dict[str, str]) -> str:
    return content(store_of(env) / "refined" / "refined.sqlite")


@pytest.mark.parametrize("how", ["renamed", "copied"])
def test_a_home_that_moved_is_the_same_home(
    how: str, env: dict[str, str], home: wires.Home, tmp_path: Path
) -> None:
    before = turns_in(store_of(env))
    moved = tmp_path / "elsewhere"
    if how == "renamed":
        home.root.rename(moved)
    else:
        shutil.copytree(home.root, moved)
        shutil.rmtree(home.root)
    env = env | {"KIMI_CODE_HOME": str(moved)}
    report = run(env, "index", "--json").json
    assert turns_in(store_of(env)) == before
    assert (report["bytes"] == 0) is (how == "renamed"), "another inode is another file: it is read again"
    assert run(env, "index", "--json").json["bytes"] == 0
    assert run(env, "search", "vault", "--json").json["totalMatches"] > 3


@pytest.mark.parametrize("offset", [-(10**9), 10**9])
def test_clocks_that_jump_make_nothing_new(offset: int, env: dict[str, str], home: wires.Home) -> None:
    before, count = logical(env), len(turns_in(store_of(env)))
    for wire in home.root.rglob("wire.jsonl"):
        at = wire.stat().st_mtime_ns + offset * 10**9
        os.utime(wire, ns=(at, at))
    report = run(env, "index", "--json").json
    assert (report["bytes"], report["turns"]) == (0, 0) and logical(env) == before
    home.sessions[1].main.turn("after the jump", say("Yes."), gap=1000)
    home.write()
    run(env, "index")
    assert len(turns_in(store_of(env))) == count + 1


def test_an_archived_session_stays_searchable_and_says_so(env: dict[str, str], home: wires.Home) -> None:
    home.sessions[1].archived = True
    home.write()
    before = turns_in(store_of(env))
    run(env, "index")
    assert turns_in(store_of(env)) == before
    rows = run(env, "sessions", "--json").json
    assert [row["sessionId"] for row in rows if row["archived"]] == [home.sessions[1].session_id]


def test_a_session_deleted_in_kimi_is_kept_until_it_is_forgotten(
    env: dict[str, str], home: wires.Home
) -> None:
    session = home.sessions[1].session_id
    before = turns_in(store_of(env))
    kept = home.sessions[1].folder.rename(home.root / "elsewhere")
    for command in (("index",), ("rebuild",)):
        run(env, *command)
        assert turns_in(store_of(env)) == before
    kept.rename(home.sessions[1].folder)  # restored from a backup
    run(env, "index")
    assert turns_in(store_of(env)) == before
    shutil.rmtree(home.sessions[1].folder)
    run(env, "forget", "--session", session, "--yes")
    assert turns_in(store_of(env)) == [row for row in before if row[0] != session]


def test_an_older_copy_of_a_wire_is_the_truth_again(env: dict[str, str], home: wires.Home) -> None:
    wire = home.sessions[1].folder / "agents" / "main" / "wire.jsonl"
    backup = wire.read_bytes()
    before = logical(env)
    home.sessions[1].main.turn("said after the backup", say("Yes."), gap=1000)
    home.write()
    run(env, "index")
    assert logical(env) != before
    wire.write_bytes(backup)
    run(env, "index")
    assert logical(env) == before


def test_an_older_copy_of_the_store_catches_up(env: dict[str, str], home: wires.Home, tmp_path: Path) -> None:
    shutil.copytree(tmp_path / "store", tmp_path / "backup")
    home.sessions[1].main.turn("said after the backup", say("Yes."), gap=1000)
    home.write()
    run(env, "index")
    after = logical(env)
    shutil.rmtree(tmp_path / "store")
    (tmp_path / "backup").rename(tmp_path / "store")
    run(env, "index")
    assert logical(env) == after


def test_a_forgetting_goes_with_a_store_that_is_moved(
    env: dict[str, str], home: wires.Home, tmp_path: Path
) -> None:
    run(env, "forget", "--session", home.sessions[0].session_id, "--yes")
    left = turns_in(store_of(env))
    (tmp_path / "store").rename(tmp_path / "moved")
    env = env | {"MEMORY_STORE_ROOT": str(tmp_path / "moved")}
    run(env, "rebuild")
    assert turns_in(store_of(env)) == left
    stones = orjson.loads((store_of(env) / "tombstones.json").read_bytes())
    assert stones["sessions"] == [home.sessions[0].session_id] and "pending" not in stones
    assert pipeline(env, "doctor", "--workspace", CWD).code == 0
