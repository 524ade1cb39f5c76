"""Whatever a turn holds: refining never raises, keeps its caps, and every span lies in its source."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.entities import MAX_ERRORS, MAX_VALUE, extract
from stages.model import FileTouch, Op, Result, Status, Step, ToolCall, Turn
from stages.refine import FACT_LENGTH, MAX_FACTS, refine
from stages.refining.categories import CATEGORIES, MAX_CATEGORIES
from stages.refining.reading import source_text
from stages.refining.summary import SUMMARY_LENGTH
from tests.stages.refine_turns import CWD, bash, step, turn

PIECES = [
    "Fixed: ", "because ", "let's go with ", "`code`", "**bold**", "\n- ", "\n1. ", "\n## Summary\n",
    "```\n", "Error: ", "\n\n", "instead of ", "原因是", "改用", "好的，", "。", "Tool use: **Edit**",
    "\n\nResult:\n\n```\n", "Tool use: **Bash** x\n\n`ls`\n\nError:\n\n```\nx", "| a | b |",
    "Would you like me to ", "?", "It ", "http://a.b/c?d", "#12", "<system-reminder>",
    "</system-reminder>", "---", "\r\n", "\u2028",
]  # fmt: skip
TEXTS = st.one_of(
    st.text(max_size=400),
    st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=12)), max_size=40).map("".join),
)
OPS: list[Op] = ["read", "write", "edit"]
RESULTS: list[Result | None] = ["ok", "error", None]
STATUSES: list[Status] = ["completed", "cancelled", "failed", "blocked", "unfinished"]


@st.composite
def calls(draw: st.DrawFn) -> ToolCall:
    call_id = draw(st.sampled_from(["a", "b", "c"]))
    touches = draw(
        st.lists(
            st.builds(FileTouch, st.text(max_size=20), st.sampled_from(OPS), st.just(call_id)), max_size=2
        )
    )
    return ToolCall(
        id=call_id,
        name=draw(
            st.sampled_from(
                ["Edit", "Write", "Bash", "Agent", "ExitPlanMode", "AskUserQuestion", "apply_patch", ""]
            )
        ),
        args=draw(
            st.one_of(st.just('{"old_string":"a = 1","new_string":"a = 2"}'), st.text(max_size=60), TEXTS)
        ),
        result=draw(st.sampled_from(RESULTS)),
        error=draw(TEXTS),
        outcome=draw(TEXTS),
        command=draw(st.one_of(st.just(""), st.text(max_size=60), TEXTS)),
        files=tuple(touches),
        own=draw(st.booleans()),
    )


@st.composite
def turns(draw: st.DrawFn) -> Turn:
    steps = draw(
        st.lists(
            st.builds(
                Step,
                st.just(1),
                st.lists(TEXTS, max_size=3).map(tuple),
                st.lists(calls(), max_size=3).map(tuple),
            ),
            max_size=4,
        )
    )
    asked = draw(TEXTS)
    return Turn(
        position=0,
        turn_id=0,
        origin=draw(
            st.sampled_from(
                ["user", "task", "system_trigger:goal_continuation", "system_trigger:subagent", "cron_job"]
            )
        ),
        opening_text=asked,
        user_text=draw(st.one_of(st.none(), st.just(asked))),
        steps=tuple(steps),
        status=draw(st.sampled_from(STATUSES)),
        error=draw(st.text(max_size=40)),
    )


@settings(max_examples=300, deadline=None)
@given(this=turns(), before=st.one_of(st.none(), turns()))
def test_any_turn_is_refined_within_its_caps(this: Turn, before: Turn | None) -> None:
    result = refine(this, before, cwd=CWD)

    assert 0 < len(result.summary) <= SUMMARY_LENGTH
    assert len(result.facts) <= MAX_FACTS
    assert set(result.categories) <= set(CATEGORIES)
    assert len(result.categories) <= MAX_CATEGORIES
    assert result.decision == any(fact.type == "decision" for fact in result.facts)
    for fact in result.facts:
        assert fact.text
        assert len(fact.text) <= FACT_LENGTH
        if fact.span is not None:
            start, end = fact.span
            assert source_text(this, fact.source)[start:end].strip(), fact
    assert result == refine(this, before, cwd=CWD)
    assert result.entities == extract(this, cwd=CWD)
    assert len(result.entities.errors) <= MAX_ERRORS
    assert all(0 < len(value) <= MAX_VALUE for _, value in result.entities.pairs())


REPEATED = (
    *(
        "a",
        "(",
        "*",
        "**a",
        "`a",
        "\n",
        " ",
        "- ",
        "1. ",
        "<skill>",
        "[a](",
        "a.b.",
        "a/",
        "不",
        "，",
        "let me ",
        "use ",
    ),
    *(
        "instead of use ",
        "a-",
        "#1",
        "http://",
        "error: ",
        "决定",
        "not only just ",
        "Tool use: **Edit**\n",
        "if ",
    ),
    *(
        "\nResult:\n",
        "'",
        '"\\',
        "$(",
        "<<EOF\n",
        "x=1 ",
        'File "a", line 1\n',
        "the approach ",
        "1:1 error ",
    ),
    *("has been has been ", "\x1b[3", "\t1:1 error  a  ", "{", "@a/", "| ", "> ", "\n> a"),
)


@pytest.mark.parametrize("piece", REPEATED, ids=repr)
def test_no_text_makes_refining_slow(piece: str) -> None:
    text = piece * (60_000 // len(piece))
    this = turn(text, step(text, bash(text[:8_000], error=text), bash(text[:8_000], output=text)), step(text))
    started = time.perf_counter()
    refine(this, this, cwd=CWD)
    assert time.perf_counter() - started < 2.0
