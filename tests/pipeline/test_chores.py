"""The chores one by one, without a loop around them: what they do, in which order, and what they leave alone."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
import tenacity

from pipeline.chores import Chores, Done
from pipeline.lag import standing
from pipeline.report import Report
from pipeline.sessions import discover
from pipeline.settings import Settings
from pipeline.store.database import open_database
from pipeline.store.files import write_json
from pipeline.store.layout import Layout
from pipeline.store.sources import sources
from pipeline.store.themes import ThemeStore
from pipeline.theme_refresh import path_of, suggestions
from pipeline.theming import ThemeRequest, build_theme
from pipeline.transient import ATTEMPTS, is_transient, retrying, told
from pipeline.workers import Workers
from pipeline.workspaces import workspace_id
from tests import wires
from tests.pipeline.store_cases import settings as settings_for_home
from tests.wires import bash, edit, say

CWD = "/home/dev/chores"
WORKSPACE = workspace_id(CWD, "/home/dev")
AT = 1_796_000_000_000
DAY = 86_400_000


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def home(tmp_path: Path) -> wires.Home:
    made = wires.Home(tmp_path / "home", seed=5, journal=False)
    session = made.session(CWD, at=AT, title="ports")
    session.main.turn(
        "The gateway port is busy: which port does the gateway use?",
        say("I look.", bash("grep -rn gatewayPort src", "src/gateway.ts: gatewayPort = 8080")),
        say("The gateway port is 8080, set as gatewayPort in src/gateway.ts."),
    )
    session.main.turn(
        "Change the gateway port to 9090.",
        say("", edit("src/gateway.ts", "8080", "9090")),
        say("Decision: we use gatewayPort 9090 because 8080 is taken by the proxy on every machine."),
    )
    made.write()
    return made


def settings_of(home: wires.Home) -> Settings:
    return replace(settings_for_home(home.root, home.root.parent / "store"), cpu_share=100.0)


def chores_of(home: wires.Home, **options: Any) -> Chores:
    return Chores(lambda: settings_of(home), WORKSPACE, **options)


def layout_of(home: wires.Home) -> Layout:
    return Layout(settings_of(home).store(WORKSPACE))


async def all_steps(chores: Chores, *, urgent: bool = False) -> list[Done]:
    done = []
    while (step := await chores.step(urgent=urgent)).more:
        done.append(step)
        assert len(done) < 200
    return done


async def round_of(chores: Chores) -> list[Done]:
    chores.news()
    done = await all_steps(chores)
    assert [step for step in done if step.error] == []
    return done


async def theme_of(home: wires.Home, name: str, *keywords: str) -> None:
    layout = layout_of(home)
    async with open_database(layout.database) as database:
        await build_theme(
            database, layout, CWD, ThemeRequest(name, keywords), workers=Workers(1), report=Report()
        )


def another_turn(home: wires.Home, number: int = 1) -> None:
    session = home.session(CWD, at=AT + number * DAY, title=f"more {number}")
    session.main.turn(
        "The gateway port again: does the health check know gatewayPort?",
        say("", edit("src/health.ts", "8080", "gatewayPort")),
        say("Yes: src/health.ts reads gatewayPort now."),
    )
    session.write()


@pytest.mark.anyio
async def test_a_round_does_everything_in_order_and_the_next_one_nothing(home: wires.Home) -> None:
    chores = chores_of(home)
    done = await round_of(chores)
    order = [step.chore for step in done]
    assert [chore for i, chore in enumerate(order) if i == 0 or order[i - 1] != chore] == [
        "look", "read", "index", "refine", "theme", "propose",
    ]  # fmt: skip
    assert chores.standing is not None and chores.standing.unread == 0
    before = {path: path.read_bytes() for path in layout_of(home).root.rglob("*.json")}
    again = await round_of(chores)
    assert [step.detail for step in again if step.chore in ("read", "propose")] == [
        "0 bytes, 0 turns",
        "0 proposals",
    ]
    assert {path: path.read_bytes() for path in layout_of(home).root.rglob("*.json")} == before
    await chores.close()


@pytest.mark.anyio
async def test_urgent_steps_read_and_leave_the_rest(home: wires.Home) -> None:
    chores = chores_of(home)
    done = await all_steps(chores, urgent=True)
    assert {step.chore for step in done} == {"look", "read", "propose"}
    assert chores.queue.turns == 2
    assert not list((layout_of(home).root / "proposals").glob("*.json"))
    await chores.close()


@pytest.mark.anyio
async def test_what_a_compaction_is_about_to_lose_is_proposed_at_once(home: wires.Home) -> None:
    home.sessions[0].main.compact("The gateway port moved to 9090.")
    home.sessions[0].main.turn("And now?", say("Now the tests."))
    home.write()
    chores = chores_of(home)
    await all_steps(chores, urgent=True)
    texts = [
        orjson.loads(path.read_bytes())["text"]
        for path in (layout_of(home).root / "proposals").glob("*.json")
    ]
    assert any("9090" in text for text in texts)
    await chores.close()


@pytest.mark.anyio
async def test_recent_turns_are_refined_first(home: wires.Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.chores.PIECE_TURNS", 1)
    another_turn(home)
    chores = chores_of(home)
    chores.news()
    while (step := await chores.step()).chore != "refine":
        assert step.more
    async with open_database(layout_of(home).database, write=False) as database:
        rows = await database.rows(
            "SELECT o.started_at FROM refined r JOIN occurrence o ON o.content_id=r.content_id"
        )
    assert [row[0] >= AT + DAY for row in rows] == [True]
    await chores.close()


@pytest.mark.anyio
async def test_then_what_a_kept_search_points_to(home: wires.Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.chores.PIECE_TURNS", 1)
    monkeypatch.setattr("pipeline.chores.RECENT_TURNS", 0)
    another_turn(home)
    view = {"query": "gateway", "clusters": [{"sessionId": home.sessions[0].session_id, "hitTurnId": 0}]}
    write_json(layout_of(home).searches / "search-0123456789ab.json", view)
    chores = chores_of(home)
    chores.news()
    while (step := await chores.step()).detail != "1 turns":
        assert step.more
    async with open_database(layout_of(home).database, write=False) as database:
        rows = await database.rows(
            "SELECT o.session_id, o.turn_id FROM refined r JOIN occurrence o ON o.content_id=r.content_id"
        )
    assert [tuple(row) for row in rows] == [(home.sessions[0].session_id, 0)]
    await chores.close()


@pytest.mark.anyio
async def test_a_theme_nobody_touched_is_refreshed_with_new_evidence(home: wires.Home) -> None:
    chores = chores_of(home)
    await round_of(chores)
    await theme_of(home, "gateway", "gateway port", "gatewayPort")
    before = ThemeStore(layout_of(home).root).require("gateway")
    another_turn(home)
    done = await round_of(chores)
    assert "gateway: refreshed" in [step.detail for step in done]
    after = ThemeStore(layout_of(home).root).require("gateway")
    assert len(after.turns) == len(before.turns) + 1
    assert suggestions(layout_of(home).root, after) == []
    quiet = await round_of(chores)
    assert [step.detail for step in quiet if step.chore == "theme" and step.detail] == []
    await chores.close()


@pytest.mark.anyio
@pytest.mark.parametrize("deed", ["pin", "exclude", "tag", "remove_seed"])
async def test_a_curated_theme_gets_suggestions_only(deed: str, home: wires.Home) -> None:
    chores = chores_of(home)
    await round_of(chores)
    await theme_of(home, "gateway", "gateway port", "gatewayPort", "port 9090")
    root = layout_of(home).root
    store = ThemeStore(root)
    first = store.require("gateway").turns[0]
    changes = {
        "pin": lambda record: record.pin(first.ref, first.timestamp),
        "exclude": lambda record: record.exclude(first.ref),
        "tag": lambda record: record.tag(first.ref, first.timestamp),
        "remove_seed": lambda record: record.remove_seed("port 9090"),
    }
    store.update("gateway", changes[deed], AT, op=deed)
    files = {path: path.read_bytes() for path in (root / "themes").rglob("*") if path.is_file()}
    another_turn(home)
    await round_of(chores)
    assert {path: path.read_bytes() for path in (root / "themes").rglob("*") if path.is_file()} == files
    record = store.require("gateway")
    found = suggestions(root, record)
    assert len(found) == 1 and found[0].timestamp is not None and found[0].timestamp >= AT + DAY
    assert first.ref not in [turn.ref for turn in found]
    told_of = path_of(root, "gateway").read_text(encoding="utf-8")
    assert "health" not in told_of  # references, no texts
    # What the person settles is suggested no more, at once and after the next round.
    store.update("gateway", lambda record: record.exclude(found[0].ref), AT, op="exclude")
    assert suggestions(root, store.require("gateway")) == []
    another_turn(home, 2)
    await round_of(chores)
    assert len(suggestions(root, store.require("gateway"))) == 1
    await chores.close()


@pytest.mark.anyio
async def test_a_broken_theme_does_not_stop_the_others(home: wires.Home) -> None:
    chores = chores_of(home)
    await round_of(chores)
    await theme_of(home, "gateway", "gateway port", "gatewayPort")
    (layout_of(home).root / "themes" / "a-broken.json").write_text("{", encoding="utf-8")
    another_turn(home)
    chores.news()
    done = await all_steps(chores)
    assert any("a-broken" in step.error for step in done)
    assert "gateway: refreshed" in [step.detail for step in done]
    await chores.close()


@pytest.mark.anyio
async def test_a_wire_that_cannot_be_read_is_told_and_the_rest_goes_on(
    home: wires.Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipeline.fold import fold

    another_turn(home)

    def odd(job: Any) -> Any:
        if "session" in job.path and home.sessions[1].session_id in job.path:
            raise ValueError("an odd wire")
        return fold(job)

    monkeypatch.setattr("pipeline.folding.fold", odd)
    chores = chores_of(home)
    chores.news()
    done = await all_steps(chores)
    assert any("an odd wire" in step.error for step in done)
    assert done[-1].chore == "propose"
    assert chores.queue.turns == 0
    await chores.close()


@pytest.mark.anyio
async def test_what_is_transient_is_tried_again_and_then_told(
    home: wires.Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    async def locked(*_: Any, **__: Any) -> None:
        tried.append(1)
        if len(tried) < wanted:
            raise sqlite3.OperationalError("database is locked")

    monkeypatch.setattr("pipeline.chores.tend_index", locked)
    wanted = 3
    at_once = retrying().copy(wait=tenacity.wait_none())
    chores = chores_of(home, retries=at_once)
    assert [step.error for step in await all_steps(chores) if step.error] == []
    assert len(tried) == 3
    tried.clear()
    wanted = 1_000
    chores.news()
    done = await all_steps(chores)
    assert len(tried) == ATTEMPTS
    assert [step.error for step in done if step.error] == ["OperationalError: database is locked"]
    assert done[-1].chore == "propose"  # the other chores are done all the same
    await chores.close()


def test_what_is_transient() -> None:
    assert is_transient(sqlite3.OperationalError("database is locked"))
    assert is_transient(FileNotFoundError("gone"))
    assert is_transient(ExceptionGroup("both", [FileNotFoundError("gone")]))
    assert not is_transient(ExceptionGroup("both", [FileNotFoundError("gone"), ValueError("odd")]))
    assert not is_transient(sqlite3.OperationalError("database disk image is malformed"))
    assert not is_transient(PermissionError(13, "Permission denied"))
    assert told(ExceptionGroup("all", [ValueError("odd")])) == "ValueError: odd"


@pytest.mark.anyio
async def test_lag_is_told_in_bytes_and_in_seconds_since_the_first_unread_record(home: wires.Home) -> None:
    chores = chores_of(home)
    await round_of(chores)
    session = home.sessions[0]
    wire = session.folder / "agents" / "main" / "wire.jsonl"
    before = wire.stat().st_size
    session.main.now = AT + 3 * DAY
    session.main.turn("late?", say("Late."))
    session.write()
    added = wire.stat().st_size - before
    found = [s for s in discover(settings_of(home)).sessions if s.workspace_id == WORKSPACE]
    async with open_database(layout_of(home).database, write=False) as database:
        known = await sources(database)
    now = AT + 3 * DAY + 60_000
    behind = standing(found, known, now)
    assert behind.unread == added and len(behind.behind) == 1
    assert behind.behind[0].session_id == session.session_id
    assert behind.behind[0].seconds == pytest.approx(60, abs=1)
    with wire.open("ab") as file:
        file.write(b'{"type":"torn')  # the writer's, not ours
    assert standing(found, known, now).unread == added
    await round_of(chores)
    async with open_database(layout_of(home).database, write=False) as database:
        known = await sources(database)
    assert standing(found, known, now).behind == ()
    wire.write_bytes(wire.read_bytes()[:2_000])  # rewritten shorter: all of it is unread
    assert standing(found, known, now).unread > 0
    await chores.close()
