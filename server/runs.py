"""Theme runs in the background of the server: one at a time a theme, joined by whoever asks for the same.

A run belongs to the server, not to the call that began it: a call that is cancelled or times out leaves it
going, and the next call for the theme finds it.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

import anyio

from pipeline.errors import PipelineError
from pipeline.report import Report, ThemeResult
from pipeline.store.names import theme_name
from pipeline.theme_process import build_theme_apart
from pipeline.theming import ThemeRequest

if TYPE_CHECKING:
    from server.space import Space

log = logging.getLogger(__name__)

Stage: TypeAlias = Literal["waiting", "reading new turns", "searching and refining", "done", "failed"]
KEPT = 30
"""Ended runs that are remembered a workspace."""


@dataclass(slots=True)
class Run:
    """One run of one theme. Times are seconds of the monotonic clock."""

    request: ThemeRequest
    stage: Stage = "waiting"
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None
    report: Report = field(default_factory=Report)
    result: ThemeResult | None = None
    error: PipelineError | None = None
    done: anyio.Event = field(default_factory=anyio.Event)

    @property
    def seconds(self) -> float:
        return (time.monotonic() if self.ended is None else self.ended) - self.began


class Runs:
    """The runs of one workspace."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._runs: dict[str, list[Run]] = {}

    def all(self) -> list[Run]:
        """Runs that go on, then those that ended, newest first."""
        runs = [run for each in self._runs.values() for run in each]
        return sorted(runs, key=lambda run: (run.ended is not None, -run.began))

    def of(self, theme: str) -> Run | None:
        """The newest run of a theme."""
        runs = self._runs.get(theme_name(theme).casefold())
        return runs[-1] if runs else None

    def join(self, request: ThemeRequest) -> tuple[Run, bool]:
        """The run that does what is asked, and whether it was begun by somebody else.

        A run that goes on is joined when it was asked for the same; another request waits for it.
        """
        runs = self._runs.setdefault(theme_name(request.name).casefold(), [])
        for run in runs:
            if not run.done.is_set() and _covers(run.request, request):
                return run, True
        before = runs[-1] if runs and not runs[-1].done.is_set() else None
        run = Run(request)
        runs.append(run)
        self._forget(runs)
        self._space.service.start(f"run of theme {theme_name(request.name)}", self._work, run, before)
        return run, False

    def _forget(self, runs: list[Run]) -> None:
        del runs[:-3]
        if len(self._runs) > KEPT:
            ended = [name for name, each in self._runs.items() if all(run.done.is_set() for run in each)]
            for name in ended[: len(self._runs) - KEPT]:
                del self._runs[name]

    async def _work(self, run: Run, before: Run | None) -> None:
        try:
            if before is not None:
                await before.done.wait()
            run.stage = "reading new turns"
            run.report = await self._space.catch_up()
            run.stage = "searching and refining"
            outcome = await build_theme_apart(self._space.layout, self._space.label, run.request, run.report)
            run.report, run.result = outcome.report, outcome.result
            if outcome.error is not None:
                raise outcome.error
            run.stage = "done"
        except PipelineError as error:
            run.stage, run.error = "failed", error
        except Exception as error:
            log.exception("run of a theme failed")
            run.stage = "failed"
            run.error = PipelineError(
                f"the run failed: {type(error).__name__}", hint="The server's log says more."
            )
        finally:
            run.ended = time.monotonic()
            run.done.set()


def _covers(running: ThemeRequest, asked: ThemeRequest) -> bool:
    """Whether a run already does what is asked."""
    same = (running.since, running.until) == (asked.since, asked.until)
    return same and (
        running == asked or (not asked.replace_keywords and set(asked.keywords) <= set(running.keywords))
    )
