"""A scripted session of a model that sees the default tools only: the cold-start protocol, remember and recall.

Each call is checked against the schema the model was given, as Kimi does before it calls.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from server.surface.everything import TOOLS
from tests.server.cases import REVIEW, Asked, asked, demo_env, fenced_part

pytestmark = pytest.mark.anyio


class Model:
    """Calls what is listed, with arguments the listed schema names."""

    def __init__(self, server: Asked, schemas: dict[str, dict[str, Any]]) -> None:
        self._server = server
        self._schemas = schemas
        self.used: set[str] = set()

    async def call(self, tool: str, **arguments: Any) -> str:
        text, failed = await self.try_call(tool, **arguments)
        assert not failed, text
        return text

    async def try_call(self, tool: str, **arguments: Any) -> tuple[str, bool]:
        schema = self._schemas[tool]
        assert set(schema.get("required", ())) <= set(arguments) <= set(schema["properties"])
        self.used.add(tool)
        return await self._server.call(tool, arguments)


@asynccontextmanager
async def session(store: Path) -> AsyncIterator[Model]:
    """A new session: a new server process' worth of state over the same store."""
    async with asked(demo_env(store, KIMI_MEMORY_TOOLS="default")) as server:
        listed = (await server.client.list_tools()).tools
        yield Model(server, {tool.name: tool.input_schema for tool in listed})


async def test_the_default_tools_are_enough(tmp_path: Path) -> None:
    async with session(tmp_path) as model:
        snapshot = await model.call("bootstrap_workspace")
        assert "Previous session" in snapshot and "none yet: remember saves one" in snapshot

        # “How did our login tokens come to be the way they are?”
        text, failed = await model.try_call("trace_theme", theme="login-tokens")
        assert failed and "there is no theme" in text
        text = await model.call("run_theme", theme="login-tokens")
        assert "Confirm its scope" in text and fenced_part(text), "it asks the user for scope and seeds first"

        # The user confirms: "login token", "登录令牌", "cookie".
        coarse = await model.call("search_context", query="login token 登录令牌 cookie", limit=5)
        assert REVIEW in coarse
        refined = await model.call("refine_session_turns", sessionId=REVIEW, turnIds=[0, 1])
        assert "turn 1" in refined
        built = await model.call(
            "run_theme", theme="login-tokens", keywords=["login token", "登录令牌", "cookie"]
        )
        assert "saved in" in built and "reused" in built
        assert "login-tokens" in await model.call("pipeline_status")

        # Deep dive before quoting, then the person's own word on what belongs to it.
        whole = await model.call("load_turn_context", references=[{"sessionId": REVIEW, "turnId": 1}])
        assert "SameSite 用 Lax" in whole
        await model.call("tag_theme", theme="login-tokens", sessionId=REVIEW, turnId=2)
        await model.call("untag_theme", theme="login-tokens", sessionId=REVIEW, turnId=3)
        story = await model.call("trace_theme", theme="login-tokens")
        assert story.startswith("theme “login-tokens”: ") and "decided (turn " in story
        assert "more" not in await model.call("load_more_context", session_id=REVIEW, before_turn_id=2)

        # “Remember that.” And what else was worth it?
        await model.call(
            "remember",
            key="login-token-cookie",
            folder="decisions",
            title="The login token lives in an HttpOnly cookie",
            tags=["auth", "cookie", "decision"],
            content="HttpOnly, SameSite=Lax; not localStorage, scripts can read that.",
            source={"sessionId": REVIEW, "turnId": 1},
            themes=["login-tokens"],
        )
        proposed = fenced_part(await model.call("propose_memories"))
        first, second = [line.split()[0] for line in proposed.splitlines() if not line.startswith(" ")][:2]
        await model.call("resolve_proposal", id=first, action="reject")
        await model.call(
            "resolve_proposal", id=second, action="edit", key="edited", text="As the user put it."
        )

    async with session(tmp_path) as model:
        snapshot = await model.call("bootstrap_workspace")
        assert "login-token-cookie - The login token lives in an HttpOnly cookie" in snapshot
        assert "login-tokens · " in snapshot
        assert "scripts can read that" in await model.call("recall", key="login-token-cookie")
        assert "memory/decisions/login-token-cookie" in await model.call(
            "search", query="localStorage cookie"
        )
        assert "memory/decisions/login-token-cookie" in await model.call("trace_theme", theme="login-tokens")
        assert "login-tokens" in await model.call("list_themes")
        assert "saved in" not in await model.call("run_theme", theme="login-tokens"), (
            "the second time it only reads"
        )

        material = await model.call("organize_memories")
        assert "Rules for the essence" in material or "写作规则" in material
        await model.call(
            "organize_memories",
            content="- Login token: HttpOnly cookie (memory/decisions/login-token-cookie)",
        )
        await model.call("move", key="edited", toFolder="knowledge")
        assert "memory/knowledge/edited" in await model.call("list", folder="knowledge")
        await model.call("delete", key="edited")
        seen = model.used

    async with session(tmp_path) as model:
        assert "Login token: HttpOnly cookie" in await model.call("bootstrap_workspace")
        assert "No memory below" in await model.call("list", folder="knowledge")
    assert seen <= {tool.name for tool in TOOLS.values() if tool.default}
