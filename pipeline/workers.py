"""Where the pure cores run: in a thread (one job) or in worker processes (``--jobs N``)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

import anyio
from anyio import BrokenWorkerProcess, to_process, to_thread

log = logging.getLogger(__name__)

A = TypeVar("A")
R = TypeVar("R")


class Workers:
    """Runs synchronous work off the event loop, at most ``jobs`` pieces at once.

    With one job a thread does it: no process to start, and SQLite releases the interpreter lock while it
    writes. With more, each piece goes to a process of a pool; arguments and results must pickle. A cancelled
    piece's process is killed: pieces change nothing, the caller commits. Where no process can be started (a
    limit, too little memory) the thread does it all."""

    def __init__(self, jobs: int) -> None:
        self.jobs = max(1, jobs)
        self._limiter = anyio.CapacityLimiter(self.jobs)

    async def run(self, work: Callable[[A], R], argument: A) -> R:
        """The result of ``work(argument)``; raises what it raises, or BrokenWorkerProcess if its process
        died.
        """
        if self.jobs > 1:
            try:
                return await to_process.run_sync(work, argument, limiter=self._limiter, cancellable=True)
            except (BrokenWorkerProcess, BlockingIOError, ProcessLookupError) as error:
                if isinstance(error, BrokenWorkerProcess) and not error.args:
                    raise  # it did start, and died of this piece
                log.warning("no worker process can be started (%s); going on without", error)
                self.jobs = self._limiter.total_tokens = 1
        return await to_thread.run_sync(work, argument, limiter=self._limiter, abandon_on_cancel=True)
