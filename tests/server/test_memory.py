"""The tools that keep memories, the essence and proposals; each twice, since a client sends a call again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.cases import REVIEW, Asked, asked, demo_env, files_of, golden, leftovers

pytestmark = pytest.mark.anyio
NOW = 1_796_033_702_000


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.service.Service.now", staticmethod(lambda: NOW))


async def twice(server: Asked, tool: str, **arguments: object) -> tuple[str, str]:
    """A call, sent again: the second one must change no file."""
    first = await server.ask(tool, **arguments)
    before = files_of(server.shop)
    second = await server.ask(tool, **arguments)
    assert files_of(server.shop) == before
    assert not leftovers(server.shop)
    return first, second


# --- remember, recall --------------------------------------------------------------------------------------


async def test_a_memory_is_saved_and_recalled(demo: Asked) -> None:
    first, second = await twice(
        demo,
        "remember",
        key="auth-cookie",
        folder="decisions",
        title="Tokens live in a cookie",
        tags=["auth", "决定"],
        content="Decided: HttpOnly cookie.\n\n## Why\nScripts cannot read it.",
        source={"sessionId": REVIEW, "turnId": 1},
        themes=["login-tokens"],
    )
    assert first.startswith("saved memory/decisions/auth-cookie “Tokens live in a cookie”")
    assert second.startswith("unchanged: memory/decisions/auth-cookie")
    golden("recall", await demo.ask("recall", key="auth-cookie"), demo.store_root)
    assert await demo.ask("recall", key="memory/decisions/auth-cookie") == await demo.ask(
        "recall", key="auth-cookie"
    )
    assert "1 memories" in await demo.ask("list_themes", suggest=False)


async def test_remember_never_wipes_and_keeps_what_it_overwrites(demo: Asked) -> None:
    await demo.ask("remember", key="k", content="first", tags=["a"])
    assert "unchanged" in await demo.ask("remember", key="k")
    _, again = await twice(demo, "remember", key="k", content="second")
    assert again.startswith("unchanged")
    text = await demo.ask("recall", key="k")
    assert "second" in text and "tags: a" in text
    kept = [path for path in (demo.shop / ".history").rglob("*") if path.is_file()]
    assert any("first" in path.read_text(encoding="utf-8") for path in kept)
    await twice(demo, "remember", key="k", content="third", mode="append")
    assert "second\n\nthird" in await demo.ask("recall", key="k")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "key: missing"),
        ({"key": "  "}, "key: is empty"),
        ({"key": "new"}, "content"),
        ({"key": "../../x", "content": "x"}, "climbs"),
        ({"key": "x", "content": "x", "folder": "/etc"}, "absolute"),
        ({"key": "x", "content": "x", "folder": "themes"}, "kept by the store itself"),
        ({"key": "x", "content": "x", "mode": "merge"}, "create, replace, append"),
        ({"key": "taken", "content": "other", "mode": "create"}, "taken"),
        ({"key": "x", "content": "y" * 1_000_001}, "at most 1000000"),
    ],
)
async def test_remember_says_what_is_wrong(demo: Asked, arguments: dict[str, object], says: str) -> None:
    await demo.ask("remember", key="taken", content="there")
    before = files_of(demo.shop)
    assert says in await demo.fails("remember", **arguments)
    assert files_of(demo.shop) == before


async def test_recall_of_nothing_names_the_nearest(demo: Asked) -> None:
    await demo.ask("remember", key="端口冲突", content="use 3001")
    assert "use 3001" in await demo.ask("recall", key="端口冲突")
    text = await demo.fails("recall", key="端口冲")
    assert "Nearest: memory/端口冲突" in text
    assert "key: missing" in await demo.fails("recall")


async def test_a_long_memory_is_recalled_in_pages(demo: Asked) -> None:
    content = "\n".join(f"fact {number}" for number in range(20_000))
    await demo.ask("remember", key="long", content=content)
    text = await demo.ask("recall", key="long")
    cursor = text.rpartition("more: cursor ")[2].split()[0]
    assert "fact 0\n" in text and "fact 19999" not in text
    assert "fact 0\n" not in await demo.ask("recall", key="long", cursor=cursor)
    assert "cursor: " in await demo.fails("recall", key="long", cursor="5.abc")


async def test_an_edit_from_outside_is_seen_at_once(demo: Asked) -> None:
    await demo.ask("remember", key="k", content="old words")
    (demo.shop / "memory" / "k.md").write_text("---\ntitle: By hand\n---\nfresh words\n", encoding="utf-8")
    assert "fresh words" in await demo.ask("recall", key="k")
    assert "memory/k" in await demo.ask("search", query="fresh")
    assert "No memory matches" in await demo.ask("search", query="old")


async def test_a_secret_in_a_file_made_by_hand_is_not_shown(demo: Asked) -> None:
    secret = "ghp_" + "Z9y8X7w6V5u4T3s2R1q0P9o8N7m6L5k4J3h2"
    (demo.shop / "memory").mkdir(parents=True)
    (demo.shop / "memory" / "k.md").write_text(
        f"---\ntitle: token {secret}\n---\nuse {secret} here\n", "utf-8"
    )
    for tool, arguments in (
        ("recall", {"key": "k"}),
        ("recall_recent", {}),
        ("search", {"query": "use here"}),
        ("list", {}),
        ("organize_memories", {}),
        ("bootstrap_workspace", {}),
    ):
        assert secret not in await demo.ask(tool, **arguments), tool
    (row,) = (await demo.client.list_resources()).resources
    assert secret not in str(row)
    assert secret not in str(await demo.client.read_resource(str(row.uri)))


async def test_recent_memories_come_whole_and_bounded(demo: Asked) -> None:
    assert await demo.ask("recall_recent") == "No memory is saved yet."
    for number in range(30):
        await demo.ask("remember", key=f"m{number}", content=f"text {number} " * 2_000)
    text = await demo.ask("recall_recent", limit=30)
    assert "recall m3 for the rest" in text
    assert "limit" in await demo.fails("recall_recent", limit=51)


# --- search, list, tags ------------------------------------------------------------------------------------


async def test_memories_are_searched_and_listed(demo: Asked) -> None:
    await demo.ask("remember", key="a", folder="decisions/db", content="SQLite in WAL mode", tags=["db"])
    await demo.ask("remember", key="b", folder="knowledge", content="ports and firewalls", tags=["net", "DB"])
    assert "memory/decisions/db/a" in await demo.ask("search", query="sqlite", folder="decisions")
    assert "No memory matches" in await demo.ask("search", query="sqlite", folder="knowledge")
    assert "query: is empty" in await demo.fails("search", query=" ")
    assert (await demo.ask("list")).startswith("2 memories")
    assert "memory/knowledge/b" not in await demo.ask("list", folder="decisions")
    assert (await demo.ask("list", tag="db")).startswith("2 memories with tag db")
    assert "1 more: raise limit" in await demo.ask("list", limit=1)
    assert "No memory below memory/rules" in await demo.ask("list", folder="rules")
    assert "limit" in await demo.fails("list", limit=0)
    assert "net  1" in await demo.ask("list_tags")


async def test_an_empty_store_lists_nothing_and_writes_nothing(demo: Asked) -> None:
    assert await demo.ask("list") == "No memory."
    assert await demo.ask("list_tags") == "No tag is in use yet."
    assert "No memory matches" in await demo.ask("search", query="x")
    assert files_of(demo.store_root) == {}


# --- delete, move, archive, restore, sync ------------------------------------------------------------------


async def test_delete_and_restore(demo: Asked) -> None:
    await demo.ask("remember", key="k", content="x")
    first, second = await twice(demo, "delete", key="k")
    assert first.startswith("deleted memory/k") and second.startswith("already deleted: memory/k")
    assert "no memory 'k'" in await demo.fails("recall", key="k")
    first, second = await twice(demo, "restore_memory", key="k")
    assert first == "restored memory/k" and "nothing to restore" in second
    assert "no memory 'never'" in await demo.fails("delete", key="never")
    assert "no memory 'never'" in await demo.fails("restore_memory", key="never")


async def test_move_takes_the_theme_links_along(demo: Asked) -> None:
    await demo.ask("remember", key="k", content="x", themes=["t"])
    first, second = await twice(demo, "move", key="k", toFolder="decisions", newKey="kept")
    assert first.startswith("moved memory/k to memory/decisions/kept")
    assert second == "already at memory/decisions/kept"
    assert "memories: memory/decisions/kept" in await demo.ask("trace_theme", theme="t")
    await demo.ask("remember", key="other", content="y")
    assert "exists already" in await demo.fails("move", key="other", toFolder="decisions", newKey="kept")
    assert "toFolder: missing" in await demo.fails("move", key="kept")
    assert "no memory 'gone'" in await demo.fails("move", key="gone", toFolder="rules")


async def test_archive_keeps_but_ranks_last(demo: Asked) -> None:
    await demo.ask("remember", key="old", folder="decisions", content="use redis")
    await demo.ask("remember", key="new", folder="decisions", content="no redis")
    first, _ = await twice(demo, "archive_memory", key="old")
    assert first.startswith("moved memory/decisions/old to archive/decisions/old")
    hits = await demo.ask("search", query="redis")
    assert hits.index("memory/decisions/new") < hits.index("archive/decisions/old")
    assert "archive/" not in await demo.ask("organize_memories")
    assert "no memory 'none'" in await demo.fails("archive_memory", key="none")


async def test_the_index_is_synced_with_comments(demo: Asked) -> None:
    await demo.ask("remember", key="k", folder="rules", content="x")
    first, second = await twice(demo, "sync_workspace_index", folderComments={"memory/rules": "house rules"})
    assert "written anew" in first and "was right already" in second
    assert "rules/  # house rules" in await demo.ask("bootstrap_workspace")
    assert "not below memory/" in await demo.fails("sync_workspace_index", folderComments={"/etc": "x"})


# --- the essence -------------------------------------------------------------------------------------------


async def test_the_essence_is_written_in_two_steps(demo: Asked) -> None:
    await demo.ask("remember", key="auth", folder="decisions", content="HttpOnly cookie, not localStorage.")
    material = await demo.ask("organize_memories")
    assert "Rules for the essence" in material and "HttpOnly cookie, not localStorage." in material
    text = (
        "- Tokens in a cookie (memory/decisions/auth)\n- Answer in English\n- Ask first (memory/rules/none)"
    )
    first, second = await twice(demo, "organize_memories", content=text)
    assert (
        "3 facts, 2 cite a memory" in first and "Answer in English" in first and "memory/rules/none" in first
    )
    assert second.startswith("unchanged:")
    await demo.ask("organize_memories", content="- Only this (memory/decisions/auth)")
    assert any((demo.shop / ".history").rglob("*essence*"))
    assert "Only this" in await demo.ask("bootstrap_workspace")


async def test_an_essence_that_is_too_large_is_refused_with_what_to_cut(demo: Asked) -> None:
    text = await demo.fails("organize_memories", content="# Long\n" + "- fact\n" * 3_000)
    assert "15360 are kept: cut" in text and "“Long”" in text
    assert not (demo.shop / "essence").exists()


async def test_the_material_of_many_memories_is_paged_and_complete(demo: Asked) -> None:
    space = await demo.space()
    folder = space.layout.root / "memory" / "knowledge"
    folder.mkdir(parents=True)
    for number in range(2_000):
        (folder / f"fact-{number}.md").write_text(f"Fact {number}.\n", encoding="utf-8")
    first = await demo.ask("organize_memories")
    assert "2000 memories, page 1 of " in first and len(first) < 20_000
    pages = int(first.partition("page 1 of ")[2].split()[0])
    whole = "".join(
        [first, *[await demo.ask("organize_memories", page=page) for page in range(2, pages + 1)]]
    )
    assert all(f"memory/knowledge/fact-{number}" in whole for number in range(2_000))
    only = await demo.ask("organize_memories", sources=["memory/knowledge/fact-7"])
    assert "1 memories" in only and "Fact 7." in only
    assert "sources: none of" in await demo.fails("organize_memories", sources=["memory/none"])


# --- proposals ---------------------------------------------------------------------------------------------


async def test_proposals_come_from_the_sessions_and_wait_for_a_word(demo: Asked) -> None:
    text, _ = await twice(demo, "propose_memories")
    assert "登录令牌改存 HttpOnly cookie" in text and f"{REVIEW} turn 1" in text
    assert await demo.ask("list") == "No memory.", "nothing is remembered unconfirmed"
    rows = [line.split()[0] for line in text.splitlines() if "  memory/" in line]
    first, second = await twice(demo, "resolve_proposal", id=rows[0], action="accept")
    assert first.startswith("accepted: saved as memory/") and second.startswith("accepted already")
    first, _ = await twice(
        demo, "resolve_proposal", id=rows[1], action="edit", key="my-words", text="In my words."
    )
    assert "my-words" in first and "In my words." in await demo.ask("recall", key="my-words")
    first, _ = await twice(demo, "resolve_proposal", id=rows[2], action="reject")
    assert "does not come back" in first
    again = await demo.ask("propose_memories")
    assert not any(row in again for row in rows[:3])
    assert rows[2] in await demo.ask("propose_memories", status="rejected")
    assert rows[0] in await demo.ask("propose_memories", status="accepted")


async def test_an_accepted_proposal_names_its_source(demo: Asked) -> None:
    text = await demo.ask("propose_memories", limit=20)
    row = next(line.split()[0] for line in text.splitlines() if f"{REVIEW} turn 1" in line)
    await demo.ask("resolve_proposal", id=row, action="accept")
    memory = next((demo.shop / "memory").rglob("*.md")).read_text(encoding="utf-8")
    assert f"session: {REVIEW}" in memory and "confirmedBy: user" in memory


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"id": "abc", "action": "accept"}, "no proposal 'abc'"),
        ({"id": "../x", "action": "accept"}, "no proposal"),
        ({"id": "abc"}, "action: missing"),
        ({"action": "accept"}, "id: missing"),
        ({"id": "abc", "action": "maybe"}, "accept, edit, reject"),
        ({"id": "abc", "action": "edit"}, "edit needs what to change"),
    ],
)
async def test_resolve_says_what_is_wrong(demo: Asked, arguments: dict[str, str], says: str) -> None:
    assert says in await demo.fails("resolve_proposal", **arguments)
    assert "open, accepted, rejected" in await demo.fails("propose_memories", status="new")


async def test_resources_follow_every_write(tmp_path: Path) -> None:
    async with asked(demo_env(tmp_path)) as server:
        assert (await server.client.list_resources()).resources == []
        await server.ask("remember", key="k", folder="规则", content="x")
        (row,) = (await server.client.list_resources()).resources
        read = await server.client.read_resource(str(row.uri))
        assert "x" in read.contents[0].text  # type: ignore[union-attr]
