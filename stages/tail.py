"""Reads one wire from a checkpoint in bounded chunks, and tells what happened to the file since (WIRE §3).

The only stage that touches files. Lines end at ``b"\\n"`` and nowhere else (U+2028 and U+0085 stand raw
inside JSON strings); a last line without its end is never consumed. No per-line work: a chunk is one
positioned read and one search for a line end. No read, whatever the file holds, keeps more than one line of
``LINE_LIMIT`` in memory, and a line that is skipped is never held.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from stages.model import Checkpoint, Chunk
from stages.source import (
    SourceError,
    SourceGone,
    SourceIrregular,
    SourceRewritten,
    SourceUnreadable,
    StrPath,
    Verdict,
)

__all__ = [
    "CHUNK_BYTES",
    "LINE_LIMIT",
    "PARSE_LIMIT",
    "SourceError",
    "SourceGone",
    "SourceIrregular",
    "SourceRewritten",
    "SourceUnreadable",
    "Verdict",
    "head",
    "peek",
    "read",
    "verdict",
]

CHUNK_BYTES = 1 << 20
"""A chunk ends at the first line end after this many bytes; a longer line is a chunk of its own."""

PARSE_LIMIT = 4 << 20
"""A line above this is classified by its prefix: noise is skipped unread (WIRE §8)."""

LINE_LIMIT = 256 << 20
"""A line above this is skipped whatever it holds, and counted as ``line-too-long``."""

LOOKAHEAD = 128 << 10
"""Bytes read beyond ``CHUNK_BYTES`` in the hope of the next line end; most lines are shorter."""

BLOCK = 4096
"""Bytes hashed at the head and before the offset."""

_PREFIX = 256
_DIGEST = 16

WIRE_PREFIXES = (b'{"type":"', b'{"type": "', b'{"timestamp')
"""What a useful line begins with: kimi-code; kimi-cli's metadata line; kimi-cli (WIRE §8, §11)."""

NOISE_PREFIXES = tuple(
    b'{"type":"' + kind
    for kind in b"""
    llm.tools_snapshot llm.request profile.bind config.update token_counting. plugin.session_start
    runtime.set_binding permission. mcp.tools_discovered tools.set_active_tools tools.reset_active_tools
    tools.register_user_tool tools.unregister_user_tool prompt.accepted prompt.steered prompt.aborted
    full_compaction. micro_compaction. context.update_token_count interruptionReminder. swarm_mode.
    tower_mode. staleGuard. agent.switched context.undone interaction.
    """.split()
)
"""Record types that never matter, by the first bytes of their line (WIRE §8 rule 2)."""

NOISE = "noise"
CORRUPT_LINE = "corrupt-line"
LINE_TOO_LONG = "line-too-long"


# --- verdict -----------------------------------------------------------------------------------------------


def verdict(path: StrPath, checkpoint: Checkpoint | None) -> Verdict:
    """What happened to the file since ``checkpoint``; one ``stat`` when nothing did. Raises nothing.

    A file of another inode, or shorter than the offset, is a rewrite. Otherwise the head and the last block
    of the consumed prefix decide, so that a rewrite in place is seen at any size. A device number that
    changed alone (a network mount, a reboot) is no rewrite.
    """
    try:
        now = _regular(path, os.stat(path))  # noqa: PTH116 (a str is as good here, and faster)
        if checkpoint is None:
            return Verdict.NEW
        if _untouched(now, checkpoint):
            return Verdict.SAME
        if now.st_ino != checkpoint.ino or now.st_size < checkpoint.offset:
            return Verdict.REWRITE
        with _opened(path) as fd:
            now = os.fstat(fd)
            if not _continues(fd, now, checkpoint):
                return Verdict.REWRITE
        return Verdict.APPEND if now.st_size > checkpoint.offset else Verdict.SAME
    except SourceError as error:
        return error.verdict
    except OSError as error:
        return _translated(path, error).verdict


def _untouched(now: os.stat_result, checkpoint: Checkpoint) -> bool:
    return (
        now.st_size == checkpoint.size
        and now.st_mtime_ns == checkpoint.mtime_ns
        and now.st_ino == checkpoint.ino
        and now.st_dev == checkpoint.dev
    )


def _continues(fd: int, now: os.stat_result, checkpoint: Checkpoint) -> bool:
    if now.st_ino != checkpoint.ino or now.st_size < checkpoint.offset:
        return False
    prefix = _Prefix.of_file(fd, checkpoint.offset)
    return prefix.matches(checkpoint)


# --- read --------------------------------------------------------------------------------------------------


