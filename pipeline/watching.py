"""Who wrote what: changes below the sessions folders, by the system's file events where it has them, else by looking.

File events fail in silence on network mounts and fail loudly when the system's watches are used up: then the folders
are polled. A folder that is not there yet (a new home) is looked for every few seconds and watched once it appears.
Runs for ever; cancel it to stop.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

import anyio
from anyio import from_thread, to_thread

log = logging.getLogger(__name__)
logging.getLogger("watchfiles").setLevel(logging.WARNING)  # it tells every change

Mode: TypeAlias = Literal["events", "polling", "nothing to watch"]

NETWORK = frozenset(
    (
        "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "vboxsf", "vmhgfs",
        "prl_fs", "virtiofs", "fuse.sshfs", "fuse.rclone", "fuse.s3fs", "fuse.vmhgfs-fuse", "drvfs", "davfs",
    )
)  # fmt: skip
"""File systems whose other writers cause no events here."""
MOUNTS = Path("/proc/self/mountinfo")
DEBOUNCE_MS = 400
"""Changes that come closer together than this are one."""
STEP_MS = 200
READY_MS = 1_000
"""After this long without a change a watch counts as set up."""
POLL_MS = 2_000
POLL_PAUSE = 50.0
"""A look that takes long is repeated less often: at most 2 % of one core."""
DEPTH = 4
"""Buckets, sessions, ``agents``, agents: below them nothing tells news."""
APPEAR_S = 5.0
RETRY_S = 30.0
TELLING = frozenset(("wire.jsonl", "state.json", "kimi.json", "workspaces.json", "session_index.jsonl"))


def network_mount(path: Path, mounts: Path = MOUNTS) -> bool:
    """Whether ``path`` lies on a file system that other machines write (as far as Linux tells)."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    real = os.path.realpath(path)
    best, kind = -1, ""
    for line in lines:
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) < 5 or not after:
            continue
        point = fields[4].replace("\\040", " ")
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= best:
            best, kind = len(point), after.split(" ")[0]
    return kind in NETWORK


def telling(path: str, nudges: Path | None) -> bool:
    """Whether a change of ``path`` means news: a wire, what describes a session, a new folder, or a nudge."""
    name = path.replace("\\", "/").rpartition("/")[2]
    return name in TELLING or "." not in name or (nudges is not None and Path(path).parent == nudges)


def snapshot(folders: Iterable[Path]) -> dict[str, tuple[int, int]]:
    """Size and mtime (ns) of every file below ``folders`` that tells news, and of the folders down to the agents'."""
    found: dict[str, tuple[int, int]] = {}
    pending = [(os.fspath(folder), 0) for folder in folders]
    while pending:
        folder, depth = pending.pop()
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=depth < 2):
                        found[entry.path] = (0, 0)
                        if depth < DEPTH:
                            pending.append((entry.path, depth + 1))
                    elif entry.name in TELLING or depth == 0:
                        stat = entry.stat()
                        found[entry.path] = (stat.st_size, stat.st_mtime_ns)
    return found


