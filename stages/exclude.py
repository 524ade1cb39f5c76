"""Which wires a person has shut out: the ``exclude`` rules of a store's configuration."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import translate
from functools import lru_cache
from re import Pattern
from re import compile as compile_pattern


def excluded(rules: Iterable[str], *, workspace: str | None, session_id: str, path: str | None) -> bool:
    """Whether any rule shuts out this wire.

    ``workspace`` is the session's cwd, ``path`` the wire file's path; both may be ``None`` (unknown). A rule
    is a glob (``*`` and ``?`` also match separators, ``[…]`` a set) that is compared with all three,
    case-sensitively and whole:

    - ``workspace:GLOB``, ``session:GLOB``, ``path:GLOB`` are compared with that one only;
    - a workspace or path rule without a wildcard also shuts out everything below it;
    - ``!RULE`` lets in again what an earlier rule shut out. Empty rules and ``#`` comments match nothing.
    """
    shut = False
    subjects = {"workspace": workspace, "session": session_id, "path": path}
    for rule in rules:
        text = rule.strip()
        if not text or text.startswith("#"):
            continue
        lets_in = text.startswith("!")
        if lets_in == shut and _matches(text.removeprefix("!").strip(), subjects):
            shut = not lets_in
    return shut


def _matches(rule: str, subjects: dict[str, str | None]) -> bool:
    kind, colon, glob = rule.partition(":")
    if colon and kind in subjects:
        return _subject(glob.strip(), kind, subjects[kind])
    return any(_subject(rule, name, value) for name, value in subjects.items())


def _subject(glob: str, kind: str, value: str | None) -> bool:
    if not glob or value is None:
        return False
    if kind == "session":
        return bool(_pattern(glob).match(value))
    glob, value = _slashes(glob), _slashes(value)
    if bool(_pattern(glob).match(value)):
        return True
    return not any(mark in glob for mark in "*?[") and value.startswith(glob + "/")


def _slashes(text: str) -> str:
    """One spelling for a path: forward slashes, none at the end."""
    return text.replace("\\", "/").rstrip("/") or "/"


@lru_cache(maxsize=512)
def _pattern(glob: str) -> Pattern[str]:
    return compile_pattern(translate(glob))
