"""The process that does the chores: lowest priority, one step at a time, ended at once when it does not yield.

A process of its own, so that the interpreter lock of the one that answers people is never held by background work,
its memory does not grow, and what does not stop in time can be killed (every step is safe to kill). It dies with its
parent: when its stdin ends, or at the next signal.

    parent ─► {"do": "step", "news": true, "urgent": false} | {"do": "stop" | "end"}
    child  ─► {"chore": "read", "more": true, "cpu": 0.41, …}                     one line for each step
"""

from __future__ import annotations

import base64
import logging
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import orjson
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from pipeline.idle import cpu_seconds, lower_priority
from pipeline.settings import Settings

log = logging.getLogger(__name__)

POLL_S = 0.01
"""How often it is asked, while a step goes on, whether it has to stop."""
STOP_S = 0.025
"""How long a step may take to stop; then its process is killed. With the poll this stays below 50 ms."""
END_S = 2.0
"""How long it may take to end by itself."""
LINE_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a step. ``cpu`` is the processor time it took, ``stopped`` that it had to yield."""

    chore: str = "nothing"
    more: bool = False
    detail: str = ""
    error: str = ""
    stopped: bool = False
    killed: bool = False
    cpu: float = 0.0
    facts: dict[str, Any] = field(default_factory=dict)


class ChoreProcess:
    """The parent's side. Started at the first step; ``close`` ends it, a later step starts another one."""

    def __init__(self, settings: Callable[[], Settings], workspace: str) -> None:
        self._settings = settings
        self._workspace = workspace
        self._process: Process | None = None
        self._lines: BufferedByteReceiveStream | None = None
        self._cpu = 0.0
        self._killed = False

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def step(self, *, news: bool, urgent: bool, stop: Callable[[], bool]) -> Reply:
        """Have one step done. As soon as ``stop()`` is true the step is broken off, its process ended if need be.

        Raises OSError when no process can be started.
        """
        began = time.monotonic()
        if self._process is None:
            await self._start()
        reply: dict[str, Any] | None = None
        killed = False
        try:
            async with anyio.create_task_group() as tasks:

                async def yielding() -> None:
                    nonlocal killed
                    while not stop():  # noqa: ASYNC110 - it can only be asked
                        await anyio.sleep(POLL_S)
                    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                        await self._send({"do": "stop"})
                    await anyio.sleep(STOP_S)
                    killed = True
                    self._kill()

                tasks.start_soon(yielding)
                await self._send({"do": "step", "news": news, "urgent": urgent})
                reply = await self._receive()
                tasks.cancel_scope.cancel()
        except (
            anyio.BrokenResourceError,
            anyio.ClosedResourceError,
            anyio.EndOfStream,
            anyio.IncompleteRead,
        ):
            pass
        except BaseExceptionGroup as group:
            broken = (
                anyio.BrokenResourceError,
                anyio.ClosedResourceError,
                anyio.EndOfStream,
                anyio.IncompleteRead,
            )
            _, rest = group.split(broken)
            if rest is not None:
                await self.close()
                raise
        if reply is None:
            code = await self.close()
            spent = time.monotonic() - began  # at most: it cannot tell any more
            error = "" if killed else f"the process for background work ended with code {code}"
            return Reply(more=True, stopped=killed, killed=killed, cpu=spent, error=error)
        if killed:  # it answered at the last moment
            await self.close()
        return self._reply(reply)

    def _reply(self, found: dict[str, Any]) -> Reply:
        spent, self._cpu = found["cpu"] - self._cpu, found["cpu"]
        names = ("chore", "more", "detail", "error", "stopped")
        return Reply(**{name: found[name] for name in names}, cpu=spent, facts=found["facts"])

    async def _start(self) -> None:
        # -P: the directory that the server was started in must not stand in for our own packages.
        command = [sys.executable, "-P", "-m", "pipeline.chore_process"]
        settings = self._settings()
        self._process = await anyio.open_process(command, stderr=None, cwd=settings.store_root)
        stdout = self._process.stdout
        if stdout is None:
            raise OSError("the process for background work has no output")
        self._lines = BufferedByteReceiveStream(stdout)
        self._cpu, self._killed = 0.0, False
        packed = base64.b64encode(pickle.dumps((_plain(settings), self._workspace))).decode()
        await self._send({"do": "begin", "with": packed})

    async def _send(self, message: dict[str, Any]) -> None:
        if self._process is not None and self._process.stdin is not None:
            await self._process.stdin.send(orjson.dumps(message) + b"\n")

    async def _receive(self) -> dict[str, Any]:
        if self._lines is None:
            raise anyio.EndOfStream
        found: dict[str, Any] = orjson.loads(await self._lines.receive_until(b"\n", LINE_BYTES))
        return found

    def _kill(self) -> None:
        """At once. By the system's call: Popen's own would reap a process that just ended, and asyncio complains."""
        process = self._process
        if process is None or process.returncode is not None or self._killed:
            return
        self._killed = True
        with suppress(ProcessLookupError):
            if hasattr(signal, "SIGKILL"):
                os.kill(process.pid, signal.SIGKILL)
            else:
                process.kill()

    async def close(self, *, gently: bool = False) -> int | None:
        """End the process; its exit code. ``gently``: it may close the store first. Safe in a cancelled scope."""
        process = self._process
        if process is None:
            return None
        if gently:
            with anyio.move_on_after(END_S), suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                await self._send({"do": "end"})
                await process.wait()
        self._kill()
        self._process = self._lines = None
        with anyio.CancelScope(shield=True):
            await process.wait()
            await process.aclose()
        return process.returncode


