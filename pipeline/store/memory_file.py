"""One Markdown memory as text: frontmatter read leniently, printed so that nothing a person wrote is lost.

Reading takes any YAML with every scalar as its text (`yes`, `1.0` and dates mean what they look like), so
titles and tags never change their kind. Writing edits the file's own YAML in place: unknown fields, their
order, comments and line ends stay. What is printed can also be read by the server we stay compatible with
(block lists, one line a scalar).
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import yaml  # type: ignore[import-untyped]
from frontmatter.default_handlers import YAMLHandler
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

Scalars: TypeAlias = Mapping[str, str | int]
Value: TypeAlias = "str | Sequence[str] | Scalars | None"

_BOM = "\ufeff"
_OPEN = re.compile(r"---[ \t]*\n")
_CLOSE = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE)
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)(?:[ \t]+#+)?[ \t]*$", re.MULTILINE)
_TAG_SEPARATORS = re.compile(r"[,，、;；\n]")
_LINE = re.compile(r"^([^\s:#][^:]*):[ \t]*(.*)$")
_ITEM = re.compile(r"^[ \t]*-[ \t]+(.*)$")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_ANCHOR = re.compile(r"(?:^|[\s:,\[-])[&*]\w", re.MULTILINE)
_LINE_BREAKS = re.compile(r"[\r\n\x85\u2028\u2029]+")

# PyYAML's own parser where libyaml is missing: slower, the same result.
_Base: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class _Loader(_Base):  # type: ignore[misc]
    """Texts, lists and dicts only; a plain ``~`` or ``null`` is ``None``, a quoted one its text."""

    def construct_scalar(self, node: Any) -> str | None:
        if isinstance(node, yaml.ScalarNode) and not node.style and node.value in _NULLS:
            return None
        return str(super().construct_scalar(node))


_NULLS = frozenset({"", "~", "null", "Null", "NULL"})


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a frontmatter could not be read: ``line`` is 1-based in the file."""

    line: int
    message: str


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """A parsed file. ``fields`` are for reading; edits go through ``edited``, which works on ``head`` itself.

    ``head`` is the YAML between the fences (``None`` without frontmatter), ``rest`` everything after it, both
    with ``\\n`` line ends; ``newline`` is what the file uses. With a ``problem`` the fields are a best guess,
    line by line.
    """

    head: str | None
    rest: str
    fields: Mapping[str, Any]
    newline: str = "\n"
    bom: bool = False
    problem: Problem | None = None

    @property
    def body(self) -> str:
        """The Markdown without the blank lines around it."""
        return self.rest.strip("\n") if self.rest.strip() else ""

    @property
    def title(self) -> str:
        """The title field, else the first heading, else empty."""
        if title := scalar(self.fields.get("title")):
            return title
        heading = _HEADING.search(_without_code(self.body))
        return heading[1].strip() if heading else ""

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags, from a list of any style or one string with separators, without ``#`` and repeats."""
        return clean_tags(_listed(self.fields.get("tags")))

    @property
    def source(self) -> dict[str, str]:
        """Where it comes from, as a mapping of texts; a bare text is ``{"text": …}``."""
        value = self.fields.get("source")
        if isinstance(value, dict):
            return {str(name): text for name, entry in value.items() if (text := scalar(entry))}
        return {"text": text} if (text := scalar(value)) else {}


def parse(text: str) -> MemoryFile:
    """Read any Markdown: never raises. A file without frontmatter is all body (a rule at its top is no
    fence).
    """
    bom = text.startswith(_BOM)
    text = text.removeprefix(_BOM)
    first_end = text.find("\n")
    newline = "\r\n" if first_end > 0 and text[first_end - 1] == "\r" else "\n"
    text = text.replace("\r\n", "\n")
    split = _split(text)
    if split is None:
        return MemoryFile(None, text, {}, newline, bom)
    head, rest = split
    try:
        fields = Handler().load(head)
    except yaml.YAMLError as error:
        return MemoryFile(head, rest, _guess(head), newline, bom, _problem(error))
    if fields is None:
        fields = {}
    if not isinstance(fields, dict):  # a paragraph between two rules
        return MemoryFile(None, text, {}, newline, bom)
    return MemoryFile(head, rest, {str(name): value for name, value in fields.items()}, newline, bom)


def edited(file: MemoryFile, changes: Mapping[str, Value], body: str | None = None) -> MemoryFile:
    """``file`` with these fields set (``None`` removes one) and, unless ``None``, this body.

    Fields that already mean the same keep their own spelling. Raises ValueError with the line when the
    frontmatter cannot be edited without loss (broken YAML, a field given twice): such a file is a person's to
    mend.
    """
    if file.problem is not None:
        raise ValueError(f"line {file.problem.line}: {file.problem.message}")
    try:
        head = _edited_head(file.head or "", changes, file.fields)
    except YAMLError as error:
        problem = _problem(error)
        raise ValueError(f"line {problem.line}: {problem.message}") from error
    rest = file.rest if body is None else "\n" + _printable_body(body) + "\n"
    if file.head is None and body is None:
        rest = "\n" + rest.lstrip("\n")
    return replace(parse(f"---\n{head}---\n{rest}"), newline=file.newline, bom=file.bom)


def create(fields: Mapping[str, Value], body: str) -> MemoryFile:
    """A new memory file with these fields, in this order."""
    return edited(MemoryFile(None, "", {}), fields, body)


def render(file: MemoryFile) -> str:
    """The text to write, in the file's own line ends."""
    text = file.rest if file.head is None else f"---\n{file.head}---\n{file.rest}"
    if file.newline != "\n":
        text = text.replace("\n", file.newline)
    return (_BOM if file.bom else "") + text


