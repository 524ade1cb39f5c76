"""Servers for tests: in process, over a store of their own, asked by tool name."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp import Client
from mcp_types import TextContent

from pipeline import demo
from server.app import App, create_server
from server.space import Space
from stages.snippet import FENCE_CLOSE, FENCE_OPEN

GOLDEN = Path(__file__).with_name("golden")
SHOP_ID = "workspace-e828acfc792e"

REVIEW = "session_ab9bf04f-5c0e-4cff-aa3a-a9787b5b0b34"
"""The demo's session that moves the login token into a cookie."""
PAYMENT = "session_a6018285-5e09-47b7-a118-665f5c2ade10"
REFRESH = "session_93a25403-8294-4fff-ad62-c74d3f8b8682"
LATEST = "session_19f89d4e-2612-4019-a3c5-94d917a5e9dc"


def env_of(home: Path, store: Path, **more: str) -> dict[str, str]:
    """An environment that looks at one home and one store root, with every tool listed."""
    return {
        "HOME": "/home/dev",
        "KIMI_CODE_HOME": str(home),
        "KIMI_SHARE_DIR": str(home / "no-legacy"),
        "MEMORY_STORE_ROOT": str(store),
        "KIMI_MEMORY_TOOLS": "all",
        "KIMI_MEMORY_SEARCH_BUDGET_MS": "20000",
        "PATH": os.environ.get("PATH", ""),
        "TZ": "UTC",
        **more,
    }


def demo_env(store: Path, **more: str) -> dict[str, str]:
    """The sample sessions that ship with the package."""
    return env_of(demo.home(), store, **more)


@dataclass(frozen=True)
class Asked:
    """A connected client. ``ask`` returns a tool's text and fails the test if the tool did."""

    client: Client
    app: App
    env: Mapping[str, str]

    async def ask(self, tool: str, **arguments: Any) -> str:
        text, failed = await self.call(tool, arguments)
        assert not failed, text
        return text

    async def fails(self, tool: str, **arguments: Any) -> str:
        """The text of a call that must fail."""
        text, failed = await self.call(tool, arguments)
        assert failed, text
        return text

    async def call(self, tool: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        """What the client got: one text block, nothing structured, within what Kimi shows."""
        result = await self.client.call_tool(tool, arguments)
        assert result.structured_content is None
        (block,) = result.content
        assert isinstance(block, TextContent)
        assert 0 < len(block.text) < 50_000
        assert block.text.count(FENCE_OPEN) == block.text.count(FENCE_CLOSE)
        return block.text, bool(result.is_error)

    @property
    def store_root(self) -> Path:
        return Path(self.env["MEMORY_STORE_ROOT"])

    @property
    def shop(self) -> Path:
        """The store of the demo's workspace."""
        return self.store_root / SHOP_ID

    async def space(self) -> Space:
        return await self.app.service.space()


@asynccontextmanager
async def asked(env: Mapping[str, str], cwd: str = demo.WORKSPACE) -> AsyncIterator[Asked]:
    """A server in this process and a client of it."""
    server, app = create_server(env, cwd)
    async with Client(server) as client:
        yield Asked(client, app, env)


def fenced_part(text: str) -> str:
    """What stands inside the first fence."""
    return text.partition(FENCE_OPEN)[2].partition(FENCE_CLOSE)[0].strip("\n")


def golden(name: str, text: str, store: Path) -> None:
    """Compare with a golden file; ``KIMI_MEMORY_GOLDEN=write`` writes it anew. The store's path reads STORE."""
    path = GOLDEN / f"{name}.txt"
    shown = text.replace(str(store), "STORE") + "\n"
    if os.environ.get("KIMI_MEMORY_GOLDEN") == "write":
        path.write_text(shown, encoding="utf-8")
    assert shown == path.read_text(encoding="utf-8")


def files_of(root: Path) -> dict[str, bytes]:
    """Every file below ``root`` that is not a database, a lock or a log, by relative path."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not {".locks", ".cache", "refined", "logs"} & set(path.relative_to(root).parts)
    }


def leftovers(root: Path) -> list[str]:
    """Temporary files below ``root``."""
    return [str(path) for path in root.rglob(".tmp-*")]


def pretty(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
