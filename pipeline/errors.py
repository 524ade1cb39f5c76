"""The one table of exit codes, and the errors that carry one (docs: "Exit codes").

A message names the file, line, setting or argument that is wrong; ``hint`` says what to do about it.
"""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path
from typing import ClassVar


class ExitCode(IntEnum):
    """What a command's exit code means. ``meaning`` is the documentation's wording."""

    DONE = 0
    MISS = 1
    USAGE = 2
    UNVERIFIED = 3
    FAILED = 4
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.DONE: "done (a run without any hit included)",
    ExitCode.MISS: "verified miss: everything was searched and nothing matches (`search` only)",
    ExitCode.USAGE: "usage or bad input: an argument, a setting or a named file is wrong",
    ExitCode.UNVERIFIED: "absence could not be verified: nothing found, but not everything could be read",
    ExitCode.FAILED: "failed",
    ExitCode.INTERRUPTED: "interrupted",
}


class PipelineError(Exception):
    """An error whose text is meant for a person.

    ``message`` says what is wrong and where; ``hint``, if given, what to do. ``exit_code`` is the class's,
    unless one is given.
    """

    code: ClassVar[ExitCode] = ExitCode.FAILED

    def __init__(self, message: str, exit_code: ExitCode | None = None, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.exit_code = self.code if exit_code is None else exit_code

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[object, ...]:
        """Travels whole from worker processes, whatever a subclass's constructor takes."""
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(kind: type[PipelineError], args: tuple[str, ...], state: dict[str, object]) -> PipelineError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class BadInput(PipelineError):
    """An argument or an input file is wrong: the caller can mend it."""

    code = ExitCode.USAGE


class ConfigError(BadInput):
    """A setting is wrong. ``source`` is the variable or ``file: key`` it was read from."""

    def __init__(self, source: str, problem: str, *, hint: str = "") -> None:
        super().__init__(f"{source}: {problem}", hint=hint)
        self.source = source


class UnknownWorkspace(BadInput):
    """No session was recorded in ``path``. ``nearest`` are known workspaces' directories, best first."""

    def __init__(self, path: str, nearest: tuple[str, ...], message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.path = path
        self.nearest = nearest


class VerifiedMiss(PipelineError):
    """Everything was searched and nothing matches."""

    code = ExitCode.MISS


class Unverified(PipelineError):
    """Nothing was found, but absence could not be verified."""

    code = ExitCode.UNVERIFIED


class StoreError(PipelineError):
    """A store cannot be used. The message begins with ``path``."""

    def __init__(self, path: Path, problem: str, *, hint: str = "") -> None:
        super().__init__(f"{path}: {problem}", hint=hint)
        self.path = path


class DiskFull(StoreError):
    """The disk cannot hold what is about to be written; nothing was begun."""

    def __init__(self, path: Path, needed: int, free: int) -> None:
        super().__init__(
            path,
            f"the disk is too full: about {needed / 1e6:.0f} MB are needed, {free / 1e6:.0f} MB are free",
            hint="Free some space and run again, or name another place for the store with MEMORY_STORE_ROOT.",
        )


class StoreTooNew(StoreError):
    """The store was written by a later version of this program: it is left alone."""

    def __init__(self, path: Path, found: int, known: int) -> None:
        super().__init__(
            path,
            f"written by a later version (schema {found}; this one knows {known})",
            hint="Update kimi-memory-pipeline, or name another store with MEMORY_STORE_ROOT.",
        )


class Interrupted(PipelineError):
    """A person or a signal stopped the work; what was committed stays."""

    code = ExitCode.INTERRUPTED


def exit_code(exc: BaseException) -> ExitCode:
    """The code a command ends with when ``exc`` reaches its top. Never raises.

    Click's own errors are mapped to our table: all that Click complains of is usage, an abort is
    an interruption. What is unknown has failed. A group takes the most serious of its members. A closed
    pipe (``pipeline turns | head``) is done.
    """
    if isinstance(exc, PipelineError):
        return exc.exit_code
    if isinstance(exc, BaseExceptionGroup):
        return max(exit_code(member) for member in exc.exceptions)
    if isinstance(exc, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    if isinstance(exc, BrokenPipeError):
        return ExitCode.DONE
    if isinstance(exc, SystemExit):
        return _from_number(exc.code)
    return _from_click(exc)


def _from_click(exc: BaseException) -> ExitCode:
    import click  # the server never gets here: keep Click out of its start

    if isinstance(exc, click.exceptions.Exit):
        return _from_number(exc.exit_code)
    if isinstance(exc, click.Abort):
        return ExitCode.INTERRUPTED
    if isinstance(exc, click.ClickException):
        return ExitCode.USAGE
    return ExitCode.FAILED


def _from_number(code: object) -> ExitCode:
    """``sys.exit``'s argument: None is success, a text is a failure, an unknown number too."""
    if code is None:
        return ExitCode.DONE
    if isinstance(code, int) and code in set(ExitCode):
        return ExitCode(code)
    return ExitCode.FAILED
