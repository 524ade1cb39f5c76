"""Background work on one workspace's store: led by one process, done while nobody waits, one small step at a time.

    file events, nudges ─► something to do? ─► may it run now? (pipeline/idle.py) ─► one step (pipeline/chores.py, in a
    process of its own) ─► status file ─► again

``background`` runs for ever inside a task group; it can be cancelled at any await and raises nothing. See
docs/background.md.
"""

from __future__ import annotations

import logging
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import anyio
from anyio import to_thread

from pipeline import leader, nudges
from pipeline.background_status import STATUS
from pipeline.chore_process import ChoreProcess, Reply
from pipeline.errors import PipelineError
from pipeline.idle import SHARED_REASONS, CpuShare, Idle, Quiet
from pipeline.leader import Leadership
from pipeline.nudges import Nudges
from pipeline.sessions import Cache, discover, folders
from pipeline.settings import Settings
from pipeline.store import files
from pipeline.transient import told
from pipeline.watching import Watching

log = logging.getLogger(__name__)


HEAVY = frozenset(("index", "refine", "theme", "propose"))
WANTED_S = 30.0
STEP_MOST_S = 1_800.0
"""A step that takes longer hangs: a disk that is gone, a mount that does not answer."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """How often things are looked at, in seconds; tests shorten them."""

    begin_s: float = 2.0
    """Before anything: a server that starts answers its client first."""
    contend_s: float = 5.0
    beat_s: float = 10.0
    look_s: float = 300.0
    """Without any event the disk is looked at this often: events get lost."""
    linger_s: float = 20.0
    """The process for the chores is kept this long without work."""
    status_s: float = 2.0
    retry_s: float = 2.0
    retry_most_s: float = 300.0
    stall_s: float = leader.STALL_S
    debounce_ms: int = 400
    poll_ms: int = 2_000
    appear_s: float = 5.0


class Steps(Protocol):
    """What does the steps: ``ChoreProcess``, or a stand-in of a test."""

    async def step(self, *, news: bool, urgent: bool, stop: Callable[[], bool]) -> Reply: ...
    async def close(self, *, gently: bool = False) -> int | None: ...


def watching_for(settings: Settings, on_change: Callable[[frozenset[str]], None], tuning: Tuning) -> Watching:
    """A watch over everything that background work wants to know of."""
    return Watching(
        folders(settings),
        on_change,
        nudges=settings.store_root / nudges.FOLDER,
        debounce_ms=tuning.debounce_ms,
        poll_ms=tuning.poll_ms,
        appear_s=tuning.appear_s,
    )


async def background(
    settings: Settings,
    workspace: str,
    *,
    in_flight: Callable[[], int] = lambda: 0,
    role: str = "server",
    current: Callable[[], Settings] | None = None,
    tuning: Tuning | None = None,
) -> None:
    """Do the background work of the workspace with this id, for ever. Raises nothing but cancellation.

    ``in_flight`` tells how many calls wait for an answer: while it is not 0 nothing is done. ``current`` gives the
    settings as they are now (asked each time the work begins anew); ``settings`` are used without it.
    """
    await Background(
        current or (lambda: settings), workspace, in_flight=in_flight, role=role, tuning=tuning
    ).run()


@dataclass(slots=True)
class State:
    """What the leader knows and the status file tells."""

    doing: str = "starting"
    error: str = ""
    error_at: int | None = None
    failures: int = 0
    facts: dict[str, Any] = field(default_factory=dict)
    mine: dict[str, str] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)


class Background:
    """One workspace's background work in this process."""

    def __init__(
        self,
        settings: Callable[[], Settings],
        workspace: str,
        *,
        in_flight: Callable[[], int] = lambda: 0,
        role: str = "server",
        tuning: Tuning | None = None,
        steps: Steps | None = None,
        clock: Callable[[], float] = time.monotonic,
        battery: Callable[[], bool] | None = None,
        share: CpuShare | None = None,
        turn: anyio.Lock | None = None,
        watching: Watching | None = None,
    ) -> None:
        """``share``, ``turn`` (one step at a time) and ``watching`` (which then calls ``changed``) may be common to
        the workspaces of one process."""
        now = settings()
        self.tuning = tuning or Tuning()
        self.workspace = workspace
        self.store = now.store(workspace)
        self.root = now.store_root
        self.state = State()
        self.leading = False
        self.looked = anyio.Event()
        """Set each time there is nothing left to do (and then replaced)."""
        self._settings = settings
        self._clock = clock
        self._steps: Steps = steps or ChoreProcess(settings, workspace)
        self._leadership = Leadership(self.store, role, stall_s=self.tuning.stall_s, clock=clock)
        self.idle = Idle(
            now.quiet_seconds,
            share or CpuShare(now.cpu_share, clock=clock),
            Quiet(clock=clock),
            in_flight,
            clock=clock,
        )
        if battery is not None:
            self.idle.battery = battery
        self._wake = anyio.Event()
        self._news = True
        self._more = True
        self._nudges = Nudges(self.root)
        self._beaten = self._written = self._looked_at = self._worked = float("-inf")
        self._told: dict[str, Any] = {}
        self._turn = turn or anyio.Lock()
        self._stumbled = False
        self._own_share, self._own_watching = share is None, watching is None
        self._watching = watching
        self._cache: Cache = {}

    async def run(self) -> None:
        """For ever: lead when it can be, follow otherwise. Whatever fails is noted, and tried again later."""
        await anyio.sleep(self.tuning.begin_s)
        try:
            while True:
                try:
                    await self._stand_or_follow()
                except Exception as error:  # the loop outlives everything
                    self._failed(error)
                    await anyio.sleep(self._pause())
        finally:
            self._leadership.resign()  # also when the cancellation came between winning and leading

    async def _stand_or_follow(self) -> None:
        while not await to_thread.run_sync(self._wanted):
            self.state.doing = "nothing was recorded here yet"
            await anyio.sleep(min(WANTED_S, self.tuning.look_s))
        if await to_thread.run_sync(self._leadership.try_lead):
            await self._lead()
        self.state.doing = "following"
        await anyio.sleep(self.tuning.contend_s * random.uniform(0.7, 1.3))

    def _wanted(self) -> bool:
        """Nothing is made on the disk for a directory in which Kimi never ran."""
        if self.store.is_dir():
            return True
        found = discover(self._settings(), self._cache).sessions
        return any(session.workspace_id == self.workspace for session in found)

    async def _lead(self) -> None:
        self.leading, self._news, self._more = True, True, True
        if self._own_watching:
            self._watching = watching_for(self._settings(), self.changed, self.tuning)
        try:
            await to_thread.run_sync(files.make_dirs, self._nudges.folder)
            async with anyio.create_task_group() as tasks:
                if self._own_watching and self._watching is not None:
                    tasks.start_soon(self._watching.run)
                await self._work()
                tasks.cancel_scope.cancel()
        finally:
            self.leading = False
            with anyio.CancelScope(shield=True):
                await self._steps.close()
                self._leadership.resign()

    # --- what happens outside -------------------------------------------------------------------------------

    def changed(self, paths: frozenset[str]) -> None:
        """File events: news if they may be ours, and the end of the quiet if they surely are."""
        folders_mine, folders_others = set(self.state.mine.values()), set(self.state.others.values())
        for path in paths:
            above = [str(parent) for parent in Path(path).parents]
            if any(each in folders_mine for each in above):
                self.idle.quiet.touched()
                self._news = True
            elif not any(each in folders_others for each in (path, *above)):
                self._news = True
        if not paths:
            self._news = True
        self._wake.set()

    # --- the loop -------------------------------------------------------------------------------------------

    async def _work(self) -> None:
        """Until another process leads."""
        urgent = False
        while True:
            self._wake = anyio.Event()
            await to_thread.run_sync(self._nudges.take, self.state.others)
            if self._clock() - self._looked_at >= self.tuning.look_s:
                self._news, self._looked_at = True, self._clock()
            if self._nudges.waiting and not urgent:
                urgent, self._news = True, True
            if not (self._news or self._more):
                if not await self._nothing_to_do():
                    return
                continue
            heavy = not self._news and self.state.facts.get("next") in HEAVY
            reason, wait = self.idle.why_not(urgent=urgent, heavy=heavy)
            if reason:
                self.state.doing = f"waiting: {reason}"
                if not await self._beat(reason in SHARED_REASONS):
                    return
                await self._write_status()
                await self._sleep(min(wait, self.tuning.beat_s))
                continue
            if self._news:
                await to_thread.run_sync(self._take_settings)
            self._stumbled = False
            urgent = await self._step(urgent, heavy)
            if not await self._beat(not self._stumbled):
                return
            await self._write_status()
            if self._stumbled:
                await self._sleep(self._pause())

    def _take_settings(self) -> None:
        """Settings as they are now; a wrong value is told like any failure."""
        now = self._settings()
        self.idle.quiet_seconds = now.quiet_seconds
        if self._own_share:
            self.idle.share.allow(now.cpu_share)

    async def _nothing_to_do(self) -> bool:
        self.state.doing = "up to date"
        if self._clock() - self._worked >= self.tuning.linger_s:
            await self._steps.close(gently=True)
        if not await self._beat(True):
            return False
        await self._write_status()
        self.looked.set()
        self.looked = anyio.Event()
        await self._sleep(min(self.tuning.beat_s, self.tuning.look_s))
        return True

    async def _sleep(self, seconds: float) -> None:
        """Until something happens, at most ``seconds``."""
        with anyio.move_on_after(max(0.0, seconds)):
            await self._wake.wait()

    async def _step(self, urgent: bool, heavy: bool) -> bool:
        """One step; returns whether what is urgent is still to be done."""
        news, self._news = self._news, False  # a process that died looks again by itself
        self.state.doing = "working"
        try:
            async with self._turn:
                reply = await self._steps.step(
                    news=news, urgent=urgent, stop=self._must_stop(heavy and not urgent)
                )
        except OSError as error:
            self._news = True
            self._failed(error)
            return urgent
        self.idle.share.spend(reply.cpu)
        self._worked = self._clock()
        self._learn(reply)
        if reply.error:
            self._failed(PipelineError(reply.error), reply.chore)
        if self.state.facts.get("blocked"):  # nothing can be done before this: after the pause, again
            self._news = True
        elif not (reply.error or reply.stopped or reply.more):
            self.state.failures = 0
        self._more = reply.more
        if urgent and not reply.more:
            self._nudges.done(self.state.mine)
            self._news, urgent = True, False  # and then the rest, when it is quiet
        return urgent

    def _must_stop(self, heavy: bool) -> Callable[[], bool]:
        """Whether the step that begins now has to yield: to a call, to news that can be read at once, or because it
        hangs.
        """
        begun = self._clock()
        return lambda: self.idle.calling() or (heavy and self._news) or self._clock() - begun > STEP_MOST_S

    def _learn(self, reply: Reply) -> None:
        facts = reply.facts
        self.state.mine = facts.pop("mine", self.state.mine)
        self.state.others = facts.pop("others", self.state.others)
        if "stamp" in facts:
            self.idle.quiet.observe({"": tuple(facts.pop("stamp"))}, time.time())
        self.state.facts.update(facts)

    # --- progress and failures ------------------------------------------------------------------------------

    async def _beat(self, progress: bool) -> bool:
        """Show progress, if there is any; ``False`` when this process leads no more."""
        if self._clock() - self._beaten < self.tuning.beat_s / 2:
            return True
        if not await to_thread.run_sync(self._leadership.beat, progress):
            return False
        self._beaten = self._clock()
        return True

    def _failed(self, error: BaseException, chore: str = "") -> None:
        what = told(error)
        if chore and chore != "nothing":
            what = f"{chore}: {what}"
        if what != self.state.error:  # once, not once a try
            log.warning("background work on %s: %s", self.workspace, what)
        self.state.error, self.state.error_at = what, time.time_ns() // 1_000_000
        self.state.failures += 1
        self._stumbled = True

    def _pause(self) -> float:
        """Longer with each failure in a row, and never the same for two processes."""
        longest = min(self.tuning.retry_most_s, self.tuning.retry_s * 2.0 ** min(self.state.failures, 12))
        return longest * random.uniform(0.5, 1.0)

    # --- the status file ------------------------------------------------------------------------------------

    async def _write_status(self) -> None:
        told = self.status()
        changed = {name: value for name, value in told.items() if name not in ("at", "cpuSeconds")}
        soon = self._clock() - self._written < self.tuning.status_s
        if changed == self._told or (soon and changed["state"] == self._told.get("state")):
            return
        self._told, self._written = changed, self._clock()
        try:
            await to_thread.run_sync(files.write_json, self.store.joinpath(*STATUS), told)
        except PipelineError as error:
            self._failed(error, "status")

    def status(self) -> dict[str, Any]:
        """What the status file holds (docs/background.md)."""
        facts = self.state.facts
        return {
            "at": time.time_ns() // 1_000_000,
            "pid": os.getpid(),
            "state": self.state.doing,
            "watching": self._watching.mode if self._watching else "nothing to watch",
            "watchingWhy": self._watching.why if self._watching else "",
            "cpuSeconds": round(self.idle.share.used, 2),
            "cpuAllowed": round(self.idle.share.allowed, 2),
            "queue": facts.get("queue", {}),
            "lag": facts.get("lag", []),
            "behind": facts.get("behind"),
            "unreadBytes": facts.get("unread"),
            "lastError": {"at": self.state.error_at, "what": self.state.error} if self.state.error else None,
        }
