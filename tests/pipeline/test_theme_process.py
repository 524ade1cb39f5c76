"""A theme's run in a process of its own: the same as here, its errors whole, ended when nobody waits any more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

import pipeline.demo as demo
from pipeline.report import Report
from pipeline.store.layout import Layout
from pipeline.store.themes import ThemeStore
from pipeline.theme_process import Outcome, build_theme_apart, build_theme_here
from pipeline.theming import NeedsSeeds, ThemeRequest
from stages.aggregate import aggregate
from stages.model import Theme
from tests.pipeline.command_line import environment, pipeline

REQUEST = ThemeRequest("cookies", ("cookie", "登录令牌"))


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    env = environment(demo.home(), tmp_path / "store")
    assert pipeline(env, "index", "--workspace", demo.WORKSPACE, "--jobs", "1").code == 0
    return Layout(next((tmp_path / "store").glob("*/refined")).parent)


def test_it_does_what_a_run_in_this_process_does(layout: Layout) -> None:
    apart = anyio.run(build_theme_apart, layout, "shop", REQUEST, Report())
    page = (layout.themes / "cookies.md").read_bytes()
    assert apart.error is None and apart.result is not None
    assert apart.result.turns > 3 and apart.result.changed and apart.report.refined > 3
    again = anyio.run(build_theme_here, layout, "shop", REQUEST, Report())
    assert again.result is not None and again.result.turns == apart.result.turns
    assert not again.result.changed and again.report.refined == 0
    assert (layout.themes / "cookies.md").read_bytes() == page


def test_its_errors_come_whole(layout: Layout) -> None:
    known = anyio.run(build_theme_apart, layout, "shop", REQUEST, Report())
    assert known.error is None
    found = anyio.run(build_theme_apart, layout, "shop", ThemeRequest("refresh"), Report()).error
    assert isinstance(found, NeedsSeeds)
    assert found.suggested and found.suggested[0] in found.hint


def test_nothing_goes_on_when_the_caller_is_gone(layout: Layout) -> None:
    async def cancelled() -> tuple[list[psutil.Process], list[Outcome]]:
        outcomes: list[Outcome] = []

        async def run() -> None:
            outcomes.append(await build_theme_apart(layout, "shop", REQUEST, Report()))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            with anyio.fail_after(20):
                while not (begun := _runs()):  # noqa: ASYNC110 - another process
                    await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
        return begun, outcomes

    begun, outcomes = anyio.run(cancelled)
    assert outcomes == []
    assert [one for one in begun if one.is_running()] == []
    assert anyio.run(build_theme_apart, layout, "shop", REQUEST, Report()).error is None


def _runs() -> list[psutil.Process]:
    return [
        one
        for one in psutil.Process().children()
        if one.status() != psutil.STATUS_ZOMBIE and "pipeline.theme_process" in one.cmdline()
    ]


def test_a_theme_is_judged_before_it_is_locked_and_again_if_a_person_changed_it(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = anyio.run(build_theme_here, layout, "shop", REQUEST, Report())
    assert known.result is not None
    themes = ThemeStore(layout.root)
    record = themes.read("cookies")
    assert record is not None
    gone = record.turns[0].ref
    calls = 0

    def judged(*arguments: Any, **options: Any) -> Theme:
        nonlocal calls
        calls += 1
        if calls == 1:  # would wait in vain if the theme were locked
            themes.update("cookies", lambda held: held.exclude(gone), 1, op="exclude")
        return aggregate(*arguments, **options)

    monkeypatch.setattr("pipeline.theming.aggregate", judged)
    assert anyio.run(build_theme_here, layout, "shop", REQUEST, Report()).error is None
    after = themes.read("cookies")
    assert after is not None and calls == 2
    assert gone in after.exclusions and gone not in [turn.ref for turn in after.turns]
    assert anyio.run(build_theme_here, layout, "shop", REQUEST, Report()).error is None
    assert calls == 3, "once where nothing changed"
