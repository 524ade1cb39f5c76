"""What readers do with turns: running or not, cut by an undo, shown whole, resumed from another version."""

from __future__ import annotations

import json
from pathlib import Path

import orjson
import pytest

from stages.model import Cut, Truncate
from stages.split import (
    RUNNING_MS,
    Origin,
    StateMismatch,
    apply_truncate,
    open_splitter,
    status_at,
    whole_turn,
)
from stages.wire.kimi_code import KimiCode
from stages.wire.show import TOO_DEEP
from tests.stages.wire_feed import ORIGIN, Folded, chunks_of, fold, keep
from tests.stages.wire_lines import T0, V2, cli, meta, wire

SAMPLES = Path(__file__).parent.parent / "samples"


@pytest.mark.parametrize(
    ("is_open", "status", "last_at", "mtime", "expected"),
    [
        (True, "unfinished", T0, T0, "running"),
        (True, "unfinished", T0 - RUNNING_MS, T0, "running"),
        (True, "unfinished", T0 - RUNNING_MS - 1, T0, "unfinished"),
        (True, "unfinished", T0, T0 - RUNNING_MS - 1, "unfinished"),
        (True, "unfinished", None, T0, "unfinished"),
        (True, "unfinished", T0, None, "unfinished"),
        (False, "unfinished", T0, T0, "unfinished"),
        (True, "completed", T0, T0, "completed"),
    ],
)
def test_only_a_fresh_open_turn_is_running(
    is_open: bool, status: str, last_at: int | None, mtime: int | None, expected: str
) -> None:
    assert status_at(is_open, status, last_at, mtime, T0) == expected  # type: ignore[arg-type]


def test_truncate_marks_and_keeps_everything() -> None:
    (turn,) = fold(wire(meta(), *V2().turn(0, "a", "b"))).list
    cut = apply_truncate(turn, Truncate(0, Cut(0, 0, T0)))
    assert cut.steps == turn.steps
    assert cut.live_steps == ()


def test_provisional_alters_nothing() -> None:
    data = (SAMPLES / "i_killed").glob("**/wire.jsonl").__next__().read_bytes()
    splitter = open_splitter(data, ORIGIN, keep)
    for chunk in chunks_of(data, [30]):
        before = splitter.state()
        assert splitter.provisional() == splitter.provisional()
        assert splitter.state() == before
        splitter.feed(chunk)


@pytest.mark.parametrize(
    "state", [b"", b"{}", b"[]", b'{"v":0,"dialect":"kimi-code"}', b'{"v":2,"dialect":"x"}']
)
def test_a_foreign_state_is_refused(state: bytes) -> None:
    with pytest.raises(StateMismatch, match="saved splitter state"):
        open_splitter(b"", ORIGIN, keep, state)


def test_a_damaged_state_is_refused() -> None:
    splitter = open_splitter(b"", ORIGIN, keep)
    saved = json.loads(splitter.state())
    for key in saved:
        damaged = {**saved, key: {"odd": 1}} if key != "more" else {**saved, key: []}
        if key in (
            "own",
            "compactions",
            "undone",
            "anchors",
            "wall",
            "cli",
            "model",
            "line",
            "position",
            "next",
        ):
            continue
        with pytest.raises(StateMismatch):
            open_splitter(b"", ORIGIN, keep, json.dumps(damaged).encode())


def test_shortcuts_read_what_the_parser_reads() -> None:
    for path in sorted(SAMPLES.glob("**/wire.jsonl")):
        data = path.read_bytes()
        slow = KimiCode(Origin("s", "a", cwd="/home/dev/proj"), keep)
        slow.shortcuts.clear()
        parsed = Folded()
        for chunk in chunks_of(data):
            parsed.apply(slow.feed(chunk))
        parsed.apply(slow.provisional())
        if "legacy" not in str(path):
            assert fold(data, Origin("s", "a", cwd="/home/dev/proj")).list == parsed.list


