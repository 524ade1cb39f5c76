"""Disks and stores that misbehave: what can still answer does, the rest says what is wrong and what to do."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import threading
from pathlib import Path

import pytest

from pipeline import demo as samples
from pipeline.store import files
from pipeline.theme_process import build_theme_here
from tests.server.cases import REVIEW, SHOP_ID, Asked, asked, demo_env, env_of, files_of, leftovers

pytestmark = pytest.mark.anyio


@pytest.fixture
async def filled(tmp_path: Path) -> Path:
    """A store with a memory, an essence, a theme and an index, that nobody has open."""
    async with asked(demo_env(tmp_path / "store")) as server:
        await server.ask("remember", key="k", folder="decisions", content="kept text")
        await server.ask("organize_memories", content="- a rule (memory/decisions/k)")
        await server.ask("tag_theme", theme="t", sessionId=REVIEW, turnId=1)
    return tmp_path / "store" / SHOP_ID


async def answers_without_the_index(server: Asked) -> None:
    """What needs no database."""
    assert "kept text" in await server.ask("recall", key="k")
    assert "memory/decisions/k" in await server.ask("search", query="kept")
    assert (await server.ask("list")).startswith("1 memory")
    assert "SameSite 用 Lax" in await server.ask(
        "load_turn_context", references=[{"sessionId": REVIEW, "turnId": 1}]
    )
    assert "turn 4 · " in await server.ask("load_more_context", session_id=REVIEW)
    assert f"{REVIEW}  turn 1" in await server.ask("trace_theme", theme="t")
    assert "t · 1 turn" in await server.ask("list_themes")
    text = await server.ask("bootstrap_workspace")
    assert "a rule" in text and "Previous session: " in text and "note: " in text


@pytest.mark.parametrize("damage", ["garbage", "cut", "header"])
async def test_a_corrupt_index_stops_only_what_needs_it(filled: Path, damage: str) -> None:
    database = filled / "refined" / "refined.sqlite"
    for extra in database.parent.glob("refined.sqlite-*"):
        extra.unlink()
    data = database.read_bytes()
    database.write_bytes(
        {"garbage": os.urandom(40_000), "cut": data[:5_000], "header": b"x" * 100 + data[100:]}[damage]
    )
    async with asked(demo_env(filled.parent)) as server:
        await answers_without_the_index(server)
        text = await server.fails("search_context", query="cookie")
        assert "pipeline rebuild" in text and str(database) in text
        assert "pipeline rebuild" in await server.fails("run_theme", theme="x", keywords=["cookie"])
        status = await server.ask("pipeline_status")
        assert "cannot be read" in status and "last error: " in status


async def test_an_index_from_the_future_is_left_alone(filled: Path) -> None:
    connection = sqlite3.connect(filled / "refined" / "refined.sqlite")
    connection.execute("UPDATE kmp_meta SET value=999 WHERE key='schema'")
    connection.commit()
    connection.close()
    async with asked(demo_env(filled.parent)) as server:
        await answers_without_the_index(server)
        assert "written by a later version" in await server.fails("search_context", query="cookie")


async def test_a_locked_index_is_read_and_said_to_be_stale(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.store.database.BUSY_TIMEOUT_MS", 50)
    home = filled.parents[1] / "home"
    shutil.copytree(samples.home(), home)
    os.utime(next(home.rglob("wire.jsonl")))
    other = sqlite3.connect(filled / "refined" / "refined.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        async with asked(env_of(home, filled.parent), samples.WORKSPACE) as server:
            text = await server.ask("search_context", query="cookie")
            assert REVIEW in text and ("stale: " in text or "incomplete: " in text)
            await server.ask("remember", key="other", content="files need no database")
    finally:
        other.execute("ROLLBACK")
        other.close()


@pytest.mark.parametrize("refusal", [errno.ENOSPC, errno.EROFS, errno.EACCES])
async def test_a_disk_that_refuses_is_named_and_nothing_is_torn(
    filled: Path, monkeypatch: pytest.MonkeyPatch, refusal: int
) -> None:
    before = files_of(filled)

    def refused(path: Path, data: bytes) -> None:
        raise OSError(refusal, os.strerror(refusal), str(path))

    words = {errno.ENOSPC: "disk is full", errno.EROFS: "read-only", errno.EACCES: "permission denied"}[
        refusal
    ]
    async with asked(demo_env(filled.parent)) as server:
        with monkeypatch.context() as patched:
            patched.setattr(files, "_replace_with", refused)
            patched.setattr("server.runs.build_theme_apart", build_theme_here)
            for tool, arguments in (
                ("remember", {"key": "k2", "content": "x"}),
                ("organize_memories", {"content": "- another rule"}),
                ("tag_theme", {"theme": "t2", "sessionId": REVIEW, "turnId": 0}),
                ("delete_theme", {"theme": "t"}),
                ("run_theme", {"theme": "t3", "keywords": ["cookie"]}),
            ):
                text = await server.fails(tool, **arguments)
                assert words in text and "MEMORY_STORE_ROOT" in text, text
            for tool, reading in (
                ("recall", {"key": "k"}),
                ("bootstrap_workspace", {}),
                ("search_context", {"query": "cookie"}),
                ("trace_theme", {"theme": "t"}),
                ("propose_memories", {}),
            ):
                text, _ = await server.call(tool, dict(reading))
                assert "Traceback" not in text
            assert "kept text" in await server.ask("recall", key="k")
        assert {name: data for name, data in files_of(filled).items() if name in before} == before
        assert leftovers(filled) == []
        assert "saved" in await server.ask("remember", key="k2", content="x"), "it recovers by itself"


async def test_a_store_root_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    async with asked(demo_env(tmp_path / "file" / "store")) as server:
        text = await server.ask("bootstrap_workspace")
        assert "Previous session: " in text and "note: new turns could not be read" in text
        assert "SameSite 用 Lax" in await server.ask(
            "load_turn_context", references=[{"sessionId": REVIEW, "turnId": 1}]
        )
        assert "a file stands where a directory should be" in await server.fails(
            "remember", key="k", content="x"
        )
        assert str(tmp_path / "file") in await server.fails("search_context", query="cookie")


async def test_a_missing_home_leaves_the_memories(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    async with asked(env_of(tmp_path / "none", tmp_path / "store"), str(project)) as server:
        assert "saved memory/k" in await server.ask("remember", key="k", content="x")
        assert "memory/" in await server.ask("bootstrap_workspace")
        assert "no session was recorded" in await server.ask("search_context", query="x")
        assert "no session" in await server.fails(
            "load_turn_context", references=[{"sessionId": "s", "turnId": 0}]
        )
        assert "0 sessions" in await server.ask("pipeline_status")
        assert "No session was recorded" in await server.ask("list_sessions")


async def test_a_corrupt_theme_is_set_aside_and_named(filled: Path) -> None:
    (filled / "themes" / "t.json").write_bytes(b'{"theme": "t", "turns": [')
    async with asked(demo_env(filled.parent)) as server:
        assert "is not a theme" in await server.fails("trace_theme", theme="t")
        assert "t.json is not a theme" in await server.ask("bootstrap_workspace")
        text = await server.fails("tag_theme", theme="t", sessionId=REVIEW, turnId=0)
        assert "moved to" in text and "undo" in text
        assert "added to" in await server.ask("tag_theme", theme="t", sessionId=REVIEW, turnId=0)


async def test_a_wrong_config_file_is_named(filled: Path) -> None:
    (filled / "config.toml").write_text("[run]\njobs = 'soon'\n", encoding="utf-8")
    async with asked(demo_env(filled.parent)) as server:
        text = await server.fails("search_context", query="x")
        assert f"{filled / 'config.toml'}: run.jobs" in text


async def test_an_excluded_workspace_is_not_read(tmp_path: Path) -> None:
    async with asked(demo_env(tmp_path, KIMI_MEMORY_EXCLUDE_WORKSPACES="/home/dev/shop")) as server:
        assert "exclude.workspaces" in await server.fails("search_context", query="cookie")


async def test_a_connection_that_breaks_leaves_no_database_open(tmp_path: Path) -> None:
    def connections() -> list[str]:
        return [each.name for each in threading.enumerate() if "_connection_worker_thread" in each.name]

    before = connections()
    with pytest.raises(BaseExceptionGroup):
        async with asked(demo_env(tmp_path)) as server:
            await server.ask("search_context", query="cookie")
            assert len(connections()) > len(before)
            raise ConnectionResetError
    assert connections() == before
