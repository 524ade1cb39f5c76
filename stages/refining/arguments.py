"""Tool arguments as the wire gives them: compact JSON that a cap may have cut anywhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import orjson

_STRING = re.compile(r'"(\w{1,40})":"((?:[^"\\]|\\.)*)("?)', re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}

OLD_KEYS = ("old_string", "old", "old_str", "oldText", "before")
NEW_KEYS = ("new_string", "new", "new_str", "newText", "after")
CONTENT_KEYS = ("content", "file_text", "text", "contents")
PATCH_KEYS = ("patch", "input", "diff")
MAX_EDITS = 24


class Edit(NamedTuple):
    """A replacement in a file; ``whole`` is false when a cap cut one of the two texts."""

    old: str
    new: str
    whole: bool = True


@lru_cache(maxsize=64)
def parse(args: str) -> Mapping[str, object]:
    """The arguments as an object; of cut JSON, its string members (also nested ones, the first of each
    name). What a turn did is read from several sides, each call's arguments once.
    """
    try:
        value = orjson.loads(args)
    except orjson.JSONDecodeError:
        return _salvage(args)
    return value if isinstance(value, dict) else {}


def _salvage(args: str) -> dict[str, object]:
    found: dict[str, object] = {}
    for match in _STRING.finditer(args):
        found.setdefault(match[1], _unescape(match[2]))
        if not match[3]:
            found["_cut"] = match[1]
    return found


def _unescape(text: str) -> str:
    return _ESCAPE.sub(
        lambda match: chr(int(match[1][1:], 16)) if len(match[1]) == 5 else _PLAIN.get(match[1], match[1]),
        text,
    )


def first_text(args: Mapping[str, object], *keys: str) -> str:
    """The first of these members that is a text."""
    for key in keys:
        value = args.get(key)
        if isinstance(value, str):
            return value
    return ""


@lru_cache(maxsize=64)
def edits(args: str) -> tuple[Edit, ...]:
    """The replacements of an edit call: one pair, or a list of them (kimi-cli's ``edit``, MultiEdit's
    ``edits``).
    """
    found = []
    parsed = parse(args)
    whole = parsed.get("_cut") is None
    for item in _edit_items(parsed):
        old, new = first_text(item, *OLD_KEYS), first_text(item, *NEW_KEYS)
        if old or new:
            found.append(Edit(old, new, whole))
    return tuple(found[:MAX_EDITS])


def _edit_items(args: Mapping[str, object]) -> list[Mapping[str, object]]:
    for key in ("edits", "edit"):
        value = args.get(key)
        if isinstance(value, dict):
            return [value]
        if isinstance(value, list):
            return [item for item in value if isinstance(item, dict)]
    return [args]


def content(args: str) -> str:
    """The text that a write call wrote, as far as the cap left it."""
    return first_text(parse(args), *CONTENT_KEYS)


_DIFF_PATH = re.compile(
    r"^(?:diff --git a/(?P<git>\S+) b/\S+|\+\+\+ (?:b/)?(?P<plus>[^\s]+)|\*\*\* (?:Add|Update"
    r"|Delete) File: (?P<patch>[^\n]+)|\*\*\* Move to: (?P<move>[^\n]+))",
    re.MULTILINE,
)


def patched_paths(text: str) -> list[str]:
    """The files of a unified diff or an ``apply_patch`` text."""
    paths = [next(g for g in match.groups() if g).strip() for match in _DIFF_PATH.finditer(text)]
    return list(dict.fromkeys(path for path in paths if path != "/dev/null"))
