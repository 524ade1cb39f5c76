"""Shapes of kimi-code wires that no recorded sample has (WIRE §4, §5, §7, §9)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stages.model import Copied, Spawned
from stages.split import open_splitter
from tests.stages.wire_feed import ORIGIN, chunks_of, fold, keep
from tests.stages.wire_lines import T0, V1, V2, line, meta, text, wire

NOTICE = '<notification id="task:1">\nTitle: done\n</notification>'


# --- v1 ------------------------------------------------------------------------------------------------


def test_v1_task_turn_is_opened_by_its_steer() -> None:
    v1 = V1()
    data = wire(
        meta("1.4"),
        v1.prompt("build it"),
        v1.typed("build it"),
        *v1.answer(0, "started"),
        steer := v1.steer(NOTICE, kind="background_task"),
        v1.message(NOTICE, origin={"kind": "background_task"}),
        *v1.answer(1, "it is built"),
    )
    first, second = fold(data).list
    assert (first.turn_id, first.steers, first.status, first.lines) == (0, (), "completed", (2, 6))
    assert (second.turn_id, second.origin, second.user_text) == (1, "background_task", None)
    assert second.opening_text == NOTICE
    assert second.started_at == steer["time"]
    assert second.lines == (7, 11)
    assert first.last_at is not None and first.last_at < steer["time"]


def test_v1_goal_continuation_is_opened_by_its_message() -> None:
    v1 = V1()
    trigger = {"kind": "system_trigger", "name": "goal_continuation"}
    data = wire(
        meta("1.4"),
        v1.prompt("reach it"),
        v1.typed("reach it"),
        *v1.answer(0, "one"),
        v1.message("Continue working toward the active goal.", origin=trigger),
        v1.message(
            "<system-reminder>goal</system-reminder>", origin={"kind": "injection", "variant": "goal"}
        ),
        *v1.answer(1, "two"),
    )
    turns = fold(data).list
    assert [turn.origin for turn in turns] == ["user", "system_trigger:goal_continuation"]
    assert turns[1].shown_text == "goal continuation"
    assert turns[1].opening_text.startswith("Continue working")


def test_v1_steer_inside_a_turn_stays_there() -> None:
    v1 = V1()
    data = wire(
        meta("1.4"),
        v1.prompt("work"),
        v1.typed("work"),
        v1.begin(0),
        v1.steer("hurry"),
        v1.say(0, "half"),
        v1.end(0, finish="tool_use"),
        v1.typed("hurry"),
        *v1.answer(0, "done", 2),
    )
    (turn,) = fold(data).list
    assert [(steer.text, steer.human, steer.after_step) for steer in turn.steers] == [("hurry", True, 1)]
    assert turn.status == "completed"


def test_v1_turn_without_a_last_answer_is_unfinished_and_open() -> None:
    v1 = V1()
    data = wire(
        meta("1.4"),
        v1.prompt("work"),
        v1.typed("work"),
        v1.begin(0),
        v1.call(0, "c", "Bash", {"command": "x"}),
    )
    (turn,) = fold(data).list
    assert (turn.status, turn.open, turn.turn_id) == ("unfinished", True, 0)
    closed = fold(data + wire(v1.prompt("again"))).list
    assert [(t.status, t.open, t.turn_id) for t in closed] == [
        ("unfinished", False, 0),
        ("unfinished", True, 1),
    ]


def test_turns_without_any_step_get_the_next_numbers() -> None:
    v1 = V1()
    data = wire(
        meta("1.4"), v1.prompt("a"), v1.prompt("b"), v1.prompt("c"), *v1.answer(7, "x"), v1.prompt("d")
    )
    assert [turn.turn_id for turn in fold(data).list] == [0, 1, 7, 8]


def test_function_form_calls_of_protocol_1_0() -> None:
    v1 = V1()
    call = {"type": "function", "id": "c1", "function": {"name": "Bash", "arguments": '{"command":"ls"}'}}
    flat = {"type": "function", "id": "c2", "name": "Read", "arguments": '{"path":"a.py"}'}
    data = wire(
        meta("1.0"),
        v1.prompt("look"),
        v1.typed("look"),
        v1.message("Looking.", role="assistant", toolCalls=[call, flat]),
        v1.message("<system>ERROR: boom</system>", role="tool", toolCallId="c1"),
        v1.message("<system>2 lines read.</system>\nx = 1", role="tool", toolCallId="c2"),
        v1.message("Done.", role="assistant"),
    )
    (turn,) = fold(data).list
    calls = list(turn.tools)
    assert [(c.id, c.name, c.result, c.command, c.error) for c in calls] == [
        ("c1", "Bash", "error", "ls", "ERROR: boom"),
        ("c2", "Read", "ok", "", ""),
    ]
    assert calls[1].files[0].path == "a.py"
    assert (turn.assistant_text, turn.status) == ("Done.", "completed")


# --- imports -------------------------------------------------------------------------------------------


def _imported(v1: V1, *, records: bool) -> list[dict[str, Any]]:
    made = []
    for n, (question, answer) in enumerate((("q0", "a0"), ("q1", "a1"), ("q2", ""))):
        if records:
            made.append({"type": "turn.prompt", "input": text(question), "time": T0})
        made.append(
            {"type": "context.append_message", "message": {"role": "user", "content": text(question)}}
        )
        if answer:
            message = {"role": "assistant", "content": text(answer), "toolCalls": []}
            made.append({"type": "context.append_message", "message": message})
            if records:
                made.append({"type": "turn.ended", "turnId": n, "reason": "completed", "time": T0})
    return made


@pytest.mark.parametrize("records", [True, False], ids=["2.1.0 migrator", "0.38 migrator"])
def test_imported_turns_are_copies_and_later_ones_are_not(records: bool) -> None:
    v2 = V2()
    v2.at += 60_000
    origin = replace(ORIGIN, imported=True)
    data = wire(meta("1.0"), *_imported(v2, records=records))
    turns = fold(data, origin).list
    assert [(t.user_text, t.assistant_text, t.status, t.copied) for t in turns] == [
        ("q0", "a0", "completed", True),
        ("q1", "a1", "completed", True),
        ("q2", None, "unfinished", True),
    ]
    assert [turn.turn_id for turn in turns] == [0, 1, 2]
    resumed = fold(data + wire(*v2.turn(3, "own", "mine")), origin).list
    assert [turn.copied for turn in resumed] == [True, True, True, False]
    assert not resumed[2].open


def test_an_import_resumed_by_an_engine_without_ids() -> None:
    v2 = V2()
    v2.at = T0 - 10  # the same time as the import's
    records = _imported(v2, records=True)
    v2.at = T0 - 10
    own = [v2.prompt("own"), v2.typed("own"), *v2.answer(3, "mine"), v2.ended(3)]
    turns = fold(wire(meta("1.0"), *records, *own), replace(ORIGIN, imported=True)).list
    assert [turn.copied for turn in turns] == [True, True, True, False]


# --- v2 ------------------------------------------------------------------------------------------------


def test_retry_opens_a_turn_with_empty_text() -> None:
    v2 = V2()
    data = wire(
        meta(),
        *v2.turn(0, "try", "no"),
        v2.prompt([], kind="retry", turnId=1),
        *v2.answer(1, "yes"),
        v2.ended(1),
    )
    turn = fold(data).list[1]
    assert (turn.origin, turn.user_text, turn.assistant_text) == ("retry", "", "yes")


def test_cancelled_queued_prompt_burns_an_id() -> None:
    v2 = V2()
    cancel = v2.other("turn.cancel", turnId=1, target="queued", reason="user_cancelled")
    data = wire(meta(), v2.prompt("a"), v2.begin(0), cancel, v2.prompt("b"), v2.prompt("c"))
    assert [turn.turn_id for turn in fold(data).list] == [0, 2, 3]


def test_a_skill_that_the_model_called_is_no_human_steer() -> None:
    v2 = V2()
    skill = {"kind": "skill_activation", "skillName": "review", "skillArgs": "src", "trigger": "model-tool"}
    data = wire(
        meta(),
        *v2.opened(0, "go"),
        v2.begin(0),
        v2.message("User activated the skill review", origin={**skill, "inTurn": True}, id="m"),
        v2.steer("User activated the skill review", origin=skill, messageId="m", turnId=0),
        v2.say(0, "ok"),
        v2.ended(0),
    )
    (turn,) = fold(data).list
    assert [(steer.text, steer.origin, steer.human) for steer in turn.steers] == [
        ("/review src", "skill_activation", False)
    ]


def test_slash_skills_show_as_typed() -> None:
    v2 = V2()
    skill = {
        "kind": "skill_activation",
        "skillName": "review",
        "skillArgs": "the diff",
        "trigger": "user-slash",
    }
    plugin = {"kind": "plugin_command", "pluginId": "p", "commandName": "deploy", "trigger": "user-slash"}
    prefixed = {"kind": "user", "skillActivations": [{"name": "a"}, {"name": "b"}]}
    data = wire(
        meta(),
        v2.prompt("User activated the skill review\n" + "body " * 500, turnId=0, origin=skill),
        v2.prompt("body", turnId=1, origin=plugin),
        v2.prompt(text("<skill a>", "<skill b>", "do it"), turnId=2, origin=prefixed),
    )
    turns = fold(data).list
    assert [turn.user_text for turn in turns] == ["/review the diff", "/deploy", "do it"]
    assert [turn.origin for turn in turns] == ["skill_activation", "plugin_command", "user"]


def test_an_engine_turn_repeated_as_a_steer_has_no_steer() -> None:
    """v2 up to 0.38 writes both for a task that comes while nothing runs."""
    v2 = V2()
    task = {"kind": "task", "taskId": "t"}
    data = wire(
        meta(),
        *v2.turn(0, "a", "1"),
        v2.prompt(NOTICE, origin=task),
        v2.steer(NOTICE, origin=task),
        v2.message(NOTICE, origin=task),
        *v2.answer(1, "noted"),
        v2.ended(1),
    )
    turns = fold(data).list
    assert [(turn.origin, turn.steers) for turn in turns] == [("user", ()), ("task", ())]


def test_failed_turn_keeps_its_error_and_partial_text() -> None:
    v2 = V2()
    error = {"code": "provider.api_error", "message": "400 no such model", "name": "APIStatusError"}
    data = wire(
        meta(), *v2.opened(0, "go"), *v2.answer(0, "half"), v2.ended(0, "failed", error=error, durationMs=5)
    )
    (turn,) = fold(data).list
    assert (turn.status, turn.error, turn.assistant_text) == ("failed", "400 no such model", "half")
    assert turn.duration_ms == (turn.ended_at or 0) - (turn.started_at or 0)


def test_tokens_model_and_parallel_results() -> None:
    v2 = V2()
    data = wire(
        meta(),
        *v2.opened(0, "go"),
        v2.begin(0),
        v2.other("usage.record", model="kimi-x", usage={"output": 1}, usageScope="turn"),
        v2.call(0, "a", "Bash", {"command": "one"}),
        v2.call(0, "b", "Bash", {"command": "two"}),
        v2.call(0, "a", "Bash", {"command": "three"}),
        v2.result("b", "second\nfine\n", durationMs=7),
        v2.result("a", "third failed\nCommand failed with exit code: 3.", isError=True),
        v2.result("a", "first ok"),
        v2.end(0),
        v2.ended(0),
    )
    (turn,) = fold(data).list
    assert [(c.command, c.result, c.outcome, c.duration_ms) for c in turn.tools] == [
        ("one", "ok", "first ok", None),
        ("two", "ok", "second\nfine", 7),
        ("three", "error", "", None),
    ]
    assert list(turn.tools)[2].error.endswith("exit code: 3.")
    assert (turn.tokens_in, turn.tokens_out, turn.model) == (106, 20, "kimi-x")


def test_edits_count_as_files_only_when_they_worked() -> None:
    v2 = V2()
    data = wire(
        meta(),
        *v2.opened(0, "go"),
        v2.begin(0),
        v2.call(0, "a", "Edit", {"path": "src/../b.py"}),
        v2.call(0, "b", "Write", {"path": "/tmp/other.py"}),
        v2.call(0, "c", "Edit", {"path": "never.py"}),
        v2.call(
            0,
            "d",
            "Grep",
            {"path": "x"},
            display={"kind": "file_io", "operation": "grep", "path": "/home/dev/x"},
        ),
        v2.result("a", "ok"),
        v2.result("b", "denied", isError=True),
    )
    (turn,) = fold(data).list
    assert [(f.path, f.op) for c in turn.tools for f in c.files] == [("b.py", "edit")]


@pytest.mark.parametrize(
    ("cwd", "path", "expected"),
    [
        ("/home/dev/proj", "/home/dev/proj/a.py", "a.py"),
        ("/home/dev/proj/", "./a.py", "a.py"),
        ("/home/dev/proj", "/home/dev/project/a.py", "/home/dev/project/a.py"),
        ("/home/dev/proj", "../x", "/home/dev/x"),
        (None, "/home/dev/a.py", "/home/dev/a.py"),
        ("C:\\work\\proj", "c:\\Work\\proj\\src\\a.py", "src/a.py"),
        ("C:\\work\\proj", "D:\\a.py", "D:/a.py"),
        ("/", "/etc/hosts", "etc/hosts"),
    ],
)
def test_paths_are_relative_below_the_working_directory(cwd: str | None, path: str, expected: str) -> None:
    v2 = V2()
    display = {"kind": "file_io", "operation": "read", "path": path}
    data = wire(meta(), *v2.opened(0, "go"), v2.begin(0), v2.call(0, "a", "Read", {}, display=display))
    (turn,) = fold(data, replace(ORIGIN, cwd=cwd)).list
    assert [f.path for c in turn.tools for f in c.files] == [expected]


def test_swarm_and_background_agents_are_linked() -> None:
    v2 = V2()
    swarm = '<agent_swarm_result>\n<subagent agent_id="agent-2" item="x">ok</subagent>\n</agent_swarm_result>'
    data = wire(
        meta(),
        *v2.opened(0, "go"),
        v2.begin(0),
        v2.call(0, "s", "AgentSwarm", {"items": ["x", "y"]}),
        v2.other("subagent.spawned", subagentId="agent-1", parentToolCallId="s", swarmIndex=1),
        v2.call(0, "b", "Agent", {"prompt": "p"}),
        v2.other(
            "task.started",
            info={"taskId": "t", "kind": "agent", "agentId": "agent-3", "parentToolCallId": "b"},
        ),
        v2.call(0, "f", "Agent", {"prompt": "p"}),
        v2.result("f", "agent_id: agent-4\nstatus: completed\n\nagent_id: nobody here"),
        v2.result("s", swarm),
        v2.result("b", "task_id: t\nagent_id: agent-3\n"),
    )
    folded = fold(data)
    assert folded.spawned == [
        Spawned("agent-1", 0, "s"),
        Spawned("agent-3", 0, "b"),
        Spawned("agent-4", 0, "f"),
        Spawned("agent-2", 0, "s"),
    ]
    assert [call.agents[0] for call in folded.list[0].tools] == ["agent-1", "agent-3", "agent-4"]


def test_a_btw_wire_begins_with_its_first_own_prompt() -> None:
    v2 = V2()
    data = wire(
        meta(),
        v2.typed("parent's question", id="m0"),
        v2.message("parent's answer", role="assistant"),
        v2.message("side channel", origin={"kind": "injection", "variant": "btw"}),
        *v2.turn(0, "aside", "42"),
        v2.undo(1),
    )
    turns = fold(data, replace(ORIGIN, context_copied=True)).list
    assert [(turn.user_text, turn.lines[0], turn.undone) for turn in turns] == [("aside", 5, True)]


def test_every_fork_record_extends_the_copied_prefix() -> None:
    v2 = V2()
    forked = {"type": "forked", "agentId": "main", "time": T0}
    data = wire(meta(), *v2.turn(0, "a", "1"), forked, *v2.turn(1, "b", "2"))
    assert [turn.copied for turn in fold(data).list] == [True, False]
    again = data + wire(forked, *v2.turn(2, "c", "3"))
    assert [turn.copied for turn in fold(again).list] == [True, True, False]
    splitter = open_splitter(again[:400], ORIGIN, keep)
    changes = [change for chunk in chunks_of(again, [8]) for change in splitter.feed(chunk)]
    assert [change.before for change in changes if isinstance(change, Copied)] == [1, 2]


def test_twins_of_two_writers_are_told_apart() -> None:
    a, b = V2(), V2()
    b.uuids = 100
    b.at = a.at + 5
    data = wire(
        meta(),
        *a.turn(0, "before", "x"),
        *(first := a.opened(1, "from a")),
        *(second := b.opened(1, "from b")),
        a.begin(1),
        b.begin(1),
        a.say(1, "answer a"),
        b.say(1, "answer b"),
        a.call(1, "ca", "Bash", {"command": "a"}),
        b.result("ca", "fine"),
        b.end(1),
        a.end(1),
        b.ended(1, durationMs=0) | {"time": second[0]["time"] + 90, "durationMs": 90},
        a.ended(1, "cancelled") | {"time": first[0]["time"] + 95, "durationMs": 95},
        *a.turn(2, "after", "y"),
    )
    turns = fold(data).list
    assert [turn.turn_id for turn in turns] == [0, 1, 1, 2]
    assert [(turn.assistant_text, turn.status) for turn in turns[1:3]] == [
        ("answer a", "cancelled"),
        ("answer b", "completed"),
    ]
    assert [call.result for call in turns[1].tools] == ["ok"]


def test_a_turn_whose_prompt_line_is_lost_opens_with_its_message() -> None:
    v2 = V2()
    opened = v2.opened(1, "lost prompt")
    torn = line(opened[0])[:60] + line(v2.other("prompt.accepted", promptId="x"))
    data = wire(meta(), *v2.turn(0, "a", "1"), torn, opened[1], *v2.answer(1, "2"), v2.ended(1))
    folded = fold(data)
    assert folded.counts["corrupt-line"] == 1
    assert [(t.turn_id, t.user_text, t.assistant_text, t.status) for t in folded.list] == [
        (0, "a", "1", "completed"),
        (1, "lost prompt", "2", "completed"),
    ]


# --- lines ---------------------------------------------------------------------------------------------


def test_corrupt_lines_and_unknown_records_are_counted() -> None:
    v2 = V2()
    data = wire(
        meta(),
        *v2.opened(0, "a"),
        b'{"type":"context.append_loop_event","agentId":"main","event":{"type":"tool.re{"type":"turn.ended"}\n',
        b'{"type":"llm.request","agentId":"ma\n',
        b"[1,2]\n",
        b"\xff\xfe\x00garbage\n",
        b"\n",
        {"type": "brand.new", "time": T0},
        {"type": ["x"], "time": T0},
        {"no": "type"},
        *v2.answer(0, "1"),
        v2.ended(0),
    )
    folded = fold(data)
    assert folded.counts == {
        "corrupt-line": 3,
        "not-object": 1,
        "unknown:brand.new": 1,
        "unknown:?": 2,
    }
    assert folded.list[0].assistant_text == "1"


def test_a_torn_result_glued_to_a_good_line_is_corrupt() -> None:
    v2 = V2()
    opened = [*v2.opened(0, "a"), v2.begin(0), v2.call(0, "c", "Read", {"path": "x"})]
    torn = line(v2.result("c", "some output that was never"))[:-40] + line(v2.say(0, "glued"))
    data = wire(meta(), *opened, torn, v2.say(0, "good"), v2.ended(0))
    folded = fold(data)
    assert folded.counts["corrupt-line"] == 1
    assert [call.result for call in folded.list[0].tools] == [None]
    assert folded.list[0].assistant_text == "good"


def test_separators_and_surrogates_inside_strings() -> None:
    v2 = V2()
    strange = "a\u2028b\u2029c\x85d"
    lone = line(v2.say(0, "X")).replace(b'"X"', b'"lone \\ud83d end"')
    data = wire(meta(), *v2.opened(0, strange), v2.begin(0), lone, v2.ended(0))
    (turn,) = fold(data).list
    assert turn.user_text == strange
    assert turn.assistant_text == "lone \ufffd end"
    assert turn.assistant_text.encode()


def test_crlf_and_blank_lines_change_nothing_but_offsets() -> None:
    v2 = V2()
    records = [meta(), *v2.turn(0, "a", "1"), *v2.turn(1, "b", "2")]
    plain = fold(wire(*records)).list
    data = wire(*records).replace(b"\n", b"\r\n")
    assert [_without_range(turn) for turn in fold(data).list] == [_without_range(turn) for turn in plain]
    for turn in fold(data).list:
        assert data[turn.start : turn.end].endswith(b"\r\n")
    spaced = fold(wire(*(each for record in records for each in (record, b"\n")))).list
    assert [turn.assistant_text for turn in spaced] == ["1", "2"]


def _without_range(turn: Any) -> Any:
    return replace(turn, start=0, end=0)


def test_the_journal_is_not_counted_twice() -> None:
    v2 = V2()
    journal = [
        {
            "message": {"message": {"role": "user", "content": text("a")}},
            "type": name,
            "time": T0,
            "kind": "event",
        }
        for name in ("agent.message.appended", "human.agent.message.appended")
    ]
    ended = {"turnId": 0, "outcome": "failed", "type": "agent.turn.ended", "time": T0, "kind": "event"}
    data = wire(meta(), *v2.opened(0, "a"), *journal, *v2.answer(0, "1"), ended, v2.ended(0))
    folded = fold(data)
    assert [(turn.status, turn.assistant_text) for turn in folded.list] == [("completed", "1")]
    assert not folded.counts


def test_text_that_quotes_a_wire_is_only_text() -> None:
    v2 = V2()
    quoted = line(v2.prompt("fake", turnId=9)).decode()
    data = wire(
        meta(),
        *v2.opened(0, quoted),
        v2.begin(0),
        v2.say(0, quoted),
        v2.call(0, "c", "Bash", {"command": "cat wire.jsonl", "display": {"kind": "file_io"}}),
        v2.result("c", quoted * 3 + '"isError":true'),
        v2.call(
            0,
            "d",
            "Write",
            {"path": "w", "nested": {"type": "turn.prompt", "args": {"display": {"kind": "x"}}}},
        ),
        v2.result("d", quoted),
        v2.end(0),
        v2.ended(0),
    )
    (turn,) = fold(data).list
    assert turn.user_text == quoted
    assert turn.assistant_text == quoted
    assert [call.result for call in turn.tools] == ["ok", "ok"]


# --- our own calls -------------------------------------------------------------------------------------


def test_our_own_calls_keep_nothing_but_their_result() -> None:
    v2 = V2()
    tools = [{"name": "bootstrap_workspace"}, {"name": "recall"}]
    data = wire(
        meta(),
        v2.other("mcp.tools_discovered", serverName="mem", tools=tools),
        v2.other("mcp.tools_discovered", serverName="demo", tools=[{"name": "recall"}]),
        *v2.opened(0, "go"),
        v2.begin(0),
        v2.call(0, "a", "mcp__mem__recall", {"key": "x"}),
        v2.call(0, "b", "mcp__demo__recall", {"key": "x"}),
        v2.call(0, "c", "mcp__else__search_context", {"query": "x"}),
        v2.call(0, "d", "mcp__else__search", {"query": "x"}),
        v2.result("a", "memory", isError=True),
    )
    calls = list(fold(data, cuts=[2, 5], resume=True).list[0].tools)
    assert [call.own for call in calls] == [True, False, True, True]
    assert (calls[0].args, calls[0].error, calls[0].result) == ("{}", "", "error")
    assert calls[1].args == '{"key":"x"}'


def test_hooks_shell_and_notices_open_no_turn() -> None:
    v2 = V2()
    data = wire(
        meta(),
        *v2.turn(0, "a", "1"),
        v2.message("<bash-input>ls</bash-input>", origin={"kind": "shell_command", "phase": "input"}),
        v2.message("<hook_result>x</hook_result>", origin={"kind": "hook_result"}),
        *v2.opened(1, "b"),
        v2.begin(1),
        v2.message(NOTICE, origin={"kind": "task"}),
        *v2.answer(1, "2", 2),
        v2.ended(1),
    )
    assert [turn.user_text for turn in fold(data).list] == ["a", "b"]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (["plain <b>text</b> "], "plain <b>text</b> "),
        (["hello", "<system-reminder>\nx\n</system-reminder>"], "hello"),
        (["hello\n<system-reminder>x</system-reminder>"], "hello"),
        (['<image path="a.png">', "</image>", "what is this?"], "what is this?"),
        (["[Image: a.png] what?"], "what?"),
        (['<git-context branch="main">\nclean\n</git-context>\n\ndo it'], "do it"),
        (["<system-reminder> is a tag"], "<system-reminder> is a tag"),
        (["a", "b"], "a\nb"),
    ],
)
def test_noise_in_user_text(parts: list[str], expected: str) -> None:
    v2 = V2()
    (turn,) = fold(wire(meta(), v2.prompt(text(*parts), turnId=0))).list
    assert turn.user_text == expected
