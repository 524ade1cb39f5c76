"""What a resource reads as. All of it is recalled text, and stands inside the fence."""

from __future__ import annotations

from collections.abc import Sequence

from anyio import to_thread

from pipeline.errors import BadInput
from server.arguments import checked
from server.call import Call
from server.pages import fenced
from server.service import Service
from server.surface.everything import TOOLS
from server.tools.tracing import trace_theme
from server.whole_turns import Include, Reference, whole_texts

THEME_CHARS = 45_000


async def memory(service: Service, parts: Sequence[str]) -> str:
    """``memory://<folder>/<key>``."""
    space = await service.space()
    found = await to_thread.run_sync(space.memories.recall, parts[-1], "/".join(parts[:-1]) or None)
    if not found["found"]:
        near = ", ".join(f"{one['folder']}/{one['key']}" for one in found["nearest"])
        raise BadInput(f"uri: no memory {'/'.join(parts)!r}", hint=f"Nearest: {near}." if near else "")
    return fenced(space.redact(f"# {found['title']}\n\n{found['content']}"))


async def theme(service: Service, parts: Sequence[str]) -> str:
    """``theme://<theme>``."""
    given = {"theme": "/".join(parts), "max_chars": THEME_CHARS}
    return await trace_theme(Call("trace_theme", given, checked(TOOLS["trace_theme"], given), service))


async def essence(service: Service, parts: Sequence[str]) -> str:
    """``essence://essence``."""
    space = await service.space()
    text = await to_thread.run_sync(space.essence.read) if list(parts) == ["essence"] else ""
    if not text:
        raise BadInput("uri: there is no essence yet", hint="organize_memories writes it.")
    return fenced(space.redact(text))


async def turn(service: Service, parts: Sequence[str]) -> str:
    """``turn://<session>/<turn>``."""
    if len(parts) != 2 or not parts[1].isdigit():
        raise BadInput("uri: write turn://<session id>/<turn number>")
    space = await service.space()
    await space.freshen()
    texts = await whole_texts(space, Reference(parts[0], int(parts[1])), Include())
    if not texts:
        raise BadInput(
            f"uri: no turn {parts[1]} of {parts[0]}", hint="search_context gives sessionId and turnId."
        )
    return fenced("\n\n".join(texts))
