"""The loop of the background work, with stand-ins for its steps where time matters and for real where it does not."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest

from pipeline.background import Background, Tuning
from pipeline.background_status import background_status
from pipeline.chore_process import ChoreProcess, Reply
from pipeline.leader import Leadership, owner
from pipeline.nudges import FOLDER
from pipeline.settings import Settings
from pipeline.store.database import open_database
from pipeline.store.layout import Layout
from pipeline.workspaces import workspace_id
from tests import wires
from tests.pipeline.clocks import Clock
from tests.pipeline.store_cases import settings as settings_for_home
from tests.wires import say

CWD = "/home/dev/quiet"
DEADLINE_S = 120
QUICK = Tuning(
    begin_s=0,
    contend_s=0.05,
    beat_s=0.1,
    status_s=0,
    retry_s=0.01,
    appear_s=0.05,
    debounce_ms=50,
    linger_s=60,
)
WORKSPACE = workspace_id(CWD, "/home/dev")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def home(tmp_path: Path) -> wires.Home:
    made = wires.Home(tmp_path / "home", seed=3, journal=False)
    session = made.session(CWD, at=1_796_000_000_000, title="first")
    session.main.turn("Which port does the shop use?", say("It listens on 4711."))
    session.main.turn(
        "Why not 80?", say("We decided to use port 4711 because 80 needs root on this machine.")
    )
    made.write()
    return made


def settings_of(home: wires.Home, *, quiet: float = 0.0) -> Settings:
    found = settings_for_home(home.root, home.root.parent / "store")
    return replace(found, quiet_seconds=quiet, cpu_share=100.0)


class Steps:
    """A stand-in for the process that does the steps: says what the test wants, keeps what it was asked."""

    def __init__(self, answer: Callable[[int], Reply] = lambda _: Reply(more=False)) -> None:
        self.asked: list[dict[str, Any]] = []
        self.closed = 0
        self._answer = answer
        self._event = anyio.Event()

    async def step(self, *, news: bool, urgent: bool, stop: Callable[[], bool]) -> Reply:
        self.asked.append({"news": news, "urgent": urgent, "stop": stop})
        self._event.set()
        await anyio.lowlevel.checkpoint()
        return self._answer(len(self.asked))

    async def close(self, *, gently: bool = False) -> int | None:
        self.closed += 1
        return None

    async def until(self, number: int) -> None:
        with anyio.fail_after(DEADLINE_S):
            while len(self.asked) < number:
                self._event = anyio.Event()
                await self._event.wait()


@asynccontextmanager
async def running(home: wires.Home, **options: Any) -> AsyncIterator[Background]:
    found = options.pop("settings", None) or settings_of(home)
    options = {"tuning": QUICK, "battery": lambda: False, **options}
    work = Background(lambda: found, WORKSPACE, **options)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work.run)
        yield work
        tasks.cancel_scope.cancel()


async def until(condition: Callable[[], Any]) -> None:
    """Wait for something that tells nobody; fails at the deadline."""
    with anyio.fail_after(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - it tells nobody
            await anyio.sleep(0.01)


async def up_to_date(work: Background) -> None:
    with anyio.fail_after(DEADLINE_S):
        await work.looked.wait()


async def rows(home: wires.Home, sql: str) -> list[Any]:
    path = Layout(settings_of(home).store(WORKSPACE)).database
    async with open_database(path, write=False) as database:
        return [tuple(row) for row in await database.rows(sql)]


async def refined_anew(home: wires.Home, work: Background, sql: str, old: Any) -> list[Any]:
    """The rows once the last one is another than ``old`` and refined (a round may have begun before the change)."""
    with anyio.fail_after(DEADLINE_S):
        while True:
            found = await rows(home, sql)
            if found[-1][0] != old[0] and found[-1][1] is not None:
                return found
            await work.looked.wait()


# --- when ----------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_nothing_is_done_before_the_wires_are_quiet(home: wires.Home) -> None:
    clock, steps = Clock(), Steps()
    async with running(home, settings=settings_of(home, quiet=30), steps=steps, clock=clock) as work:
        await until(lambda: "not quiet" in work.state.doing)
        clock.move(29)
        work.changed(frozenset())
        await until(lambda: work.status()["state"].startswith("waiting"))
        assert steps.asked == []
        clock.move(2)
        work.changed(frozenset())
        await steps.until(1)


@pytest.mark.anyio
async def test_a_new_byte_begins_the_wait_anew_and_anothers_does_not(home: wires.Home) -> None:
    mine, others = "/kimi/sessions/wd_a/session_1", "/kimi/sessions/wd_b/session_2"
    clock = Clock()
    steps = Steps(lambda _: Reply("look", False, facts={"mine": {"1": mine}, "others": {"2": others}}))
    async with running(home, settings=settings_of(home, quiet=30), steps=steps, clock=clock) as work:
        await until(lambda: "not quiet" in work.state.doing)
        clock.move(31)
        work.changed(frozenset())
        await steps.until(1)
        await until(lambda: work.state.doing == "up to date")
        work.changed(frozenset((f"{others}/agents/main/wire.jsonl",)))
        assert work.idle.quiet.seconds > 30
        work.changed(frozenset((f"{mine}/agents/main/wire.jsonl",)))
        assert work.idle.quiet.seconds == 0
        await until(lambda: "not quiet" in work.state.doing)
        assert len(steps.asked) == 1
        clock.move(31)
        work.changed(frozenset())
        await steps.until(2)
        assert steps.asked[1]["news"]


@pytest.mark.anyio
async def test_news_stop_a_heavy_step_and_not_the_reading_of_them(home: wires.Home) -> None:
    mine = "/kimi/sessions/wd_a/session_1"
    facts = {"mine": {"1": mine}, "others": {}, "next": "theme"}
    steps = Steps(lambda number: Reply("read" if number == 1 else "theme", number < 2, facts=dict(facts)))
    async with running(home, steps=steps) as work:
        await steps.until(2)
        await until(lambda: work.state.doing == "up to date")
        reading, theme = (asked["stop"] for asked in steps.asked)
        assert not reading() and not theme()
        work._news = True
        assert theme()
        assert not reading()


@pytest.mark.anyio
async def test_a_nudge_is_read_at_once_and_goes(home: wires.Home) -> None:
    session = home.sessions[0].session_id
    facts = {"mine": {session: "/kimi/s1"}, "others": {"theirs": "/kimi/s2"}}
    steps = Steps(lambda number: Reply("read", number % 2 == 1, facts=dict(facts)))
    clock = Clock()
    async with running(home, settings=settings_of(home, quiet=3_600), steps=steps, clock=clock) as work:
        await until(lambda: "not quiet" in work.state.doing)
        nudges = home.root.parent / "store" / FOLDER
        (nudges / session).touch()
        work.changed(frozenset())
        await steps.until(2)
        assert all(asked["urgent"] for asked in steps.asked)
        await until(lambda: not (nudges / session).exists())
        (nudges / "theirs").touch()
        work.changed(frozenset())
        await until(lambda: "not quiet" in work.state.doing)
        assert (nudges / "theirs").exists()  # another workspace's leader will take it
        assert len(steps.asked) == 2


@pytest.mark.anyio
async def test_no_step_begins_while_a_call_is_in_flight_or_on_battery(home: wires.Home) -> None:
    calls, battery, steps = [1], [False], Steps(lambda _: Reply("refine", True))
    async with running(home, steps=steps, in_flight=lambda: calls[0], battery=lambda: battery[0]) as work:
        await until(lambda: "in flight" in work.state.doing)
        assert steps.asked == []
        calls[0] = 0
        await steps.until(3)
        battery[0] = True
        await until(lambda: "battery" in work.state.doing)


@pytest.mark.anyio
async def test_the_share_of_the_processor_is_kept(home: wires.Home) -> None:
    clock = Clock()
    steps = Steps(lambda _: Reply("refine", True, cpu=2.0, facts={"next": "refine"}))
    twenty = replace(settings_of(home), cpu_share=20.0)
    async with running(home, settings=twenty, steps=steps, clock=clock) as work:
        await until(lambda: "share" in work.state.doing)
        assert len(steps.asked) in (5, 6)  # 10 of the 12 seconds: the rest is for reading what is new
        clock.move(61)
        work.changed(frozenset())
        await steps.until(7)


# --- yielding ------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_step_yields_within_50_ms_whatever_it_is_doing(home: wires.Home) -> None:
    """Also in the middle of a long piece that cannot be cancelled: then its process is ended."""
    found = settings_of(home)
    found.store_root.mkdir(parents=True)
    process = ChoreProcess(lambda: found, WORKSPACE)
    delays = []
    for number in range(6):
        called_at: list[float] = []
        begin = time.monotonic() + 0.05 * number  # in all stages: starting, importing, reading, refining

        def stop(begin: float = begin, called_at: list[float] = called_at) -> bool:
            if time.monotonic() < begin:
                return False
            called_at.append(time.monotonic())
            return True

        with anyio.fail_after(DEADLINE_S):
            reply = await process.step(news=number % 2 == 0, urgent=False, stop=stop)
        if called_at:
            delays.append(time.monotonic() - called_at[0])
            assert reply.stopped or reply.chore
    assert delays
    assert min(delays) < 0.05  # the machine of the tests may be busy: not the worst one
    assert sorted(delays)[len(delays) // 2] < 0.25
    await process.close()


@pytest.mark.anyio
async def test_a_killed_step_process_is_replaced_and_nothing_is_lost(home: wires.Home) -> None:
    async with running(home) as work:
        steps = work._steps
        assert isinstance(steps, ChoreProcess)
        await until(lambda: steps.pid)
        os.kill(steps.pid or 0, signal.SIGKILL)
        await until(lambda: work.state.error)
        assert "ended with code" in work.state.error
        await up_to_date(work)
        assert len(await rows(home, "SELECT 1 FROM refined")) == 2


# --- what ----------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_index_refined_turns_and_proposals_come_by_themselves(home: wires.Home) -> None:
    async with running(home) as work:
        await up_to_date(work)
        status = background_status(settings_of(home).store(WORKSPACE))
        assert status is not None
        assert status["leader"]["pid"] == os.getpid() and not status["stalled"]
        assert status["state"] == "up to date" and status["lag"] == [] and status["lastError"] is None
        assert status["queue"] == {"unreadBytes": 0, "unrefinedTurns": 0, "themes": 0}
        assert len(await rows(home, "SELECT 1 FROM refined")) == 2
        proposals = list((settings_of(home).store(WORKSPACE) / "proposals").glob("*.json"))
        assert any("4711" in orjson.loads(path.read_bytes())["text"] for path in proposals)
    ended = background_status(settings_of(home).store(WORKSPACE))
    assert ended is not None and ended["leader"] is None


@pytest.mark.anyio
async def test_new_bytes_and_a_new_session_are_noticed(home: wires.Home) -> None:
    async with running(home) as work:
        await up_to_date(work)
        assert work._watching is not None
        with anyio.fail_after(DEADLINE_S):
            await work._watching.watched.wait()
        home.sessions[0].main.turn("And the second question?", say("Here is its answer."))
        home.sessions[0].write()
        other = home.session(CWD, at=1_796_100_000_000, title="second")
        other.main.turn("A question in a new session?", say("An answer."))
        other.write()
        with anyio.fail_after(DEADLINE_S):
            while len(await rows(home, "SELECT 1 FROM refined")) < 4:
                await work.looked.wait()


@pytest.mark.anyio
async def test_a_turn_that_still_runs_is_not_refined_and_one_that_changed_is_refined_again(
    home: wires.Home,
) -> None:
    wire = home.sessions[0].folder / "agents" / "main" / "wire.jsonl"
    home.sessions[0].main.turn("A long question?", say("First part."), say("Last part: all is well."))
    whole = home.sessions[0].main.data()
    lines = whole.splitlines(keepends=True)
    last_opener = max(i for i, line in enumerate(lines) if line.startswith(b'{"type":"turn.prompt"'))
    middle = last_opener + (len(lines) - last_opener) // 2
    wire.write_bytes(b"".join(lines[:middle]))
    sql = (
        "SELECT c.digest, r.body FROM content c JOIN occurrence o ON o.id=c.shown"
        " LEFT JOIN refined r ON r.content_id=c.id ORDER BY o.position"
    )
    async with running(home) as work:
        await up_to_date(work)
        before = await rows(home, sql)
        assert [row[1] is not None for row in before] == [True, True, False]
        with wire.open("ab") as file:
            file.write(b"".join(lines[middle:]))
        work.changed(frozenset())
        after = await refined_anew(home, work, sql, before[2])
        assert len(after) == 3 and after[2][1] is not None and after[2][0] != before[2][0]
        wire.write_bytes(whole.replace(b"all is well", b"it is broken"))
        work.changed(frozenset())
        again = await refined_anew(home, work, sql, after[2])
        assert again[2][0] != after[2][0] and again[2][1] not in (None, after[2][1])
        assert again[:2] == after[:2]
        assert len(await rows(home, "SELECT 1 FROM refined")) == 3  # nothing of the older ones is left


# --- who -----------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_two_processes_share_a_store_and_one_works(home: wires.Home) -> None:
    first, second = Steps(), Steps()
    async with running(home, steps=first) as one:
        await first.until(1)
        async with running(home, steps=second, role="watch") as two:
            await until(lambda: two.state.doing == "following")
            assert one.leading and not two.leading and second.asked == []


@pytest.mark.anyio
async def test_one_that_follows_takes_over_when_the_leader_ends(home: wires.Home) -> None:
    store = settings_of(home).store(WORKSPACE)
    other = Leadership(store, "watch")
    assert other.try_lead()
    steps = Steps()
    async with running(home, steps=steps) as work:
        await until(lambda: work.state.doing == "following")
        other.resign()
        await steps.until(1)
        who = owner(store)
        assert who is not None and who.role == "server"


@pytest.mark.anyio
async def test_a_deposed_leader_stops_working(home: wires.Home) -> None:
    steps = Steps(lambda _: Reply("refine", True))
    store = settings_of(home).store(WORKSPACE)
    clock = Clock()
    async with running(home, steps=steps) as work:
        await steps.until(1)
        other = Leadership(store, "watch", clock=clock)
        assert not other.try_lead()
        clock.move(10_000)
        while not other.try_lead():  # a beat came in between: it looked alive
            clock.move(10_000)
        await until(lambda: not work.leading)
        asked = len(steps.asked)
        await until(lambda: work.state.doing == "following")
        assert len(steps.asked) <= asked + 1
        other.resign()


# --- failures ------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_no_failure_ends_the_loop_and_the_last_one_is_told(home: wires.Home) -> None:
    def answer(number: int) -> Reply:
        if number == 1:
            raise RuntimeError("something odd")
        if number == 2:
            raise OSError(24, "Too many open files")
        if number == 3:
            return Reply("read", True, error="the disk is full")
        return Reply(more=False)

    steps = Steps(answer)
    async with running(home, steps=steps) as work:
        await steps.until(4)
        await up_to_date(work)
        assert work.state.failures == 0
        told = work.status()["lastError"]
        assert told["what"] == "read: the disk is full" and told["at"] > 0


@pytest.mark.anyio
async def test_a_store_that_cannot_be_used_is_tried_again_later(home: wires.Home) -> None:
    store = settings_of(home).store(WORKSPACE)
    store.mkdir(parents=True)
    (store / ".locks").write_text("in the way", encoding="utf-8")
    steps = Steps()
    async with running(home, steps=steps) as work:
        await until(lambda: work.state.failures >= 2)
        assert ".locks" in work.state.error
        (store / ".locks").unlink()
        await steps.until(1)


@pytest.mark.anyio
async def test_where_kimi_never_ran_nothing_is_made(tmp_path: Path) -> None:
    empty = wires.Home(tmp_path / "home")
    async with running(empty, steps=Steps()) as work:
        await until(lambda: "nothing was recorded" in work.state.doing)
    assert not (tmp_path / "store").exists()


@pytest.mark.anyio
async def test_when_reading_fails_it_is_tried_again_with_growing_pauses(home: wires.Home) -> None:
    def answer(number: int) -> Reply:
        if number < 5:
            return Reply("read", True, error="the disk is full", facts={"blocked": True})
        return Reply(more=False, facts={"blocked": False})

    steps = Steps(answer)
    async with running(home, steps=steps) as work:
        await steps.until(4)
        assert work.state.failures >= 3
        assert all(asked["news"] for asked in steps.asked[1:4])  # from the beginning each time
        await steps.until(5)
        await until(lambda: work.state.failures == 0)
        assert work.state.error == "read: the disk is full"


@pytest.mark.anyio
async def test_workspaces_of_one_process_take_turns(home: wires.Home) -> None:
    turn = anyio.Lock()
    steps = Steps()
    await turn.acquire()
    async with running(home, steps=steps, turn=turn) as work:
        await until(lambda: work.state.doing == "working")
        assert steps.asked == []
        turn.release()
        await steps.until(1)
