"""The recorded samples split exactly as their EXPECTED.json says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stages.model import Turn
from stages.split import Origin
from tests.stages.wire_feed import fold

SAMPLES = Path(__file__).parent.parent / "samples"


def _agents() -> list[Any]:
    found = []
    for path in sorted(SAMPLES.glob("*/EXPECTED.json")):
        for session in json.loads(path.read_text(encoding="utf-8"))["sessions"]:
            for agent in session["agents"]:
                name = f"{path.parent.name}-{session['session_id'][:16]}-{agent['agent']}"
                found.append(pytest.param(path.parent, session, agent, id=name))
    return found


def _origin(session: dict[str, Any], agent: dict[str, Any]) -> Origin:
    return Origin(
        session["session_id"],
        agent["agent"],
        cwd=session["cwd"],
        context_copied=agent.get("forkedFrom") is not None,
        forked=session.get("forkedFrom") is not None,
    )


def _text_is(text: str | None, expected: str | None) -> bool:
    """Long opening texts are abbreviated there: ``head…[N chars]``."""
    if expected is None or text is None or not expected.endswith(" chars]"):
        return text == expected
    head, _, size = expected.removesuffix(" chars]").rpartition("…[")
    return text.startswith(head) and len(text) == int(size)


def _check_turn(turn: Turn, expected: dict[str, Any]) -> None:
    assert turn.position == expected["index"]
    assert turn.turn_id == (expected["index"] if expected["turnId"] is None else expected["turnId"])
    assert list(turn.lines) == expected["lines"]
    assert turn.origin == expected["opening_kind"]
    assert turn.prompt_id == expected.get("promptId")
    assert turn.user_text == expected["user_text"]
    assert _text_is(turn.opening_text, expected.get("opening_text", expected["user_text"]))
    assert turn.assistant_text == expected["assistant_text_final"]
    assert [text for step in turn.steps for text in step.texts] == expected["assistant_texts"]
    assert [(call.id, call.name, call.result) for call in turn.tools] == [
        (tool["id"], tool["name"], None if tool["result"] == "missing" else tool["result"])
        for tool in expected["tools"]
    ]
    assert [(file.path, file.op) for call in turn.tools for file in call.files] == [
        (file["path"], file["op"]) for file in expected["files"]
    ]
    assert turn.status == expected["status"]
    assert turn.undone is expected["undone"]
    assert turn.copied is expected.get("copied_from_fork", False)


def _check_errors(turn: Turn, expected: list[dict[str, Any]]) -> None:
    failed = [call for call in turn.tools if call.result == "error"]
    of_tools = [error for error in expected if "turn_error" not in error]
    assert [(call.name, call.id) for call in failed] == [(error["tool"], error["id"]) for error in of_tools]
    for call, error in zip(failed, of_tools, strict=True):
        assert call.error.startswith(error["output_head"])
        assert call.error.endswith(error.get("message", ""))
    of_turn = [error["message"] for error in expected if "turn_error" in error]
    assert [turn.error] * bool(turn.error) == of_turn


def _check_times(turn: Turn, expected: dict[str, Any]) -> None:
    if "started_s" in expected:
        assert turn.started_at == round(expected["started_s"] * 1000)
        assert turn.ended_at == round(expected["ended_s"] * 1000)
    else:
        assert turn.started_at == expected["started_ms"]
        assert turn.ended_at == expected["ended_ms"]
        assert turn.last_at == expected["last_record_ms"]


def _check_steers(turn: Turn, expected: dict[str, Any]) -> None:
    assert [(steer.text, steer.human, steer.origin) for steer in turn.steers] == [
        (steer["text"], steer.get("human", True), steer.get("origin_kind", "user"))
        for steer in expected["steers"]
    ]
    if "partially_undone" in expected:
        cut = expected["partially_undone"]
        assert turn.cut is not None
        assert [step.texts[-1] for step in turn.live_steps][-1] == cut["effective_assistant_text_final"]
        assert not turn.live_steers
    else:
        assert turn.cut is None


@pytest.mark.parametrize(("sample", "session", "agent"), _agents())
def test_sample_splits_as_expected(sample: Path, session: dict[str, Any], agent: dict[str, Any]) -> None:
    data = (sample / agent["wire"]).read_bytes()
    folded = fold(data, _origin(session, agent))
    turns = folded.list
    assert len(turns) == len(agent["turns"])
    for turn, expected in zip(turns, agent["turns"], strict=True):
        _check_turn(turn, expected)
        _check_errors(turn, expected["errors"])
        _check_times(turn, expected)
        _check_steers(turn, expected)
        _check_range(turn, data)
        assert (
            len(turn.compactions) == len(expected.get("compactions", []))
            or session["title"] == "My TUI sample"
        )
        assert not turn.open or turn.status == "unfinished"
    assert not folded.counts


def _check_range(turn: Turn, data: bytes) -> None:
    lines = data[turn.start : turn.end].split(b"\n")
    assert data[: turn.start].count(b"\n") == turn.lines[0] - 1
    assert lines[-1] == b""
    assert len(lines) - 1 == turn.lines[1] - turn.lines[0] + 1


def test_sub_agents_are_linked_to_the_calls_that_started_them() -> None:
    sample = SAMPLES / "d_subagent"
    expected = json.loads((sample / "EXPECTED.json").read_text(encoding="utf-8"))["sessions"][0]
    main = next(agent for agent in expected["agents"] if agent["agent"] == "main")
    folded = fold((sample / main["wire"]).read_bytes(), _origin(expected, main))
    links = {(link.agent_id, link.call_id) for link in folded.spawned}
    assert links == {
        (a["agent"], a["parent_tool_call"]) for a in expected["agents"] if "parent_tool_call" in a
    }
    assert {(agent, call.id) for turn in folded.list for call in turn.tools for agent in call.agents} == links


def test_the_kimi_cli_call_links_its_sub_agent() -> None:
    sample = SAMPLES / "l_legacy_kimi_cli"
    expected = json.loads((sample / "EXPECTED.json").read_text(encoding="utf-8"))["sessions"][0]
    folded = fold(
        (sample / expected["agents"][0]["wire"]).read_bytes(), _origin(expected, expected["agents"][0])
    )
    assert [(link.agent_id, link.position, link.call_id) for link in folded.spawned] == [
        ("ac129bd54", 2, "call_5_0")
    ]
