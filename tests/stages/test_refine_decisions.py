"""A decision is a choice that was made, not the word: sentences of people and of agents, both languages."""

from __future__ import annotations

import pytest

from stages.refine import refine
from stages.refining.answers import options, proposal, resolve
from stages.refining.decisions import by_agent, by_user
from tests.stages.refine_turns import CWD, edit, step, turn


@pytest.mark.parametrize(
    "sentence",
    [
        "let's go with the dedicated service",
        "let's stick with the current architecture",
        "use pnpm instead of npm for everything here",
        "we shouldn't use console.log",
        "we don't want each app to have its own git repo",
        "there should be just one .env.example in apps/api",
        "from now on write the tests first",
        "never commit the lock file",
        "always use UTC in the database",
        "I prefer the second approach",
        "we decided to drop Windows support",
        "the approach you proposed is good",
        "we'll tackle this later",
        "just leave it as it is",
        "update the plan to use https://docs.example/x.y instead of cr-sqlite",
        "we don't actually need a migration script",
        "all client side for now",
        "决定用 SQLite，不用 Redis",
        "以后都用 pnpm",
        "日志统一走 logger",
        "不要再用 npm 了",
        "就用方案二",
        "改用 Postgres 存会话",
        "采用 WebSocket 推送，而不是轮询",
        "方案可以，就这么做吧",
        "先不做国际化",
        "放弃手动保存，改为解析 wire.jsonl",
    ],
)
def test_people_decide(sentence: str) -> None:
    assert by_user(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "should we use Redis or Postgres?",
        "I haven't decided yet",
        "help me decide between the two",
        "we need to decide when to sync",
        "let's decide this tomorrow",
        "why did you use npm instead of pnpm?",
        "what does the decision_guard tool do?",
        "fix the failing test",
        "add a delete button to the list",
        "can we use the same blue?",
        "look at the decision table in docs/decisions.md",
        "not sure whether we should keep it",
        "it uses the old API instead of the new one",
        "keep fixing",
        "还没决定用哪个",
        "你来决定吧",
        "我们要不要用 Redis？",
        "这取决于并发量",
        "决定性的证据在哪里",
        "如果以后要部署，再决定是否引入",
        "用什么方案好？",
        "看一下 decisions 目录",
        "帮我选择一个颜色",
        "修复登录页的报错",
    ],
)
def test_people_do_not_decide(sentence: str) -> None:
    assert not by_user(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "I decided to keep the old route because clients depend on it.",
        "Went with SQLite since there is one writer.",
        "The cache now uses Redis instead of a local map.",
        "Switched the storage layer from SQLite to PostgreSQL.",
        "Decision: fall back to 3001 and never kill the other process.",
        "I'll use the stdlib parser instead of lxml because it is enough here.",
        "不再杀旧进程，因为那可能是另一个窗口的服务。",
        "决定退到 3001，而不是杀进程。",
        "改用 WebSocket 推送状态。",
    ],
)
def test_agents_announce_choices(sentence: str) -> None:
    assert by_agent(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "You can decide later which one to use.",
        "I recommend Redis instead of Postgres.",
        "Would you like to use Redis instead?",
        "If you prefer, use pnpm instead of npm.",
        "Changed the return type from void to Response.",
        "Now let me update the references to use log instead of logger:",
        "Need to decide when to sync.",
        "The decision table lists all states.",
        "建议先不加。",
        "可以考虑改用 Redis。",
        "由你决定用哪个。",
        "是否采用 Redis 取决于并发量。",
    ],
)
def test_agents_do_not_decide(sentence: str) -> None:
    assert not by_agent(sentence)


def test_an_announced_choice_counts_once_it_is_carried_out() -> None:
    said = "I decided to keep the old route because clients depend on it."
    kept = turn(
        "clean up the routes", step(said, edit("routes.py", "a = 1", "a = 2")), step("Cleaned up routes.py.")
    )
    only_said = turn("clean up the routes", step(said), step("Which routes do you mean?"))

    assert refine(kept, None, cwd=CWD).decision
    assert not refine(only_said, None, cwd=CWD).decision


# --- answers ------------------------------------------------------------------------------------------------


def test_headed_options_win_over_other_lists() -> None:
    text = (
        "First some notes:\n1. note one\n2. note two\n\n## Option 1: Keep SQLite\nfast\n\n"
        "## Option 2: Use Postgres\n"
        "scales\n\nSteps:\n1. stop\n2. start\n"
    )
    assert options(text) == {"1": "Keep SQLite: fast", "2": "Use Postgres"}


def test_an_option_described_below_its_heading() -> None:
    assert options("**方案 A**\n直接改库。\n**方案 B**\n写迁移脚本。") == {
        "A": "直接改库。",
        "B": "写迁移脚本。",
    }


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("yes", "yes"),
        ("ok, go ahead", "yes"),
        ("好的", "yes"),
        ("可以，开始吧", "yes"),
        ("按你说的做", "yes"),
        ("continue", "continue"),
        ("继续", "continue"),
        ("no", "no"),
        ("不用了", "no"),
        ("1", "option"),
        ("option B", ""),
        ("add a test for it", ""),
        ("2 more tests please", ""),
        ("a new file", ""),
        ("一个新的问题：为什么慢", ""),
    ],
)
def test_short_messages(said: str, kind: str) -> None:
    answer = resolve(said, "Two ways:\n1. Keep it\n2. Drop it\n\nWhich one?")
    assert (answer.kind if answer else "") == kind


@pytest.mark.parametrize(
    ("asked", "proposed"),
    [
        ("Ready. Should I switch to PostgreSQL?", "switch to PostgreSQL"),
        ("Would you like me to add tests?", "add tests"),
        ("需要我把端口改成 3001 吗？", "把端口改成 3001"),
        ("Memory is enough. I recommend keeping the map.", "I recommend keeping the map"),
        ("All done.", ""),
    ],
)
def test_what_yes_agrees_to(asked: str, proposed: str) -> None:
    assert proposal(asked) == proposed