class Handler(YAMLHandler):
    """The frontmatter library's YAML handler: reads texts through libyaml, prints through ruamel's round
    trip.
    """

    def split(self, text: str) -> tuple[str, str]:
        """Head and rest; only fences at the very top count. Raises ValueError when there are none."""
        split = _split(text)
        if split is None:
            raise ValueError("no frontmatter")
        return split

    def load(self, fm: str, **kwargs: object) -> Any:
        """The frontmatter with every scalar as text. Raises yaml.YAMLError."""
        return yaml.load(fm, Loader=_Loader)

    def round_trip(self, fm: str) -> CommentedMap:
        """The frontmatter with everything needed to print it again. Raises ruamel's YAMLError."""
        data = _yaml().load(fm)
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
        _yaml().dump(metadata, stream)
        return stream.getvalue()


def scalar(value: object) -> str:
    """A field's text; empty for lists, mappings and null."""
    return value if isinstance(value, str) else ""


def clean_tags(tags: Sequence[object]) -> tuple[str, ...]:
    """Tags as we keep them: one line, no ``#`` in front, no repeats in other case, in order."""
    found: dict[str, str] = {}
    for tag in tags:
        text = " ".join(printable(str(tag)).strip().lstrip("#").split())
        if text:
            found.setdefault(text.casefold(), text)
    return tuple(found.values())


def printable(text: str) -> str:
    """One line of text without control characters (they break readers and terminals) or lone surrogates."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    return _CONTROL.sub("", _LINE_BREAKS.sub(" ", text)).strip()


def _printable_body(body: str) -> str:
    body = body.replace("\r\n", "\n").encode("utf-8", "replace").decode("utf-8")
    return body.strip("\n")


def _split(text: str) -> tuple[str, str] | None:
    start = _OPEN.match(text)
    if start is None:
        return None
    end = _CLOSE.search(text, start.end())
    return None if end is None else (text[start.end() : end.start()], text[end.end() :])


def _yaml() -> YAML:
    # One per use: a YAML object keeps state between calls and is not safe across threads.
    printer = YAML(typ="rt")
    printer.preserve_quotes = True
    printer.width = 1 << 20  # the other server reads line by line: never fold
    printer.indent(mapping=2, sequence=4, offset=2)
    printer.allow_unicode = True
    return printer


def _edited_head(head: str, changes: Mapping[str, Value], fields: Mapping[str, Any]) -> str:
    """The YAML with the changed fields printed anew and every other line as it was. Raises YAMLError."""
    data = Handler().round_trip(head)
    if not changes:
        return head
    for name, value in changes.items():
        start, end = _span(data, head, name)
        if start is None:  # not a field a line, or anchors: print everything anew
            break
        lines = head.split("\n")
        part = Handler().round_trip("\n".join(lines[start:end]))
        _set(part, name, value, fields.get(name))
        printed = Handler().export(part).removesuffix("\n").split("\n") if part else []
        head = "\n".join([*lines[:start], *printed, *lines[end:]])
        data = Handler().round_trip(head)
    else:
        return head
    for name, value in changes.items():
        _set(data, name, value, fields.get(name))
    return Handler().export(data)


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
    elif name not in data or list(value) != _listed(present):
        data[name] = [_text(item) for item in value]


def _set_mapping(data: CommentedMap, name: str, value: Scalars) -> None:
    target = data.get(name)
    if not isinstance(target, CommentedMap):
        target = data[name] = CommentedMap()
    for key in [key for key in target if key not in value]:
        del target[key]
    for key, entry in value.items():
        if str(target.get(key)) != str(entry):
            target[key] = _text(entry) if isinstance(entry, str) else entry


def _text(text: str) -> str:
    # The other server never un-doubles '' and takes quotes off both ends: double quotes survive it.
    if "'" in text:
        return cast(str, DoubleQuotedScalarString(text))
    return text


def _listed(value: object) -> list[str]:
    if isinstance(value, str):
        return [part.strip() for part in _TAG_SEPARATORS.split(scalar(value)) if part.strip()]
    if not isinstance(value, list):
        return []
    found: list[str] = []
    for item in value:
        if isinstance(item, dict):  # an unquoted tag with ": " in it
            found.extend(f"{name}: {entry}" if entry else str(name) for name, entry in item.items())
        elif text := scalar(item):
            found.append(text)
    return found


def _guess(head: str) -> dict[str, Any]:
    """Fields of a broken frontmatter, line by line as the other server reads them; for showing only."""
    fields: dict[str, Any] = {}
    current = ""
    for line in head.split("\n"):
        if (item := _ITEM.match(line)) and current:
            if not isinstance(fields[current], list):
                fields[current] = []
            fields[current].append(item[1].strip().strip("'\""))
        elif pair := _LINE.match(line):
            current = pair[1].strip()
            fields[current] = pair[2].strip().strip("'\"[]")
    return fields


def _problem(error: yaml.YAMLError | YAMLError) -> Problem:
    if isinstance(error, yaml.MarkedYAMLError | MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        line = mark.line + 2 if mark is not None else 2  # marks count from 0, after the opening fence
        return Problem(line, f"{error.problem or error.context or 'not YAML'}")
    position = getattr(error, "position", None)
    return Problem(
        2, f"not YAML: {getattr(error, 'reason', error)}" + (f" at {position}" if position else "")
    )


def _without_code(body: str) -> str:
    """The body without fenced code, where ``# x`` is a comment; the start of a long one is enough."""
    return re.sub(r"^(`{3,}|~{3,}).*?^\1", "", body[:20_000], flags=re.MULTILINE | re.DOTALL)
