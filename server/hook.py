"""`kimi-memory hook`: what Kimi Code runs at its lifecycle events, an event's JSON on stdin.

It answers in under 150 ms and never disturbs the client: whatever is broken, it prints nothing and ends with 0
(exit code 2 would block the user's prompt). So it needs the standard library only, and Kimi runs this very file
with ``python -I -S``: no site packages, no code of the directory it is started in.

- SessionStart keeps the map from sessions to directories (``server/session_map.py`` reads it): the events of a
  turn carry Kimi's own directory under ``kimi acp`` and ``kimi web``, only SessionStart tells the session's.
- Stop and SessionEnd touch ``<store root>/nudges/<session id>``: the background leader then catches up.

An event without a handler is ignored, so a hook of a later version does no harm here.
"""

from __future__ import annotations

# pathlib would cost this process a third of its time:
# ruff: noqa: PTH100, PTH103, PTH105, PTH108, PTH111, PTH113, PTH118, PTH123, PTH202
import json
import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, TypeAlias

MAP_NAME = "sessions-map.json"
NUDGES_NAME = "nudges"
BUDGET_MS = 120
"""The whole run, without the interpreter's start; after it the process ends as if nothing had happened."""
STDIN_LIMIT = 1 << 20
"""Bytes of an event that are read: a prompt may be long, what we need is not."""
MAP_LIMIT = 512
"""Sessions in the map; the oldest go first."""
MAP_BYTES = 4 << 20
NUDGE_DAYS, NUDGE_LIMIT = 7, 2_000
DAY_MS = 86_400_000
_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", re.ASCII)

Event: TypeAlias = Mapping[str, Any]
Handler: TypeAlias = "Callable[[Event, Place], str]"


class Place:
    """Where and when an event is handled: the store root, Kimi's process id (0: unknown), now in ms."""

    __slots__ = ("kimi_pid", "now", "root")

    def __init__(self, root: str, kimi_pid: int, now: int) -> None:
        self.root = root
        self.kimi_pid = kimi_pid
        self.now = now


def main(
    argv: Sequence[str] | None = None, env: Mapping[str, str] | None = None, stdin: IO[bytes] | None = None
) -> int:
    """Handle one event. ``argv``: Kimi's process id, then the store root if it is not the environment's.

    Prints the handler's answer, if it has one. Always 0.
    """
    with suppress(Exception):
        answer = handle(
            sys.argv[1:] if argv is None else argv,
            os.environ if env is None else env,
            (sys.stdin.buffer if stdin is None else stdin).read(STDIN_LIMIT),
        )
        if answer:
            sys.stdout.write(answer)
            sys.stdout.flush()
    return 0


def handle(argv: Sequence[str], env: Mapping[str, str], data: bytes) -> str:
    """The answer to one event; raises whatever is broken."""
    event = json.loads(data)
    handler = HANDLERS.get(str(event.get("hook_event_name")))
    if handler is None or not _SESSION_ID.fullmatch(event.get("session_id") or ""):
        return ""
    root = argv[1] if len(argv) > 1 and argv[1] else env.get("MEMORY_STORE_ROOT") or "~/.kimi-code-memory"
    pid = int(argv[0]) if argv and argv[0].isdecimal() else 0
    place = Place(os.path.abspath(os.path.expanduser(root)), pid or _kimi(), time.time_ns() // 1_000_000)
    return handler(event, place)


def session_start(event: Event, place: Place) -> str:
    """Note the session's directory and Kimi's process in the map. Nothing is printed."""
    _keep_in_map(event, place)
    _sweep_nudges(place)
    return ""


def nudge(event: Event, place: Place) -> str:
    """Tell the background leader that this session has something new. Nothing is printed."""
    folder = os.path.join(place.root, NUDGES_NAME)
    _make(folder)
    path = os.path.join(folder, str(event["session_id"]))
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600))
    os.utime(path)
    return ""


HANDLERS: dict[str, Handler] = {"SessionStart": session_start, "Stop": nudge, "SessionEnd": nudge}


