from pathlib import Path

import pytest

from pipeline.errors import BadInput
from pipeline.store import essence, material
from pipeline.store.catalogue import Memory
from pipeline.store.essence import Essence, EssenceTooLarge
from pipeline.store.memories import Memories

NOW = 1_780_000_000_000


@pytest.fixture
def memories(tmp_path: Path) -> Memories:
    return Memories(tmp_path / "workspace-1", now=lambda: NOW, redact=str)


@pytest.fixture
def kept(memories: Memories) -> Essence:
    return Essence(
        memories.store, memories.index, now=lambda: NOW, redact=lambda text: text.replace("hunter2", "[x]")
    )


def test_an_essence_is_stored_indexed_and_its_previous_version_kept(
    kept: Essence, memories: Memories
) -> None:
    first = kept.write("# E\n\n- one hunter2", [])
    assert first["changed"] and first["previous"] is None and first["bytes"] == 14
    assert not kept.write("# E\n\n- one hunter2", [])["changed"]
    second = kept.write("# E\n\n- two", [])
    assert "- one [x]" in (memories.store / second["previous"]).read_text(encoding="utf-8")
    assert kept.read() == "# E\n\n- two"
    assert kept.path.read_text(encoding="utf-8").startswith(
        "---\nkey: essence\ntitle: Essence\ntags:\n  - essence\nupdatedAt: "
    )
    assert "essence/essence.md" in memories.index.read()["index"]


def test_an_essence_above_the_limit_is_refused_with_what_to_cut(kept: Essence) -> None:
    kept.write("- short", [])
    exact = "# A\n" + "x" * (essence.LIMIT - 4)
    assert kept.write(exact, [])["bytes"] == essence.LIMIT
    large = "# Small\n- x\n# 大\n" + "决" * 6000 + "\n# Middle\n" + "y" * 500
    with pytest.raises(EssenceTooLarge, match="at most 15360") as caught:
        kept.write(large, [])
    assert caught.value.size == len(large.encode())
    assert [heading for heading, _ in caught.value.sections] == ["大", "Middle", "Small"]
    assert "“大” 18007 bytes" in str(caught.value)
    assert kept.read() == exact


@pytest.mark.parametrize("content", ["", " \n", "---\nkey: x\n---\n"])
def test_an_essence_is_never_wiped(kept: Essence, content: str) -> None:
    kept.write("- fact", [])
    with pytest.raises(BadInput, match="empty"):
        kept.write(content, [])
    assert kept.read() == "- fact"


def test_fields_of_a_person_survive_and_broken_ones_are_kept_aside(kept: Essence) -> None:
    kept.path.parent.mkdir(parents=True)
    kept.path.write_text("---\nmine: 1  # why\ntitle: Ours\n---\nold", encoding="utf-8")
    kept.write("- new", [])
    assert "mine: 1  # why\ntitle: Ours\n" in kept.path.read_text(encoding="utf-8")
    kept.path.write_text("---\na: b: c\n---\nbroken", encoding="utf-8")
    kept.write("- newer", [])
    assert kept.read() == "- newer"
    assert kept.previous()[0].read_text(encoding="utf-8").endswith("broken")


TEXT = """\
# 精要

The team's rules:

- no tokens in the browser (memory/decisions/auth)
- 中文回复（memory/rules/语言、notes/tone.md）
- nobody says where this is from

> 来源：memory/rules/listed

A paragraph without any source,
over two lines.

Another one.
> Source: memory/gone/missing

1. numbered
   - child of a sourced parent: see [memory/rules/nothing]

```
- not a fact
```
"""


def test_facts_are_matched_with_their_citations() -> None:
    known = [
        "memory/decisions/auth",
        "memory/rules/语言",
        "notes/tone",
        "memory/rules/listed",
        "archive/gone/missing",
    ]
    found = essence.check(TEXT, known)
    assert found["facts"] == 7
    assert [flag["line"] for flag in found["uncited"]] == [11, 17]
    assert found["uncited"][0]["text"] == "A paragraph without any source, over two lines."
    assert found["dangling"] == [
        {"line": 14, "cites": "memory/gone/missing", "archived": True},
        {"line": 18, "cites": "memory/rules/nothing", "archived": False},
    ]


def test_a_folder_named_in_passing_is_no_citation() -> None:
    assert essence.citations("Decisions lie in memory/decisions, rules in memory/rules/x") == ()
    assert essence.citations("x > 来源: memory/a/b.md, memory/c。") == ("memory/a/b", "memory/c")


