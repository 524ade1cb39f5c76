"""What the client is shown: within budgets, valid, and the same in code and documentation."""

from __future__ import annotations

import inspect
import json
from importlib import import_module
from pathlib import Path

import pytest

from pipeline.answers import LEAST_CHARS
from server.surface import ALL_CHARS, DEFAULT_CHARS, Tool
from server.surface.context import LEAST_SEARCH_CHARS
from server.surface.everything import TOOLS, listed, wire
from tests.server.cases import asked, demo_env

DEFAULT = {
    "bootstrap_workspace", "search_context", "load_turn_context", "load_more_context", "remember", "recall", "search",
    "list", "delete", "move", "organize_memories", "propose_memories", "resolve_proposal", "run_theme", "trace_theme",
    "list_themes", "tag_theme", "untag_theme", "refine_session_turns", "pipeline_status",
}  # fmt: skip
PEER = {
    "remember": {"key", "content", "folder", "tags", "themes"},
    "recall": {"key", "folder"},
    "search": {"query", "folder"},
    "list": {"folder", "limit", "tag"},
    "list_tags": set(),
    "delete": {"key", "folder"},
    "move": {"key", "folder", "toFolder", "newKey"},
    "organize_memories": {"content", "sources"},
    "sync_workspace_index": {"folderComments"},
    "bootstrap_workspace": {"detailed_rounds", "summary_rounds", "force"},
    "get_current_workspace": set(),
    "load_more_context": {"before_turn_id", "limit"},
    "search_context": {
        "query", "date_from", "date_to", "limit", "cluster_gap_seconds", "max_cluster_size", "detail",
        "max_output_chars",
    },
    "load_turn_context": {"references"},
    "list_search_views": {"limit"},
    "delete_search_view": {"key", "deleteRefinedTurns"},
    "tag_theme": {"theme", "sessionId", "turnId", "memoryKey", "memoryFolder", "memoryTitle"},
    "trace_theme": {"theme", "includeTurnContent"},
    "list_themes": set(),
    "delete_theme": {"theme"},
    "refine_session_turns": {"sessionId", "turnIds", "limit"},
    "open_memory_dashboard": set(),
    "load_workspace_context": {"detailed_rounds", "summary_rounds", "force"},
    "recall_recent": {"limit"},
}  # fmt: skip
"""The other server's tools and arguments, which a switch must not break."""


def size(which: str) -> int:
    return len(json.dumps([wire(tool) for tool in listed(which)], ensure_ascii=False))


def test_the_lists_keep_their_budgets() -> None:
    assert size("default") <= DEFAULT_CHARS
    assert size("all") <= ALL_CHARS
    assert {tool.name for tool in listed("default")} == DEFAULT
    assert LEAST_SEARCH_CHARS == LEAST_CHARS


def test_every_tool_and_argument_of_the_other_server_is_there() -> None:
    for name, arguments in PEER.items():
        assert arguments <= set(TOOLS[name].parameters), name


@pytest.mark.parametrize("tool", TOOLS.values(), ids=lambda tool: tool.name)
def test_a_tool_says_what_a_model_needs(tool: Tool) -> None:
    schema = tool.input_schema
    assert schema["type"] == "object" and "workspace" in schema["properties"]
    assert set(tool.required) <= set(tool.parameters)
    assert "title" not in json.dumps({name: value for name, value in schema.items() if name != "properties"})
    assert tool.description.endswith((".", ")")) and len(tool.description) <= 400
    module, _, function = tool.handler.partition(":")
    handler = getattr(import_module(f"server.tools.{module}"), function)
    assert inspect.iscoroutinefunction(handler)
    for argument, value in tool.parameters.items():
        assert value["type"] in ("string", "integer", "boolean", "array", "object"), argument
        assert "$ref" not in json.dumps(value) and "pattern" not in value, argument
        if value["type"] == "array":
            assert "maxItems" in value, argument


def test_annotations_are_true() -> None:
    for tool in TOOLS.values():
        hints = tool.annotations
        assert hints["openWorldHint"] is False
        assert hints.get("readOnlyHint", False) == (tool.effect == "read")
        assert hints.get("destructiveHint", False) == (tool.effect == "overwrite")
    destructive = {tool.name for tool in TOOLS.values() if tool.effect == "overwrite"}
    assert {"delete", "delete_theme", "remember", "organize_memories", "untag_theme"} <= destructive
    assert {"recall", "search_context", "bootstrap_workspace"}.isdisjoint(destructive)


@pytest.mark.anyio
async def test_the_client_gets_exactly_the_listed_schemas(tmp_path: Path) -> None:
    for which in ("default", "all"):
        async with asked(demo_env(tmp_path, KIMI_MEMORY_TOOLS=which)) as server:
            got = (await server.client.list_tools()).tools
            shown = [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in got]
        assert shown == [wire(tool) for tool in listed(which)]


@pytest.mark.anyio
async def test_a_wrong_setting_still_lists_the_tools_and_says_itself_at_the_call(tmp_path: Path) -> None:
    async with asked(demo_env(tmp_path, KIMI_MEMORY_TOOLS="some")) as server:
        assert len((await server.client.list_tools()).tools) == len(DEFAULT)
        assert "KIMI_MEMORY_TOOLS" in await server.fails("list")


def test_the_documentation_names_every_tool_and_argument() -> None:
    page = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text(encoding="utf-8")
    for tool in TOOLS.values():
        heading = f"### {tool.name}\n"
        assert heading in page, tool.name
        section = page.partition(heading)[2].partition("\n### ")[0]
        for argument in tool.parameters:
            assert f"`{argument}`" in section, f"{tool.name}.{argument}"
