"""Edits one member of a JSON object in its text, and leaves every other byte alone.

Strict JSON, as Kimi reads it: no comments, no trailing commas, no NaN.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from server.setup.model import line_end

_SPACE = " \t\n\r"


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an object by its place in the text: the key's opening quote, the value's begin and end."""

    key: str
    at: int
    value_at: int
    end: int


@dataclass(frozen=True, slots=True)
class Object:
    """An object by its place in the text: ``at`` its ``{``, ``end`` behind its ``}``."""

    at: int
    end: int
    members: tuple[Member, ...]

    def find(self, key: str) -> Member | None:
        """The member of that name; of several the last, which is the one that counts for JSON.parse."""
        return next((member for member in reversed(self.members) if member.key == key), None)


def parse(text: str) -> Any:
    """The value of a strict JSON text. Raises ValueError."""
    return _decoder().decode(text)


def object_at(text: str, at: int) -> Object:
    """The members of the object that begins at ``at``. The text must parse."""
    decoder = _decoder()
    members: list[Member] = []
    position = _skip(text, at + 1)
    while text[position] != "}":
        if text[position] == ",":
            position = _skip(text, position + 1)
        key, after = decoder.raw_decode(text, position)
        value_at = _skip(text, _skip(text, after) + 1)
        _, end = decoder.raw_decode(text, value_at)
        members.append(Member(key, position, value_at, end))
        position = _skip(text, end)
    return Object(at, position + 1, tuple(members))


def set_member(text: str, owner: Object, key: str, value: Mapping[str, Any]) -> tuple[str, str]:
    """The text with ``key`` set to ``value`` in ``owner``, and the value's text as it stands there.

    A new member goes last, in the style of the ones before it.
    """
    found = owner.find(key)
    indent, unit = _style(text, owner)
    written = _dump(text, value, indent, unit)
    if found is not None:
        return text[: found.value_at] + written + text[found.end :], written
    member = f"{json.dumps(key, ensure_ascii=False)}: {written}"
    if owner.members:
        last = owner.members[-1].end
        lead = "," + (_lead(text, owner) or " ")
        return text[:last] + lead + member + text[last:], written
    newline = line_end(text)
    outer = indent.removesuffix(unit) if indent.endswith(unit) else ""
    body = f"{newline}{indent}{member}{newline}{outer}"
    return text[: owner.at + 1] + body + text[owner.end - 1 :], written


def drop_member(text: str, owner: Object, key: str) -> str:
    """The text without the member, and without the comma and the space that came with it."""
    member = owner.find(key)
    if member is None:
        return text
    index = owner.members.index(member)
    if index > 0:
        return text[: owner.members[index - 1].end] + text[member.end :]
    if len(owner.members) > 1:
        return text[: member.at] + text[owner.members[1].at :]
    return text[: owner.at + 1] + text[owner.end - 1 :]


def _decoder() -> json.JSONDecoder:
    def refuse(name: str) -> None:
        raise ValueError(f"{name} is not JSON")

    return json.JSONDecoder(parse_constant=refuse)


def _skip(text: str, position: int) -> int:
    while text[position] in _SPACE:
        position += 1
    return position


def _lead(text: str, owner: Object) -> str:
    """The white space in front of the last member, when it stands on a line of its own."""
    at = owner.members[-1].at
    start = at
    while text[start - 1] in _SPACE:
        start -= 1
    space = text[start:at]
    newline = "\r\n" if "\r\n" in space else "\n"
    return newline + space.rpartition("\n")[2] if "\n" in space else ""


def _style(text: str, owner: Object) -> tuple[str, str]:
    """The indentation of the owner's members, and one level of it. Both empty: the owner is written on one line."""
    outer = _indent_of_line(text, owner.at)
    if owner.members:
        lead = _lead(text, owner)
        if not lead:
            return "", ""
        indent = lead.rpartition("\n")[2]
        unit = indent.removeprefix(outer) if indent.startswith(outer) else ""
        return indent, unit or _unit(text)
    unit = _unit(text)
    return outer + unit, unit


def _indent_of_line(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    """One level of indentation: that of the first indented line, two spaces when there is none."""
    for line in text.split("\n"):
        body = line.lstrip(" \t")
        if body.strip() and body != line:
            return line[: len(line) - len(body)]
    return "  "


def _dump(text: str, value: Mapping[str, Any], indent: str, unit: str) -> str:
    if not unit:
        return json.dumps(value, ensure_ascii=False)
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    return (line_end(text) + indent).join(lines)
