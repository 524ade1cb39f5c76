import itertools
import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import BadInput, PipelineError
from pipeline.store import files, memory_edit, memory_file
from pipeline.store.index import structure_hash
from pipeline.store.memories import CONTENT_LIMIT, Memories

SPAWN = multiprocessing.get_context("spawn")
START = 1_780_000_000_000


def ticking() -> Callable[[], int]:
    ticks = itertools.count(START, 1000)
    return lambda: next(ticks)


class Links:
    """Records what the themes are told."""

    def __init__(self) -> None:
        self.linked: list[tuple[str, ...]] = []
        self.followed: list[tuple[object, ...]] = []

    def link(self, theme: str, folder: str, key: str, title: str) -> None:
        self.linked.append((theme, folder, key, title))

    def follow(self, old: tuple[str, str], new: tuple[str, str], title: str) -> None:
        self.followed.append((old, new, title))


@pytest.fixture
def links() -> Links:
    return Links()


@pytest.fixture
def memories(tmp_path: Path, links: Links) -> Memories:
    return Memories(
        tmp_path, now=ticking(), redact=lambda text: text.replace("hunter2", "[secret]"), links=links
    )


def snapshot(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and files.LOCK_DIR not in path.parts
    }


def test_a_memory_is_a_readable_file_with_its_source(memories: Memories, tmp_path: Path) -> None:
    found = memories.remember(
        "登录 流程",
        "# Login\n\nNo refresh token in the browser.",
        folder="decisions",
        tags=["auth", "#decision", "Auth"],
        source={"sessionId": "session_1", "turnId": 12, "tool": "remember", "confirmedBy": "user"},
    )
    assert (found["created"], found["folder"], found["key"]) == (True, "memory/decisions", "登录_流程")
    assert (tmp_path / "memory/decisions/登录_流程.md").read_text(encoding="utf-8") == (
        "---\nkey: 登录_流程\ntitle: Login\ntags:\n  - auth\n  - decision\n"
        "createdAt: '2026-05-28T20:26:40.000Z'\nupdatedAt: '2026-05-28T20:26:40.000Z'\n"
        "source:\n  session: session_1\n  turn: 12\n  tool: remember\n  confirmedBy: user\n"
        "---\n\n# Login\n\nNo refresh token in the browser.\n"
    )
    recalled = memories.recall("登录 流程")
    assert recalled["source"]["confirmedBy"] == "user"
    assert recalled["content"].endswith("in the browser.")


@pytest.mark.parametrize("mode", ["create", "replace", "append"])
def test_the_same_call_twice_changes_nothing(
    memories: Memories, tmp_path: Path, mode: memory_edit.Mode
) -> None:
    def call() -> dict[str, Any]:
        return memories.remember("k", "text", tags=["a"], title="T", mode=mode, source={"turnId": 1})

    assert call()["changed"]
    before = snapshot(tmp_path)
    assert not call()["changed"]
    assert snapshot(tmp_path) == before


def test_a_resent_append_adds_nothing_even_after_another_append(memories: Memories) -> None:
    memories.remember("k", "one")
    memories.remember("k", "two", mode="append", tags=["x"])
    memories.remember("k", "three", mode="append")
    assert not memories.remember("k", "two", mode="append", tags=["x"])["changed"]
    assert memories.recall("k")["content"] == "one\n\ntwo\n\nthree"


@pytest.mark.parametrize("content", [None, "", "  \n "])
@pytest.mark.parametrize("mode", ["replace", "append"])
def test_a_call_without_content_never_wipes(
    memories: Memories, content: str | None, mode: memory_edit.Mode
) -> None:
    memories.remember("k", "precious", tags=["a"])
    memories.remember("k", content, tags=["b"], title="New", mode=mode)
    found = memories.recall("k")
    assert (found["content"], found["title"]) == ("precious", "New")
    memories.remember("k", content, tags=[], mode=mode)
    assert "b" in memories.recall("k")["tags"]
    with pytest.raises(BadInput, match="content is missing"):
        memories.remember("new", content, mode=mode)


def test_overwriting_keeps_the_previous_version(memories: Memories, tmp_path: Path) -> None:
    memories.remember("k", "first")
    found = memories.remember("k", "second")
    assert "first" in (tmp_path / found["previous"]).read_text(encoding="utf-8")
    memories.remember("k", "third")
    texts = [
        memory_file.parse(path.read_text(encoding="utf-8")).body
        for path in memories.versions.of("memory/k.md")
    ]
    assert texts == ["second", "first"]