# --- the map -----------------------------------------------------------------------------------------------


def _keep_in_map(event: Event, place: Place) -> None:
    cwd = event.get("cwd")
    if not isinstance(cwd, str) or not cwd:
        return
    _make(place.root)
    path = os.path.join(place.root, MAP_NAME)
    lock = os.open(os.path.join(place.root, f".{MAP_NAME}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(lock)
        sessions = _sessions(path)
        sessions[str(event["session_id"])] = {"cwd": cwd, "kimiPid": place.kimi_pid, "at": place.now}
        _replace(path, {"sessions": _newest(sessions)})
    finally:
        os.close(lock)  # the kernel drops the lock with it, also when this process is killed


def _sessions(path: str) -> dict[str, dict[str, Any]]:
    """What the map holds; a torn or foreign one is begun anew."""
    with suppress(OSError, ValueError):
        if os.path.isfile(path) and os.path.getsize(path) <= MAP_BYTES:
            with open(path, "rb") as file:
                value = json.loads(file.read())
            sessions = value.get("sessions") if isinstance(value, dict) else None
            if isinstance(sessions, dict):
                return {key: row for key, row in sessions.items() if isinstance(row, dict)}
    return {}


def _newest(sessions: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    def age(item: tuple[str, dict[str, Any]]) -> float:
        at = item[1].get("at")
        return at if isinstance(at, int | float) else 0

    return dict(sorted(sessions.items(), key=age)[-MAP_LIMIT:])


def _replace(path: str, value: object) -> None:
    temp = f"{path}.{os.getpid()}.tmp"
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
        os.replace(temp, path)  # a reader sees the old map or the new one; it is a hint, so no fsync
    except BaseException:
        with suppress(OSError):
            os.unlink(temp)
        raise


def _lock(fd: int) -> None:
    """Wait for the other hooks that write the map; the budget bounds the wait."""
    if os.name == "nt":
        import msvcrt  # waits up to 10 s; Windows has no timer signal, but one writer takes a millisecond

        msvcrt.locking(fd, msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined, unused-ignore]
    else:
        import fcntl

        fcntl.flock(fd, fcntl.LOCK_EX)


def _sweep_nudges(place: Place) -> None:
    """Old nudges go, and so do temporary files of killed hooks: with no leader they would pile up."""
    with suppress(OSError):
        found = sorted(
            (entry.stat(follow_symlinks=False).st_mtime, entry.path)
            for entry in os.scandir(os.path.join(place.root, NUDGES_NAME))
        )
        horizon = (place.now - NUDGE_DAYS * DAY_MS) / 1000
        for index, (mtime, path) in enumerate(found):
            if mtime < horizon or index < len(found) - NUDGE_LIMIT:
                with suppress(OSError):
                    os.unlink(path)


def _make(folder: str) -> None:
    os.makedirs(folder, mode=0o700, exist_ok=True)


def _kimi() -> int:
    """Kimi's process id when the command line does not tell: Kimi starts a shell, the shell starts us."""
    with suppress(OSError, ValueError, IndexError):
        with open(f"/proc/{os.getppid()}/stat", "rb") as file:
            name, _, rest = file.read().partition(b"(")[2].rpartition(b")")
        if name in (b"sh", b"bash", b"dash", b"zsh"):
            return int(rest.split()[1])
    return os.getppid() if os.name != "nt" else 0


def _end_in_time(env: Mapping[str, str]) -> None:
    """End the process silently when the budget is used up: a slow disk must not slow Kimi down."""
    import signal

    if hasattr(signal, "setitimer"):
        budget = env.get("KIMI_MEMORY_HOOK_MS", "")
        signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
        signal.setitimer(signal.ITIMER_REAL, (int(budget) if budget.isdecimal() else BUDGET_MS) / 1000)


if __name__ == "__main__":
    with suppress(Exception):
        _end_in_time(os.environ)
        main()
    os._exit(0)  # not sys.exit: a closed stdout would be complained about at the interpreter's end
