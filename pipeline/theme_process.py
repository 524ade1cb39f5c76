"""A theme's run in a process of its own, for the server: it goes on answering meanwhile, and keeps none of the memory
that a run over thousands of turns takes.

    parent ─► pickled request on stdin        child ─► pickled outcome on its output, once
"""

from __future__ import annotations

import os
import pickle
import sys
from dataclasses import dataclass

import anyio

from pipeline.errors import PipelineError
from pipeline.report import Report, ThemeResult
from pipeline.store.layout import Layout
from pipeline.theming import ThemeRequest

NICENESS = 10
"""Somebody waits for the theme; but several at once must not starve the reading of new turns, which has the lowest
priority.
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run: a result, or the error that ended it. ``report`` has what was refined and reused."""

    report: Report
    result: ThemeResult | None = None
    error: PipelineError | None = None


async def build_theme_apart(layout: Layout, workspace: str, request: ThemeRequest, report: Report) -> Outcome:
    """``theming.build_theme`` in a process of its own, on the store as it is; ``report`` is counted on.

    Cancelling ends the process, which is safe at any moment. Raises OSError if none can be started.
    """
    done = None
    try:
        # -P: the directory that the server was started in must not stand in for our own packages.
        done = await anyio.run_process(
            [sys.executable, "-P", "-m", "pipeline.theme_process"],
            input=pickle.dumps((layout, workspace, request, report)),
            stderr=None,
            check=False,
            cwd=layout.root,
        )
    except* anyio.BrokenResourceError:  # it ended before it had read what to do
        pass
    if done is None or done.returncode:
        how = "early" if done is None else f"with code {done.returncode}"
        return Outcome(report, error=PipelineError(f"the process of the run ended {how}"))
    outcome: Outcome = pickle.loads(done.stdout)
    return outcome


def main() -> None:
    """The child's side."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anything prints must not get into the outcome
    outcome = anyio.run(build_theme_here, *pickle.load(sys.stdin.buffer))
    with output:
        pickle.dump(outcome, output)


async def build_theme_here(layout: Layout, workspace: str, request: ThemeRequest, report: Report) -> Outcome:
    """The same in this process."""
    from pipeline.store.database import open_database
    from pipeline.theming import build_theme
    from pipeline.workers import Workers

    try:
        async with open_database(layout.database) as database:
            result = await build_theme(
                database, layout, workspace, request, workers=Workers(1), report=report
            )
        return Outcome(report, result)
    except PipelineError as error:
        return Outcome(report, error=error)


if __name__ == "__main__":
    # By its name, which the parent knows: what is pickled names its module.
    from pipeline import theme_process

    theme_process.main()
