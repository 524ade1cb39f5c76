"""Fixtures of the server's tests: one event loop flavour, one time zone, a demo workspace."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.server.cases import Asked, asked, demo_env


@pytest.fixture
def anyio_backend() -> str:
    """The server's database layer is asyncio's."""
    return "asyncio"


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Local times are UTC in every test."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture
async def demo(tmp_path: Path) -> AsyncIterator[Asked]:
    """A server over the sample sessions of the web shop, with an empty store and every tool."""
    async with asked(demo_env(tmp_path / "store")) as server:
        yield server
