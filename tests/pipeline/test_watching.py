"""Changes are noticed: new bytes, new sessions, a home that appears later, with events and by polling."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import watchfiles

from pipeline.watching import Watching, network_mount, telling

DEADLINE_S = 120


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Seen:
    """What was told, and waiting for it."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.times = 0
        self._event = anyio.Event()

    def __call__(self, paths: frozenset[str]) -> None:
        self.paths |= paths
        self.times += 1
        self._event.set()

    async def path(self, path: Path) -> None:
        with anyio.fail_after(DEADLINE_S):
            while str(path) not in self.paths:
                self._event = anyio.Event()
                await self._event.wait()


@asynccontextmanager
async def watched(*folders: Path, **options: Any) -> AsyncIterator[tuple[Watching, Seen]]:
    seen = Seen()
    watching = Watching(folders, seen, debounce_ms=50, poll_ms=50, appear_s=0.05, ready_ms=100, **options)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watching.run)
        yield watching, seen
        tasks.cancel_scope.cancel()


async def set_up(watching: Watching) -> None:
    with anyio.fail_after(DEADLINE_S):
        await watching.watched.wait()


@pytest.mark.anyio
@pytest.mark.parametrize("polling", [False, True])
async def test_new_bytes_and_new_sessions_are_told(polling: bool, tmp_path: Path) -> None:
    wire = tmp_path / "wd_x" / "session_1" / "agents" / "main" / "wire.jsonl"
    wire.parent.mkdir(parents=True)
    wire.write_bytes(b"{}\n")
    async with watched(tmp_path, polling=polling) as (watching, seen):
        await set_up(watching)
        assert watching.mode == ("polling" if polling else "events")
        with wire.open("ab") as file:
            file.write(b"{}\n")
        await seen.path(wire)
        new = tmp_path / "wd_x" / "session_2"
        new.mkdir()
        await seen.path(new)


@pytest.mark.anyio
async def test_a_home_that_appears_later_is_watched_from_then_on(tmp_path: Path) -> None:
    home = tmp_path / "later" / "sessions"
    async with watched(home) as (watching, seen):
        assert watching.mode == "nothing to watch"
        (home / "wd_x" / "session_1").mkdir(parents=True)
        await set_up(watching)
        wire = home / "wd_x" / "session_1" / "wire.jsonl"
        wire.write_bytes(b"{}\n")
        await seen.path(wire)


@pytest.mark.anyio
async def test_a_folder_that_is_replaced_is_watched_anew(tmp_path: Path) -> None:
    home = tmp_path / "sessions"
    home.mkdir()
    async with watched(home) as (watching, seen):
        await set_up(watching)
        home.rename(tmp_path / "aside")
        home.mkdir()
        wire = home / "wire.jsonl"
        with anyio.fail_after(DEADLINE_S):
            while str(wire) not in seen.paths:  # until the new folder is watched, nothing can be told of it
                wire.write_bytes(wire.read_bytes() + b"{}\n" if wire.exists() else b"{}\n")
                await anyio.sleep(0.05)


@pytest.mark.anyio
async def test_without_watches_to_be_had_the_folders_are_polled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(*paths: Path, **options: Any) -> Iterator[Any]:
        raise OSError(28, "OS file watch limit reached")

    monkeypatch.setattr(watchfiles, "watch", exhausted)
    wire = tmp_path / "wire.jsonl"
    wire.write_bytes(b"")
    async with watched(tmp_path) as (watching, seen):
        await set_up(watching)
        assert watching.mode == "polling" and "watch limit" in watching.why
        wire.write_bytes(b"{}\n")
        await seen.path(wire)


@pytest.mark.anyio
async def test_a_nudge_is_told_whatever_its_name(tmp_path: Path) -> None:
    nudges = tmp_path / "nudges"
    nudges.mkdir()
    async with watched(tmp_path / "none", nudges=nudges) as (watching, seen):
        await set_up(watching)
        (nudges / "session.with.dots").touch()
        await seen.path(nudges / "session.with.dots")


def test_what_tells_and_what_does_not() -> None:
    assert telling("/s/wd/session_1/agents/main/wire.jsonl", None)
    assert telling("C:\\s\\wd\\session_1\\state.json", None)
    assert telling("/s/wd/session_2", None)
    assert not telling("/s/wd/session_1/agents/main/tool-results/out.txt", None)


def test_network_mounts_are_known_by_their_file_system(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        f"40 22 0:45 / {tmp_path}/far\\040away rw - nfs4 host:/x rw\n"
        f"41 40 8:2 / {tmp_path}/far\\040away/near rw - ext4 /dev/sdb1 rw\n"
        "garbage\n",
        encoding="utf-8",
    )
    assert not network_mount(tmp_path, mounts)
    assert network_mount(tmp_path / "far away" / "sessions", mounts)
    assert not network_mount(tmp_path / "far away" / "near", mounts)
    assert not network_mount(tmp_path / "far awayX", mounts)
    assert not network_mount(tmp_path, tmp_path / "none")
