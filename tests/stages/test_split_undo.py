"""Undo, clear and compaction: anchors, walls, partial cuts (WIRE §6)."""

from __future__ import annotations

import pytest

from stages.model import Cut, Turn
from stages.split import Origin, open_splitter
from tests.stages.wire_feed import ORIGIN, chunks_of, fold, keep
from tests.stages.wire_lines import V1, V2, meta, text, wire


def undone(turns: list[Turn]) -> list[int]:
    return [turn.position for turn in turns if turn.undone]


def test_undo_takes_back_the_last_prompts_and_engine_turns_behind_them() -> None:
    v2 = V2()
    task = {"kind": "task", "taskId": "t"}
    data = wire(
        meta(),
        *v2.turn(0, "first", "one"),
        *v2.turn(1, "second", "two"),
        v2.prompt("<notification>done</notification>", turnId=2, origin=task),
        v2.message("<notification>done</notification>", origin=task),
        *v2.answer(2, "noted"),
        v2.ended(2),
        undo := v2.undo(1),
        *v2.turn(3, "third", "three"),
    )
    folded = fold(data)
    assert undone(folded.list) == [1, 2]
    assert {turn.undone_at for turn in folded.list if turn.undone} == {undo["time"]}
    assert [turn.turn_id for turn in folded.list] == [0, 1, 2, 3]


def test_each_undo_applies_to_what_the_earlier_ones_left() -> None:
    v2 = V2()
    data = wire(
        meta(),
        *v2.turn(0, "a", "1"),
        *v2.turn(1, "b", "2"),
        *v2.turn(2, "c", "3"),
        v2.undo(1),
        *v2.turn(3, "d", "4"),
        v2.undo(2),
    )
    turns = fold(data).list
    assert undone(turns) == [1, 2, 3]
    assert turns[2].undone_at != turns[1].undone_at, "the first undo stays the one that undid it"


def test_the_three_records_of_one_undo_count_once() -> None:
    v2 = V2()
    switched = v2.other(
        "agent.switched", branch="b1", reason="undo", base={"branch": "main", "line": 5}, turns=1
    )
    data = wire(
        meta(),
        *v2.turn(0, "a", "1"),
        *v2.turn(1, "b", "2"),
        switched,
        v2.undo(1),
        v2.other("context.undone", turns=1, fromTurnId=1),
    )
    assert undone(fold(data).list) == [1]


def test_an_undone_steer_cuts_its_turn() -> None:
    v2 = V2()
    data = wire(
        meta(),
        *v2.opened(0, "work"),
        *v2.answer(0, "half"),
        v2.steer("also this"),
        v2.typed("also this"),
        *v2.answer(0, "all", 2),
        v2.ended(0),
        undo := v2.undo(1),
    )
    turn = fold(data).list[0]
    assert not turn.undone
    assert turn.cut == Cut(1, 0, undo["time"])
    assert turn.assistant_text == "all"
    assert [step.texts for step in turn.live_steps] == [("half",)]
    assert turn.live_steers == ()


def test_a_steer_written_after_its_message_is_cut_alike() -> None:
    """0.43 to 2.0.1: the message comes first and has no ``inTurn``."""
    v2 = V2()
    data = wire(
        meta(),
        *v2.opened(0, "work"),
        *v2.answer(0, "half"),
        v2.typed("one", id="m1"),
        v2.steer("one", messageId="m1", turnId=0),
        *v2.answer(0, "more", 2),
        v2.typed("two", id="m2"),
        v2.steer("two", messageId="m2", turnId=0),
        *v2.answer(0, "all", 3),
        v2.ended(0),
        v2.undo(1),
    )
    turn = fold(data).list[0]
    assert [steer.text for steer in turn.live_steers] == ["one"]
    assert len(turn.live_steps) == 2


def test_a_message_inside_a_turn_is_no_anchor() -> None:
    v2 = V2()
    data = wire(
        meta(),
        *v2.turn(0, "first", "one"),
        *v2.opened(1, "work"),
        *v2.answer(1, "half"),
        v2.message("also", origin={"kind": "user", "inTurn": True}, id="m1"),
        v2.steer("also", messageId="m1", turnId=1),
        *v2.answer(1, "all", 2),
        v2.ended(1),
        v2.undo(1),
    )
    assert undone(fold(data).list) == [1]


