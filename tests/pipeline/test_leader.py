"""One leader a store: election, takeover after a kill and after standing still, what the old one then notices."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipeline.leader import Leadership, alive, last_beat, owner
from tests.pipeline.clocks import Clock

LEADER = """
import sys
from pathlib import Path
from pipeline.leader import Leadership
mine = Leadership(Path(sys.argv[1]), "watch")
print(mine.try_lead(), flush=True)
for line in sys.stdin:
    print(mine.beat(), flush=True)
"""


@contextmanager
def other_process(store: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that stands for election at once, and beats at each line it is given."""
    process = subprocess.Popen(
        [sys.executable, "-c", LEADER, str(store)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def says(process: subprocess.Popen[str]) -> bool:
    assert process.stdout is not None
    return process.stdout.readline().strip() == "True"


def beats(process: subprocess.Popen[str]) -> bool:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return says(process)


def test_of_two_processes_one_leads_and_says_who_it_is(tmp_path: Path) -> None:
    with other_process(tmp_path) as other:
        assert says(other)
        mine = Leadership(tmp_path, "server")
        assert not mine.try_lead()
        who = owner(tmp_path)
        assert who is not None and (who.pid, who.role) == (other.pid, "watch")
        assert alive(tmp_path, who)
        assert beats(other)


def test_a_killed_leader_is_replaced_at_once(tmp_path: Path) -> None:
    with other_process(tmp_path) as other:
        assert says(other)
        mine = Leadership(tmp_path, "server")
        assert not mine.try_lead()
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
        dead = owner(tmp_path)
        assert dead is not None and not alive(tmp_path, dead)
        assert mine.try_lead()
        who = owner(tmp_path)
        assert who is not None and who.pid == os.getpid()
        assert mine.beat()
        mine.resign()


def test_a_leader_without_progress_is_deposed_and_steps_down(tmp_path: Path) -> None:
    clock = Clock()
    with other_process(tmp_path) as other:
        assert says(other)
        mine = Leadership(tmp_path, "server", clock=clock)
        assert not mine.try_lead()
        clock.move(100)
        assert beats(other)
        assert not mine.try_lead()  # there was progress: the time begins anew
        clock.move(119)
        assert not mine.try_lead()
        clock.move(2)
        assert mine.try_lead()
        assert mine.beat()
        assert not beats(other)
        assert mine.beat()
        mine.resign()


def test_a_leader_that_hangs_can_be_followed_by_others_again_and_again(tmp_path: Path) -> None:
    """Each of them keeps its lock, as a process that hangs does; the last one is still the only leader."""
    clock = Clock()
    leaders = [Leadership(tmp_path, f"hung {number}", clock=clock) for number in range(4)]
    for number, one in enumerate(leaders):
        one.try_lead()
        clock.move(121)
        who = owner(tmp_path)
        assert one.try_lead() or number == 0
        assert who is not None
        clock.move(1)
    assert [one.beat() for one in leaders] == [False, False, False, True]
    for one in leaders:
        one.resign()


def test_beating_without_progress_is_none(tmp_path: Path) -> None:
    mine = Leadership(tmp_path, "server")
    assert mine.try_lead()
    os.utime(tmp_path / ".locks" / "background.json", ns=(1, 1))
    assert mine.beat(progress=False)
    assert last_beat(tmp_path) == 0
    assert mine.beat()
    assert (last_beat(tmp_path) or 0) > 0
    mine.resign()
    assert not mine.beat()


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"pid": 1}', b'{"slot": 99}'])
def test_a_damaged_record_makes_nobody_stumble(damage: bytes, tmp_path: Path) -> None:
    first = Leadership(tmp_path, "server")
    assert first.try_lead()
    (tmp_path / ".locks" / "background.json").write_bytes(damage)
    assert not first.beat()  # it cannot prove that it still leads
    second = Leadership(tmp_path, "watch")
    assert second.try_lead()
    second.resign()
