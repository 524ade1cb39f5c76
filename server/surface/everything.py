"""All tools, by name, in the order they are listed."""

from __future__ import annotations

from typing import Any

from server.surface import Tool, context, memory, theme

TOOLS: dict[str, Tool] = {tool.name: tool for tool in (*context.TOOLS, *memory.TOOLS, *theme.TOOLS)}


def listed(which: str) -> list[Tool]:
    """The tools that a client is shown: ``default`` or ``all``. All can be called."""
    return [tool for tool in TOOLS.values() if tool.default or which == "all"]


def wire(tool: Tool) -> dict[str, Any]:
    """A tool as ``tools/list`` sends it."""
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "annotations": tool.annotations,
    }
