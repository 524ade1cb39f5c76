"""Editing a frontmatter without loss: a changed field is printed anew, every other line stays as it was."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import YAMLError
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from pipeline.store.memory_file import Handler, Scalars, Value, listed, problem_of, scalar

_ANCHOR = re.compile(r"(?:^|[\s:,\[-])[&*]\w", re.MULTILINE)


class RoundTrip(Handler):
    """The frontmatter library's YAML handler over ruamel's round trip: comments, order and styles stay."""

    def load(self, fm: str, **kwargs: object) -> CommentedMap:
        """The frontmatter with everything needed to print it again. Raises ruamel's YAMLError."""
        data = _printer().load(fm)
        if isinstance(data, CommentedMap):
            return data
        fresh = CommentedMap()
        if fm.strip():  # comments alone
            fresh.yaml_set_start_comment("\n".join(line.lstrip("# ") for line in fm.strip().split("\n")))
        return fresh

    def export(self, metadata: Mapping[str, object], **kwargs: object) -> str:
        """The frontmatter as text, ended by a line end (empty when there is nothing)."""
        if not metadata:
            return ""
        stream = io.StringIO()
        _printer().dump(metadata, stream)
        return stream.getvalue()


def _printer() -> YAML:
    # One per use: a YAML object keeps state between calls and is not safe across threads.
    printer = YAML(typ="rt")
    printer.preserve_quotes = True
    printer.width = 1 << 20  # the other server reads line by line: never fold
    printer.indent(mapping=2, sequence=4, offset=2)
    printer.allow_unicode = True
    return printer


def edited_head(head: str, changes: Mapping[str, Value], fields: Mapping[str, Any]) -> str:
    """The YAML with these fields changed (``None`` removes one); ``fields`` is what it says now.

    Raises ValueError with the line when it cannot be edited without loss.
    """
    try:
        if not changes:
            RoundTrip().load(head)
            return head
        spliced = _spliced(head, changes, fields)
        if spliced is not None:
            return spliced
        data = RoundTrip().load(head)
        for name, value in changes.items():
            _set(data, name, value, fields.get(name))
        return RoundTrip().export(data)
    except (YAMLError, RecursionError) as error:
        problem = problem_of(error)
        raise ValueError(f"line {problem.line}: {problem.message}") from error


def _spliced(head: str, changes: Mapping[str, Value], fields: Mapping[str, Any]) -> str | None:
    """The changed fields' lines printed anew between the others; ``None`` where that cannot be told."""
    for name, value in changes.items():
        data = RoundTrip().load(head)
        start, end = _span(data, head, name)
        if start is None:
            return None
        lines = head.split("\n")
        part = RoundTrip().load("\n".join(lines[start:end]))
        _set(part, name, value, fields.get(name))
        printed = RoundTrip().export(part).removesuffix("\n").split("\n") if part else []
        head = "\n".join([*lines[:start], *printed, *lines[end:]])
    head = head if head.endswith("\n") else head + "\n"
    said: dict[str, Any] = Handler().load(head)
    unchanged = all(said.get(name) == value for name, value in fields.items() if name not in changes)
    return head if unchanged else None


def _span(data: CommentedMap, head: str, name: str) -> tuple[int | None, int]:
    """The lines that a field takes, without what stands below it (none, at the end, for a new one).

    ``(None, 0)`` when fields cannot be told apart by lines.
    """
    starts = sorted(data.lc.key(field)[0] for field in data)
    lines = head.split("\n")
    if data.fa.flow_style() or len(set(starts)) < len(starts) or _ANCHOR.search(head):
        return None, 0
    if name not in data:
        end = len(lines) - 1 if not lines[-1] else len(lines)
        return end, end
    start = data.lc.key(name)[0]
    end = next((line for line in starts if line > start), len(lines))
    while end > start + 1 and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
        end -= 1
    return start, end


def _set(data: CommentedMap, name: str, value: Value, present: object) -> None:
    if value is None:
        data.pop(name, None)
    elif isinstance(value, str):
        if name not in data or scalar(present) != value:
            data[name] = _text(value)
    elif isinstance(value, Mapping):
        _set_mapping(data, name, value)
    elif name not in data or list(value) != listed(present):
        data[name] = [_text(item) for item in value]


def _set_mapping(data: CommentedMap, name: str, value: Scalars) -> None:
    target = data.get(name)
    if not isinstance(target, CommentedMap):
        target = data[name] = CommentedMap()
    for key in [key for key in target if key not in value]:
        del target[key]
    for key, entry in value.items():
        if key not in target or str(target[key]) != str(entry):
            target[key] = _text(entry) if isinstance(entry, str) else entry


def _text(text: str) -> str:
    # The other server never un-doubles '' and takes quotes off both ends: double quotes survive it.
    if "'" in text:
        return cast(str, DoubleQuotedScalarString(text))
    return text
