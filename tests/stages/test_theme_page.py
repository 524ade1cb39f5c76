"""The generated page: one golden page, its language, its honesty, and what happens when a person edits it."""

from __future__ import annotations

from datetime import timedelta, timezone
from pathlib import Path

import pytest

from stages.aggregate import Curation, aggregate
from stages.model import Fact, RefinedTurn, Theme
from stages.theme_page import Memory, edited, is_generated, marked, page
from tests.stages.dialogues import Said, session

GOLDEN = Path(__file__).with_name("theme_page_golden.md")


def turns() -> list[RefinedTurn]:
    return [
        *session(
            "s-werewolf",
            [
                Said(
                    "context is lost in every new session, save_context is never called",
                    "Context saved by save_context was lost whenever the agent forgot to call it.",
                    ("src/context/save.ts",),
                    facts=(Fact("next", "The test of save_context on Windows never ran.", "text"),),
                ),
                Said(
                    "then stop saving by hand and parse wire.jsonl",
                    "Context is read from wire.jsonl now; save_context is gone.",
                    ("src/context/wire.ts", "src/context/save.ts"),
                    decided="Stop saving by hand; parse wire.jsonl instead, because it is written anyway.",
                ),
                Said("commit it", "Committed as 4f2a."),
            ],
            title="狼人杀法官",
        ),
        *session(
            "s-cwd",
            [
                Said("make the sidebar narrower", "The sidebar is 220 px wide.", ("web/sidebar.css",)),
                Said(
                    "the context from wire.jsonl is read twice",
                    "wire.jsonl was parsed once a window; the parsed context is cached by inode.",
                    ("src/context/wire.ts",),
                    decided="Parse wire.jsonl once and keep the context by inode and offset.",
                    facts=(Fact("next", "Drop the cache when the inode changes.", "text"),),
                ),
                Said(
                    "yes, do that",
                    "The cache is dropped when the inode changes.",
                    ("src/context/wire.ts",),
                    facts=(Fact("result", "12 tests pass.", "tool call_1"),),
                ),
            ],
            day=9,
            title="2026-01-10_08-00-00Z-kimi-web-cwd",
        ),
    ]


def theme() -> Theme:
    return aggregate("memory-evolution", ["wire.jsonl", "save_context"], turns())


def test_golden_page() -> None:
    text = marked(
        page(
            theme(),
            turns(),
            memories=[Memory("decisions", "parse-wire-not-save")],
            pinned=frozenset({("s-werewolf", "main", 1)}),
        )
    )
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_chinese_theme_speaks_chinese() -> None:
    found = session(
        "s",
        [
            Said(
                "端口 3000 被占用，第二个窗口起不来",
                "监听端口写死为 3000，第二个服务报 EADDRINUSE。",
                ("src/server.ts",),
            ),
            Said(
                "退到 3001，不要杀旧进程",
                "端口被占用时退到 3001。",
                ("src/server.ts",),
                "端口被占用时退到 3001，不再杀旧进程。",
            ),
        ],
        title="两个窗口",
    )
    text = page(aggregate("端口冲突", ["端口", "EADDRINUSE"], found), found)
    assert "1 个会话，2 轮，2026年1月1日 · 关键词：端口，EADDRINUSE" in text
    assert "## 1月1日 — 会话“两个窗口” (第 0–1 轮)" in text
    assert "- **决定**：端口被占用时退到 3001，不再杀旧进程。 *(1)*" in text
    assert "文件：`src/server.ts` (2)" in text


def test_days_are_those_of_the_zone() -> None:
    shanghai = timezone(timedelta(hours=-8))
    assert "31 December 2025 – 9 January 2026" in page(theme(), turns(), zone=shanghai)


def test_open_ends_stay_until_something_takes_them_up() -> None:
    text = page(theme(), turns())
    assert "Open: The test of save_context on Windows never ran. *(turn 0)*" in text
    assert "Drop the cache" not in text.rpartition("Open:")[2]


def test_later_decision_is_listed_as_later() -> None:
    first = next(
        line for line in page(theme(), turns()).splitlines() if "Stop saving by hand" in line and "**" in line
    )
    assert "*later on the same subject: 10 January, turn 1 (" in first
    assert "supersede" not in page(theme(), turns()).lower()


def test_texts_cannot_break_out_of_the_page() -> None:
    nasty = Said(
        "port <script>alert(1)</script>\n# Heading\n--> EADDRINUSE", "Done <b>now</b> --> EADDRINUSE port."
    )
    found = session("s", [nasty, Said("EADDRINUSE port again", "The <img src=x> port is free.")])
    text = marked(page(aggregate("t", ["EADDRINUSE"], found), found))
    body = text.rpartition("<!--")[0]
    assert "<script" not in body and "<b>" not in body and "<img" not in body and "\n# Heading" not in body


def test_empty_theme_is_still_a_page() -> None:
    empty = Theme("nothing-yet", ("zebra",), (), ())
    assert page(empty, []) == "# nothing-yet\n\n*0 sessions, 0 turns · seeds: zebra*\n"


def test_missing_turns_leave_their_clusters_summary() -> None:
    assert "Context is read from wire.jsonl now" in page(theme(), [])


def test_long_discussion_is_cut_to_its_weightiest_lines() -> None:
    said = [
        Said(f"EADDRINUSE on port {n} of the proxy", f"Port {n} of the proxy is free again.")
        for n in range(30)
    ]
    found = session("s", said)
    text = page(aggregate("t", ["EADDRINUSE"], found), found)
    assert text.count("\n- ") <= 10 and "and 22 more" in text


@pytest.mark.parametrize(
    ("change", "is_edited"),
    [
        (lambda text: text, False),
        (lambda text: text.replace("\n", "\r\n"), False),
        (lambda text: text + "\n", False),
        (lambda text: text.replace("page", "pages", 1), True),
        (lambda text: text + "my note\n", True),
        (lambda text: text.partition("<!--")[0], True),
    ],
)
def test_edited_pages_are_recognised(change: object, is_edited: bool) -> None:
    assert callable(change)
    text = change(marked("# A page\n\nThis page is generated.\n"))
    assert edited(text) == is_edited
    assert is_generated(marked("x")) and not is_generated("# Mine\n")


def test_page_is_the_same_whatever_the_order_of_its_turns() -> None:
    found = turns()
    curated = Curation(pinned=frozenset({("s-cwd", "main", 0)}))
    first = aggregate("t", ["wire.jsonl"], found, curation=curated)
    second = aggregate("t", ["wire.jsonl"], found[::-1], curation=curated)
    assert first == second and page(first, found) == page(second, found[::-1])
