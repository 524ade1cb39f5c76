"""Any chunking and any interruption give the same turns; no input raises."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.split import Origin, open_splitter, whole_turn
from stages.wire.kimi_code import KimiCode
from tests.stages.wire_feed import ORIGIN, Folded, chunks_of, fold, keep
from tests.stages.wire_lines import V1, V2, cli, cli_meta, line, meta, text, wire

SAMPLES = Path(__file__).parent.parent / "samples"
WIRES = {str(path.relative_to(SAMPLES)): path.read_bytes() for path in sorted(SAMPLES.glob("**/wire*.jsonl"))}
WHOLE: dict[tuple[bytes, Origin], Folded] = {}


def _same(data: bytes, origin: Origin, cuts: list[int], *, peek: bool) -> None:
    whole = WHOLE.setdefault((data, origin), fold(data, origin))
    again = fold(data, origin, cuts=cuts, resume=True, peek=peek)
    assert again.list == whole.list
    assert set(again.spawned) == set(whole.spawned)
    assert again.counts == whole.counts


@given(
    name=st.sampled_from(sorted(WIRES)), cuts=st.lists(st.integers(1, 300), max_size=12), peek=st.booleans()
)
@settings(max_examples=150, deadline=None)
def test_samples_fold_the_same_in_any_chunks(name: str, cuts: list[int], peek: bool) -> None:
    origin = Origin("s", "a", cwd="/home/dev/proj", context_copied="agent-0" in name)
    _same(WIRES[name], origin, cuts, peek=peek)


def test_samples_fold_the_same_line_by_line() -> None:
    for data in WIRES.values():
        _same(data, ORIGIN, list(range(data.count(b"\n"))), peek=False)


# --- made-up wires ---------------------------------------------------------------------------------------

_V1, _V2 = V1(), V2()
_TRIGGER = {"kind": "system_trigger", "name": "goal_continuation"}


def _record(engine: V1, pick: int, turn: int) -> Any:
    """One of the records an engine may write, at any place."""
    task = {"kind": "task"}
    made: list[Callable[[], Any]] = [
        lambda: engine.prompt("hello there", turnId=turn if engine is _V2 else None),
        lambda: engine.prompt("by id", promptId=f"m{turn}", turnId=turn),
        lambda: engine.prompt([], kind="retry"),
        lambda: engine.typed("hello there", id=f"m{turn}"),
        lambda: engine.message("untold"),
        lambda: engine.message("go on", origin=_TRIGGER),
        lambda: engine.message("notice", origin=task),
        lambda: engine.message("reminder", origin={"kind": "injection"}),
        lambda: engine.message("ls", origin={"kind": "shell_command"}),
        lambda: engine.message(
            "answer", role="assistant", toolCalls=[{"id": "c9", "name": "Bash", "arguments": "{}"}]
        ),
        lambda: engine.message("output", role="tool", toolCallId="c9"),
        lambda: engine.steer("faster"),
        lambda: engine.steer("notice", kind="background_task"),
        lambda: engine.steer("later", messageId="m", turnId=turn),
        lambda: engine.begin(turn, 1 + turn),
        lambda: engine.say(turn, "words " * (turn + 1)),
        lambda: engine.think(turn, "hm"),
        lambda: engine.call(turn, f"c{turn}", "Bash", {"command": "ls"}),
        lambda: engine.call(
            turn, f"c{turn}", "Read", {}, display={"kind": "file_io", "operation": "read", "path": "/x"}
        ),
        lambda: engine.result(f"c{turn}", "fine"),
        lambda: engine.result(f"c{turn}", "bad", isError=True, note="n"),
        lambda: engine.end(turn),
        lambda: _V2.ended(turn, "completed", durationMs=30),
        lambda: engine.undo(1 + turn % 2),
        lambda: engine.clear(),
        lambda: engine.compaction(summary="so far", keptUserMessageCount=1),
        lambda: engine.compaction(summary="so far", legacyTail=True),
        lambda: engine.other("forked"),
        lambda: engine.other("turn.cancel", turnId=turn, target="queued"),
        lambda: engine.other("llm.request", model="m"),
        lambda: engine.other("usage.record", model=f"model-{turn % 2}"),
        lambda: engine.other("prompt.completed"),
        lambda: engine.other("goal.create"),
        lambda: engine.other("token_counting.measured"),
        lambda: engine.other("subagent.spawned", subagentId="agent-1", parentToolCallId=f"c{turn}"),
        lambda: engine.other("task.terminated", info={"kind": "agent" if turn % 2 else "process"}),
        lambda: engine.other("never.seen"),
        lambda: {"type": "context.append_loop_event", "event": {"type": "step.end"}},
        lambda: b'{"type":"turn.prompt","agentId":"ma\n',
    ]
    return made[pick % len(made)]()


_RECORDS = st.lists(st.tuples(st.booleans(), st.integers(0, 38), st.integers(0, 3)), max_size=40)
_ORIGINS = st.builds(Origin, st.just("s"), st.just("a"), st.just("/w"), st.booleans(), st.booleans())


@given(records=_RECORDS, cuts=st.lists(st.integers(1, 40), max_size=8), origin=_ORIGINS, peek=st.booleans())
@settings(max_examples=400, deadline=None)
def test_made_up_wires_fold_the_same_in_any_chunks(
    records: list[tuple[bool, int, int]], cuts: list[int], origin: Origin, peek: bool
) -> None:
    data = wire(meta(), *(_record(_V2 if v2 else _V1, pick, turn) for v2, pick, turn in records))
    whole = fold(data, origin)
    again = fold(data, origin, cuts=cuts, resume=True, peek=peek)
    assert again.list == whole.list
    assert set(again.spawned) == set(whole.spawned)
    assert [turn.position for turn in whole.list] == list(range(len(whole.list)))
    for turn in whole.list:
        assert 0 <= turn.start < turn.end <= len(data)
        assert turn.lines[0] <= turn.lines[1]


@given(records=_RECORDS, origin=_ORIGINS)
@settings(max_examples=200, deadline=None)
def test_shortcuts_read_what_the_parser_reads(records: list[tuple[bool, int, int]], origin: Origin) -> None:
    data = wire(meta(), *(_record(_V2 if v2 else _V1, pick, turn) for v2, pick, turn in records))
    slow = KimiCode(origin, keep)
    slow.shortcuts.clear()
    parsed = Folded()
    for chunk in chunks_of(data):
        parsed.apply([*slow.feed(chunk), *slow.provisional()])
    assert fold(data, origin).list == parsed.list


# --- fuzz ------------------------------------------------------------------------------------------------

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, dict):
        for key in value:
            found += _paths(value[key], (*path, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            found += _paths(item, (*path, i))
    return found


def _spoiled(value: Any, path: tuple[Any, ...], spoil: Any) -> Any:
    if not path:
        return spoil
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _spoiled(value[path[0]], path[1:], spoil)
    return copy


_SEEDS = [
    json.loads(each)
    for data in (
        *WIRES.values(),
        wire(
            _V2.steer("x", messageId="m", turnId=0),
            _V2.message(
                "x", role="assistant", toolCalls=[{"id": "c", "function": {"name": "f", "arguments": "{}"}}]
            ),
            _V2.message("x", role="tool", toolCallId="c"),
            _V2.compaction(summary={"content": text("x")}, legacyTail=True),
            _V2.other("task.started", info={"agentId": "a", "parentToolCallId": "c"}),
            _V2.other("mcp.tools_discovered", serverName="x", tools=[{"name": "bootstrap_workspace"}]),
            cli_meta(),
            cli("ToolCallPart", arguments_part="{}"),
            cli("StepRetry", n=1),
        ),
    )
    for each in data.split(b"\n")
    if each and len(each) < 2_000
]


@given(data=st.data(), seed=st.integers(0, len(_SEEDS) - 1), before=st.integers(0, len(_SEEDS) - 1))
@settings(max_examples=600, deadline=None)
def test_no_wrongly_typed_field_raises(data: st.DataObject, seed: int, before: int) -> None:
    record = _SEEDS[seed]
    path = data.draw(st.sampled_from(_paths(record)))
    spoiled = _spoiled(record, path, data.draw(_JSON))
    body = wire(*_SEEDS[before : before + 4], *(line(spoiled) for _ in range(2)), *_SEEDS[seed : seed + 6])
    for head in (wire(meta()), cli_meta()):
        folded = fold(head + body, cuts=[2, 5], resume=True)
        for turn in folded.list:
            orjson.dumps([turn.opening_text, turn.user_text, [step.texts for step in turn.steps]])
    whole_turn(body, ORIGIN, keep)


@given(data=st.binary(max_size=400), head=st.sampled_from([b"", wire(meta()), cli_meta()]))
@settings(max_examples=200, deadline=None)
def test_no_bytes_raise(data: bytes, head: bytes) -> None:
    splitter = open_splitter(head, ORIGIN, keep)
    for chunk in chunks_of(head + data):
        splitter.feed(chunk)
    splitter.provisional()
    splitter.state()


@given(st.integers(0, 5_000), st.binary(min_size=1, max_size=3), st.sampled_from(sorted(WIRES)))
@settings(max_examples=200, deadline=None)
def test_flipped_bytes_never_raise(at: int, flipped: bytes, name: str) -> None:
    data = WIRES[name]
    at %= len(data)
    fold(data[:at] + flipped + data[at + len(flipped) :])
