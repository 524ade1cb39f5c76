"""When background work may run: quiet wires, no call, room in the processor's share, no battery."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.idle import (
    CALL,
    NOT_QUIET,
    ON_BATTERY,
    SHARE_USED,
    Battery,
    CpuShare,
    Idle,
    Quiet,
    cpu_seconds,
    on_battery,
)
from tests.pipeline.clocks import Clock


def test_the_share_holds_over_every_minute_wherever_it_begins() -> None:
    clock = Clock()
    share = CpuShare(20, clock=clock)
    spent: list[tuple[float, float]] = []
    for _ in range(4_000):  # a glutton: a step of 0.25 s as soon as it may, for many minutes
        wait = share.wait(heavy=False)
        if wait > 0:
            clock.move(wait)
            continue
        clock.move(0.25)
        share.spend(0.25)
        spent.append((clock(), 0.25))
    for begin, _ in spent:
        used = sum(seconds for at, seconds in spent if begin <= at < begin + 60)
        assert used <= 12 + 0.25
    assert sum(seconds for _, seconds in spent) / (clock() - 1_000) == pytest.approx(0.2, rel=0.1)


def test_long_work_leaves_a_part_of_the_share_to_reading() -> None:
    clock = Clock()
    share = CpuShare(20, clock=clock)
    share.spend(10.0)
    assert share.wait(heavy=True) > 0
    assert share.wait(heavy=False) == 0
    share.spend(2.5)
    assert share.wait(heavy=False) > 0
    clock.move(share.wait(heavy=False))
    assert share.wait(heavy=False) == 0


def test_processor_time_of_children_counts() -> None:
    import subprocess
    import sys

    before = cpu_seconds()
    busy = "import time\nwhile time.process_time() < 0.15: pass"
    subprocess.run([sys.executable, "-S", "-c", busy], check=True)
    assert cpu_seconds() - before >= 0.1


def test_quiet_is_counted_from_what_changes_while_we_look() -> None:
    clock = Clock()
    quiet = Quiet(clock=clock)
    assert quiet.seconds == 0
    quiet.observe({"wire": (10, 900_000_000_000)}, now=1_000.0)
    assert quiet.seconds == pytest.approx(100)
    clock.move(5)
    quiet.observe({"wire": (10, 900_000_000_000)}, now=1_005.0)
    assert quiet.seconds == pytest.approx(105)
    quiet.observe({"wire": (11, 900_000_000_000)}, now=1_005.0)
    assert quiet.seconds == 0
    clock.move(3)
    quiet.touched()
    assert quiet.seconds == 0


def test_a_wall_clock_that_jumps_neither_hurries_nor_stops_the_work() -> None:
    clock = Clock()
    quiet = Quiet(clock=clock)
    quiet.observe({"wire": (10, 5_000_000_000_000)}, now=1_000.0)  # written in the future
    assert quiet.seconds == 0
    clock.move(30)
    quiet.observe({"wire": (10, 5_000_000_000_000)}, now=-7e9)
    assert quiet.seconds == 30


def idle(clock: Clock, *, calls: list[int], battery: bool = False) -> Idle:
    quiet = Quiet(clock=clock)
    share = CpuShare(20, clock=clock)
    return Idle(30, share, quiet, lambda: calls[0], lambda: battery, clock)


def test_each_condition_alone_holds_the_work_up() -> None:
    clock = Clock()
    calls = [0]
    state = idle(clock, calls=calls)
    assert state.why_not() == (NOT_QUIET, 30)
    assert state.why_not(urgent=True) == ("", 0)
    clock.move(30)
    assert state.why_not() == ("", 0)
    calls[0] = 1
    assert state.why_not()[0] == CALL
    assert state.why_not(urgent=True)[0] == CALL
    calls[0] = 0
    assert state.why_not() == (CALL, 1.0)  # calls come in rows
    clock.move(1)
    assert state.why_not() == ("", 0)
    state.share.spend(12.1)
    reason, wait = state.why_not()
    assert reason == SHARE_USED and 0 < wait <= 60
    clock.move(wait)
    assert state.why_not() == ("", 0)
    on_the_road = idle(clock, calls=calls, battery=True)
    clock.move(31)
    assert on_the_road.why_not()[0] == ON_BATTERY


def supply(folder: Path, name: str, **facts: str) -> None:
    (folder / name).mkdir(parents=True)
    for fact, value in facts.items():
        (folder / name / fact).write_text(value + "\n", encoding="utf-8")


def test_a_battery_counts_only_while_it_feeds_the_machine(tmp_path: Path) -> None:
    assert on_battery(tmp_path / "none") is None
    mouse = tmp_path / "mouse"
    supply(mouse, "hidpp_battery_0", type="Battery", scope="Device", status="Discharging")
    assert on_battery(mouse) is None
    road = tmp_path / "road"
    supply(road, "AC", type="Mains", online="0")
    supply(road, "BAT0", type="Battery", status="Discharging")
    assert on_battery(road) is True
    (road / "AC" / "online").write_text("1\n", encoding="utf-8")
    assert on_battery(road) is False
    (road / "AC" / "online").write_text("0\n", encoding="utf-8")
    (road / "BAT0" / "status").write_text("Full\n", encoding="utf-8")
    assert on_battery(road) is False


def test_the_battery_is_not_asked_before_every_step() -> None:
    clock = Clock()
    asked = []

    def ask() -> bool:
        asked.append(clock())
        return True

    battery = Battery(ask, clock=clock)
    assert battery() and battery()
    assert len(asked) == 1
    clock.move(31)
    assert battery()
    assert len(asked) == 2
