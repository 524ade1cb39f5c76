"""Shapes of kimi-cli wires that the recorded sample does not have (WIRE §11)."""

from __future__ import annotations

from stages.model import Spawned
from stages.split import dialect_of, open_splitter
from tests.stages.wire_feed import ORIGIN, chunks_of, fold, keep
from tests.stages.wire_lines import T0, V2, cli, cli_meta, meta, wire


def _call(call_id: str, name: str, arguments: str | None) -> bytes:
    return cli(
        "ToolCall", type="function", id=call_id, function={"name": name, "arguments": arguments}, extras=None
    )


def _result(call_id: str, output: object, **more: object) -> bytes:
    value = {"is_error": False, "output": output, "message": "", "display": [], **more}
    return cli("ToolResult", tool_call_id=call_id, return_value=value)


def test_fragments_complete_the_last_calls_arguments() -> None:
    data = wire(
        cli_meta(),
        cli("TurnBegin", user_input="go"),
        cli("StepBegin", n=1),
        _call("a", "Shell", None),
        cli("ToolCallPart", arguments_part='{"comm'),
        cli("ToolCallPart", arguments_part='and": "make test"}'),
        _call("b", "ReadFile", '{"path": "/home/dev/proj/x.py"}'),
        _result("b", "text"),
        _result("a", [{"type": "text", "text": "12 passed"}]),
        cli("TurnEnd"),
    )
    for cuts in ([], [4], [5], [6]):
        (turn,) = fold(data, cuts=cuts, resume=True).list
        assert [(c.name, c.command, c.outcome, c.result) for c in turn.tools] == [
            ("Shell", "make test", "12 passed", "ok"),
            ("ReadFile", "", "", "ok"),
        ]
        assert [(f.path, f.op) for c in turn.tools for f in c.files] == [("x.py", "read")]


def test_nested_sub_agent_events_open_no_turn() -> None:
    def nested(inner: str, depth: int = 1, **ids: str) -> bytes:
        event: dict[str, object] = {
            "type": inner,
            "payload": {"user_input": "sub", "n": 1, "type": "text", "text": "sub"},
        }
        for _ in range(depth - 1):
            event = {"type": "SubagentEvent", "payload": {"parent_tool_call_id": "x", "event": event}}
        return cli("SubagentEvent", T0 / 1000, **ids, event=event)

    data = wire(
        cli_meta(),
        cli("TurnBegin", user_input="go"),
        cli("StepBegin", n=1),
        _call("t", "Task", "{}"),
        nested("TurnBegin", parent_tool_call_id="t", agent_id="a1"),
        nested("ContentPart", 3, parent_tool_call_id="t", agent_id="a1"),
        nested("ContentPart", task_tool_call_id="t"),
        nested("TurnEnd", parent_tool_call_id="t", agent_id="a1"),
        _result("t", "done"),
        cli("ContentPart", type="text", text="mine"),
        cli("TurnEnd"),
    )
    folded = fold(data)
    assert [turn.assistant_text for turn in folded.list] == ["mine"]
    assert folded.spawned == [Spawned("a1", 0, "t")]


def test_side_questions_and_requests_are_no_turns() -> None:
    data = wire(
        cli_meta(),
        cli("TurnBegin", user_input="go"),
        cli("BtwBegin", id="1", question="aside"),
        cli("ApprovalRequest", id="2"),
        cli("BtwEnd", id="1", response="42", error=None),
        cli("ContentPart", type="text", text="mine"),
        cli("SteerInput", user_input=[{"type": "text", "text": "faster"}]),
        cli("TurnEnd"),
        cli("BtwBegin", id="3", question="after"),
    )
    (turn,) = fold(data).list
    assert [steer.text for steer in turn.steers] == ["faster"]
    assert turn.lines == (2, 8)


