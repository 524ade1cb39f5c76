"""Serving over stdin and stdout so that the server ends when it should.

Kimi ends a server with SIGTERM and by closing stdin at once. The SDK's own stdio reads in a thread that no
cancellation reaches, and has no signal handler: it dies without teardown, or hangs. Here stdin is awaited as a
descriptor; SIGTERM, SIGINT, SIGHUP and end of file all lead through the lifespan's teardown within a second.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import stat
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import anyio
import anyio.lowlevel
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server

from server.app import App

log = logging.getLogger(__name__)

READ_BYTES = 1 << 16
LINE_BYTES = 64 << 20
"""A longer message is refused: nothing a client sends comes near it."""
LAST_ANSWERS_S = 0.5
"""After the end of file, calls in flight may still answer this long (``printf … | kimi-memory``)."""
EXIT_S = 0.9
"""From a signal or the end of stdin to our end at the latest: then a thread that hangs in the system is left
behind. Everything on disk is written whole or not at all, so this loses nothing."""


class InputLines:
    """The lines that arrive on a descriptor; waiting for them can be cancelled."""

    def __init__(self, fd: int, app: App) -> None:
        self._fd = fd
        self._app = app
        self._held = bytearray()

    async def __aiter__(self) -> AsyncIterator[str]:
        while True:
            await anyio.wait_readable(self._fd)
            try:
                data = os.read(self._fd, READ_BYTES)
            except BlockingIOError:
                continue
            except OSError:  # the other end is gone for good
                data = b""
            if not data:
                end_soon(EXIT_S)
                await self._last_answers()
                return
            for line in self._lines(data):
                yield line

    def _lines(self, data: bytes) -> list[str]:
        self._held += data
        if len(self._held) > LINE_BYTES and b"\n" not in data:
            log.error("a message of more than %d bytes was dropped", LINE_BYTES)
            self._held.clear()
        *lines, rest = self._held.split(b"\n")
        self._held = rest
        return [line.decode("utf-8", "replace") for line in lines if line.strip()]

    async def _last_answers(self) -> None:
        """Let calls that came before the end answer: whoever pipes requests in may still read."""
        with anyio.move_on_after(LAST_ANSWERS_S):
            await anyio.lowlevel.checkpoint()
            while self._app.active:
                await self._app.idle.wait()


class Output:
    """Writes to a descriptor without a thread, so that a reader who stopped reading cannot hold the exit."""

    def __init__(self, fd: int, scope: anyio.CancelScope) -> None:
        self._fd = fd
        self._scope = scope

    async def write(self, text: str) -> None:
        """All of ``text``; when nobody reads any more, the server ends."""
        left = memoryview(text.encode("utf-8", "replace"))
        while left:
            try:
                left = left[os.write(self._fd, left[: select.PIPE_BUF]) :]
            except BlockingIOError:
                await anyio.wait_writable(self._fd)
            except OSError:
                self._scope.cancel()
                return

    async def flush(self) -> None:
        """Nothing is held back."""


async def serve(server: Server[App], app: App) -> None:
    """Serve until end of file or a signal."""
    async with anyio.create_task_group() as tasks:
        await tasks.start(_watch, tasks.cancel_scope)
        options = server.create_initialization_options(NotificationOptions(resources_changed=True))
        fds = _private_fds()
        if fds is None:
            async with stdio_server() as (read, write):
                await server.run(read, write, options)
        else:
            lines: Any = InputLines(fds[0], app)
            output: Any = Output(fds[1], tasks.cancel_scope)
            async with stdio_server(stdin=lines, stdout=output) as (read, write):
                await server.run(read, write, options)
        tasks.cancel_scope.cancel()


async def _watch(scope: anyio.CancelScope, *, task_status: anyio.abc.TaskStatus[None]) -> None:
    wanted = [getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)]
    if os.name == "nt":  # signals cannot be awaited there: Ctrl-C and the end of stdin end the server
        task_status.started()
        return
    with anyio.open_signal_receiver(*wanted) as signals:
        task_status.started()
        async for number in signals:
            log.info("ending on %s", signal.Signals(number).name)
            end_soon(EXIT_S)
            scope.cancel()
            return


def end_soon(seconds: float) -> None:
    """End the process in ``seconds`` whatever still runs in it."""
    timer = threading.Timer(seconds, os._exit, (0,))
    timer.daemon = True
    timer.start()


def _private_fds() -> tuple[int, int] | None:
    """Descriptors for the protocol alone, stdin and stdout of everything else diverted; ``None``: not possible.

    From here on stray prints, also of children, reach stderr, and nothing but us reads the client's input.
    """
    if os.name == "nt" or not (_awaitable(0) and _awaitable(1)):
        return None
    import fcntl

    try:
        incoming = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
        outgoing = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3)
        os.set_blocking(outgoing, False)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        with suppress(OSError):
            os.dup2(2, 1)
    except OSError:
        return None
    return incoming, outgoing


def _awaitable(fd: int) -> bool:
    """Whether a descriptor is a pipe or a socket: terminals and files cannot be awaited everywhere."""
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def run(server: Server[App], app: App) -> None:
    """``serve`` as a process: does not return, and waits for no thread: teardown has closed what was open."""
    code = 0
    try:
        anyio.run(serve, server, app)
    except KeyboardInterrupt:
        pass
    except BaseException:  # the top of the process: what it was goes to the log, the code tells
        log.exception("the server failed")
        code = 4
    logging.shutdown()
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(code)