def read(
    path: StrPath, checkpoint: Checkpoint | None = None, *, limit: int | None = None
) -> Iterator[tuple[Chunk, Checkpoint]]:
    """Yield the whole lines behind ``checkpoint`` (``None``: all), each chunk with the checkpoint after it.

    Stops at the end of the file, or once ``limit`` bytes or more have been passed. The last chunk may be
    empty: it carries what was skipped behind the last line kept, or a checkpoint that remembers that a torn
    or long tail was looked at. (An empty file yields nothing; a checkpoint with offset 0 means that no line
    has been consumed.)

    Raises SourceGone, SourceIrregular, SourceUnreadable, and SourceRewritten when the consumed prefix is no
    longer what it was, also while reading: drop what came from this generation and read again from 0.
    """
    try:
        with _opened(path) as fd:
            yield from _Reader(path, fd, checkpoint).chunks(limit)
    except OSError as error:
        raise _translated(path, error) from error


def peek(path: StrPath, size: int) -> bytes:
    """The first ``size`` bytes of a regular file. Never blocks; raises as read()."""
    try:
        with _opened(path) as fd:
            return _pread(fd, 0, size)
    except OSError as error:
        raise _translated(path, error) from error


def head(path: StrPath, size: int = 64 << 10) -> bytes:
    """The whole lines among the first ``size`` bytes, to look at a wire unread. Raises as read()."""
    block = peek(path, size)
    return block[: block.rfind(b"\n") + 1]


@dataclass(slots=True)
class _Prefix:
    """The two blocks by which the bytes before ``offset`` are recognised."""

    offset: int
    head: bytes = b""
    tail: bytes = b""

    @classmethod
    def of_file(cls, fd: int, offset: int) -> _Prefix:
        start = max(0, offset - BLOCK)
        return cls(offset, _first_line(_pread(fd, 0, min(BLOCK, offset))), _pread(fd, start, offset - start))

    def advanced(self, end: int, data: bytes) -> _Prefix:
        """The prefix up to ``end``; ``data`` are the bytes before it: all, or at least the last block."""
        head = self.head if self.offset else _first_line(data[:BLOCK])
        return _Prefix(end, head, data[-BLOCK:] if len(data) >= BLOCK else (self.tail + data)[-BLOCK:])

    def matches(self, checkpoint: Checkpoint) -> bool:
        return _digest(self.head) == checkpoint.head_hash and _digest(self.tail) == checkpoint.tail_hash


@dataclass(frozen=True, slots=True)
class _Piece:
    """What the next read came to. ``data`` is empty for a skipped line (``reason``) and at the end.

    ``reached`` is where the search for line ends has stopped: beyond ``end`` only if nothing but a torn
    line is there.
    """

    end: int
    reached: int
    data: bytes = b""
    reason: str = ""


class _Reader:
    """One pass over an open file."""

    def __init__(self, path: StrPath, fd: int, checkpoint: Checkpoint | None) -> None:
        self.path, self.fd = path, fd
        self.verified = self.stamp = os.fstat(fd)
        self.mark = checkpoint
        self.prefix = _Prefix(0)
        if checkpoint is not None:
            if not _continues(fd, self.verified, checkpoint):
                raise SourceRewritten(path)
            self.prefix = _Prefix.of_file(fd, checkpoint.offset)

    def chunks(self, limit: int | None) -> Iterator[tuple[Chunk, Checkpoint]]:
        skipped: Counter[str] = Counter()
        begin = self.prefix.offset
        remember = False
        while limit is None or self.prefix.offset - begin < limit:
            at = self.prefix.offset
            self.stamp = os.fstat(self.fd)
            piece = _next_piece(self.fd, at)
            self._unchanged_before(at)
            if piece.end == at:
                remember = self._worth_remembering(piece)
                break
            if piece.reason:
                skipped[piece.reason] += 1
                self.prefix = self.prefix.advanced(piece.end, self._around(at, piece.end))
                continue
            self.prefix = self.prefix.advanced(piece.end, piece.data)
            yield self._emit(piece, at, skipped)
            skipped.clear()
        if skipped or remember:
            at = self.prefix.offset
            yield self._emit(piece if remember else _Piece(at, at), at, skipped)

    def _emit(self, piece: _Piece, start: int, skipped: Counter[str]) -> tuple[Chunk, Checkpoint]:
        """The chunk and its checkpoint.

        ``self.stamp`` is older than the bytes: what changes the file later cannot pass for what was read.
        ``size`` is what has been searched for line ends: a file that has it still has nothing more to read.
        """
        self.mark = Checkpoint(
            dev=self.stamp.st_dev,
            ino=self.stamp.st_ino,
            offset=piece.end,
            head_hash=_digest(self.prefix.head),
            tail_hash=_digest(self.prefix.tail),
            size=piece.reached,
            mtime_ns=self.stamp.st_mtime_ns,
        )
        return Chunk(piece.data, start, piece.end, tuple(sorted(skipped.items()))), self.mark

    def _unchanged_before(self, at: int) -> None:
        """Raise SourceRewritten if the file changed since it was last verified, and with it the prefix."""
        now = os.fstat(self.fd)
        if (now.st_mtime_ns, now.st_size) == (self.verified.st_mtime_ns, self.verified.st_size):
            return
        if now.st_size < at or _Prefix.of_file(self.fd, at) != self.prefix:
            raise SourceRewritten(self.path)
        self.verified = now

    def _around(self, start: int, end: int) -> bytes:
        """Enough of a skipped line for the prefix: its last block, and its first if it opens the file."""
        last = _pread(self.fd, end - BLOCK, BLOCK)
        return last if start else _pread(self.fd, 0, BLOCK) + last

    def _worth_remembering(self, piece: _Piece) -> bool:
        """Whether the end of the file was searched in vain, and would be at every read unless it is noted.

        Not for the first few bytes of a file: a checkpoint with offset 0 says nothing worth a row.
        """
        if piece.end == 0 and piece.reached <= CHUNK_BYTES:
            return False
        if self.mark is None:
            return True
        return (self.mark.size, self.mark.mtime_ns) != (piece.reached, self.stamp.st_mtime_ns)


