"""How facts and summaries are told: where a change belongs, what an answer answers, what was refused."""

from __future__ import annotations

import pytest

from stages.model import Refined, ToolCall, Turn
from stages.refine import refine
from stages.refining.actions import describe_edit
from stages.refining.arguments import Edit
from stages.refining.asking import ask
from stages.refining.claims import is_self_contained
from stages.refining.phrases import ENGLISH
from stages.refining.prose import blocks, sentences
from tests.stages.refine_turns import CWD, edit, step, turn

REFUSED = 'Tool "ExitPlanMode" was not run because the user rejected the approval request.'


def refined(this: Turn, before: Turn | None = None) -> Refined:
    return refine(this, before, cwd=CWD)


def told(result: Refined) -> list[str]:
    return [fact.text for fact in result.facts if fact.source == "text"]


def test_items_say_where_they_belong() -> None:
    answer = (
        "## What changed\n### 1. Docs app changes\n- Removed the unused constant from the top\n"
        "### Summary\nI've updated `auth.md` to say more:\n- Updated section titles from future to past tense\n"
    )
    this = turn("clean up", step(edit("a.ts", "a", "b"), edit("c.ts", "a", "b")), step(answer))
    assert "Docs app: Removed the unused constant from the top." in told(refined(this))


def test_a_short_answer_stands_with_its_question() -> None:
    result = refined(turn("do customers have a limit?", step("There is no limit at all.")))
    assert told(result) == ["There is no limit at all (on: do customers have a limit?)."]


def test_sentences_of_a_speaker_are_no_facts() -> None:
    assert told(refined(turn("am I right?", step("You're wiring it in the right order.")))) == []
    assert told(refined(turn("where is it?", step("The key is in .env (I showed it above)."))))[0].startswith(
        "The key is in .env"
    )


@pytest.mark.parametrize("text", ["With it the build passes again.", "The error is about the types here."])
def test_what_points_elsewhere_does_not_stand_alone(text: str) -> None:
    assert not is_self_contained(text)


def test_a_verdict_over_options_is_the_outcome() -> None:
    answer = (
        "You have a few options:\n\n1. **Shared package**:\n```\na/\n```\nEverybody links against it.\n\n"
        "2. **Service of its own**:\n```\nb/\n```\nThe rest talks to it by mail.\n\n"
        "For drawings, option 2 (a service) is often best because:\n- One place to look\n- No copies\n"
    )
    summary = refined(turn("where do shared drawings live?", step(answer))).summary
    assert "option 2 (a service) is often best because: One place to look" in summary


def test_a_plan_refused_at_the_end_is_the_outcome() -> None:
    refused = ToolCall("p", "ExitPlanMode", "{}", "error", error=REFUSED)
    this = turn("write it down", step("The plan shows cursors of everybody."), step(refused))
    assert refined(this).summary.endswith(
        "→ The plan shows cursors of everybody; The user rejected the proposed plan"
    )


def test_conditions_are_not_changes() -> None:
    answer = "When a word is deleted and restored, one of the cursors is moved to the start."
    facts = refined(turn("why?", step(edit("a.py", "x = 1", "x = 2"), answer))).facts
    assert [fact.text for fact in facts if fact.type == "changed"] == ["a.py: x 1 → 2."]


def test_code_spans_are_not_cut() -> None:
    block = blocks("The error `it failed. Code: none` shows that. Another one.")[0]
    assert [sentence.text for sentence in sentences(block)] == [
        "The error it failed. Code: none shows that.",
        "Another one.",
    ]


def test_what_a_cap_left_out_is_never_told() -> None:
    result = refined(turn("go on", step("…[7028 characters left out]…")))
    assert "left out" not in result.summary and result.facts == ()


def test_edits_are_not_cut_within_brackets() -> None:
    assert describe_edit(Edit("n = len(text.split())", "n = len(encode(text))", True), ENGLISH) == (
        "n = len(text.split()) → n = len(encode(text))"
    )


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (
            "still broken\n[INFO] start\nERROR: x\ncan we use the older one?\n[INFO] a\n[INFO] b",
            "still broken can we use the older one?",
        ),
        ("fix it\nproj git:(main) ✗ npm run lint\n> lint\n> turbo run lint", "fix it"),
        ('use the newest versions. "@a/b": "^8.0.0",\n"eslint": "^8.57.0",', "use the newest versions."),
    ],
)
def test_the_request_without_what_was_pasted(message: str, text: str) -> None:
    assert ask(turn(message), message, ENGLISH).text == text


def test_yes_but_keeps_its_but() -> None:
    this = turn("TTL 改成 5 分钟行不行？", step("行，但命中率会掉到 60%。更好的办法是主动失效。"))
    assert "行，但命中率会掉到 60%。" in refined(this).summary


def test_now_in_chinese_is_not_an_announcement() -> None:
    this = turn("还是报错", step("修好了：POST 现在都带 CSRF 头，6 个测试全部通过。"))
    assert "停在" not in refined(this).summary
