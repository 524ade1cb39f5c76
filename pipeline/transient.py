"""What is transient (a locked database, a file in use, one that vanished while we looked): tried again, bounded."""

from __future__ import annotations

import errno
import sqlite3

import tenacity

from pipeline.errors import PipelineError, StoreError

ATTEMPTS = 5
LONGEST_S = 2.0


def is_transient(error: BaseException) -> bool:
    """Whether trying again soon may help."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_transient(one) for one in error.exceptions)
    if isinstance(error, StoreError) and error.__cause__ is not None:
        return is_transient(error.__cause__)
    if isinstance(error, sqlite3.OperationalError):
        return "locked" in str(error) or "busy" in str(error)
    if isinstance(error, FileNotFoundError):
        return True
    if isinstance(error, OSError):
        return getattr(error, "winerror", None) in (5, 32, 33) or error.errno in (errno.EBUSY, errno.EAGAIN)
    return False


def retrying(attempts: int = ATTEMPTS, longest: float = LONGEST_S) -> tenacity.AsyncRetrying:
    """Bounded, jittered retries of what is transient."""
    return tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception(is_transient),
        stop=tenacity.stop_after_attempt(attempts),
        wait=tenacity.wait_random_exponential(multiplier=0.05, max=longest),
        reraise=True,
    )


def told(error: BaseException) -> str:
    """What happened, in one line for a person."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, PipelineError):
        return " ".join(str(error).split())
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