def test_create_refuses_a_key_that_says_something_else(memories: Memories) -> None:
    memories.remember("k", "text")
    with pytest.raises(BadInput, match=r"memory/k\.md exists already"):
        memories.remember("K", "other", mode="create")
    with pytest.raises(BadInput, match="create, replace, append"):
        memories.remember("k", "x", mode="merge")  # type: ignore[arg-type]


def test_secrets_are_redacted_in_every_field_and_recalled_text_is_left_out(
    memories: Memories, tmp_path: Path
) -> None:
    fenced = "kept\n\n<recalled-memory note='x'>\nold\n</recalled-memory>\n\nhunter2"
    memories.remember(
        "key hunter2", fenced, title="hunter2", tags=["hunter2"], source={"tool": "hunter2"}, folder="notes"
    )
    written = b"".join(snapshot(tmp_path).values())
    assert b"hunter2" not in written and b"old" not in written and b"kept" in written
    assert not any("hunter2" in name for name in snapshot(tmp_path))


def test_too_much_content_is_refused(memories: Memories) -> None:
    with pytest.raises(BadInput, match="at most"):
        memories.remember("k", "x" * (CONTENT_LIMIT + 1))


def test_keys_that_differ_in_case_are_one_memory(memories: Memories, tmp_path: Path) -> None:
    memories.remember("Auth", "one", folder="Decisions")
    memories.remember("AUTH", "two", folder="decisions")
    assert [path.name for path in tmp_path.rglob("*.md") if ".history" not in path.parts] == ["Auth.md"]
    assert memories.recall("auth", "decisions")["content"] == "two"


@pytest.mark.parametrize(
    ("key", "folder"),
    [("../x", None), ("x", "memory/../../x"), ("x", "/etc"), ("..", None), ("x", "essence"), ("x\0", None)],
)
def test_traversal_is_refused_by_every_method(memories: Memories, key: str, folder: str | None) -> None:
    for call in (
        lambda: memories.remember(key, "x", folder=folder),
        lambda: memories.recall(key, folder),
        lambda: memories.delete(key, folder),
        lambda: memories.restore(key, folder),
        lambda: memories.archive(key, folder),
        lambda: memories.move(key, folder, "notes"),
        lambda: memories.erase(key, folder),
    ):
        with pytest.raises(BadInput):
            call()


