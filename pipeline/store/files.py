"""Files of a store: written whole or not at all, under locks that die with their process.

Every write is a temporary file beside its target, synced, then renamed over it (design: Workspaces and
stores), so a reader sees the old bytes or the new ones and a kill at any instant leaves at worst a ``.tmp-*``
file, which the next writer sweeps. Directories are made 0700, files 0600. What the operating system refuses
is raised as StoreError that says what to do. Everything here is synchronous: the async edge runs it in
threads.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import orjson
from filelock import FileLock, Timeout
from tenacity import retry, retry_if_exception, stop_after_delay, wait_exponential

from pipeline.errors import StoreError

LOCK_TIMEOUT_S = 10.0
"""How long a writer waits for another one: far above any write of ours, below the client's 60 s per call."""

LOCK_POLL_S = 0.005
LOCK_STRIPES = 64
"""Lock files per top folder of a store: they stay when released, so their number must not grow with the
store.
"""

LOCK_DIR = ".locks"
TEMP_PREFIX = ".tmp-"
STALE_TEMP_S = 600.0
"""Age at which a temporary file is surely left from a killed writer, not one of a writer that was suspended.
"""

SHARING_RETRY_S = 3.0
_SHARING_VIOLATIONS = frozenset({5, 32, 33})
"""Windows: access denied, sharing violation, lock violation; a virus scanner or indexer holds the file a
moment.
"""

T = TypeVar("T")


def read_bytes(path: Path, *, limit: int | None = None) -> bytes | None:
    """The bytes of a regular file (at most ``limit`` of them), ``None`` when there is none.

    Raises StoreError when it exists but may not be read.
    """
    try:
        if not path.is_file():  # a FIFO or a device would block, or never end
            return None
        return _patiently(lambda: _read(path, limit))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise refusal(error, path, "read") from error


def read_text(path: Path) -> str | None:
    """The text of a file, without its byte order mark, undecodable bytes as U+FFFD; ``None`` when there is
    none.
    """
    data = read_bytes(path)
    return None if data is None else data.decode("utf-8-sig", errors="replace")


def read_json(path: Path) -> object:
    """The parsed JSON of a file; ``None`` when it is missing, empty, torn or no JSON (a cache is then
    rebuilt).
    """
    data = read_bytes(path)
    try:
        return orjson.loads(data.removeprefix(b"\xef\xbb\xbf")) if data else None
    except orjson.JSONDecodeError:
        return None


def write_bytes(path: Path, data: bytes) -> bool:
    """Put ``data`` at ``path`` atomically; ``False`` when the file holds it already and nothing was written.

    Parents are made. A symbolic link at ``path`` is replaced, never followed. Raises StoreError on a full
    or read-only disk or a missing permission; the old file is then as it was and no temporary file stays.
    """
    try:
        if not path.is_symlink() and _holds(path, data):
            return False
        make_dirs(path.parent)
        _replace_with(path, data)
    except OSError as error:
        raise refusal(error, path, "write") from error
    return True


def write_text(path: Path, text: str) -> bool:
    """Like write_bytes, in UTF-8 with the line ends as given; lone surrogates become ``?``."""
    return write_bytes(path, text.encode("utf-8", errors="replace"))