def test_shortcuts_and_parser_cut_long_arguments_alike() -> None:
    v2 = V2()
    display = {"kind": "file_io", "operation": "write", "path": "/home/dev/proj/a.py", "content": "x"}
    args = {"path": "a.py", "content": 'line "one"\n\tline \\two\r\n' * 2_000 + "配置"}
    data = wire(meta(), *v2.opened(0, "go"), v2.begin(0), v2.call(0, "c", "Write", args, display=display))
    slow = KimiCode(ORIGIN, keep)
    slow.shortcuts.clear()
    parsed = Folded()
    for chunk in chunks_of(data):
        parsed.apply(slow.feed(chunk))
    parsed.apply(slow.provisional())
    assert fold(data).list == parsed.list
    (call,) = parsed.list[0].tools
    assert call.args.startswith('{"path":"a.py","content":"line \\"one\\"\\n\\tline \\\\two\\r\\n')


# --- whole turns ---------------------------------------------------------------------------------------


def test_a_whole_turn_has_everything_in_order() -> None:
    v2 = V2()
    long = "word " * 20_000
    data = wire(
        meta(),
        *v2.opened(0, long),
        v2.begin(0),
        v2.think(0, "hm"),
        v2.say(0, long),
        v2.call(0, "a", "Bash", {"command": "x", "env": {"API_KEY": "secret"}}),
        v2.steer("faster", messageId="m", turnId=0),
        v2.result("a", long, isError=True),
        v2.end(0),
        v2.ended(0, "failed", error={"message": "boom"}),
    )
    (turn,) = fold(data).list
    shown = whole_turn(data[turn.start : turn.end], ORIGIN, lambda text: text.replace("secret", "[s]"))
    assert [item["kind"] for item in shown] == ["prompt", "step", "text", "call", "steer", "result", "end"]
    assert shown[0]["text"] == long
    assert shown[3]["args"] == {"command": "x", "env": {"API_KEY": "[s]"}}
    assert (shown[5]["result"], shown[5]["text"]) == ("error", long)
    assert (shown[6]["status"], shown[6]["error"]) == ("failed", "boom")


def test_a_whole_turn_leaves_out_another_writers_turn_and_our_own_calls() -> None:
    v2 = V2()
    data = wire(
        *v2.opened(1, "mine"),
        v2.begin(2),
        v2.say(2, "foreign"),
        v2.call(2, "f", "Bash", {}),
        v2.result("f", "foreign"),
        v2.begin(1),
        v2.call(1, "o", "mcp__mem__search_context", {"query": "q"}),
        v2.result("o", "memory"),
        v2.say(1, "mine"),
    )
    shown = whole_turn(data, ORIGIN, keep, turn_id=1)
    assert [item["kind"] for item in shown] == ["prompt", "step", "call", "result", "text"]
    assert (shown[2]["args"], shown[3]["text"]) == ({}, "")


def test_names_of_arguments_are_redacted_and_what_is_nested_too_deep_is_left_out() -> None:
    v2 = V2()
    deep: object = "x"
    for _ in range(400):
        deep = {"a": [deep]}
    call = v2.call(0, "c", "mcp__db__query", {"secret": {"secret": 1}, "deep": deep})
    shown = whole_turn(
        wire(*v2.opened(0, "q"), v2.begin(0), call), ORIGIN, lambda text: text.replace("secret", "[s]")
    )
    args = shown[2]["args"]
    assert args["[s]"] == {"[s]": 1}
    assert TOO_DEEP in orjson.dumps(args).decode() and TOO_DEEP in str(args)


def test_whole_turns_of_imports_and_of_kimi_cli() -> None:
    v2 = V2()
    calls = [{"id": "c", "function": {"name": "Bash", "arguments": '{"command":"ls"}'}}]
    data = wire(
        v2.message("question"),
        v2.message("answer", role="assistant", toolCalls=calls),
        v2.message("files", role="tool", toolCallId="c"),
    )
    shown = whole_turn(data, ORIGIN, keep)
    assert [item["kind"] for item in shown] == ["prompt", "text", "call", "result"]
    assert shown[2]["args"] == {"command": "ls"}
    legacy = wire(
        cli("TurnBegin", user_input="question"),
        cli("StepBegin", n=1),
        cli("ToolCall", id="c", function={"name": "Shell", "arguments": '{"command": "ls"}'}),
        cli(
            "ToolResult",
            tool_call_id="c",
            return_value={"is_error": False, "output": "files", "message": "ok"},
        ),
        cli("ContentPart", type="text", text="answer"),
        cli("TurnEnd"),
        b"torn\n",
    )
    shown = whole_turn(legacy, ORIGIN, keep)
    assert [item["kind"] for item in shown] == ["prompt", "step", "call", "result", "text", "end"]
    assert shown[3]["text"] == "files\nok"
