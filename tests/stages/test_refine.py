"""What whole turns are refined to: the recorded sample, answers, long texts, broken turns, languages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stages.model import Fact, Refined, Turn
from stages.refine import FACT_LENGTH, MAX_FACTS, refine
from stages.refining.filler import strip_lead
from stages.refining.reading import source_text
from stages.refining.summary import SUMMARY_LENGTH
from tests.stages.refine_turns import CWD, bash, edit, read, step, tool, turn, write
from tests.stages.wire_feed import ORIGIN, fold

SAMPLES = Path(__file__).parent.parent / "samples"


def refined(this: Turn, before: Turn | None = None) -> Refined:
    return refine(this, before, cwd=CWD)


def texts(result: Refined, kind: str) -> list[str]:
    return [fact.text for fact in result.facts if fact.type == kind]


def sample_turns(name: str) -> list[Turn]:
    wire = next((SAMPLES / name / "home").rglob("main/wire.jsonl"))
    return fold(wire.read_bytes(), replace(ORIGIN, cwd=f"/home/dev/proj/{name}")).list


# --- the recorded sample (docs: what a good refined turn is) ------------------------------------------------


def test_the_recorded_port_turn_becomes_what_a_person_would_write() -> None:
    first = refine(sample_turns("a_plain")[0], None, cwd="/home/dev/proj/a_plain")

    assert first.summary.startswith("Why is the port busy? Please fix server.py → ")
    assert "now listens on port 3001 and no longer raises" in first.summary
    assert [
        (fact.type, fact.text, fact.source) for fact in first.facts if fact.source.startswith("tool")
    ] == [
        ("changed", "server.py: PORT 3000 → 3001.", "tool call_2_0"),
        ("error", "python3 server.py failed: OSError: [Errno 98] Address already in use.", "tool call_2_1"),
        (
            "changed",
            'server.py: raise OSError(98, "Address already in use") → print("listening on", PORT).',
            "tool call_3_0",
        ),
        ("result", "python3 server.py prints “listening on 3001”.", "tool call_4_0"),
    ]
    assert "python3 server.py still fails because listen() always raises." in texts(first, "reason")
    assert not first.decision
    assert first.entities.files_written == ("server.py",)
    assert set(first.entities.symbols) == {"listen", "PORT"}
    assert first.entities.commands == ("python3 server.py",)
    assert first.entities.errors == ("OSError: [Errno 98] Address already in use",)
    assert first.entities.tools == ("Read", "Edit", "Bash")
    told = first.summary + " ".join(fact.text for fact in first.facts)
    assert "Let me read" not in told
    assert "Replaced 1 occurrence" not in told


def test_every_sample_turn_has_a_summary_and_true_spans() -> None:
    seen = 0
    for folder in sorted(SAMPLES.iterdir()):
        for wire in folder.rglob("wire.jsonl"):
            before = None
            for this in fold(wire.read_bytes()).list:
                result = refined(this, before)
                seen += 1
                assert 0 < len(result.summary) <= SUMMARY_LENGTH
                assert_spans(this, result.facts)
                before = this
    assert seen > 60


def assert_spans(this: Turn, facts: tuple[Fact, ...]) -> None:
    for fact in facts:
        if fact.span is not None:
            start, end = fact.span
            assert 0 <= start < end <= len(source_text(this, fact.source))


# --- messages that get their meaning from what they answer --------------------------------------------------

THREE_PLANS = turn(
    "where should files live?",
    step(
        "You have a few options:\n\n1. **Shared package** (most common):\n```\npackages/file-api\n```\n"
        "Then each app imports it.\n\n2. **Dedicated API service** (better for complex scenarios):\n"
        "```\napps/api\n```\n"
        "3. **tRPC package** (type-safe)\n\nFor you, option 2 is often best because:\n"
        "- Single source of truth\n"
        "- No duplicate routes\n\nWhich approach fits your use case?"
    ),
)
ZH_PLANS = turn(
    "启动时端口冲突怎么办",
    step(
        "有两种处理方式：\n\n1. **方案一**：启动前杀掉占用端口的旧进程\n"
        "2. **方案二**：端口被占用时退到 3001，不杀旧进程\n\n你想用哪个方案？"
    ),
)


@pytest.mark.parametrize(
    "said", ["2", "option 2", "the second one", "2.", "let's go with option 2", "Option 2 please"]
)
def test_a_chosen_option_becomes_summary_and_decision(said: str) -> None:
    result = refined(
        turn(said, step("Created the structure.", write("apps/api/index.ts", "export const x = 1"))),
        THREE_PLANS,
    )

    assert "Dedicated API service" in result.summary
    assert result.decision
    assert any("Dedicated API service" in text for text in texts(result, "decision"))
    assert "decision" in result.categories


@pytest.mark.parametrize("said", ["方案二", "选第二个", "2", "选2", "就用方案二吧", "第二种"])
def test_a_chosen_option_in_chinese(said: str) -> None:
    result = refined(turn(said, step("改好了。", edit("src/a.ts", "listen(3000)", "listen(port)"))), ZH_PLANS)

    assert "退到 3001，不杀旧进程" in result.summary
    assert result.decision


@pytest.mark.parametrize("said", ["option fİrst", "option ²", "the fıfth one", "选第²个", "option K"])
def test_odd_letters_in_a_choice_choose_nothing(said: str) -> None:
    result = refined(turn(said, step("Which one?")), THREE_PLANS)

    assert not result.decision


def test_an_acknowledgement_in_front_goes() -> None:
    for lead in ("很好，", "太好了！", "好的，", "Great! ", "OK, "):
        assert strip_lead(f"{lead}settings.py reads the port now") == "settings.py reads the port now"


def test_an_option_with_a_wish_keeps_the_wish() -> None:
    result = refined(turn("2, but keep the old folder for now", step("Done.")), THREE_PLANS)

    assert "Dedicated API service" in result.summary
    assert "keep the old folder" in result.summary


def test_a_number_without_options_before_it_is_not_a_choice() -> None:
    result = refined(turn("2", step("2 what?")), turn("hi", step("Hello! Ready.")))

    assert not result.decision


def test_yes_takes_over_the_question_that_was_asked() -> None:
    before = turn(
        "How should we store sessions?",
        step("SQLite locks under load. Should I switch the storage layer to PostgreSQL instead of SQLite?"),
    )
    result = refined(
        turn("yes, do it", step("Done.", edit("db.py", "import sqlite3", "import psycopg"))), before
    )

    assert "switch the storage layer to PostgreSQL instead of SQLite" in result.summary
    assert "?" not in result.summary
    assert result.decision


def test_yes_to_a_mere_go_ahead_is_no_decision() -> None:
    before = turn("check the tests", step("The tests pass. Would you like me to run the linter too?"))
    result = refined(turn("yes", step("The linter passes.", bash("npm run lint"))), before)

    assert "run the linter too" in result.summary
    assert not result.decision


def test_agreeing_to_a_recommendation_in_chinese() -> None:
    before = turn(
        "要不要用 Redis 做缓存？", step("目前每天只有几百次请求，内存缓存就够了。建议先不加 Redis。")
    )
    result = refined(turn("好的", step("那就先不引入 Redis，继续使用内存缓存。")), before)

    assert "先不加 Redis" in result.summary
    assert result.decision


def test_no_to_an_offer_declines_it() -> None:
    before = turn(
        "what if it is unset?", step("All origins are allowed. Would you like me to fix this security issue?")
    )
    result = refined(turn("no", step("Understood. All origins stay allowed when it is unset.")), before)

    assert texts(result, "decision") == ["The user declined: fix this security issue."]


@pytest.mark.parametrize("said", ["implement this", "还是报错", "continue", "继续", "fix it please"])
def test_a_vague_request_names_what_it_is_about(said: str) -> None:
    before = turn("write a plan for the login page", step("Created the plan at plans/login.md."))
    result = refined(turn(said, step("Built the login page.")), before)

    assert "login page" in result.summary.split(" → ")[0]


# --- what is dropped, what is kept --------------------------------------------------------------------------


def test_long_answers_yield_their_conclusions_not_their_first_lines() -> None:
    filler = "\n\n".join(
        f"Looking at file {n}, there is a lot of code that handles many things." for n in range(40)
    )
    answer = (
        f"Let me walk you through it.\n\n{filler}\n\n## Root cause\n\nThe cache key ignores the tenant, "
        "so two tenants share an entry.\n\n## Fixed\n\n- Added the tenant id to the cache key in `cache.py`\n"
        "- Removed the stale entries at startup\n\n## How to test\n\n1. Start the server\n2. Log in twice\n\n"
        "## Next steps\n\n- The migration for old entries still needs to run"
    )
    result = refined(turn("why do users see foreign data?", step(answer, edit("cache.py", "a", "b"))))

    assert "The cache key ignores the tenant" in result.summary
    assert any("tenant id to the cache key" in text for text in texts(result, "changed"))
    assert any("migration" in text for text in texts(result, "next"))
    assert not any("Log in twice" in fact.text or "Looking at file" in fact.text for fact in result.facts)


def test_own_calls_thinking_and_reminders_leave_no_trace() -> None:
    this = turn(
        "what did we decide?\n<system-reminder>Today is Monday. SECRETWORD</system-reminder>",
        step(
            tool("mcp__memory__search_context", own=True, query="RECALLED"),
            "We decided nothing yet about the port.",
        ),
    )
    result = refined(this)
    told = result.summary + " ".join(fact.text for fact in result.facts)

    assert "SECRETWORD" not in told
    assert "RECALLED" not in told
    assert result.entities.tools == ()


def test_pasted_tool_blocks_count_as_what_tools_did() -> None:
    edited = (
        "Tool use: **Edit**\n\nResult:\n\n```\nThe file /home/dev/proj/src/files.ts has been updated."
        " Here's the result"
        " of running `cat -n` on a snippet:\n   1→ const error = 1;\n```"
    )
    failed = (
        "Tool use: **Bash** Build it\n\n`cd /home/dev/proj && npm run build`\n\nError:\n\n```\n"
        "src/files.ts:5:1 - error TS6133: 'handle' is declared but its value is never read.\n```"
    )
    result = refined(
        turn(
            "add a delete endpoint", step("Let me look.", edited, failed), step("Added the delete endpoint.")
        )
    )

    assert result.entities.files_written == ("src/files.ts",)
    assert result.entities.errors == ("TS6133",)
    assert any(text.startswith("npm run build failed: TS6133") for text in texts(result, "error"))
    assert "Tool use" not in result.summary


def test_pasted_output_is_named_not_repeated() -> None:
    asked = (
        "➜  api git:(main) ✗ npm run build\n\n> api@0.1.0 build\n> tsc\n\n"
        "src/index.ts:64:21 - error TS6133: 'req' is declared but its value is never read.\n\n"
        "64 app.get('/health', (req, res) => {\n                       ~~~\n\n"
        "Found 1 error in src/index.ts:64"
    )
    result = refined(
        turn(asked, step("All TypeScript build errors are fixed.", edit("src/index.ts", "req", "_req")))
    )

    assert result.summary.startswith("Output of npm run build: TS6133")
    assert "~~~" not in result.summary
    assert result.entities.errors == ("TS6133",)


def test_facts_are_self_contained() -> None:
    answer = "It was wrong. This is now fixed. They work.\n\n- It shows a dialog\n- This one too"
    result = refined(turn("fix the dialog", step(answer)))

    assert not any(fact.text.startswith(("It ", "This ", "They ")) for fact in result.facts)


def test_tests_that_passed_are_told_with_their_counts() -> None:
    output = "......\n============ 12 passed, 1 skipped in 0.31s ============\n"
    result = refined(turn("run the tests", step("All tests pass.", bash("uv run pytest -q", output=output))))

    assert "uv run pytest -q: 12 passed, 1 skipped." in texts(result, "result")


def test_a_commit_is_told_with_its_hash() -> None:
    done = bash('git commit -m "fix port"', output="[main 3f2a1bc] fix port\n 2 files changed")
    assert "Committed 3f2a1bc: fix port." in texts(refined(turn("commit it", step(done))), "result")


def test_an_approved_plan_is_a_decision() -> None:
    approved = refined(turn("plan it", step(tool("ExitPlanMode", plan="# Retry with backoff\n\nText"))))
    rejected = refined(
        turn("plan it", step(tool("ExitPlanMode", error="The plan was rejected by the user.", plan="# X")))
    )
    assert approved.decision
    assert "Retry with backoff" in approved.facts[0].text
    assert not rejected.decision


# --- turns that did not end well ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("this", "word"),
    [
        (turn("do it", status="failed", error="429 Too Many Requests"), "failed: 429 Too Many Requests"),
        (turn("count", step("one two thr"), status="cancelled"), "cancelled"),
        (turn("数数", step("一 二 三"), status="cancelled"), "取消"),
        (turn("write it", step(write("a.txt", "x")), status="unfinished"), "unfinished"),
        (turn("写一下 a.txt 这个文件", step(write("a.txt", "x")), status="unfinished"), "未完成"),
        (
            turn("build it", step("The build passes. Now let me write the tests:")),
            "stopped before: write the tests",
        ),
        (turn("send it", status="blocked", error="blocked by hook"), "blocked: blocked by hook"),
    ],
)
def test_a_turn_that_did_not_end_well_says_so(this: Turn, word: str) -> None:
    assert word in refined(this).summary


def test_an_interruption_names_what_was_interrupted() -> None:
    before = turn("deploy the api", step("Deploying."))
    assert refined(turn("[Request interrupted by user]"), before).summary == (
        "The user interrupted the agent: deploy the api"
    )


def test_the_summary_speaks_the_language_of_the_conversation() -> None:
    failing = bash("npm run dev", error="Error: listen EADDRINUSE: address already in use :::3000")
    chinese = refined(turn("帮我启动开发服务器看看", step(failing)))
    english = refined(turn("start the dev server", step(failing)))

    assert "npm run dev 失败" in chinese.summary
    assert "npm run dev failed" in english.summary


@pytest.mark.parametrize(
    ("asked", "answer", "told"),
    [
        ("Can we cache it?", "Yes: the cache is keyed by the lock file now.", "Yes: "),
        ("will comments show up in the text?", "No, comments are stored in a map of their own.", "No"),
        ("撤销之后要不要立刻断开？", "不用。连接在 15 分钟内自然断开。", "不用，"),
        ("fix the cache", "Yes, the cache key holds the tenant now.", "The cache key"),
    ],
)
def test_yes_and_no_are_kept_where_they_answer(asked: str, answer: str, told: str) -> None:
    assert refined(turn(asked, step(answer))).summary.split(" → ")[1].startswith(told)


def test_white_space_edits_are_not_described() -> None:
    facts = refined(turn("fix the linting", step(edit("a.py", "  x", " x")))).facts
    assert [fact.text for fact in facts] == ["Edited a.py."]


def test_mixed_turns_keep_both_languages() -> None:
    answer = (
        "## 完成\n- 端口已从 3000 改为 **3001**\n- config key: `端口`\n\n"
        "下一步：重启服务 (restart the service)."
    )
    asked = "为什么端口 3000 被占用？请把 配置.yaml 里的端口改成 3001, and verify it"
    result = refined(
        turn(asked, step("我来看看这个文件。", edit("配置.yaml", "端口: 3000", "端口: 3001")), step(answer))
    )

    assert "端口已从 3000 改为 3001" in result.summary
    assert texts(result, "changed") == ["配置.yaml: 端口 3000 → 3001。"]
    assert texts(result, "next") == ["下一步：重启服务 (restart the service)."]
    assert "我来看看" not in result.summary


def test_caps_hold_for_a_monstrous_turn() -> None:
    lines = "\n".join(
        f"- Added `thing_{n}` to module_{n}.py because issue {n} was caused by a bug" for n in range(3000)
    )
    calls = [edit(f"m{n}.py", f"a = {n}", f"a = {n + 1}", call_id=f"c{n}") for n in range(300)]
    result = refined(turn("x " * 50_000, step("Fixed.\n" + lines, *calls)))

    assert len(result.summary) <= SUMMARY_LENGTH
    assert len(result.facts) <= MAX_FACTS
    assert all(len(fact.text) <= FACT_LENGTH for fact in result.facts)


def test_a_read_without_words_is_not_empty() -> None:
    assert refined(turn("", step(read("a.py")))).summary
