"""Catch-up: what is stored equals what the wires say, however the reading was cut up, interrupted or doubled."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.catchup import catch_up
from pipeline.report import Report
from pipeline.store import codec
from pipeline.store.database import open_database
from pipeline.store.turns import find, fingerprint
from pipeline.workers import Workers
from tests.pipeline.store_cases import KEY, SAMPLES, content, fill, inventory

NAMES = sorted(path.name for path in SAMPLES.iterdir() if (path / "home").is_dir())
KIMI_CODE = [name for name in NAMES if name != "l_legacy_kimi_cli"]


def home_of(name: str) -> tuple[Path, Path | None]:
    home = SAMPLES / name / "home"
    return (home / "none", home) if name == "l_legacy_kimi_cli" else (home, None)


@pytest.mark.parametrize("name", NAMES)
def test_a_second_catch_up_changes_nothing(name: str, tmp_path: Path) -> None:
    found = inventory(*home_of(name))
    store = tmp_path / "refined.sqlite"
    first = fill(store, found)
    before = content(store)
    again = fill(store, found)
    assert first.turns > 0 and first.files > 0 and not first.failures
    assert (again.files, again.turns, again.bytes) == (0, 0, 0)
    assert content(store) == before


def wire_of(name: str) -> Path:
    return max((SAMPLES / name / "home").rglob("wire.jsonl"), key=lambda path: path.stat().st_size)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(KIMI_CODE), cuts=st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_any_growth_gives_the_rows_of_one_pass(name: str, cuts: list[float]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        shutil.copytree(SAMPLES / name / "home", root / "home")
        fill(root / "whole.sqlite", inventory(root / "home"))
        wires = {path: path.read_bytes() for path in (root / "home").rglob("wire.jsonl")}
        for share in [*sorted(cuts), 1.0]:
            for path, data in wires.items():
                grow(path, data[: int(len(data) * share)])
            fill(root / "grown.sqlite", inventory(root / "home"))
        assert content(root / "grown.sqlite") == content(root / "whole.sqlite")


def grow(path: Path, data: bytes) -> None:
    """Make the file hold ``data`` as an appending writer would, on the same inode."""
    held = path.read_bytes()
    if data.startswith(held):
        with path.open("ab") as file:
            file.write(data[len(held) :])
    else:
        path.write_bytes(data)


@pytest.mark.parametrize("by_rename", [False, True])
def test_a_rewrite_gives_the_rows_of_a_fresh_read(by_rename: bool, tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "k_tui" / "home", tmp_path / "home")
    found = inventory(tmp_path / "home")
    fill(tmp_path / "a.sqlite", found)
    wire = max((tmp_path / "home").rglob("wire.jsonl"), key=lambda path: path.stat().st_size)
    lines = wire.read_bytes().splitlines(keepends=True)
    changed = lines[:1] + lines[1:120] + [line.replace(b"app.py", b"other.py") for line in lines[1:40]]
    if by_rename:
        other = wire.with_name("wire.jsonl.tmp.1.abcdef01")
        other.write_bytes(b"".join(changed))
        other.replace(wire)
    else:
        with wire.open("r+b") as file:
            file.write(b"".join(changed))
            file.truncate()
    fill(tmp_path / "a.sqlite", found)
    fill(tmp_path / "fresh.sqlite", found)
    assert content(tmp_path / "a.sqlite") == content(tmp_path / "fresh.sqlite")


def test_a_truncated_wire_loses_its_turns_and_a_vanished_one_keeps_them(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "b_resume" / "home", tmp_path / "home")
    store = tmp_path / "a.sqlite"
    fill(store, inventory(tmp_path / "home"))
    wire = next((tmp_path / "home").rglob("wire.jsonl"))
    session = wire.parents[2].name
    lines = wire.read_bytes().splitlines(keepends=True)
    wire.write_bytes(b"".join(lines[:33]))
    fill(store, inventory(tmp_path / "home"))

    async def turns() -> list[int]:
        async with open_database(store) as database:
            return [turn.turn_id for turn in await find(database, session)]

    assert anyio.run(turns) == [0]
    shutil.rmtree(wire.parents[2])
    fill(store, inventory(tmp_path / "home"))
    assert anyio.run(turns) == [0]


def test_two_processes_on_one_growing_file_end_equal_to_one(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "j_cjk_long" / "home", tmp_path / "home")
    found = inventory(tmp_path / "home")
    wire = max((tmp_path / "home").rglob("wire.jsonl"), key=lambda path: path.stat().st_size)
    data = wire.read_bytes()
    fill(tmp_path / "one.sqlite", found)
    store = tmp_path / "two.sqlite"

    async def reader(turnstile: anyio.Event) -> None:
        async with open_database(store) as database:
            while True:
                done = turnstile.is_set()
                await catch_up(database, found.sessions, key=KEY, workers=Workers(1), report=Report())
                if done:
                    return

    async def race() -> str:
        wire.write_bytes(b"")
        grown = anyio.Event()
        async with open_database(store):
            pass
        async with anyio.create_task_group() as group:
            group.start_soon(reader, grown)
            group.start_soon(reader, grown)
            for at in range(0, len(data), 4096):
                with wire.open("ab") as file:
                    file.write(data[at : at + 4096])
                await anyio.lowlevel.checkpoint()
            grown.set()
        async with open_database(store) as database:
            return await fingerprint(database)

    assert anyio.run(race) == content(tmp_path / "one.sqlite")


def test_jobs_in_processes_give_the_same_store(tmp_path: Path) -> None:
    found = inventory(SAMPLES / "d_subagent" / "home")
    fill(tmp_path / "one.sqlite", found, refine=True)
    fill(tmp_path / "two.sqlite", found, refine=True, jobs=2)
    assert content(tmp_path / "one.sqlite") == content(tmp_path / "two.sqlite")


def test_a_fork_made_before_an_undo_keeps_its_turns_alive_and_copies_show_once(tmp_path: Path) -> None:
    store = tmp_path / "a.sqlite"
    fill(store, inventory(SAMPLES / "c_fork" / "home"))

    async def shown() -> list[tuple[str, int]]:
        async with open_database(store) as database:
            rows = await database.rows(
                "SELECT o.session_id, o.turn_id FROM content c JOIN occurrence o ON o.id=c.shown ORDER BY 1, 2"
            )
            return [(row[0][-6:], row[1]) for row in rows]

    assert sorted(anyio.run(shown)) == [
        ("469ace", 2),
        ("81af58", 0),
        ("81af58", 1),
        ("81af58", 2),
        ("e729ed", 3),
    ]

    async def undo_in_source() -> None:
        async with open_database(store) as database, database.transaction():
            from pipeline.store.turns import settle

            row = await database.row(
                "SELECT id, content_id FROM occurrence WHERE session_id LIKE '%81af58' AND position=1"
            )
            await database.execute("UPDATE occurrence SET undone=1 WHERE id=?", (row[0],))
            await settle(database, [row[1]])

    anyio.run(undo_in_source)
    assert ("469ace", 1) in anyio.run(shown)


def test_store_files_are_private(tmp_path: Path) -> None:
    store = tmp_path / "refined" / "refined.sqlite"
    fill(store, inventory(SAMPLES / "a_plain" / "home"))
    assert store.stat().st_mode & 0o777 == 0o600
    assert store.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_damaged_state_is_read_again_from_the_start(jobs: int, tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "b_resume" / "home", tmp_path / "home")
    found = inventory(tmp_path / "home")
    wire = next((tmp_path / "home").rglob("wire.jsonl"))
    data = wire.read_bytes()
    lines = data.splitlines(keepends=True)
    wire.write_bytes(b"".join(lines[:50]))
    store = tmp_path / "a.sqlite"
    fill(store, found)

    async def damage() -> None:
        async with open_database(store) as database:
            await database.execute("UPDATE source SET state=?", (codec.compress(b'{"v":0}'),))

    anyio.run(damage)
    with wire.open("ab") as file:
        file.write(b"".join(lines[50:]))
    fill(store, found, jobs=jobs)
    fill(tmp_path / "fresh.sqlite", found)
    assert content(store) == content(tmp_path / "fresh.sqlite")


def test_a_record_type_that_is_no_name_is_counted_but_not_kept(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "a_plain" / "home", tmp_path / "home")
    wire = next((tmp_path / "home").rglob("wire.jsonl"))
    with wire.open("ab") as file:
        file.write('{"type":"未知 type of a person","time":1}\n{"type":"brand.new","time":1}\n'.encode())
    report = fill(tmp_path / "a.sqlite", inventory(tmp_path / "home"))
    assert dict(report.unknown) == {"other": 1, "brand.new": 1}