class Watching:
    """Watches ``folders`` (present or not) and ``nudges``; calls ``on_change`` with the changed paths.

    ``mode`` tells how. ``polling`` forces looking instead of events.
    """

    def __init__(
        self,
        folders: Sequence[Path],
        on_change: Callable[[frozenset[str]], None],
        *,
        nudges: Path | None = None,
        polling: bool = False,
        debounce_ms: int = DEBOUNCE_MS,
        poll_ms: int = POLL_MS,
        appear_s: float = APPEAR_S,
        ready_ms: int = READY_MS,
    ) -> None:
        self.folders = tuple(folders)
        self.nudges = nudges
        self.mode: Mode = "nothing to watch"
        self.why = ""
        self.watched = anyio.Event()
        """Set once something is watched."""
        self._thread = anyio.CapacityLimiter(1)
        self._on_change = on_change
        self._polling = polling
        self._debounce_ms = debounce_ms
        self._poll_ms = poll_ms
        self._appear_s = appear_s
        self._ready_ms = ready_ms

    async def run(self) -> None:
        """For ever. What a watch dies of is logged, then the folders are polled or watched anew."""
        while True:
            found = await to_thread.run_sync(self._present)
            if not found:
                self.mode = "nothing to watch"
                await anyio.sleep(self._appear_s)
                if await to_thread.run_sync(self._present):
                    self._on_change(frozenset())
                continue
            polling = self._polling or await to_thread.run_sync(self._on_network, found)
            try:
                await self._watch(found, polling)
            except FileNotFoundError:  # gone in between: look again
                await anyio.sleep(self._appear_s)
            except Exception as error:
                if polling:
                    log.warning("polling %s failed: %s", found, error)
                    await anyio.sleep(RETRY_S)
                else:  # watches used up, an odd file system
                    self._polling, self.why = True, f"file events are not to be had: {error}"
                    log.info("%s: polling instead", self.why)
            self._on_change(frozenset())  # whatever happened in between

    def _present(self) -> dict[Path, int]:
        """The folders that are there, each with its identity."""
        found = {}
        for folder in (*self.folders, *((self.nudges,) if self.nudges else ())):
            try:
                stat = folder.stat()
            except OSError:
                continue
            if folder.is_dir():
                found[folder] = stat.st_ino
        return found

    def _on_network(self, found: Iterable[Path]) -> bool:
        if any(network_mount(folder) for folder in found):
            self.why = "on a network mount"
            return True
        return False

    async def _watch(self, found: dict[Path, int], polling: bool) -> None:
        """Until a folder comes or goes, or the watch fails."""
        stop = threading.Event()
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._until_changed, found, stop)
            try:
                # One thread for all the life of the watch: setting it up begins with a walk over the folders.
                await to_thread.run_sync(
                    self._follow, list(found), polling, stop, abandon_on_cancel=True, limiter=self._thread
                )
            except Exception as error:
                failure = error
            finally:
                stop.set()
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure

    def _follow(self, found: list[Path], polling: bool, stop: threading.Event) -> None:
        if polling:
            self._poll(found, stop)
        else:
            self._listen(found, stop)

    def _poll(self, found: list[Path], stop: threading.Event) -> None:
        """Look every now and then. Our own, as watchfiles' polling misses a second change within one second."""
        before = snapshot(found)
        from_thread.run_sync(self._tell, frozenset(), True)
        spent = 0.0
        while not stop.wait(max(self._poll_ms / 1000, spent * POLL_PAUSE)):
            began = time.monotonic()
            now = snapshot(found)
            changed = frozenset(path for path, facts in now.items() if before.get(path) != facts)
            changed |= before.keys() - now.keys()
            before, spent = now, time.monotonic() - began
            if changed:
                from_thread.run_sync(self._tell, changed, True)

    def _listen(self, found: list[Path], stop: threading.Event) -> None:
        from watchfiles import watch

        changes = watch(
            *found,
            watch_filter=None,
            debounce=self._debounce_ms,
            step=min(STEP_MS, self._debounce_ms),
            stop_event=stop,
            rust_timeout=self._ready_ms,
            yield_on_timeout=True,
            raise_interrupt=False,
            force_polling=False,
            ignore_permission_denied=True,
        )
        ready = False
        for found_now in changes:
            paths = frozenset(path for _, path in found_now if telling(path, self.nudges))
            if not ready or paths:
                # The first time also without a change: what was written while the watch was set up is not told.
                from_thread.run_sync(self._tell, paths, False)
                ready = True

    def _tell(self, paths: frozenset[str], polling: bool) -> None:
        self.mode = "polling" if polling else "events"
        self.watched.set()
        self._on_change(paths)

    async def _until_changed(self, found: dict[Path, int], stop: threading.Event) -> None:
        while not stop.is_set():
            await anyio.sleep(self._appear_s)
            if await to_thread.run_sync(self._present) != found:
                stop.set()