def test_a_linked_folder_does_not_lead_out_of_the_store(memories: Memories, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (outside / "secret.md").write_text("outside", encoding="utf-8")
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory/link").symlink_to(outside)
    (tmp_path / "memory/direct.md").symlink_to(outside / "secret.md")
    assert memories.all() == ()
    assert not memories.recall("direct")["found"]
    with pytest.raises(BadInput, match="leads out"):
        memories.remember("x", "x", folder="link")
    memories.remember("direct", "ours")
    assert (outside / "secret.md").read_text(encoding="utf-8") == "outside"


def test_an_edit_from_outside_is_seen_at_the_next_call(memories: Memories, tmp_path: Path) -> None:
    memories.remember("k", "alpha")
    path = tmp_path / "memory/k.md"
    for word in ("gamma", "delta", "omega"):  # same size, perhaps within one tick of the clock
        with path.open("r+", encoding="utf-8") as file:
            text = file.read()
            file.seek(0)
            file.write(text[:-6] + word + "\n")
        assert memories.recall("k")["content"] == word
        assert memories.search(word)["total"] == 1
    path.unlink()
    assert not memories.recall("k")["found"]
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/by hand.md").write_text("# Made by hand\n\nfresh thought", encoding="utf-8")
    assert memories.recall("by hand")["title"] == "Made by hand"
    assert memories.search("fresh")["items"][0]["key"] == "by hand"


def test_a_broken_file_is_listed_with_its_line_and_never_rewritten(
    memories: Memories, tmp_path: Path
) -> None:
    path = tmp_path / "memory/broken.md"
    path.parent.mkdir()
    path.write_text("---\ntitle: a: b\nmine: [1\n---\nthe body\n", encoding="utf-8")
    before = path.read_bytes()
    assert memories.list()["items"][0]["problem"].startswith("memory/broken.md:2:")
    assert memories.recall("broken")["content"] == "the body"
    assert memories.search("body")["total"] == 1
    modes: tuple[memory_edit.Mode, ...] = ("replace", "append", "create")
    for mode in modes:
        with pytest.raises(BadInput, match=r"memory/broken\.md: the frontmatter is broken at line 2"):
            memories.remember("broken", "new", mode=mode)
    assert path.read_bytes() == before
    memories.move("broken", None, "notes", "mended")
    assert (tmp_path / "notes/mended.md").read_bytes() == before


def test_a_file_that_is_not_utf8_is_read_but_not_rewritten(memories: Memories, tmp_path: Path) -> None:
    path = tmp_path / "memory/latin.md"
    path.parent.mkdir()
    path.write_bytes(b"# Caf\xe9\n")
    assert memories.list()["total"] == 1
    with pytest.raises(BadInput, match=r"latin\.md:1: not UTF-8"):
        memories.remember("latin", "x")


def test_unknown_fields_comments_and_line_ends_survive_a_write(memories: Memories, tmp_path: Path) -> None:
    path = tmp_path / "memory/k.md"
    path.parent.mkdir()
    text = "\ufeff---\r\n# note\r\ntitle: T\r\nmine: {a: 1}  # keep\r\n---\r\n\r\nold\r\n"
    path.write_bytes(text.encode())
    memories.remember("k", "new", tags=["x"])
    written = path.read_bytes().decode()
    assert written.startswith("\ufeff---\r\n# note\r\ntitle: T\r\nmine: {a: 1}  # keep\r\n")
    assert written.endswith("---\r\n\r\nnew\r\n") and "\n" not in written.replace("\r\n", "")


def test_a_deleted_memory_can_be_restored(memories: Memories, tmp_path: Path) -> None:
    memories.remember("k", "text", folder="decisions")
    before = snapshot(tmp_path)["memory/decisions/k.md"]
    assert memories.delete("k") == memories.delete("k") | {"deleted": True}
    assert memories.list()["total"] == 0 and not memories.recall("k")["found"]
    assert memories.restore("k")["restored"] and not memories.restore("k")["restored"]
    assert snapshot(tmp_path)["memory/decisions/k.md"] == before
    missing = memories.delete("kk")
    assert not missing["success"] and missing["nearest"][0] == {"key": "k", "folder": "memory/decisions"}


def test_restoring_does_not_overwrite_a_newer_memory(memories: Memories) -> None:
    memories.remember("k", "old")
    memories.delete("k")
    memories.remember("k", "new")
    with pytest.raises(BadInput, match="exists again"):
        memories.restore("k")
    assert memories.recall("k")["content"] == "new"


def test_a_move_takes_links_history_and_key_along(memories: Memories, links: Links, tmp_path: Path) -> None:
    memories.remember("old", "one", themes=["登录"])
    memories.remember("old", "two")
    assert links.linked == [("登录", "memory", "old", "old")]
    moved = memories.move("old", "memory", "decisions", "new key")
    assert (moved["moved"], moved["toFolder"], moved["newKey"]) == (True, "memory/decisions", "new_key")
    again = memories.move("old", "memory", "decisions", "new key")
    assert again["success"] and not again["moved"]
    assert links.followed == [(("memory", "old"), ("memory/decisions", "new_key"), "old")]
    assert not (tmp_path / "memory/old.md").exists()
    assert "key: new_key" in (tmp_path / "memory/decisions/new_key.md").read_text(encoding="utf-8")
    assert len(memories.versions.of("memory/decisions/new_key.md")) == 1


def test_a_move_does_not_overwrite_and_may_change_case_alone(memories: Memories) -> None:
    memories.remember("a", "one")
    memories.remember("b", "two")
    with pytest.raises(BadInput, match="exists already"):
        memories.move("a", "memory", "memory", "b")
    assert memories.move("a", "memory", "memory", "A")["newKey"] == "A"
    assert [one.key for one in memories.all()] == ["A", "b"]
    assert memories.recall("A")["content"] == "one"


def test_an_interrupted_move_is_finished_by_the_next_call(memories: Memories, tmp_path: Path) -> None:
    memories.remember("k", "text")
    copy = tmp_path / "memory/rules/k.md"
    files.write_bytes(copy, (tmp_path / "memory/k.md").read_bytes())
    assert memories.move("k", "memory", "rules")["moved"]
    assert [one.path for one in memories.all()] == ["memory/rules/k.md"]


def test_a_resent_call_never_takes_a_namesake_in_another_folder(memories: Memories) -> None:
    for folder in ("memory", "rules", "notes"):
        memories.remember("k", f"in {folder}", folder=folder)
    for given in (None, "memory"):
        assert memories.delete("k", given)["folder"] == "memory"
    assert [one.path for one in memories.all()] == ["memory/rules/k.md", "notes/k.md"]
    memories.remember("k", "again")
    for moved in (True, False):
        assert memories.move("k", "memory", "decisions")["moved"] is moved
    memories.remember("k", "once more")
    for moved in (True, False):
        assert memories.archive("k", "memory")["moved"] is moved
    assert memories.recall("k", "rules")["content"] == "in rules"


def test_a_resent_restore_leaves_older_deletions_in_the_history(memories: Memories) -> None:
    for content in ("first", "second"):
        memories.remember("k", content)
        memories.delete("k")
    assert memories.restore("k")["restored"]
    assert not memories.restore("k")["restored"]
    assert memories.recall("k")["content"] == "second"
    assert b"first" in memories.versions.of("memory/k.md")[0].read_bytes()


def test_links_are_not_moved_when_the_move_is_refused(memories: Memories, links: Links) -> None:
    memories.remember("a", "one")
    memories.remember("b", "two")
    with pytest.raises(BadInput, match="exists already"):
        memories.move("a", "memory", new_key="b")
    assert links.followed == []


def test_an_archived_memory_is_kept_and_ranked_last(memories: Memories) -> None:
    memories.remember(
        "strong", "postgres postgres postgres", title="Postgres", folder="decisions", tags=["postgres"]
    )
    memories.remember("weak", "a long text that names postgres once among many other words")
    assert memories.search("postgres")["items"][0]["key"] == "strong"
    assert memories.archive("strong")["toFolder"] == "archive/decisions"
    assert not memories.archive("strong")["moved"]
    assert [item["key"] for item in memories.search("postgres")["items"]] == ["weak", "strong"]
    assert [item["key"] for item in memories.list()["items"]] == ["weak", "strong"]
    assert [item["key"] for item in memories.recall_recent()["items"]] == ["weak"]


def test_search_finds_words_of_any_language_in_title_tags_key_and_body(memories: Memories) -> None:
    memories.remember("persist", "We keep everything in SQLite.", title="数据库选型", tags=["持久化"])
    memories.remember(
        "auth-flow", "listenPort is 3001 in src/mcp/server.ts", folder="decisions/登录", tags=["auth"]
    )
    memories.remember("noise", "unrelated words about lunch")
    for query, key in (
        ("数据库", "persist"),
        ("持久化 方案", "persist"),
        ("sqlite stores", "persist"),
        ("库", "persist"),
        ("the listen port", "auth-flow"),
        ("server.ts", "auth-flow"),
        ("AUTH", "auth-flow"),
    ):
        assert memories.search(query)["items"][0]["key"] == key, query
    assert memories.search("zebra")["total"] == 0
    with pytest.raises(BadInput, match="query is empty"):
        memories.search(" ")


def test_a_folder_filter_reaches_its_sub_folders(memories: Memories) -> None:
    memories.remember("deep", "tokens", folder="decisions/auth/web")
    memories.remember("other", "tokens", folder="decisions-old")
    assert [item["key"] for item in memories.search("tokens", "memory/decisions")["items"]] == ["deep"]
    assert [item["key"] for item in memories.list("decisions")["items"]] == ["deep"]
    assert memories.recall("deep", "decisions")["found"]


def test_snippets_show_the_lines_that_match(memories: Memories) -> None:
    memories.remember("k", "intro\n\n" + "x " * 300 + "the needle here " + "y " * 300 + "\n\nend")
    (snippet,) = memories.search("needle")["items"][0]["matches"]
    assert "needle" in snippet and len(snippet) <= 210 and snippet.startswith("…")


def test_tags_are_counted_and_match_in_any_case(memories: Memories) -> None:
    memories.remember("a", "x", tags=["Auth", "db"])
    memories.remember("b", "x", tags=["auth"])
    memories.remember("c", "x", tags=["auth"])
    assert memories.list_tags() == {"tags": ["auth", "db"], "counts": {"auth": 3, "db": 1}}
    assert {item["key"] for item in memories.list(tag="AUTH")["items"]} == {"a", "b", "c"}
    assert [item["key"] for item in memories.list(limit=1)["items"]] == ["c"]
    assert memories.list(limit=1)["total"] == 3


def test_a_key_in_several_folders_is_named_before_a_write_hits_the_wrong_one(memories: Memories) -> None:
    memories.remember("k", "one", folder="rules")
    memories.remember("k", "two", folder="decisions")
    with pytest.raises(BadInput, match="memory/decisions, memory/rules"):
        memories.delete("k")
    assert memories.recall("k", "rules")["content"] == "one"
    assert memories.recall("memory/rules/k")["content"] == "one"


def test_erasing_leaves_no_trace(memories: Memories, tmp_path: Path) -> None:
    memories.remember("k", "needle one")
    memories.remember("k", "needle two")
    memories.delete("k")
    memories.remember("k", "needle three")
    assert memories.erase("k") == 3
    assert not any(b"needle" in data for data in snapshot(tmp_path).values())


def test_reading_writes_nothing(memories: Memories, tmp_path: Path) -> None:
    memories.remember("k", "text")
    before = snapshot(tmp_path)
    for folder in (None, "memory"):
        memories.recall("k", folder)
        memories.search("text", folder)
        memories.list(folder)
    memories.list_tags()
    memories.recall_recent()
    memories.index.read()
    assert snapshot(tmp_path) == before


def test_a_read_only_store_still_answers_and_says_why_it_cannot_write(
    memories: Memories, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memories.remember("k", "text")

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "open", refuse)
    assert memories.recall("k")["content"] == "text"
    assert memories.search("text")["total"] == 1
    with pytest.raises(PipelineError, match="read-only"):
        memories.remember("k", "other")


def test_two_thousand_memories_answer_within_the_budget(tmp_path: Path) -> None:
    for number in range(2000):
        path = tmp_path / f"memory/f{number % 7}/m{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        words = " ".join(f"word{(number * step) % 997}" for step in range(1, 120))
        path.write_text(f"---\ntitle: T{number}\ntags: [t{number % 50}]\n---\n{words}\n", encoding="utf-8")
    memories = Memories(tmp_path, now=ticking(), redact=str)
    memories.search("word17 word4 t3")
    took = []
    for _ in range(9):
        started = time.process_time()  # not the time that other processes take
        assert memories.search("word17 word4 t3")["items"]
        took.append(time.process_time() - started)
    assert min(took) < 0.060


def _write_many(root: Path, writer: int) -> None:
    memories = Memories(root, now=lambda: START + writer, redact=str)
    for number in range(50):
        memories.remember(
            f"m{writer}-{number}", f"text {writer} {number}", tags=[f"w{writer}"], folder="busy"
        )
        memories.remember("shared", f"line {writer} {number}", mode="append")


def test_eight_processes_lose_nothing_and_the_index_equals_the_files(tmp_path: Path) -> None:
    processes = [SPAWN.Process(target=_write_many, args=(tmp_path, writer)) for writer in range(8)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * 8
    memories = Memories(tmp_path, now=ticking(), redact=str)
    assert len(memories.all()) == 401
    lines = memories.recall("shared")["content"].split("\n\n")
    assert sorted(lines) == sorted(f"line {writer} {number}" for writer in range(8) for number in range(50))
    entries = memories.index.read()["index"]
    expected = {one.path: {"title": one.title, "tags": list(one.tags)} for one in memories.all()}
    assert {path: entry for path, entry in entries.items() if path.endswith(".md")} == expected
    assert memories.index.sync()["structureHash"] == structure_hash(tmp_path)
    assert not list(tmp_path.rglob(f"{files.TEMP_PREFIX}*"))


def _write_for_ever(root: Path) -> None:
    memories = Memories(root, now=ticking(), redact=str)
    for number in itertools.count():
        memories.remember("k", f"{number} " + "x" * 50_000)


def test_a_kill_in_the_middle_of_writes_tears_nothing_and_holds_no_lock(tmp_path: Path) -> None:
    for _ in range(3):
        process = SPAWN.Process(target=_write_for_ever, args=(tmp_path,))
        process.start()
        deadline = time.monotonic() + 30
        while len(list(tmp_path.glob(".history/memory/k/*.md"))) < 5 and time.monotonic() < deadline:
            process.join(0.02)
        process.kill()
        process.join(30)
        memories = Memories(tmp_path, now=ticking(), redact=str)
        for path in tmp_path.rglob("*.md"):
            file = memory_file.parse(path.read_text(encoding="utf-8"))
            assert file.problem is None and file.body.endswith("x" * 50_000)
        assert memories.remember("k", "after the kill")["changed"]
        memories.erase("k")
