"""Takes texts out of the turns that a splitter still holds, so that its saved state keeps nothing of them.

Ids, places, times and marks stay: the fold goes on as if the texts were there, and the turns come out empty.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from stages.model import Op
from stages.wire.contract import Splitter
from stages.wire.fold import Fold
from stages.wire.kimi_cli import KimiCli
from stages.wire.kimi_code import KimiCode
from stages.wire.openers import Opener
from stages.wire.turns import OpenCall, OpenTurn

NO_ARGS = "{}"


class Opened(Protocol):
    """What a turn says of itself before its texts: met by ``Turn`` and by a turn that still grows."""

    @property
    def position(self) -> int: ...
    @property
    def opener_digest(self) -> str: ...
    @property
    def prompt_id(self) -> str | None: ...
    @property
    def started_at(self) -> int | None: ...
    @property
    def copied(self) -> bool: ...


def held_turns(splitter: Splitter) -> list[OpenTurn]:
    """The turns a splitter still holds, in order."""
    return list(splitter.live) if isinstance(splitter, Fold) else []


def blank_turns(splitter: Splitter, forgotten: Callable[[Opened], bool]) -> int:
    """Empty the held turns for which ``forgotten`` says so; returns how many."""
    if not isinstance(splitter, Fold):
        return 0
    gone = [turn for turn in splitter.live if forgotten(turn)]
    for turn in gone:
        _blank(turn)
    positions = {turn.position for turn in gone}
    if isinstance(splitter, KimiCode):
        for opener in (splitter.steer, splitter.message):
            if opener is not None and (opener.of in positions or forgotten(_opened(splitter, opener))):
                opener.prepare(splitter.redact)
                opener.opening_text = ""
                opener.user_text = None if opener.user_text is None else ""
    if isinstance(splitter, KimiCli) and splitter.fragment is not None:
        turn, call, _ = splitter.fragment
        if turn.position in positions:
            splitter.fragment = (turn, call, "")
    return len(gone)


def blank_compactions(splitter: Splitter) -> None:
    """Drop the summaries of compactions: they retell turns that are forgotten."""
    if isinstance(splitter, Fold):
        splitter.compactions.clear()
        for turn in splitter.live:
            turn.compactions.clear()


def each_call(splitter: Splitter, change: Callable[[OpenCall], None]) -> None:
    """Let ``change`` alter every call of the held turns."""
    for turn in held_turns(splitter):
        for step in turn.steps:
            for call in step.calls:
                change(call)


def empty_call(call: OpenCall, args: str = NO_ARGS) -> None:
    """Take arguments, output and path out of a call."""
    touch: tuple[str, Op] | None = None
    call.args, call.command, call.error, call.outcome, call.touch = args, "", "", "", touch


def _blank(turn: OpenTurn) -> None:
    turn.opening_text = ""
    turn.user_text = None if turn.user_text is None else ""
    turn.error = ""
    turn.compactions.clear()
    turn.steers = [replace(steer, text="") for steer in turn.steers]
    for step in turn.steps:
        step.parts = [(serial, "") for serial, _ in step.parts]
        for call in step.calls:
            empty_call(call)


class _Candidate:
    """An opener that may still open a turn, as ``Opened``."""

    copied = False

    def __init__(self, position: int, opener: Opener) -> None:
        self.position = position
        self.opener_digest = opener.digest
        self.prompt_id = opener.prompt_id
        self.started_at = opener.at


def _opened(splitter: Fold, opener: Opener) -> Opened:
    opener.prepare(splitter.redact)
    return _Candidate(splitter.position, opener)
