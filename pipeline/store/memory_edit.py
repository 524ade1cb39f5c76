"""What one ``remember`` makes of a memory's text: pure, and the same result when it is called again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pipeline.errors import BadInput
from pipeline.store import memory_file
from pipeline.store.memory_file import MemoryFile, Value, clean_tags, printable, scalar

Mode: TypeAlias = Literal["create", "replace", "append"]


@dataclass(frozen=True, slots=True)
class Wish:
    """What a memory should say, cleaned. What is empty or ``None`` stays as it is."""

    key: str
    body: str | None = None
    title: str = ""
    tags: tuple[str, ...] = ()
    source: Mapping[str, str | int] = field(default_factory=dict)
    mode: Mode = "replace"


def written(path: str, old: str | None, wish: Wish, now: str) -> str:
    """The text of the memory at ``path`` once the wish is fulfilled; ``old`` itself when it is so already.

    ``now`` is the ISO time of a change. Raises BadInput for a new memory without content, in mode ``create``
    for an existing one that differs, and for a frontmatter that cannot be edited without loss (with its
    line).
    """
    if old is None:
        if wish.body is None:
            raise BadInput(f"content is missing: {path} does not exist yet")
        return memory_file.render(_created(wish, wish.body, now))
    file = memory_file.parse(old)
    try:
        memory_file.edited(file, {})
    except ValueError as error:
        raise BadInput(
            f"{path}: the frontmatter is broken at {error}",
            hint="Mend the file by hand, or delete it, before writing to it.",
        ) from error
    changes, body = _changes(file, wish)
    if not changes and body is None:
        return old
    if wish.mode == "create":
        raise BadInput(f"{path} exists already", hint="Use mode replace or append, or another key.")
    if "createdAt" not in file.fields:
        changes = {"key": wish.key, "createdAt": now, **changes}
    return memory_file.render(memory_file.edited(file, {**changes, "updatedAt": now}, body))


def _created(wish: Wish, body: str, now: str) -> MemoryFile:
    fields: dict[str, Value] = {
        "key": wish.key,
        "title": wish.title or printable(memory_file.parse(body).title) or wish.key,
        "tags": list(wish.tags),
        "createdAt": now,
        "updatedAt": now,
    }
    return memory_file.create({**fields, "source": wish.source} if wish.source else fields, body)


def _changes(file: MemoryFile, wish: Wish) -> tuple[dict[str, Value], str | None]:
    """The fields to set and the body to write (``None``: as it is)."""
    changes: dict[str, Value] = {}
    if wish.title and wish.title != scalar(file.fields.get("title")):
        changes["title"] = wish.title
    tags = clean_tags((*file.tags, *wish.tags)) if wish.mode == "append" else wish.tags
    if tags and tags != file.tags:
        changes["tags"] = list(tags)
    body = None
    if wish.body is not None and wish.body != file.body:
        body = _appended(file.body, wish.body) if wish.mode == "append" else wish.body
    confirmed = "confirmedBy" in wish.source and "confirmedBy" not in file.source
    # The first source stays when another call says the same thing again.
    if wish.source and (changes or body is not None or not file.source or confirmed):
        changes["source"] = wish.source
    return changes, body


def _appended(body: str, addition: str) -> str | None:
    """``body`` with a paragraph more; ``None`` when it holds that paragraph (a resent call adds nothing)."""
    if f"\n\n{addition}\n\n" in f"\n\n{body}\n\n":
        return None
    return f"{body}\n\n{addition}" if body else addition