def _next_piece(fd: int, at: int) -> _Piece:
    """The next chunk at ``at``, or the next line to skip; ``end == at`` when no whole line follows."""
    wanted = CHUNK_BYTES + LOOKAHEAD
    block = _pread(fd, at, wanted)
    last = len(block) < wanted
    end = block.find(b"\n", CHUNK_BYTES - 1) + 1
    begin = block.rfind(b"\n", 0, CHUNK_BYTES - 1) + 1
    if end:
        if begin and end - begin > CHUNK_BYTES:
            end = begin
    elif last:
        end = begin
    elif begin:
        return _up_to_long_line(fd, at, block, begin)
    else:
        return _long_line(fd, at, block)
    ended = last and block.find(b"\n", end) < 0
    return _Piece(at + end, at + (len(block) if ended else end), block[:end])


def _up_to_long_line(fd: int, at: int, block: bytes, begin: int) -> _Piece:
    """A line crosses the block: it belongs to the chunk, unless it is longer than a chunk itself."""
    rest = _pread(fd, at + len(block), max(0, begin + CHUNK_BYTES - len(block)))
    end = rest.find(b"\n") + 1
    data = block + rest[:end] if end else block[:begin]
    return _Piece(at + len(data), at + len(data), data)


def _long_line(fd: int, at: int, block: bytes) -> _Piece:
    """A line longer than a chunk. What is skipped is searched for its end, a chunk's size at a time."""
    position, found = at + len(block), False
    while not found and (more := _pread(fd, position, CHUNK_BYTES)):
        found = (end := more.find(b"\n")) >= 0
        position += end + 1 if found else len(more)
    if not found:
        return _Piece(at, position)
    reason = _reason_to_skip(block[:_PREFIX], position - at)
    if reason:
        return _Piece(position, position, reason=reason)
    data = _pread(fd, at, position - at)
    # Shorter than just now: the file was cut under us. Consume nothing; the next look tells.
    return _Piece(position, position, data) if len(data) == position - at else _Piece(at, at + len(data))


def _reason_to_skip(prefix: bytes, length: int) -> str:
    """Why a line is left out unread; empty if it is not (WIRE §8)."""
    if length > LINE_LIMIT:
        return LINE_TOO_LONG
    if length <= PARSE_LIMIT:
        return ""
    if not prefix.startswith(b"{"):
        return CORRUPT_LINE
    if prefix.startswith(NOISE_PREFIXES) or not prefix.startswith(WIRE_PREFIXES):
        return NOISE
    return ""


# --- the file ----------------------------------------------------------------------------------------------

_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)  # a FIFO put there between stat and open must not block us
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)


@contextmanager
def _opened(path: StrPath) -> Iterator[int]:
    """A descriptor of a regular file. Raises SourceIrregular, and OSError as the system does."""
    _regular(path, os.stat(path))  # noqa: PTH116
    fd = os.open(path, _FLAGS)
    try:
        _regular(path, os.fstat(fd))
        yield fd
    finally:
        os.close(fd)


def _regular(path: StrPath, found: os.stat_result) -> os.stat_result:
    if not stat.S_ISREG(found.st_mode):
        raise SourceIrregular(path)
    return found


def _translated(path: StrPath, error: OSError) -> SourceError:
    if isinstance(error, FileNotFoundError | NotADirectoryError) or error.errno == errno.ESTALE:
        return SourceGone(path)
    if isinstance(error, IsADirectoryError) or error.errno in (errno.ENXIO, errno.ELOOP):
        return SourceIrregular(path)
    return SourceUnreadable(path, f"cannot be read: {error.strerror or error}")


def _pread(fd: int, at: int, size: int) -> bytes:
    """``size`` bytes from ``at``; fewer only where the file ends. (os.pread is not everywhere.)"""
    os.lseek(fd, at, os.SEEK_SET)
    data = os.read(fd, size)
    if not data or len(data) == size:
        return data
    parts = [data]
    missing = size - len(data)
    while missing and (more := os.read(fd, missing)):
        parts.append(more)
        missing -= len(more)
    return b"".join(parts) if len(parts) > 1 else data


def _first_line(block: bytes) -> bytes:
    end = block.find(b"\n") + 1
    return block[:end] if end else block


def _digest(block: bytes) -> str:
    return hashlib.blake2b(block, digest_size=_DIGEST).hexdigest()