def test_three_levels_are_read_as_they_are_now(kept: Essence, tmp_path: Path) -> None:
    project = tmp_path / "project"
    for path, text in (
        (tmp_path / "global/essence/essence.md", "---\nkey: essence\n---\n# G\n\n- always\n\n- shared"),
        (project / ".kimi-code/memory/essence.md", "- shared"),
    ):
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    kept.write("- workspace fact", [])
    store = kept.path.parent.parent
    found = essence.levels(store, project=project)
    assert [level.name for level in found] == ["global", "workspace", "project"]
    assert essence.merged(found) == (
        "[essence: global]\n# G\n\n- always\n\n"
        "[essence: workspace]\n- workspace fact\n\n[essence: project]\n- shared"
    )
    (project / ".kimi-code/memory/essence.md").write_text("- edited", encoding="utf-8")
    assert "- edited" in essence.merged(essence.levels(store, project=project))
    assert essence.merged(essence.levels(tmp_path / "none", store_root=tmp_path / "nowhere")) == ""


def test_an_essence_edited_above_the_limit_is_shown_cut(kept: Essence) -> None:
    kept.path.parent.mkdir(parents=True)
    kept.path.write_text("决" * 10_000, encoding="utf-8")
    (level,) = essence.levels(kept.path.parent.parent)
    assert level.size == 30_000 and len(level.text.encode()) < essence.LIMIT + 40 and "(cut at" in level.text


def memory(
    key: str, folder: str = "memory/knowledge", body: str = "Body.", days: int = 10, pinned: bool = False
) -> Memory:
    at = NOW - days * material.DAY_MS
    return Memory(
        path=f"{folder}/{key}.md",
        folder=folder,
        key=key,
        title=f"Title of {key}",
        tags=(),
        created_at="2026-01-01",
        updated_at="2026-01-01",
        changed_at=at,
        body=body,
        size=1,
        stamp=(0, 0, 0, 0),
        pinned=pinned,
    )


def test_the_material_is_ordered_by_pins_folders_use_age_and_links() -> None:
    plain = memory("plain")
    others = [
        memory("pinned", "notes", pinned=True),
        memory("rule", "memory/rules"),
        memory("used"),
        memory("linked"),
        memory("old", days=1000),
        memory("gone", "archive/rules"),
    ]
    scored = material.score(
        [plain, *others], now=NOW, uses={"memory/knowledge/used": 30}, links={"memory/knowledge/linked": 1}
    )
    assert [one.memory.key for one in scored] == ["pinned", "used", "rule", "linked", "plain", "old"]
    assert scored[0].score == pytest.approx(sum(scored[0].parts.values()))


def test_two_thousand_memories_fit_bounded_pages_and_each_is_named_once() -> None:
    many = [memory(f"m{number}", body=f"First sentence {number}.\n" + "x" * number) for number in range(2000)]
    scored = material.score(many, now=NOW, uses={}, links={})
    first = material.material(scored, "- present")
    pages = [material.material(scored, "", page=page + 1) for page in range(first["pages"])]
    assert all(len(page["material"]) <= material.PAGE_CHARS for page in pages)
    named = "\n".join(page["material"] for page in pages)
    assert all(f"memory/knowledge/m{number}:" in named for number in range(2000))
    assert (
        first["tiers"]["full"] >= 5
        and first["tiers"]["summary"] >= 10
        and sum(first["tiers"].values()) == 2000
    )
    assert "at most 15360 bytes" in first["rules"].lower() and first["essence"] == "- present"
    assert "rules" not in pages[1]
    assert material.material(scored, "", page=99)["page"] == first["pages"]


def test_the_rules_come_in_the_language_of_the_memories() -> None:
    chinese = material.score(
        [memory("决策", body="前端不得存储令牌，所有请求经过网关。" * 5)], now=NOW, uses={}, links={}
    )
    assert "写作规则" in material.material(chinese, "")["rules"]
    assert "Rules" in material.material(chinese, "", language="en")["rules"]
    assert material.material([], "")["material"] == ""


def test_uses_are_counted_beside_the_store_and_may_be_lost(tmp_path: Path) -> None:
    usage = material.Usage(tmp_path, lambda: NOW)
    usage.record(["memory/a", "memory/b"])
    usage.record(["memory/a"])
    assert usage.counts() == {"memory/a": 2, "memory/b": 1}
    (tmp_path / material.USAGE_PATH).write_bytes(b"{torn")
    assert usage.counts() == {}
    usage.record(["memory/a"])
    assert usage.counts() == {"memory/a": 1}
