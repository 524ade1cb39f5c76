"""Streamable HTTP: on loopback, behind a token, deaf to web pages."""

from __future__ import annotations

import re
import signal
import stat
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from pipeline.errors import BadInput
from server.http import token_of
from tests.server.cases import demo_env
from tests.server.processes import Process, clean_env, running

pytestmark = pytest.mark.anyio
TOKEN = "a token of more than sixteen characters"


def address(server: Process) -> str:
    """Where it serves, from its one line on stderr."""
    assert server.process.stderr is not None
    line = server.process.stderr.readline().decode()
    found = re.search(r"http://127\.0\.0\.1:\d+/mcp", line)
    assert found, line
    assert TOKEN not in line
    return found[0]


async def test_a_client_with_the_token_is_served_and_others_are_not(tmp_path: Path) -> None:
    env = clean_env(demo_env(tmp_path / "store", KIMI_MEMORY_TOKEN=TOKEN))
    with running(env, tmp_path, "serve", "--http", "--port", "0", "--workspace", "/home/dev/shop") as server:
        url = await anyio.to_thread.run_sync(address, server)
        async with httpx2.AsyncClient() as bare:
            assert (await bare.post(url, json={})).status_code == 401
            wrong = await bare.post(url, json={}, headers={"Authorization": "Bearer guess"})
            assert wrong.status_code == 401 and "Bearer" in wrong.headers["www-authenticate"]
            assert (await bare.get(url.removesuffix("/mcp") + "/other")).status_code == 401
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx2.AsyncClient(headers=headers) as known:
            for more in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
                refused = await known.post(url, json={}, headers={"Content-Type": "application/json", **more})
                assert refused.status_code in (403, 421)
            async with Client(streamable_http_client(url, http_client=known)) as client:
                result = await client.call_tool("search_context", {"query": "HttpOnly"})
                assert "HttpOnly" in result.content[0].text  # type: ignore[union-attr]
        server.process.send_signal(signal.SIGTERM)
        assert await anyio.to_thread.run_sync(server.process.wait, 5) == 0


async def test_a_port_that_is_taken_is_an_error_with_advice(tmp_path: Path) -> None:
    env = clean_env(demo_env(tmp_path / "store", KIMI_MEMORY_TOKEN=TOKEN))
    with running(env, tmp_path, "serve", "--http", "--port", "0") as first:
        port = (await anyio.to_thread.run_sync(address, first)).split(":")[2].partition("/")[0]
        with running(env, tmp_path, "serve", "--http", "--port", port) as second:
            assert await anyio.to_thread.run_sync(second.process.wait, 10) == 4
            assert "Choose another --port" in second.stderr()


def test_the_token_is_made_once_and_kept_to_the_owner(tmp_path: Path) -> None:
    first, place = token_of({}, tmp_path)
    assert (first, place) == token_of({}, tmp_path) and len(first) > 40
    assert stat.S_IMODE(Path(place).stat().st_mode) == 0o600
    assert token_of({"KIMI_MEMORY_TOKEN": TOKEN}, tmp_path)[0] == TOKEN
    with pytest.raises(BadInput, match="KIMI_MEMORY_TOKEN"):
        token_of({"KIMI_MEMORY_TOKEN": "short"}, tmp_path)