def write_json(path: Path, value: object) -> bool:
    """Like write_bytes, as JSON indented by two, with a last line end: people read these files too."""
    return write_bytes(path, orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def make_dirs(path: Path) -> None:
    """Make a directory and its missing parents, each 0700 at most. Raises StoreError."""
    missing = []
    try:
        while not path.exists():
            missing.append(path)
            path = path.parent
        for path in reversed(missing):
            path.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise refusal(error, path, "make") from error


def rename(source: Path, target: Path) -> None:
    """Move a file, replacing ``target``; the target's parents are made. Raises StoreError."""
    make_dirs(target.parent)
    try:
        _patiently(lambda: source.replace(target))
    except OSError as error:
        raise refusal(error, source, "move") from error
    _sync_dir(target.parent)
    _sync_dir(source.parent)


def remove(path: Path) -> bool:
    """Remove a file; ``False`` when there was none. Raises StoreError."""
    try:
        _patiently(path.unlink)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise refusal(error, path, "remove") from error
    _sync_dir(path.parent)
    return True


def prune_dirs(directory: Path, root: Path) -> None:
    """Remove ``directory`` and its parents below ``root`` while they are empty; one in use simply stays."""
    with suppress(OSError):
        while directory != root and directory.is_relative_to(root):
            directory.rmdir()
            directory = directory.parent


def sweep(directory: Path, now: float | None = None) -> int:
    """Remove temporary files that killed writers left in ``directory`` (not below it); returns how many.

    ``now`` is seconds since the epoch, the clock by default.
    """
    horizon = (time.time() if now is None else now) - STALE_TEMP_S
    swept = 0
    with suppress(OSError):
        for path in directory.glob(f"{TEMP_PREFIX}*"):
            with suppress(OSError):
                if path.lstat().st_mtime <= horizon:
                    path.unlink()
                    swept += 1
    return swept


@contextmanager
def locked(root: Path, *names: str, timeout: float = LOCK_TIMEOUT_S) -> Iterator[None]:
    """Hold the locks of the store files ``names`` (relative to ``root``) against all processes and threads.

    All names of one action go into one call: they are taken in one order, so two movers cannot block each
    other. Locks of different top folders may be nested as memory → themes → index. The kernel drops them when
    the process dies, so none is ever stale; the files in ``.locks/`` mean nothing while nobody holds them.
    Raises StoreError after ``timeout`` seconds, or when the disk refuses the lock file.
    """
    folder = root / LOCK_DIR
    make_dirs(folder)
    with ExitStack() as held:
        for name in sorted({_stripe(name) for name in names}):
            try:
                held.enter_context(
                    FileLock(folder / name, timeout=timeout, mode=0o600, poll_interval=LOCK_POLL_S)
                )
            except Timeout as error:
                raise StoreError(
                    folder / name,
                    f"another process has kept it locked for {timeout:g} s",
                    hint="Try again; if it stays so, end the process that holds it.",
                ) from error
            except OSError as error:
                raise refusal(error, folder / name, "lock") from error
        yield


def refusal(error: OSError, path: Path, action: str) -> StoreError:
    """What the operating system refused, with what to do about it as the hint."""
    problem, hint = _REFUSALS.get(error.errno or 0, (error.strerror or str(error), ""))
    return StoreError(path, f"cannot {action} it: {problem}", hint=hint)


_ELSEWHERE = "or name another place for the store with MEMORY_STORE_ROOT"
_FULL = ("the disk is full", f"Free some space and try again, {_ELSEWHERE}.")
_DENIED = ("permission denied", f"Check its owner and mode, {_ELSEWHERE}.")
_REFUSALS: dict[int, tuple[str, str]] = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: ("the disk quota is used up", _FULL[1]),
    errno.EROFS: ("the file system is read-only", f"Mount it writable, {_ELSEWHERE}."),
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.ENAMETOOLONG: ("the name is too long for this file system", "Choose a shorter one."),
    errno.ENOTDIR: ("a file stands where a directory should be", "Move that file away."),
    errno.EEXIST: ("a file stands where a directory should be", "Move that file away."),
    errno.EISDIR: ("a directory stands where a file should be", "Move that directory away."),
}


def _is_sharing_violation(error: BaseException) -> bool:
    return isinstance(error, OSError) and getattr(error, "winerror", None) in _SHARING_VIOLATIONS


@retry(
    retry=retry_if_exception(_is_sharing_violation),
    wait=wait_exponential(multiplier=0.005, max=0.2),
    stop=stop_after_delay(SHARING_RETRY_S),
    reraise=True,
)
def _patiently(action: Callable[[], T]) -> T:
    return action()


def _read(path: Path, limit: int | None) -> bytes:
    with path.open("rb") as file:
        return file.read() if limit is None else file.read(limit)


def _holds(path: Path, data: bytes) -> bool:
    try:
        return path.stat().st_size == len(data) and path.read_bytes() == data
    except OSError:
        return False


def _replace_with(path: Path, data: bytes) -> None:
    temp = path.parent / f"{TEMP_PREFIX}{os.getpid()}-{secrets.token_hex(6)}"
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with open(fd, "wb") as file:  # noqa: PTH123 - a descriptor, not a path
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        # Commit point: before it the old file stands, after it the new one.
        _patiently(lambda: temp.replace(path))
    except BaseException:
        with suppress(OSError):
            temp.unlink()
        raise
    _sync_dir(path.parent)


def _sync_dir(directory: Path) -> None:
    """Make a rename durable where directories can be synced (not on Windows, not on some network drives)."""
    if os.name == "nt":
        return
    with suppress(OSError):
        fd = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _stripe(name: str) -> str:
    """The lock file of a store file: equal for names that a file system may take for the same file."""
    folded = unicodedata.normalize("NFC", name.replace("\\", "/")).casefold()
    top, _, rest = folded.partition("/")
    if not rest:
        return top
    digest = hashlib.blake2b(rest.encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return f"{top}-{int.from_bytes(digest, 'big') % LOCK_STRIPES:02x}"
