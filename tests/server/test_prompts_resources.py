"""Prompts, resources and completions: filled with the workspace's own material, errors that say what is there."""

from __future__ import annotations

from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, ResourceTemplateReference, TextContent, TextResourceContents

from stages.snippet import FENCE_OPEN
from tests.server.cases import REVIEW, Asked

pytestmark = pytest.mark.anyio


async def prompt(server: Asked, name: str, **arguments: str) -> str:
    (message,) = (await server.client.get_prompt(name, arguments)).messages
    assert message.role == "user" and isinstance(message.content, TextContent)
    assert len(message.content.text) <= 12_000
    return message.content.text


async def read(server: Asked, uri: str) -> str:
    (contents,) = (await server.client.read_resource(uri)).contents
    assert isinstance(contents, TextResourceContents) and contents.mime_type == "text/markdown"
    assert contents.text.startswith((FENCE_OPEN, "theme “"))
    return contents.text


async def complete(server: Asked, reference: Any, argument: str, value: str) -> list[str]:
    found = await server.client.complete(reference, {"name": argument, "value": value})
    return list(found.completion.values)


async def test_prompts_hold_the_workspaces_material(demo: Asked) -> None:
    names = {each.name for each in (await demo.client.list_prompts()).prompts}
    assert names == {"memory-decision-check", "memory-theme-trace", "memory-session-summary"}
    await demo.ask("remember", key="login", folder="decisions", content="login.py sets the cookie")
    await demo.ask("run_theme", theme="login-tokens", keywords=["localStorage", "cookie"])
    text = await prompt(demo, "memory-decision-check", filePath="shop/auth/login.py")
    assert REVIEW in text and "memory/decisions/login" in text
    assert "memory/decisions/login" in await prompt(demo, "memory-decision-check")
    assert REVIEW in await prompt(demo, "memory-theme-trace", theme="login-tokens")
    assert "login-tokens · " in await prompt(demo, "memory-theme-trace")
    text = await prompt(demo, "memory-session-summary")
    assert "login-tokens" in text and "unknown: no session" in text


async def test_prompts_say_what_is_wrong(demo: Asked) -> None:
    for name, arguments, says in (
        ("nope", {}, "There are memory-decision-check"),
        ("memory-theme-trace", {"theme": "none"}, "there is no theme"),
        ("memory-theme-trace", {"topic": "x"}, "memory-theme-trace takes theme"),
    ):
        with pytest.raises(MCPError, match=says):
            await demo.client.get_prompt(name, arguments)


async def test_every_listed_resource_can_be_read(demo: Asked) -> None:
    await demo.ask("remember", key="端口 冲突", folder="decisions/net", content="3001", tags=["net"])
    await demo.ask("organize_memories", content="- port 3001 (memory/decisions/net/端口_冲突)")
    await demo.ask("run_theme", theme="登录 tokens", keywords=["cookie"])
    rows = (await demo.client.list_resources()).resources
    assert len(rows) == 3
    texts = [await read(demo, str(row.uri)) for row in rows]
    assert "port 3001" in texts[0] and "3001" in texts[1] and REVIEW in texts[2]
    templates = (await demo.client.list_resource_templates()).resource_templates
    assert {each.name for each in templates} == {"memory", "theme", "turn"}
    assert "HttpOnly" in await read(demo, f"turn://{REVIEW}/1")


async def test_many_resources_come_in_pages(demo: Asked) -> None:
    space = await demo.space()
    folder = space.layout.root / "notes"
    folder.mkdir(parents=True)
    for number in range(450):
        (folder / f"n{number}.md").write_text("x\n", encoding="utf-8")
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = await demo.client.list_resources(cursor=cursor)
        seen += [str(row.uri) for row in page.resources]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert len(seen) == len(set(seen)) == 450


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("memory://memory/none", "no memory"),
        ("theme://none", "there is no theme"),
        ("essence://essence", "no essence yet"),
        ("turn://session_x/1", "no turn 1"),
        ("turn://session_x", "write turn://"),
        ("file:///etc/passwd", "names no resource"),
        ("memory://memory/..%2F..%2Fx", "climbs"),
    ],
)
async def test_a_uri_that_names_nothing_is_explained(demo: Asked, uri: str, says: str) -> None:
    with pytest.raises(MCPError, match=says):
        await demo.client.read_resource(uri)


async def test_completions_know_what_is_there(demo: Asked) -> None:
    await demo.ask("remember", key="auth-cookie", folder="decisions", content="x", themes=["login-tokens"])
    await demo.ask("refine_session_turns", sessionId=REVIEW)
    theme = PromptReference(name="memory-theme-trace")
    assert await complete(demo, theme, "theme", "TOK") == ["login-tokens"]
    file = PromptReference(name="memory-decision-check")
    assert "shop/auth/login.py" in await complete(demo, file, "filePath", "login")
    memory = ResourceTemplateReference(uri="memory://{+folder}/{key}")
    assert await complete(demo, memory, "key", "auth") == ["auth-cookie"]
    assert await complete(demo, memory, "folder", "") == ["memory/decisions"]
    turn = ResourceTemplateReference(uri="turn://{session}/{turn}")
    assert len(await complete(demo, turn, "session", "session_")) == 6
    assert await complete(demo, turn, "turn", "") == []