def test_a_blocked_prompt_is_an_anchor_without_a_turn() -> None:
    v2 = V2()
    blocked = [
        v2.message("no", role="assistant", origin={"kind": "hook_result", "blocked": True}),
        v2.typed("refused", id="msg_x"),
        v2.other("prompt.completed", promptId="msg_x", reason="blocked"),
    ]
    data = wire(meta(), *v2.turn(0, "first", "one"), *blocked, v2.undo(1))
    folded = fold(data)
    assert len(folded.list) == 1
    assert undone(folded.list) == []
    assert undone(fold(data + wire(v2.undo(1))).list) == [0]


COMPACTIONS = {
    "2.1.0": {"summary": "so far", "contextSummary": "long", "compactedCount": 3, "keptUserMessageCount": 1},
    "context summary": {"contextSummary": "so far", "compactedCount": 3, "keptUserMessageCount": 0},
    "message": {
        "summary": {"role": "user", "content": text("so far")},
        "count": 3,
        "keptUserMessageCount": 0,
    },
}


@pytest.mark.parametrize("shape", COMPACTIONS)
def test_a_compaction_is_noted_and_is_a_wall(shape: str) -> None:
    v2 = V2()
    data = wire(
        meta(),
        *v2.turn(0, "a", "1"),
        v2.compaction(**COMPACTIONS[shape]),
        *v2.turn(1, "b", "2"),
        v2.undo(2),
    )
    folded = fold(data)
    assert folded.list[1].compactions == ("so far",)
    assert undone(folded.list) == [], "v2 ignores an undo that would reach behind the wall"
    assert folded.counts["undo-ignored"] == 1


def test_v1_undoes_back_to_the_wall_when_anchors_are_too_few() -> None:
    v1 = V1()
    turns = [[v1.prompt(word), v1.typed(word), *v1.answer(n, word)] for n, word in enumerate("abc")]
    wall = v1.compaction(summary="s", compactedCount=2, keptUserMessageCount=0)
    after = [[v1.prompt(word), v1.typed(word), *v1.answer(n, word)] for n, word in enumerate("de", 3)]
    data = wire(
        meta("1.4"), *(r for turn in turns for r in turn), wall, *(r for t in after for r in t), v1.undo(9)
    )
    assert undone(fold(data).list) == [3, 4]
    without_wall = wire(meta("1.4"), *(r for turn in turns for r in turn), v1.undo(9))
    assert undone(fold(without_wall).list) == [0, 1, 2]


def test_the_legacy_tail_keeps_the_running_turns_prompt_undoable() -> None:
    v1 = V1()
    data = wire(
        meta("1.3"),
        v1.prompt("a"),
        v1.typed("a"),
        *v1.answer(0, "1"),
        v1.prompt("b"),
        v1.typed("b"),
        *v1.answer(1, "2"),
        v1.compaction(summary={"role": "user", "content": text("s")}, compactedCount=1, legacyTail=True),
        *v1.answer(1, "3", 2),
        v1.undo(1),
    )
    turns = fold(data).list
    assert undone(turns) == [1]
    assert turns[1].compactions == ("s",)


def test_clear_is_a_wall_and_changes_no_turn() -> None:
    v2 = V2()
    data = wire(meta(), *v2.turn(0, "a", "1"), v2.clear(), *v2.turn(1, "b", "2"), v2.undo(2))
    turns = fold(data).list
    assert undone(turns) == []
    assert [turn.turn_id for turn in turns] == [0, 1]


def test_an_undo_in_a_later_chunk_marks_turns_long_gone_from_memory() -> None:
    v2 = V2()
    records = [
        meta(),
        *(r for n in range(6) for r in v2.turn(n, f"p{n}", "x")),
        v2.undo(4),
        *v2.turn(6, "q", "y"),
    ]
    data = wire(*records)
    for cuts in ([], list(range(1, len(records)))):
        assert undone(fold(data, cuts=cuts, resume=True).list) == [2, 3, 4, 5]


def test_undo_of_nothing_is_nothing() -> None:
    v2 = V2()
    splitter = open_splitter(b"", Origin("s", "main"), keep)
    for chunk in chunks_of(wire(meta(), v2.undo(0), v2.undo(3), {"type": "context.undo", "count": "x"})):
        assert splitter.feed(chunk) == []
    assert ORIGIN.agent_id == "main"
