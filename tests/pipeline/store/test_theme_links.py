import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.store.memories import Memories
from pipeline.store.theme_links import StoredThemeLinks
from pipeline.store.themes import ThemeStore

NOW = 1_780_000_000_000


@pytest.fixture
def links(tmp_path: Path) -> StoredThemeLinks:
    return StoredThemeLinks(ThemeStore(tmp_path), lambda: NOW)


@pytest.fixture
def memories(tmp_path: Path, links: StoredThemeLinks) -> Memories:
    return Memories(tmp_path, now=lambda: NOW, redact=str, links=links)


def linked(root: Path, theme: str) -> list[dict[str, Any]]:
    data = json.loads((root / f"themes/{theme}.json").read_text(encoding="utf-8"))
    return [{name: one[name] for name in ("key", "folder", "title")} for one in data["memories"]]


def test_remembering_with_themes_links_them_once(memories: Memories, tmp_path: Path) -> None:
    for _ in range(2):
        memories.remember("auth", "# Auth", folder="decisions", themes=["登录", "web"])
    for theme in ("登录", "web"):
        assert linked(tmp_path, theme) == [{"key": "auth", "folder": "memory/decisions", "title": "Auth"}]


def test_links_follow_a_move_and_an_archiving(
    memories: Memories, links: StoredThemeLinks, tmp_path: Path
) -> None:
    memories.remember("auth", "# Auth", themes=["web"])
    memories.remember("other", "# Other", themes=["web"])
    memories.move("auth", "memory", "decisions", "login")
    assert {"key": "login", "folder": "memory/decisions", "title": "Auth"} in linked(tmp_path, "web")
    memories.archive("login")
    memories.archive("login")
    assert [(one["folder"], one["key"]) for one in linked(tmp_path, "web")] == [
        ("archive/decisions", "login"),
        ("memory", "other"),
    ]
    assert links.counts() == {"archive/decisions/login": 1, "memory/other": 1}
