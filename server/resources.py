"""Resources: memories, themes, the essence and single turns by URI, all as Markdown to read.

memory://<folder>/<key>   theme://<theme>   essence://essence   turn://<session>/<turn>
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from anyio import to_thread

from pipeline.errors import BadInput

if TYPE_CHECKING:
    from server.service import Service
    from server.space import Space

PAGE = 200
MIME = "text/markdown"
TEMPLATES: tuple[dict[str, Any], ...] = (
    {
        "name": "memory",
        "uriTemplate": "memory://{+folder}/{key}",
        "description": "a saved memory; folder as in memory/decisions",
        "mimeType": MIME,
    },
    {
        "name": "theme",
        "uriTemplate": "theme://{theme}",
        "description": "the story of a theme",
        "mimeType": MIME,
    },
    {
        "name": "turn",
        "uriTemplate": "turn://{session}/{turn}",
        "description": "one turn of a session, word for word",
        "mimeType": MIME,
    },
)


async def listing(service: Service, cursor: str | None) -> tuple[list[dict[str, Any]], str | None]:
    """One page of resources and the cursor of the next. Turns are too many to list: they have a template."""
    space = await service.space()
    rows = await to_thread.run_sync(_rows, space)
    if cursor and not cursor.isdigit():
        raise BadInput("cursor: not one of this list")
    start = int(cursor) if cursor else 0
    following = start + PAGE
    return rows[start:following], str(following) if following < len(rows) else None


def _rows(space: Space) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    if space.essence.path.is_file():
        rows.append(_row("essence://essence", "essence", "standing rules and facts"))
    for memory in space.memories.all():
        tags = f"tags: {', '.join(memory.tags)}" if memory.tags else ""
        uri = f"memory://{quote(memory.folder)}/{quote(memory.key, safe='')}"
        rows.append(_row(uri, memory.name, tags, space.redact(memory.title)))
    for record in space.themes.all()[0]:
        about = f"{len(record.turns)} turns"
        rows.append(_row(f"theme://{quote(record.theme, safe='')}", record.theme, about, record.display_name))
    return rows


def _row(uri: str, name: str, about: str, title: str = "") -> dict[str, Any]:
    row = {"uri": uri, "name": name, "mimeType": MIME}
    return {**row, **({"description": about} if about else {}), **({"title": title} if title else {})}


async def read(service: Service, uri: str) -> str:
    """The text of a resource. Raises BadInput for a URI that names none."""
    from server import resource_texts

    scheme, separator, rest = uri.partition("://")
    parts = [unquote(part) for part in rest.rstrip("/").split("/") if part]
    readers = {
        "memory": resource_texts.memory,
        "theme": resource_texts.theme,
        "essence": resource_texts.essence,
        "turn": resource_texts.turn,
    }
    if not separator or scheme not in readers or not parts:
        raise BadInput(
            f"uri: {uri!r} names no resource", hint="There are memory://, theme://, essence://, turn://."
        )
    return await readers[scheme](service, parts)