def test_turns_of_old_protocols_have_no_end_record() -> None:
    begin = [cli("TurnBegin", user_input="one"), cli("StepBegin", n=1)]
    said = [cli("ContentPart", type="text", text="yes")]
    data = wire(cli_meta("1.1"), *begin, *said, *begin, cli("StepInterrupted"), *begin)
    assert [turn.status for turn in fold(data).list] == ["completed", "unfinished", "unfinished"]
    newer = wire(cli_meta("1.10"), *begin, *said, *begin)
    assert [(turn.status, turn.open) for turn in fold(newer).list] == [
        ("unfinished", False),
        ("unfinished", True),
    ]


def test_interrupted_turn_is_cancelled() -> None:
    data = wire(
        cli_meta(),
        cli("TurnBegin", user_input="one"),
        cli("StepBegin", n=1),
        cli("StepInterrupted"),
        cli("TurnEnd"),
    )
    assert [turn.status for turn in fold(data).list] == ["cancelled"]


def test_a_retried_step_repeats_its_number() -> None:
    data = wire(
        cli_meta(),
        cli("TurnBegin", user_input="one"),
        cli("StepBegin", n=1),
        cli("StepRetry", n=1, next_attempt=2),
        cli("StepBegin", n=1),
        cli("ContentPart", type="text", text="yes"),
        cli("StatusUpdate", token_usage={"input_other": 5, "output": 2, "input_cache_read": 1}),
        cli("TurnEnd"),
    )
    (turn,) = fold(data).list
    assert [(step.number, step.finish) for step in turn.steps] == [(1, "error"), (1, "")]
    assert (turn.tokens_in, turn.tokens_out) == (6, 2)


def test_own_tools_by_their_bare_names() -> None:
    data = wire(
        cli_meta(),
        cli("TurnBegin", user_input="one"),
        _call("a", "search", '{"query": "x"}'),
        _call("b", "bootstrap_workspace", "{}"),
        _call("c", "search", '{"query": "x"}'),
        _call("d", "Grep", '{"pattern": "x"}'),
    )
    assert [call.own for call in fold(data).list[0].tools] == [False, True, True, False]


def test_corrupt_and_unknown_records_are_counted() -> None:
    data = wire(
        cli_meta(),
        cli("TurnBegin", user_input="one"),
        b'{"timestamp": 12.0, "message": {"type": "Content\n',
        cli("Novelty", x=1),
        b'{"timestamp": 1, "message": "text"}\n',
        b"42\n",
        cli("TurnEnd"),
        cli("TurnEnd"),
    )
    folded = fold(data)
    assert folded.counts == {
        "corrupt-line": 1,
        "unknown:Novelty": 1,
        "unknown:?": 1,
        "not-object": 1,
        "orphan-end": 1,
    }
    assert [turn.status for turn in folded.list] == ["completed"]


def test_the_last_skipped_line_of_a_killed_turn_is_its_last() -> None:
    data = wire(
        cli_meta(),
        cli("TurnBegin", user_input="one"),
        cli("HookTriggered", at=T0 / 1000 + 5),
    )
    (turn,) = fold(data).list
    assert turn.lines == (2, 3)
    assert turn.last_at == T0 + 5000
    assert turn.end == len(data)


def test_dialects_are_told_by_bytes() -> None:
    v2 = V2()
    assert dialect_of(cli_meta() + cli("TurnBegin")) == "kimi-cli"
    assert dialect_of(cli("TurnBegin")) == "kimi-cli"
    assert dialect_of(wire(meta(), *v2.turn(0, "a", "b"))) == "kimi-code"
    assert dialect_of(b"garbage\n" + cli("TurnBegin")) == "kimi-cli"
    assert dialect_of(b'{"turnId":0,"type":"agent.turn.ended","kind":"event"}\n') == "kimi-code"
    assert dialect_of(b"") == "kimi-code"


def test_a_saved_state_remembers_its_dialect() -> None:
    data = wire(cli_meta(), cli("TurnBegin", user_input="one"), cli("TurnEnd"))
    splitter = open_splitter(data, ORIGIN, keep)
    (chunk,) = chunks_of(data)
    splitter.feed(chunk)
    assert type(open_splitter(b"", ORIGIN, keep, splitter.state())) is type(splitter)
