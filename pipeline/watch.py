"""Several workspaces' background work in one process: one watch on the disk, one share of the processor, one step at
a time. Workspaces that appear later are taken in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import anyio
from anyio import to_thread

from pipeline import leader
from pipeline.background import Background, Tuning, watching_for
from pipeline.idle import CpuShare
from pipeline.sessions import Cache, discover
from pipeline.settings import Settings
from pipeline.watching import Watching

LINGER_S = 1.0
"""With many workspaces their processes for the chores do not stay around."""
SAY_S = 1.0


async def watch_workspaces(
    settings: Callable[[str | None], Settings],
    chosen: dict[str, str],
    everything: bool,
    say: Callable[[str, str], None],
    tuning: Tuning | None = None,
) -> None:
    """For ever. ``chosen`` are workspaces by id, with their labels; ``everything``: also those to come.

    ``say`` is told what each of them does when that changes.
    """
    tuning = tuning or Tuning(begin_s=0.0)
    if everything:
        tuning = replace(tuning, linger_s=LINGER_S)
    common = settings(None)
    works: dict[str, Background] = {}
    appeared = anyio.Event()

    def changed(paths: frozenset[str]) -> None:
        nonlocal appeared
        for work in list(works.values()):
            work.changed(paths)
        appeared.set()

    watching = watching_for(common, changed, tuning)
    share, turn = CpuShare(common.cpu_share), anyio.Lock()
    cache: Cache = {}

    def begin(name: str, label: str) -> None:
        works[name] = _work(settings, name, tuning, share, turn, watching)
        tasks.start_soon(works[name].run)
        tasks.start_soon(_tell, works[name], label, say)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watching.run)
        for name, label in chosen.items():
            begin(name, label)
        while True:
            with anyio.move_on_after(tuning.look_s):
                await appeared.wait()
            appeared = anyio.Event()
            if everything:
                for space in (await to_thread.run_sync(discover, settings(None), cache)).workspaces:
                    if space.id not in works:
                        begin(space.id, space.label)
            await anyio.sleep(tuning.appear_s)  # events come in rows; looking at everything costs a little


def _work(
    settings: Callable[[str | None], Settings],
    name: str,
    tuning: Tuning,
    share: CpuShare,
    turn: anyio.Lock,
    watching: Watching,
) -> Background:
    return Background(
        lambda: settings(name), name, role="watch", tuning=tuning, share=share, turn=turn, watching=watching
    )


async def _tell(work: Background, label: str, say: Callable[[str, str], None]) -> None:
    told = ""
    while True:
        state = work.state
        text = state.doing
        if text == "following":
            who = await to_thread.run_sync(leader.owner, work.store)
            text = f"standing by: process {who.pid} ({who.role}) does the work" if who else "standing by"
        if text.startswith("waiting") or text == "up to date":
            queue = state.facts.get("queue", {})
            if any(queue.values()):
                text += f" ({queue['unreadBytes']} bytes unread, {queue['unrefinedTurns']} turns not refined)"
        if state.error and state.failures:
            text += f"; {state.error}"
        if text != told and text != "starting":
            say(label, text)
            told = text
        await anyio.sleep(SAY_S)
