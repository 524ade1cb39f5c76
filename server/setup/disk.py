"""The few file operations of setup, on a home whose files may be links into a person's dotfiles."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from pipeline.errors import BadInput
from pipeline.store.files import refusal

SIZE_LIMIT = 8 << 20


def read(home: Path, name: str) -> bytes | None:
    """A file's bytes; ``None`` when there is none. Raises BadInput for what is no readable, regular file."""
    path = home / name
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > SIZE_LIMIT:
            raise BadInput(f"{path}: not a regular file of a sane size", hint="Nothing was changed.")
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except NotADirectoryError as error:
        raise BadInput(
            f"{path}: a file stands where a folder should be", hint="Nothing was changed."
        ) from error
    except OSError as error:
        raise refusal(error, path, "read") from error


def put(home: Path, name: str, data: bytes) -> None:
    """Put a file there atomically and durably. A link is followed, the file's mode is kept; new ones are 0600.

    The temporary file has one name, so that what a kill leaves behind is found. Raises OSError.
    """
    target = Path(os.path.realpath(home / name))
    _make(target.parent)
    temp = temporary(target)
    mode = _mode(target)
    with suppress(FileNotFoundError):
        os.unlink(temp)  # noqa: PTH108 - every operation goes through os, where tests count them
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    try:
        _fill(fd, data, mode)
        os.replace(temp, target)  # noqa: PTH105
    except BaseException:
        with suppress(OSError):
            os.unlink(temp)  # noqa: PTH108
        raise
    sync(target.parent)


def take(home: Path, name: str) -> None:
    """Remove a file, nothing when there is none; a link stays, dangling as it was before put(). Raises OSError."""
    path = Path(os.path.realpath(home / name))
    with suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108
        sync(path.parent)


def sweep(home: Path, name: str) -> None:
    """Remove the temporary file that a killed writer of this file left."""
    with suppress(OSError):
        os.unlink(temporary(Path(os.path.realpath(home / name))))  # noqa: PTH108


def prune(home: Path, folders: tuple[str, ...]) -> None:
    """Remove these folders where they are empty, in this order."""
    for folder in folders:
        with suppress(OSError):
            os.rmdir(home / folder)  # noqa: PTH106


def temporary(target: Path) -> Path:
    """Where a file's new content is written before it takes the file's place."""
    return target.with_name(f".{target.name}.kimi-memory-new")


def _make(folder: Path) -> None:
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(each, 0o700)  # noqa: PTH102


def _mode(target: Path) -> int:
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        return 0o600


def _fill(fd: int, data: bytes, mode: int) -> None:
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        if hasattr(os, "fchmod"):
            os.fchmod(fd, mode)  # the umask may have taken bits away
        os.fsync(fd)
    finally:
        os.close(fd)


def sync(folder: Path) -> None:
    """Make a rename in this folder durable, where folders can be synced."""
    if os.name == "nt":
        return
    with suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
