"""What planning a setup speaks of. Everything is text and bytes; nothing here reads or writes a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pipeline.errors import BadInput


class InvalidFile(BadInput):
    """A file of Kimi's home is not what Kimi reads: nothing is written before a person mended it."""

    def __init__(self, name: str, problem: str, *, hint: str = "") -> None:
        super().__init__(
            f"{name}: {problem}", hint=hint or "Nothing was changed. Mend the file and try again."
        )
        self.name = name


@dataclass(frozen=True, slots=True)
class Change:
    """One file's bytes before and after; ``None``: there is no such file. ``path`` is relative to the home."""

    path: str
    before: bytes | None
    after: bytes | None


@dataclass(frozen=True, slots=True)
class Piece:
    """What we put into a file: our text as it stands there, and the text that stood there instead (``None``: none)."""

    ours: str
    replaced: str | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """Our piece was not taken out of a file, because a person changed it; ``why`` says what is left."""

    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done: the changes in the order they are made, and what a person should know.

    ``notes`` are facts (what was found), ``warnings`` need the person's eye. Folders are relative, deepest first:
    ``made`` do not exist yet and go again if the plan fails, ``prune`` go afterwards when they are empty.
    """

    changes: tuple[Change, ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    prune: tuple[str, ...] = ()


class Part(Protocol):
    """One file that setup edits."""

    @property
    def path(self) -> str:
        """Relative to the home, with ``/``."""

    def install(self, current: bytes | None) -> tuple[bytes, Piece]:
        """The file with our piece in it; every other byte as it was. Raises InvalidFile.

        A file that holds our piece already comes back as it is.
        """

    def remove(self, current: bytes, piece: Piece) -> bytes | Kept:
        """A file that a person changed since, without our piece and with what stood there before. Raises InvalidFile."""

    def wired(self, current: bytes | None) -> str:
        """What is wrong with our piece in the file; empty when it is as setup would write it."""


def text_of(name: str, data: bytes | None, *, bom: bool = False) -> str:
    """The text of a file Kimi reads as UTF-8; ``bom``: a byte order mark does no harm there. Raises InvalidFile."""
    if data is None:
        return ""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidFile(name, f"is not UTF-8 text (byte {error.start})") from error
    if text.startswith("\ufeff") and not bom:
        raise InvalidFile(
            name,
            "begins with a byte order mark, which Kimi Code cannot read",
            hint="Nothing was changed. Save it as UTF-8 without a byte order mark and try again.",
        )
    return text


def line_end(text: str) -> str:
    """The line end that the text uses: that of its first line, ``\\n`` when it has one line only."""
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"
