"""The material of each prompt. It is recalled data: the judgement is the model's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.errors import BadInput
from pipeline.store.theme_record import ThemeRecord
from server.arguments import checked
from server.call import Call
from server.current_session import current_session
from server.pages import fenced, some_lines
from server.recent import detailed, last_turns
from server.service import Service
from server.space import Space
from server.surface.everything import TOOLS
from server.tools.context import search_context
from server.tools.memory import list_memories, search
from server.tools.theme import list_themes
from server.tools.tracing import trace_theme
from stages.snippet import one_line, shorten

PROMPT_CHARS = 12_000
DECISIONS = 20
SESSION_TURNS = 30


def _call(service: Service, tool: str, **given: Any) -> Call:
    return Call(tool, given, checked(TOOLS[tool], given), service)


async def decision_check(service: Service, arguments: Mapping[str, str]) -> str:
    """What to weigh before a change."""
    path = arguments.get("filePath", "").strip()
    space = await service.space()
    if path:
        name = path.replace("\\", "/").rpartition("/")[2]
        parts = [
            f"I am about to change `{one_line(path)}`. Before I do, check it against what was decided. Here is the "
            "material; judge yourself what still holds, and load_turn_context before you quote.",
            "Conversations that touched it:",
            await search_context(
                _call(service, "search_context", query=f"file:{name}", limit=8, detail="normal")
            ),
            "Memories that name it:",
            await search(_call(service, "search", query=name, limit=8)),
        ]
    else:
        parts = [
            "Before we change anything: check the plan against what was decided. Here is the material; judge yourself "
            "what still holds, and load_turn_context before you quote.",
            "Saved decisions:",
            await list_memories(_call(service, "list", folder="decisions", limit=DECISIONS)),
        ]
    parts += ["Decisions found in themes, newest first:", _decisions(space.themes.all()[0]) or "none yet"]
    return shorten("\n\n".join(parts), PROMPT_CHARS)


def _decisions(themes: list[ThemeRecord]) -> str:
    found = [
        (str(cluster.get("start") or ""), record.display_name, cluster.get("sessionId"), decision)
        for record in themes
        for cluster in record.clusters
        for decision in cluster.get("decisions", [])
    ]
    found.sort(key=lambda row: row[0], reverse=True)
    lines = [
        f"{start[:10]} {theme} · {session} turn {decision.get('turnId')}: {one_line(str(decision.get('text', '')))}"
        for start, theme, session, decision in found[:DECISIONS]
    ]
    return fenced(some_lines(lines, 4_000))


async def theme_trace(service: Service, arguments: Mapping[str, str]) -> str:
    """The story of a theme, or what themes there are."""
    theme = arguments.get("theme", "").strip()
    if not theme:
        listing = await list_themes(_call(service, "list_themes"))
        return (
            "Which subject shall we trace? These are the themes there are, and subjects that have none yet. Ask me for "
            f"one, confirm its scope and 1 to 3 seed keywords, then call run_theme and trace_theme.\n\n{listing}"
        )
    try:
        traced = await trace_theme(_call(service, "trace_theme", theme=theme, max_chars=PROMPT_CHARS - 1_000))
    except BadInput as error:
        raise BadInput(f"theme: {error.message}", hint=error.hint) from error
    return (
        f"Tell me how “{one_line(theme)}” developed: the turning points, what was decided and why, what came later, and "
        f"what is still open. Cite session and turn.\n\n{traced}"
    )


async def session_summary(service: Service, _arguments: Mapping[str, str]) -> str:
    """What this session did."""
    space = await service.space()
    await space.freshen()
    current = await current_session(space, _call(service, "get_current_workspace"))
    material = await _session(space, current.session.session_id) if current.session else f"({current.how})"
    themes = ", ".join(record.display_name for record in space.themes.all()[0][:30]) or "none yet"
    return shorten(
        "Summarise this session in a few sentences. Then say which decisions, conventions or fixes are worth a memory "
        "(remember, after I agree), and which turns belong to a theme (tag_theme).\n\n"
        f"Themes there are: {one_line(themes)}\n\nThe session so far:\n{material}",
        PROMPT_CHARS,
    )


async def _session(space: Space, session_id: str) -> str:
    found = await last_turns(space, session_id, SESSION_TURNS)
    lines = [detailed(turn, 0.4) for turn in found.turns]
    return (
        f"{session_id}, {found.before} turns before these\n{fenced(some_lines(lines, PROMPT_CHARS - 2_000))}"
    )
