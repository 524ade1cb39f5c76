"""The prompts a client may offer its user, filled with this workspace's own material."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from pipeline.errors import BadInput

if TYPE_CHECKING:
    from server.service import Service

PROMPTS: tuple[dict[str, Any], ...] = (
    {
        "name": "memory-decision-check",
        "title": "What was decided about this?",
        "description": "Past decisions and memories to weigh before a change, of one file or in general.",
        "arguments": [{"name": "filePath", "description": "the file to be changed", "required": False}],
    },
    {
        "name": "memory-theme-trace",
        "title": "How did this come to be?",
        "description": "The story of one theme across sessions, or the themes there are.",
        "arguments": [{"name": "theme", "description": "a theme's name", "required": False}],
    },
    {
        "name": "memory-session-summary",
        "title": "Summarise this session",
        "description": "What this session did, to summarise it and to choose what to remember and tag.",
        "arguments": [],
    },
)

Filler: TypeAlias = Callable[["Service", Mapping[str, str]], Awaitable[str]]


async def rendered(service: Service, name: str, arguments: Mapping[str, str]) -> str:
    """The text of a prompt. Raises BadInput for an unknown name or argument, naming the accepted ones."""
    from server import prompt_texts

    fillers: dict[str, Filler] = {
        "memory-decision-check": prompt_texts.decision_check,
        "memory-theme-trace": prompt_texts.theme_trace,
        "memory-session-summary": prompt_texts.session_summary,
    }
    if name not in fillers:
        raise BadInput(f"name: no prompt {name!r}", hint=f"There are {', '.join(fillers)}.")
    known = next(
        [each["name"] for each in prompt["arguments"]] for prompt in PROMPTS if prompt["name"] == name
    )
    for given in arguments:
        if given not in known:
            raise BadInput(f"{given}: unknown argument", hint=f"{name} takes {', '.join(known) or 'none'}.")
    return await fillers[name](service, arguments)
