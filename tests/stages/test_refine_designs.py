"""Choices that are made without a word for choosing: designs settled by instructions, go-aheads, ways taken."""

from __future__ import annotations

import pytest

from stages.model import Turn
from stages.refine import refine
from stages.refining.decisions import asks_for_a_way, bounds, by_agent, by_user, ought, takes
from tests.stages.refine_turns import CWD, edit, step, turn, write


def decided(this: Turn, before: Turn | None = None) -> list[str]:
    return [fact.text for fact in refine(this, before, cwd=CWD).facts if fact.type == "decision"]


@pytest.mark.parametrize(
    "sentence",
    [
        "create a plan for sync that uses Yjs",
        "update the plan so that the address comes from the environment",
        "rewrite the importer to use libarchive-c",
        "be sure to say we're using parser 3.1",
        "store the last query in session storage",
        "the sample file shouldn't be in src, it should be in the root",
        "let's set that up with a config file",
        "for now remove the cache",
        "keep it simple",
        "this will be a library with a thin command",
        "I reverted that change because it was not the cause",
        "I just deleted the old worker",
        "remove that for now unless I'm missing something?",
        "我们不做自动重试",
        "价格不能用旧的，所以选第一种",
        "新界面先不发布",
    ],
)
def test_instructions_that_settle_a_design(sentence: str) -> None:
    assert by_user(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "create a plan for sync",
        "update the README to reflect the folder structure",
        "update the plan",
        "put the cursor at the end of the line",
        "when I deleted a comment, nothing happened",
        "I deleted a word and the marker moved",
        "make it work with my repositories",
        "this will be a problem later on",
        "here is the proposal:",
        "add a button to the page",
        "为什么我们不用 Redis",
    ],
)
def test_tasks_and_reports_settle_nothing(sentence: str) -> None:
    assert not by_user(sentence)


@pytest.mark.parametrize(
    ("sentence", "told"),
    [
        ("Renew two minutes before it expires", True),
        ("then trim it, but keep the heading", True),
        ("Trim it then, but keep the heading", True),
        ("use three examples", False),
        ("limit it to 20 a minute by default", True),
        ("改成 30 分钟，写进配置", True),
        ("run the tests three times", False),
        ("show the last 5 minutes of the log", False),
        ("fix the linting", False),
    ],
)
def test_short_instructions_with_a_bound(sentence: str, told: bool) -> None:
    assert bounds(sentence) is told


def test_a_bound_settles_something_only_as_an_answer() -> None:
    explained = turn("Why do sessions end?", step("The token expires after 15 minutes."))
    this = turn("Renew two minutes before it expires", step(edit("web/a.ts", "a = 1", "a = 2")))
    assert decided(this, explained) and decided(this) == []


@pytest.mark.parametrize(
    "said", ["ok. start implementing", "let's get started on this implementation", "great. implement this"]
)
def test_a_go_ahead_on_a_plan_is_a_choice(said: str) -> None:
    plan = turn("think about sync", step("The plan keeps one writer per file and merges on read."))
    assert decided(turn(said, step("Done.")), plan) == [
        "The user gave the go-ahead on: The plan keeps one writer per file and merges on read."
    ]
    assert decided(turn("ok. continue", step("Done.")), plan) == []
    assert decided(turn(said, step("Done.")), turn("hello", step("Hello."))) == []


def test_praise_of_a_plan_is_no_go_ahead() -> None:
    plan = turn("think about sync", step("The plan keeps one writer per file and merges on read."))
    assert decided(turn("great, thanks", step("You are welcome.")), plan) == []


def test_the_way_taken_where_one_was_asked_for() -> None:
    asked = "What if the event is lost?"
    done = step(write("jobs/check.py", "x"), "A job compares all prices at night and deletes what differs.")
    assert decided(turn(asked, done)) == ["A job compares all prices at night and deletes what differs."]
    assert decided(turn(asked, step("Then the old price stays for a day."))) == []
    assert decided(turn("How do we fix the failing test?", done)) == []
    put_off = step(write("todo.md", "x"), "Noted in todo.md: look at it later.")
    assert decided(turn(asked, put_off)) == []


def test_a_rule_that_holds_now() -> None:
    assert ought("One tab must renew for all: they now elect a leader.")
    assert not ought("You must restart the server.")
    assert not takes("This will be postponed") and takes("A job runs at night")
    assert asks_for_a_way("桶的状态放哪里？") and not asks_for_a_way("怎么修这个报错？")


def test_rather_than_with_a_reason_is_a_choice() -> None:
    assert by_agent("We delete rather than archive them, because a hash of a dead token is of no use.")
    assert not by_agent("I recommend that we delete rather than archive them, because it is simpler.")
