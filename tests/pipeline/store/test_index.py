import hashlib
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import BadInput
from pipeline.store import index
from pipeline.store.catalogue import Catalogue
from pipeline.store.memories import Memories

NOW = 1_780_000_000_000


@pytest.fixture
def memories(tmp_path: Path) -> Memories:
    return Memories(tmp_path, now=lambda: NOW, redact=str)


def put(root: Path, path: str, text: str = "text", mtime_ms: int = 1_750_000_000_123) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, encoding="utf-8")
    os.utime(root / path, ns=(mtime_ms * 1_000_000, mtime_ms * 1_000_000))


def stored(root: Path) -> dict[str, Any]:
    data = json.loads((root / "index.json").read_text(encoding="utf-8"))
    assert isinstance(data, dict)
    return data


def independent_hash(root: Path) -> str:
    """The digest as the format notes word it, written apart from the code under test."""
    items = []
    for top in ("memory", "notes", "essence"):
        for folder, names, file_names in os.walk(root / top):
            names[:] = [name for name in names if not name.startswith(".")]
            place = Path(folder).relative_to(root).as_posix()
            for name in file_names:
                if name.endswith(".md") and not name.startswith("."):
                    milliseconds = round((Path(folder) / name).stat().st_mtime_ns / 1_000_000)
                    moment = datetime.fromtimestamp(milliseconds // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
                    items.append(f"{place}/{name}:{moment}.{milliseconds % 1000:03d}Z")
            below = [
                path
                for path in Path(folder).rglob("*.md")
                if not any(part.startswith(".") for part in path.relative_to(folder).parts)
            ]
            if not below:
                items.append(f"{place}/")
    return hashlib.md5("\n".join(sorted(items)).encode()).hexdigest() if items else ""


def test_the_structure_hash_agrees_with_the_other_servers_rule(tmp_path: Path) -> None:
    assert index.structure_hash(tmp_path) == independent_hash(tmp_path) == ""
    (tmp_path / "memory/empty/deeper").mkdir(parents=True)
    put(tmp_path, "memory/decisions/登录.md")
    put(tmp_path, "memory/a.md", mtime_ms=1_750_000_000_000)
    put(tmp_path, "memory/a/b.md", mtime_ms=999)
    put(tmp_path, "memory/other.txt")
    put(tmp_path, "memory/.hidden/x.md")
    put(tmp_path, "essence/essence.md")
    put(tmp_path, "archive/old.md")
    (tmp_path / "notes").mkdir()
    assert index.structure_hash(tmp_path) == independent_hash(tmp_path)
    lines = (
        "essence/essence.md:2025-06-15T15:06:40.123Z\nmemory/a.md:2025-06-15T15:06:40.000Z\n"
        "memory/a/b.md:1970-01-01T00:00:00.999Z\nmemory/decisions/登录.md:2025-06-15T15:06:40.123Z\n"
        "memory/empty/\nmemory/empty/deeper/\nnotes/"
    )
    assert index.structure_hash(tmp_path) == hashlib.md5(lines.encode()).hexdigest()


def test_times_are_rounded_as_node_rounds_them(tmp_path: Path) -> None:
    put(tmp_path, "memory/x.md")
    os.utime(tmp_path / "memory/x.md", ns=(0, 1_700_000_000_999_600_000))
    line = "memory/x.md:2023-11-14T22:13:21.000Z"
    assert index.structure_hash(tmp_path) == hashlib.md5(line.encode()).hexdigest()


def test_a_write_adds_its_entry_and_folders_and_clears_the_hash(memories: Memories, tmp_path: Path) -> None:
    memories.index.sync()
    memories.remember("k", "# T", folder="decisions/auth", tags=["a"])
    assert stored(tmp_path) == {
        "version": "3-kv",
        "meta": {"lastSyncAt": "2026-05-28T20:26:40.000Z", "structureHash": None},
        "index": {
            "memory/decisions/auth/k.md": {"title": "T", "tags": ["a"]},
            "memory/decisions/auth/": {"comment": ""},
            "memory/decisions/": {"comment": ""},
            "memory/": {"comment": ""},
        },
    }
    memories.move("k", "memory/decisions/auth", "rules")
    entries = stored(tmp_path)["index"]
    assert "memory/rules/k.md" in entries and "memory/decisions/auth/k.md" not in entries
    memories.delete("k")
    assert not [path for path in stored(tmp_path)["index"] if path.endswith(".md")]


def test_a_sync_makes_the_index_equal_to_the_files_and_then_writes_nothing(
    memories: Memories, tmp_path: Path
) -> None:
    memories.remember("gone", "x")
    put(tmp_path, "memory/rules/by-hand.md", "---\ntitle: By hand\ntags: [x]\n---\n")
    put(tmp_path, "essence/essence.md", "---\ntitle: E\n---\n")
    (tmp_path / "memory/gone.md").unlink()
    found = memories.index.sync({"memory/rules": "what must hold", "memory": "all"})
    report = {
        "scannedFiles": 2,
        "addedEntries": 2,
        "removedEntries": 1,
        "updatedEntries": 0,
        "addedFolders": 2,
    }
    assert found["report"] == report and not found["skipped"]
    data = stored(tmp_path)
    assert data["meta"]["structureHash"] == index.structure_hash(tmp_path)
    assert data["index"] == {
        "memory/": {"comment": "all"},
        "memory/rules/": {"comment": "what must hold"},
        "memory/rules/by-hand.md": {"title": "By hand", "tags": ["x"]},
        "essence/": {"comment": ""},
        "essence/essence.md": {"title": "E", "tags": []},
    }
    before = (tmp_path / "index.json").stat().st_mtime_ns
    assert memories.index.sync()["skipped"]
    assert (tmp_path / "index.json").stat().st_mtime_ns == before
    assert memories.index.comments() == {"memory/": "all", "memory/rules/": "what must hold"}


@pytest.mark.parametrize("broken", [b"", b"{", b"[]", b'{"version":"9","index":{}}', b"\x00\xff"])
def test_a_lost_or_corrupt_index_is_made_again_and_its_bytes_are_kept(
    memories: Memories, tmp_path: Path, broken: bytes
) -> None:
    put(tmp_path, "memory/a.md", "# A")
    (tmp_path / "index.json").write_bytes(broken)
    assert memories.index.read()["index"]["memory/a.md"] == {"title": "A", "tags": []}
    memories.remember("b", "# B")
    assert {"memory/a.md", "memory/b.md"} <= stored(tmp_path)["index"].keys()
    kept = [path.read_bytes() for path in (tmp_path / ".history").glob("index-*.json")]
    assert kept == ([broken] if broken else [])


def test_unknown_fields_survive_a_write(memories: Memories, tmp_path: Path) -> None:
    put(tmp_path, "memory/a.md", "# A")
    entry = {"title": "old", "tags": [], "mine": 1}
    data = {"version": "3-kv", "meta": {"more": 2}, "index": {"memory/a.md": entry}, "top": 3}
    (tmp_path / "index.json").write_text(json.dumps(data), encoding="utf-8")
    memories.index.sync()
    found = stored(tmp_path)
    assert found["top"] == 3 and found["meta"]["more"] == 2
    assert found["index"]["memory/a.md"] == {"title": "A", "tags": [], "mine": 1}


PEER_MEMORY = """---
key: 'auth-flow'
title: 'Don''t keep tokens'
tags:
  - decision
  - scope: web
createdAt: '2026-06-20T10:00:00.000Z'
updatedAt: '2026-06-22T10:00:00.000Z'
---

# Auth

不得存储在前端。
"""


def test_a_store_of_the_other_server_opens_as_it_is(memories: Memories, tmp_path: Path) -> None:
    put(tmp_path, "memory/decisions/auth-flow.md", PEER_MEMORY)
    put(tmp_path, "notes/ops.md", "no frontmatter here")
    old = {
        "version": 1,
        "entries": {"1": {"folder": "memory/decisions", "key": "auth-flow", "title": "T", "tags": ["x"]}},
    }
    (tmp_path / "index.json").write_text(json.dumps(old), encoding="utf-8")
    found = memories.recall("auth-flow")
    assert (found["title"], found["tags"]) == ("Don't keep tokens", ["decision", "scope: web"])
    assert found["updatedAt"] == "2026-06-22T10:00:00.000Z"
    assert memories.index.read()["index"]["memory/decisions/auth-flow.md"] == {"title": "T", "tags": ["x"]}
    assert json.loads((tmp_path / "index.json").read_text(encoding="utf-8")) == old
    memories.index.sync()
    assert stored(tmp_path)["index"]["memory/decisions/auth-flow.md"]["title"] == "Don't keep tokens"
    assert [json.loads(path.read_bytes()) for path in (tmp_path / ".history").glob("index-*.json")] == [old]
    memories.remember("auth-flow", None, tags=["auth"], folder="memory/decisions")
    memories.remember("auth-flow", None, title="It's kept", folder="memory/decisions")
    assert memories.recall("auth-flow")["title"] == "It's kept"
    assert memories.recall("auth-flow")["content"] == "# Auth\n\n不得存储在前端。"


@pytest.mark.parametrize("folder", ["..", "/etc/..", "", "themes", "memory/../x"])
def test_comments_stay_inside_the_store(memories: Memories, folder: str) -> None:
    with pytest.raises(BadInput, match="folderComments"):
        memories.index.sync({folder: "x"})


def test_the_tree_shows_folders_comments_titles_and_the_newest(tmp_path: Path) -> None:
    put(tmp_path, "memory/decisions/auth.md", "# Auth", 1_000_000)
    put(tmp_path, "memory/rules/style.md", "text", 2_000_000)
    put(tmp_path, "memory/top.md", "# Top", 3_000_000)
    put(tmp_path, "notes/n.md", "text", 4_000_000)
    found = Catalogue(tmp_path).all()
    assert index.tree(found, {"memory/rules/": "must hold"}, newest=2) == (
        "memory/\n"
        "|-- decisions/\n"
        "|   `-- auth - Auth\n"
        "|-- rules/  # must hold\n"
        "|   `-- style\n"
        "`-- top - Top [new]\n"
        "notes/\n"
        "`-- n [new]"
    )
    assert index.tree((), {}) == ""
