"""A store that the compatible server made opens as it is, and that server could go on with it."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from pipeline.store.index import structure_hash
from tests.server.cases import REVIEW, SHOP_ID, asked, demo_env, files_of
from tests.server.peer_store import STAMP, peer_store

pytestmark = pytest.mark.anyio
LOST = "session_00000000-0000-4000-8000-00000000dead"


@pytest.fixture
async def peer(tmp_path: Path) -> Path:
    store = tmp_path / "store" / SHOP_ID
    peer_store(store, known_session=REVIEW, lost_session=LOST)
    return store


async def opened(store: Path, ask: str, **arguments: object) -> str:
    async with asked(demo_env(store.parent)) as server:
        return await server.ask(ask, **arguments)


async def test_its_memories_read_right(peer: Path) -> None:
    async with asked(demo_env(peer.parent)) as server:
        text = await server.ask("recall", key="auth")
        assert (
            "We don''t use localStorage" in text and "tags: auth, 决定" in text and f"created {STAMP}" in text
        )
        assert "开发端口 8081" in await server.ask("recall", key="端口")
        assert "React." in await server.ask("recall", key="front_end"), "found by its key field"
        assert "memory/decisions/auth" in await server.ask("search", query="httponly cookie")
        assert (await server.ask("list")).startswith("4 memories")
        text = await server.ask("bootstrap_workspace")
        assert "decisions/  # 关键决策" in text and "HttpOnly cookie" in text and "notes/todo: To do" in text


async def test_reading_changes_none_of_its_files(peer: Path) -> None:
    before = files_of(peer)
    async with asked(demo_env(peer.parent)) as server:
        for tool, arguments in (
            ("bootstrap_workspace", {}),
            ("recall", {"key": "auth"}),
            ("trace_theme", {"theme": "login-tokens"}),
            ("list_themes", {}),
            ("list_search_views", {}),
            ("search_context", {"query": "cookie"}),
            ("pipeline_status", {}),
        ):
            await server.ask(tool, **arguments)
    assert files_of(peer) == before


async def test_its_theme_is_traced_with_prompts_mapped_to_turns(peer: Path) -> None:
    async with asked(demo_env(peer.parent)) as server:
        await server.ask("search_context", query="cookie")
        text = await server.ask("trace_theme", theme="login-tokens", includeTurnContent=True)
        assert f"{REVIEW}  turn 1" in text and "SameSite 用 Lax" in text, "prompt 1 is turn 1 of that session"
        assert f"{LOST}  turn 0  not resolved" in text, (
            "a lost session's pointer is kept and said to be unresolved"
        )
        assert "memories: memory/decisions/auth" in text
        await server.ask("run_theme", theme="login-tokens", keywords=["localStorage"])
        record = json.loads((peer / "themes" / "login-tokens.json").read_text(encoding="utf-8"))
        assert {"sessionId": REVIEW, "turnId": 1} in [
            {k: row[k] for k in ("sessionId", "turnId")} for row in record["turns"]
        ]
        assert LOST in {row["sessionId"] for row in record["turns"]}, "a run drops no pointer it cannot judge"
        assert record["memories"][0]["key"] == "auth"


async def test_its_claims_answer_where_the_log_is_gone(peer: Path) -> None:
    async with asked(demo_env(peer.parent)) as server:
        text = await server.ask("search_context", query="payment provider")
        assert f"{LOST}  turn 0" in text and "claims of another server about 1 turn" in text
        text = await server.ask("load_turn_context", references=[{"sessionId": LOST, "turnId": 0}])
        assert "another server's note of it, not checked" in text and "chose the payment provider" in text
        assert "claimed: chose the payment provider" in await server.ask("trace_theme", theme="login-tokens")
        text = await server.ask("load_turn_context", references=[{"sessionId": REVIEW, "turnId": 1}])
        assert "claimed" not in text, "where there is a log, it speaks"


async def test_its_refined_rows_stay_as_they_are(peer: Path) -> None:
    database = peer / "refined" / "refined.sqlite"

    def rows() -> list[tuple[object, ...]]:
        connection = sqlite3.connect(database)
        try:
            schema = connection.execute("SELECT sql FROM sqlite_master WHERE name='refined_turns'").fetchall()
            return [*schema, *connection.execute("SELECT * FROM refined_turns ORDER BY 1, 2").fetchall()]
        finally:
            connection.close()

    before = rows()
    async with asked(demo_env(peer.parent)) as server:
        await server.ask("refine_session_turns", sessionId=REVIEW)
        await server.ask("run_theme", theme="login-tokens", keywords=["localStorage"])
    assert rows() == before


async def test_its_index_is_kept_true(peer: Path) -> None:
    async with asked(demo_env(peer.parent)) as server:
        await server.ask("remember", key="new", folder="decisions", content="x")
        index = json.loads((peer / "index.json").read_text(encoding="utf-8"))
        assert index["version"] == "3-kv" and index["meta"]["structureHash"] is None
        assert index["index"]["memory/decisions/"] == {"comment": "关键决策"}
        await server.ask("sync_workspace_index")
        index = json.loads((peer / "index.json").read_text(encoding="utf-8"))
        assert "memory/gone.md" not in index["index"] and "notes/todo.md" in index["index"]
        assert index["meta"]["structureHash"] == structure_hash(peer)


async def test_a_memory_it_wrote_is_edited_without_loss(peer: Path) -> None:
    async with asked(demo_env(peer.parent)) as server:
        await server.ask("remember", key="auth", folder="decisions", content="Cookie, Lax.", tags=["auth"])
    text = (peer / "memory" / "decisions" / "auth.md").read_text(encoding="utf-8")
    assert "title: 'We don''''t use localStorage'" in text, "its quoting is left alone"
    assert f"createdAt: '{STAMP}'" in text and text.endswith("Cookie, Lax.\n")


async def test_its_kept_search_is_listed(peer: Path) -> None:
    assert "search-0123456789ab" in await opened(peer, "list_search_views")


async def test_a_v1_index_is_taken_over(peer: Path) -> None:
    old = {"version": 1, "entries": {"a": {"folder": "memory", "key": "old", "title": "Old", "tags": ["x"]}}}
    (peer / "index.json").write_text(json.dumps(old), encoding="utf-8")
    async with asked(demo_env(peer.parent)) as server:
        await server.ask("sync_workspace_index")
    index = json.loads((peer / "index.json").read_text(encoding="utf-8"))
    assert index["version"] == "3-kv" and "memory/old.md" not in index["index"]
    assert any((peer / ".history").glob("index-*.json")), "the old one is kept"
