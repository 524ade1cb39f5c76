"""The server's background work: it comes by itself, a setting turns it off, and it ends with the server."""

from __future__ import annotations

from pathlib import Path

import anyio
import psutil
import pytest

from pipeline.background import Tuning
from pipeline.background_status import background_status
from tests.server.cases import SHOP_ID, Asked, asked, demo_env

DEADLINE_S = 120
pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.background.BEGIN_S", 0.0)
    monkeypatch.setattr("pipeline.background.Tuning", lambda: Tuning(begin_s=0, contend_s=0.05, status_s=0))


def workers() -> list[psutil.Process]:
    found = psutil.Process().children(recursive=True)
    return [one for one in found if "pipeline.chore_process" in one.cmdline()]


async def until_up_to_date(server: Asked) -> None:
    with anyio.fail_after(DEADLINE_S):
        while (background_status(server.shop) or {}).get("state") != "up to date":  # noqa: ASYNC110 - a file
            await anyio.sleep(0.02)


async def test_it_comes_by_itself_and_ends_with_the_server(tmp_path: Path) -> None:
    async with asked(
        demo_env(tmp_path / "store", KIMI_MEMORY_BACKGROUND="1", KIMI_MEMORY_QUIET_SECONDS="0")
    ) as server:
        await until_up_to_date(server)
        status = await server.ask("pipeline_status")
        assert "20 refined" in status and "led by process" in status
        assert await server.ask("propose_memories")
    assert workers() == []
    after = background_status(tmp_path / "store" / SHOP_ID)
    assert after is not None and after["leader"] is None


async def test_the_setting_turns_it_off(tmp_path: Path) -> None:
    async with asked(demo_env(tmp_path / "store", KIMI_MEMORY_BACKGROUND="0")) as server:
        await server.ask("search_context", query="token")
        assert not (server.shop / ".locks" / "background.json").exists()
        assert "never ran here" in await server.ask("pipeline_status")


async def test_a_store_turns_it_off_for_itself(tmp_path: Path) -> None:
    store = tmp_path / "store" / SHOP_ID
    store.mkdir(parents=True)
    (store / "config.toml").write_text("[background]\nenabled = false\n", encoding="utf-8")
    async with asked(
        demo_env(tmp_path / "store", KIMI_MEMORY_BACKGROUND="", KIMI_MEMORY_QUIET_SECONDS="0")
    ) as server:
        await server.ask("search_context", query="token")
        assert not (store / ".locks" / "background.json").exists()