def _plain(settings: Settings) -> Settings:
    """Settings as they travel: a mapping view does not."""
    from dataclasses import replace

    return replace(settings, origins=dict(settings.origins))


# --- the child's side --------------------------------------------------------------------------------------


def main() -> None:
    """Serve steps from stdin until it ends."""
    import asyncio

    output = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what anything prints must not get between the replies
    lower_priority()
    logging.basicConfig(stream=sys.stderr, level=logging.CRITICAL)
    asyncio.run(_serve(output))


async def _serve(output: Any) -> None:
    import asyncio

    loop = asyncio.get_running_loop()
    requests: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    running: list[anyio.CancelScope] = []

    def take(message: dict[str, Any]) -> None:
        if message["do"] == "stop":
            for scope in running:
                scope.cancel()
        else:
            requests.put_nowait(message)

    def listen() -> None:
        with suppress(BaseException):
            for line in sys.stdin.buffer:
                loop.call_soon_threadsafe(take, orjson.loads(line))
        os._exit(0)  # the parent is gone, or wants us gone: nothing that is not committed counts

    threading.Thread(target=listen, daemon=True).start()
    begin = await requests.get()
    settings, workspace = pickle.loads(base64.b64decode(begin["with"]))
    chores = _chores(settings, workspace)
    known: tuple[Any, ...] = ()
    while True:
        request = await requests.get()
        if request["do"] == "end":
            await chores.close()
            return
        if request["news"]:
            chores.news()
        done = None
        with anyio.CancelScope() as scope:
            running.append(scope)
            done = await chores.step(urgent=request["urgent"])
        running.clear()
        facts = _facts(chores)
        places = (facts.pop("mine"), facts.pop("others"))
        if places != known:
            known = places
            facts["mine"], facts["others"] = places
        reply = {
            "chore": done.chore if done else "nothing",
            "more": done.more if done else True,
            "detail": done.detail if done else "",
            "error": done.error if done else "",
            "stopped": done is None,
            "cpu": cpu_seconds(),
            "facts": facts,
        }
        output.write(orjson.dumps(reply) + b"\n")


def _chores(settings: Settings, workspace: str) -> Any:
    from pipeline.chores import Chores

    return Chores(lambda: settings, workspace)


def _facts(chores: Any) -> dict[str, Any]:
    """What the parent needs to know: which folders are whose, how new the wires are, what waits."""
    standing = chores.standing
    facts: dict[str, Any] = {
        "mine": {session.session_id: str(session.dir) for session in chores.sessions},
        "others": {session.session_id: str(session.dir) for session in chores.others},
        "stamp": _stamp([agent.wire for session in chores.sessions for agent in session.agents]),
        "queue": chores.queue.as_json(),
        "next": chores.next(),
        "blocked": chores.blocked,
    }
    if standing is not None:
        facts["wires"], facts["bytes"] = standing.wires, standing.bytes
        facts["lag"] = [lag.as_json() for lag in standing.behind[:20]]
        facts["behind"] = len(standing.behind)
        facts["unread"] = standing.unread
    return facts


def _stamp(wires: list[Path]) -> tuple[int, int]:
    """All the wires' bytes, and the newest of their times (ns)."""
    total = newest = 0
    for wire in wires:
        with suppress(OSError):
            found = wire.stat()
            total, newest = total + found.st_size, max(newest, found.st_mtime_ns)
    return total, newest


if __name__ == "__main__":
    main()
