"""What of a turn is searchable: four columns of plain text.

Only what is live (a partial undo takes its steps and steers out), and only what was said or done. Left out:
injections and notices, bulk tool output, our own tools' calls, and text that we recalled (see
``stages.snippet``).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import orjson

from stages.model import ToolCall, Turn
from stages.snippet import own_words
from stages.tokens import TOOL_MARK

CALL_HEAD = 1600
CALL_TAIL = 400
"""Characters of one call's arguments that are indexed: from the beginning and from the end."""

ACTIONS_LIMIT = 16_000
ERRORS_LIMIT = 4_000
NOTICE_LIMIT = 1_000
"""Characters of what opened an engine's turn (a task's notification, a scheduled prompt)."""

_BOILERPLATE = ("goal_continuation",)
"""Origins whose opening text is the same words every time."""

_ESCAPE = re.compile(r'\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])')
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)(?:"(\s*:)?|\\?\Z)', re.DOTALL)
"""A JSON string, perhaps the cut last one; group 2 tells a key."""


@dataclass(frozen=True, slots=True)
class Document:
    """The searchable text of one turn: what the person said, what the agent said, did, and ran into."""

    user: str
    agent: str
    actions: str
    errors: str


def document(turn: Turn) -> Document:
    """The searchable text of ``turn``. Deterministic; total for any turn."""
    steps = turn.live_steps
    calls = [call for step in steps for call in step.tools if not call.own]
    errors = [call.error for call in calls if call.error]
    return Document(
        user="\n".join(_user(turn)),
        agent=_own([*chain(*[step.texts for step in steps], turn.compactions)]),
        actions=_joined(chain.from_iterable(map(_action, calls)), ACTIONS_LIMIT),
        errors=_joined(map(own_words, (*errors, turn.error)), ERRORS_LIMIT),
    )


def _user(turn: Turn) -> Iterator[str]:
    if turn.user_text is not None:
        yield own_words(turn.user_text)
    elif "subagent" in turn.origin:
        yield own_words(turn.opening_text)
    elif not any(word in turn.origin for word in _BOILERPLATE):
        yield own_words(turn.opening_text)[:NOTICE_LIMIT]
    for steer in turn.live_steers:
        if steer.human:
            yield own_words(steer.text)


def _own(texts: list[str]) -> str:
    """The own words of each of ``texts``, one a line. Nearly no text holds anything else: all are asked at once."""
    whole = "\n".join(texts)
    return whole if own_words(whole) is whole else "\n".join(map(own_words, texts))


def _action(call: ToolCall) -> tuple[str | None, ...]:
    """Name, command, paths, and the argument values that say something else."""
    command = call.command
    paths = tuple([touch.path for touch in call.files])
    values = [value for value in argument_values(call.args) if value != command and not value.endswith(paths)]
    said = _capped(own_words("\n".join(values))) if values else ""
    return f"{TOOL_MARK}{call.name}", command, *paths, said


def argument_values(args: str) -> list[str]:
    """The strings and numbers among the values of a call's arguments (compact JSON, possibly cut short)."""
    try:
        return _leaves(orjson.loads(args))
    except orjson.JSONDecodeError:
        found = [match[1] for match in _STRING.finditer(args) if match[1] and not match[2]]
        return [_ESCAPE.sub(" ", text) for text in found]


def _leaves(value: object) -> list[str]:
    leaves: list[str] = []
    pending = [value]  # a list of its own: arguments may be nested deeper than Python calls
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            if value:
                leaves.append(value)
        elif isinstance(value, dict):
            pending.extend(reversed(value.values()))
        elif isinstance(value, list):
            pending.extend(reversed(value))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            leaves.append(str(value))
    return leaves


def _capped(text: str) -> str:
    if len(text) <= CALL_HEAD + CALL_TAIL:
        return text
    return f"{text[:CALL_HEAD]}\n{text[-CALL_TAIL:]}"


def _joined(texts: Iterable[str | None], limit: int) -> str:
    """The distinct texts, one a line: a path named by ten calls of one turn is indexed once."""
    return "\n".join(dict.fromkeys(filter(None, texts)))[:limit]
