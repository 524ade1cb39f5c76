"""Turns from the lines of a wire: the entrance to ``stages.wire``, and what readers do with turns."""

from __future__ import annotations

from dataclasses import replace

from stages.model import Status, Truncate, Turn
from stages.wire import StateMismatch, dialect_of, open_dialect
from stages.wire.contract import Origin, Redact, Splitter
from stages.wire.show import whole_turn

__all__ = [
    "RUNNING_MS",
    "SPLITTER_VERSION",
    "Origin",
    "Redact",
    "Splitter",
    "StateMismatch",
    "apply_truncate",
    "dialect_of",
    "open_splitter",
    "status_at",
    "whole_turn",
]

SPLITTER_VERSION = 1
"""Changes when the same bytes give other turns: stored turns are then made anew."""
RUNNING_MS = 5 * 60 * 1000
"""How long after its last sign of life an unfinished turn still counts as running (WIRE §9.8)."""


def open_splitter(head: bytes, origin: Origin, redact: Redact, state: bytes | None = None) -> Splitter:
    """A splitter for the wire that begins with ``head`` (a few KiB), or one that goes on from ``state``.

    Raises ``StateMismatch`` for a state of another version or a damaged one: read the wire from its start.
    """
    return open_dialect(head, origin, redact, state)


def status_at(
    turn_open: bool, status: Status, last_at: int | None, mtime_ms: int | None, now_ms: int
) -> Status:
    """``running`` for an open unfinished turn whose newest record and file are at most five minutes old."""
    if not turn_open or status != "unfinished" or last_at is None or mtime_ms is None:
        return status
    return "running" if now_ms - min(last_at, mtime_ms) <= RUNNING_MS else status


def apply_truncate(turn: Turn, change: Truncate) -> Turn:
    """The turn as an undone steer left it: all texts stay, ``cut`` tells which are live."""
    return replace(turn, cut=change.cut)
