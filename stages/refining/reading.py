"""What a turn offers to refining: the asked text, the said texts and the done actions, each with its
offsets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from stages.model import ToolCall, Turn
from stages.refining import pasted
from stages.refining.prose import is_chinese

MAX_ACTIONS = 400
MAX_TEXTS = 400

_SEPARATOR = "\n"


class Said(NamedTuple):
    """One text part of the agent: ``start`` is its offset in the "text" source, ``step`` the index of its
    step.
    """

    text: str
    start: int
    step: int


class Action(NamedTuple):
    """A tool call and where facts about it come from: ``source`` and, for a pasted one, ``span`` in
    "text".
    """

    call: ToolCall
    source: str
    step: int
    span: tuple[int, int] | None = None
    first: bool = True
    """No call before it has its id (old files repeat ids): only then can a span be found again."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A turn taken apart. ``user`` is the whole "user" source (opening text, then the steers of people)."""

    turn: Turn
    user: str
    asked: str
    said: tuple[Said, ...]
    actions: tuple[Action, ...]
    chinese: bool
    cwd: str | None


def source_text(turn: Turn, source: str) -> str:
    """The text that the spans of facts with this source refer to.

    ``"user"``: what opened the turn, then the live steers of people, joined by line ends. ``"text"``: all
    text parts of the live steps, joined by line ends. ``"tool <id>"``: the ``error`` of a failed call,
    the ``outcome`` of any other.
    """
    if source == "user":
        opening = turn.user_text if turn.user_text is not None else turn.opening_text
        return _SEPARATOR.join([opening, *(steer.text for steer in turn.live_steers if steer.human)])
    if source == "text":
        return _SEPARATOR.join(text for step in turn.live_steps for text in step.texts)
    call = next(
        (call for step in turn.live_steps for call in step.tools if f"tool {call.id}" == source), None
    )
    if call is None:
        return ""
    return call.error or call.outcome if call.result == "error" else call.outcome or call.error


def read(turn: Turn, cwd: str | None) -> Reading:
    """Takes a turn apart: own calls and printed to-do lists out, pasted tool blocks among the actions."""
    said: list[Said] = []
    actions: list[Action] = []
    ids: set[str] = set()
    offset = 0
    for number, step in enumerate(turn.live_steps):
        for text in step.texts:
            _part(text, offset, number, cwd, said, actions)
            offset += len(text) + 1
        for call in step.tools:
            if not call.own:
                actions.append(Action(call, f"tool {call.id}", number, first=call.id not in ids))
            ids.add(call.id)
    user = source_text(turn, "user")
    asked = pasted.without_tags(user[:20_000])
    sample = asked.strip()
    if not sample or len(sample) < 4:
        sample = said[-1].text if said else sample
    return Reading(
        turn, user, asked, tuple(said[-MAX_TEXTS:]), tuple(actions[-MAX_ACTIONS:]), is_chinese(sample), cwd
    )


def _part(
    text: str, offset: int, step: int, cwd: str | None, said: list[Said], actions: list[Action]
) -> None:
    if "Tool use: **" in text:
        for start, piece in pasted.pieces(text):
            call = pasted.tool_call(piece, cwd)
            if call is not None:
                end = offset + start + min(len(piece), 4_000)
                actions.append(Action(call, "text", step, (offset + start, end)))
            elif piece.strip():
                said.append(Said(piece, offset + start, step))
    elif text.strip() and not pasted.is_task_list(text):
        said.append(Said(text, offset, step))
