"""Excluded paths: what tools did to them is kept out of the stored turns, of their index and of saved states.

A call that names an excluded file keeps its tool's name and result, and nothing else: no argument, no command, no
output, no path. From the output of other calls the lines that name an excluded file go. What people and the model
wrote themselves stays: their words are no file. Rules are those of the setting ``exclude.paths``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

import orjson

from pipeline.workspaces import excluded_path
from stages.model import Turn
from stages.split import Splitter
from stages.wire.blank import each_call, empty_call
from stages.wire.turns import OpenCall

SHUT = '{"excluded":true}'
"""The arguments of a call that was emptied: its output, which may come later, is emptied too."""
PATH_ARGUMENTS = frozenset(
    (
        "path", "file_path", "filePath", "paths", "files", "file", "directory", "dir", "cwd", "notebook_path",
        "pattern", "glob", "include",
    )
)  # fmt: skip
_QUOTED = re.compile(r'"(\w+)":\s*"((?:[^"\\]|\\.)*)')
_WORDS = re.compile(r"[^\s\"'`=:;,|&<>(){}\[\]]+")
PATH_CHARS = 1000


class Excluded:
    """Whether a path, or anything a call says, is excluded in a session's directory. Call with a path."""

    def __init__(self, rules: tuple[str, ...], cwd: str | None) -> None:
        self.rules = rules
        self.cwd = cwd

    def __call__(self, path: str) -> bool:
        return len(path) <= PATH_CHARS and _excluded(self.rules, path, self.cwd)

    def names(self, text: str) -> bool:
        """Whether a word of this text is an excluded path."""
        return any(self(word) for word in _WORDS.findall(text))

    def call(self, args: str, command: str, paths: Iterable[str]) -> bool:
        """Whether a call names an excluded file: by its path, in an argument that holds one, or in a command."""
        if args == SHUT:
            return True
        return any(map(self, paths)) or any(map(self, _path_arguments(args))) or self.names(command)

    def without(self, text: str) -> str:
        """Output without the lines that name an excluded file."""
        if not text or not self.names(text):
            return text
        return "\n".join(line for line in text.split("\n") if not self.names(line))


@lru_cache(maxsize=8192)
def _excluded(rules: tuple[str, ...], path: str, cwd: str | None) -> bool:
    return excluded_path(rules, path, cwd)


def _path_arguments(args: str) -> Iterator[str]:
    try:
        value = orjson.loads(args)
    except orjson.JSONDecodeError:  # cut in the middle
        for name, text in _QUOTED.findall(args):
            if name in PATH_ARGUMENTS:
                yield text.replace("\\\\", "\\")
        return
    if isinstance(value, dict):
        for name in PATH_ARGUMENTS & value.keys():
            found = value[name]
            yield from (
                each for each in (found if isinstance(found, list) else [found]) if isinstance(each, str)
            )


def without_excluded(turn: Turn, excluded: Excluded) -> Turn:
    """The turn as it may be stored."""
    steps = []
    for step in turn.steps:
        calls = []
        for call in step.tools:
            if excluded.call(call.args, call.command, [touch.path for touch in call.files]):
                call = replace(call, args=SHUT, command="", error="", outcome="", files=())
            elif call.error or call.outcome:
                call = replace(
                    call, error=excluded.without(call.error), outcome=excluded.without(call.outcome)
                )
            calls.append(call)
        steps.append(replace(step, tools=tuple(calls)))
    return replace(turn, steps=tuple(steps))


def shut_calls(splitter: Splitter, excluded: Excluded) -> None:
    """The same for the turns that a splitter still holds, before its state is saved."""

    def change(call: OpenCall) -> None:
        if excluded.call(call.args, call.command, [call.touch[0]] if call.touch else []):
            empty_call(call, SHUT)
        else:
            call.error, call.outcome = excluded.without(call.error), excluded.without(call.outcome)

    each_call(splitter, change)
