"""What can become of a wire since it was last looked at, and the errors that say so."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

StrPath: TypeAlias = str | os.PathLike[str]


class Verdict(StrEnum):
    """What became of a file since its checkpoint."""

    NEW = "new"
    """There is no checkpoint."""
    SAME = "same"
    """Nothing to read."""
    APPEND = "append"
    """The consumed prefix is unchanged and there are bytes behind it."""
    REWRITE = "rewrite"
    """Another file, or the consumed prefix changed: read again from 0, in a new generation."""
    GONE = "gone"
    IRREGULAR = "irregular"
    """A directory, FIFO, socket or device. Never opened."""
    UNREADABLE = "unreadable"
    """The system refuses: permission, input/output error."""


class SourceError(Exception):
    """A wire cannot be read, or not any further. ``verdict`` says why; ``path`` is the file."""

    verdict: Verdict
    problem: str

    def __init__(self, path: StrPath, detail: str = "") -> None:
        super().__init__(f"{os.fspath(path)}: {detail or self.problem}")
        self.path = Path(path)
        self.detail = detail

    def __reduce__(self) -> tuple[object, ...]:
        """Travels whole from worker processes."""
        return type(self), (self.path, self.detail)


class SourceGone(SourceError):
    verdict = Verdict.GONE
    problem = "the file is gone"


class SourceIrregular(SourceError):
    verdict = Verdict.IRREGULAR
    problem = "not a regular file"


class SourceRewritten(SourceError):
    verdict = Verdict.REWRITE
    problem = "the part already read has changed; read it again from the start"


class SourceUnreadable(SourceError):
    verdict = Verdict.UNREADABLE
    problem = "cannot be read"
