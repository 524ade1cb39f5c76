"""The early warning itself: what it knows, and what it reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.compat import news, survey

SAMPLES = Path(__file__).parents[1] / "samples"


@pytest.mark.parametrize(
    ("record", "told"),
    [
        ({"type": "turn.prompt", "input": [], "origin": {"kind": "user"}, "turnId": 1, "time": 1}, []),
        ({"type": "turn.prompt", "lane": 1}, ["field lane of turn.prompt"]),
        ({"type": "turn.forked"}, ["record type turn.forked"]),
        (
            {"type": "context.append_loop_event", "event": {"type": "tool.progress"}},
            ["loop event tool.progress"],
        ),
        ({"type": "context.append_message", "message": {"origin": {"kind": "dream"}}}, ["origin dream"]),
    ],
)
def test_only_what_is_new_is_told(record: dict[str, object], told: list[str]) -> None:
    assert list(news(record)) == told


def test_every_recorded_sample_is_known(tmp_path: Path) -> None:
    wires = [wire for wire in SAMPLES.rglob("wire.jsonl") if b'"message": {"type"' not in wire.read_bytes()]
    assert wires
    for number, wire in enumerate(wires):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "wire.jsonl").write_bytes(wire.read_bytes())
    seen, unknown = survey(tmp_path)
    assert seen["turn.prompt"] and not unknown, unknown


def test_a_damaged_line_is_told_and_a_torn_last_one_is_not(tmp_path: Path) -> None:
    metadata = json.dumps({"type": "metadata"})
    (tmp_path / "wire.jsonl").write_text(
        f'{metadata}\n{{"type":\n{metadata}\n{{"type":"turn.pro', encoding="utf-8"
    )
    seen, unknown = survey(tmp_path)
    assert seen["metadata"] == 2 and unknown == {"record type a line that is no JSON": 1}
