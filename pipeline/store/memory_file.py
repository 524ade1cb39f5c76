"""One Markdown memory as text: frontmatter read leniently, printed so that nothing a person wrote is lost.

Reading takes any YAML with every scalar as its text (`yes`, `1.0` and dates mean what they look like), so
titles and tags never change their kind. Writing edits the file's own YAML in place: unknown fields, their
order, comments and line ends stay. What is printed can also be read by the server we stay compatible with
(block lists, one line a scalar).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import yaml  # type: ignore[import-untyped]
from frontmatter.default_handlers import YAMLHandler

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
        return clean_tags(listed(self.fields.get("tags")))

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
    except (yaml.YAMLError, RecursionError) as error:
        return MemoryFile(head, rest, _guess(head), newline, bom, problem_of(error))
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
    from pipeline.store import (
        frontmatter_edit,  # writers alone pay for it: it takes as long to import as the rest
    )

    head = frontmatter_edit.edited_head(file.head or "", changes, file.fields)
    rest = file.rest if body is None else "\n" + printable_body(body) + "\n"
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


def printable_body(body: str) -> str:
    """Markdown as it is kept: line ends ``\\n``, no blank lines around it, no lone surrogates."""
    text = body.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8", "replace").decode("utf-8")
    return text.strip("\n") if text.strip() else ""


def _split(text: str) -> tuple[str, str] | None:
    start = _OPEN.match(text)
    if start is None:
        return None
    end = _CLOSE.search(text, start.end())
    return None if end is None else (text[start.end() : end.start()], text[end.end() :])


def listed(value: object) -> list[str]:
    """A field's texts, from a list or from one text with separators."""
    if isinstance(value, str):
        return [part.strip() for part in _TAG_SEPARATORS.split(scalar(value)) if part.strip()]
    if not isinstance(value, list):
        return []
    found: list[str] = []
    for item in value:
        if isinstance(item, dict):  # an unquoted tag with ": " in it
            found.extend(f"{name}: {scalar(entry)}".removesuffix(": ") for name, entry in item.items())
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


def problem_of(error: Exception) -> Problem:
    """Where and why a YAML error was raised; its marks count from 0, after the opening fence."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line = mark.line + 2 if mark is not None else 2
    reasons = (getattr(error, name, None) for name in ("problem", "context", "reason"))
    return Problem(line, str(next((reason for reason in reasons if reason), "not YAML")))


def _without_code(body: str) -> str:
    """The body without fenced code, where ``# x`` is a comment; the start of a long one is enough."""
    return re.sub(r"^(`{3,}|~{3,}).*?^\1", "", body[:20_000], flags=re.MULTILINE | re.DOTALL)
