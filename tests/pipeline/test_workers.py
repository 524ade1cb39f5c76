"""Worker processes: equal results, a piece that kills its process, a machine that cannot start any."""

from __future__ import annotations

import os
import signal
import sys

import anyio
import pytest

from pipeline.report import FAILURES_SHOWN, Report
from pipeline.workers import Workers


def doubled_with_pid(number: int) -> tuple[int, int]:
    return number * 2, os.getpid()


def die(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_one_job_stays_in_this_process_and_more_do_not() -> None:
    anyio.run(_one_and_two_jobs)


async def _one_and_two_jobs() -> None:
    assert await Workers(1).run(doubled_with_pid, 4) == (8, os.getpid())
    number, pid = await Workers(2).run(doubled_with_pid, 4)
    assert number == 8
    assert pid != os.getpid()


def test_a_piece_that_kills_its_process_fails_alone() -> None:
    anyio.run(_a_piece_that_kills)


async def _a_piece_that_kills() -> None:
    workers = Workers(2)
    with pytest.raises(anyio.BrokenWorkerProcess):
        await workers.run(die, 0)
    assert (await workers.run(doubled_with_pid, 1))[1] != os.getpid()


def test_where_no_process_can_be_started_a_thread_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    anyio.run(_without_processes)


async def _without_processes() -> None:
    workers = Workers(3)
    results: list[tuple[int, int]] = []

    async def one(number: int) -> None:
        results.append(await workers.run(doubled_with_pid, number))

    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(one, number)
    assert sorted(results) == [(2 * number, os.getpid()) for number in range(5)]
    assert workers.jobs == 1


def test_many_failures_are_counted_and_the_first_ones_named() -> None:
    report = Report(failures=[f"/home/dev/{n}: broken" for n in range(FAILURES_SHOWN + 5)])
    lines = report.lines()
    assert sum("broken" in line for line in lines) == FAILURES_SHOWN
    assert lines[-1].startswith("… and 5 more")
