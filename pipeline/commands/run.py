"""`pipeline run`, `index` and `rebuild`: everything that writes derived data."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from pipeline.catchup import catch_up
from pipeline.commands.scope import Scope, echo_json, json_option, period, run_async, scope_options
from pipeline.errors import BadInput, StoreError
from pipeline.fold import redactor
from pipeline.progress import progress_bar
from pipeline.refining import refine_all
from pipeline.report import Report
from pipeline.sessions import Workspace
from pipeline.store.database import open_database, path_uri
from pipeline.store.layout import Layout, redaction_key
from pipeline.store.refined import unrefined
from pipeline.theme_list import read_theme_list
from pipeline.theming import ThemeRequest, build_theme
from pipeline.upkeep import close_up, note_versions, read_everything_again, set_aside, tend_index
from pipeline.workers import Workers


@click.command()
@click.option("--theme", metavar="NAME", help="The theme to build or refresh.")
@click.option("--keywords", metavar="A,B,C", help="Seed keywords, separated by commas; kept and added to.")
@click.option("--replace-keywords", is_flag=True, help="Put --keywords in place of the theme's old ones.")
@click.option(
    "--themes",
    "themes_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A TOML or JSON file of many themes: each name with its keywords. One fold serves all.",
)
@click.option("--all", "refine_everything", is_flag=True, help="Refine every turn, with or without themes.")
@scope_options
@click.option("--since", metavar="DATE", help="Only turns from this local day (or ISO time) on.")
@click.option("--until", metavar="DATE", help="Only turns up to the end of this local day (or ISO time).")
@click.option(
    "--jobs", type=click.IntRange(1, 256), help="Worker processes. Default: the setting `run.jobs`."
)
@click.option(
    "--dry-run", is_flag=True, help="Do the work in a copy that is thrown away; the store is untouched."
)
@json_option
def run(
    theme: str | None,
    keywords: str | None,
    replace_keywords: bool,
    themes_file: Path | None,
    refine_everything: bool,
    workspace: str | None,
    all_workspaces: bool,
    since: str | None,
    until: str | None,
    jobs: int | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Build themes from your sessions: catch up, search, refine the candidates, aggregate, persist.

    A second run reuses what is refined. Without new evidence it writes nothing.
    """
    requests = _requests(theme, keywords, replace_keywords, themes_file, *period(since, until))
    if not requests and not refine_everything:
        raise click.UsageError(
            "Give --theme NAME (with --keywords on its first run), --themes FILE, or --all."
        )
    scope = Scope(workspace, all_workspaces)
    report = Report(skipped=Counter(+scope.inventory.skipped))
    run_async(
        _in_turn,
        [
            partial(_work, scope, target, requests, refine_everything, jobs, dry_run, report)
            for target in scope.workspaces()
        ],
    )
    _finish(report, as_json, dry_run)


@click.command()
@scope_options
@click.option(
    "--jobs", type=click.IntRange(1, 256), help="Worker processes. Default: the setting `run.jobs`."
)
@json_option
def index(workspace: str | None, all_workspaces: bool, jobs: int | None, as_json: bool) -> None:
    """Fold new bytes of the wires into the store and its search index, and no more."""
    scope = Scope(workspace, all_workspaces)
    report = Report(skipped=Counter(+scope.inventory.skipped))
    run_async(
        _in_turn,
        [partial(_work, scope, target, (), False, jobs, False, report) for target in scope.workspaces()],
    )
    _finish(report, as_json, False)


@click.command()
@scope_options
@click.option(
    "--jobs", type=click.IntRange(1, 256), help="Worker processes. Default: the setting `run.jobs`."
)
@json_option
def rebuild(workspace: str | None, all_workspaces: bool, jobs: int | None, as_json: bool) -> None:
    """Make all derived data anew from the wires; readers go on meanwhile.

    Turns whose wire is gone are kept: the store may be their last copy. A database too damaged to open is
    set aside, not deleted.
    """
    scope = Scope(workspace, all_workspaces)
    report = Report(skipped=Counter(+scope.inventory.skipped))
    run_async(_in_turn, [partial(_rebuild, scope, target, jobs, report) for target in scope.workspaces()])
    _finish(report, as_json, False)


def _requests(
    theme: str | None,
    keywords: str | None,
    replace: bool,
    themes_file: Path | None,
    since: int | None,
    until: int | None,
) -> list[ThemeRequest]:
    if (keywords or replace) and theme is None:
        raise click.UsageError("--keywords and --replace-keywords go with --theme NAME.")
    if replace and not keywords:
        raise click.UsageError("--replace-keywords needs --keywords A,B,C.")
    requests = []
    if theme is not None:
        if not theme.strip():
            raise BadInput("--theme is empty", hint="Give the theme a name.")
        requests.append(ThemeRequest(theme.strip(), split_keywords(keywords or ""), replace, since, until))
    if themes_file is not None:
        requests += [
            ThemeRequest(name, words, False, since, until) for name, words in read_theme_list(themes_file)
        ]
    return requests


def split_keywords(text: str) -> tuple[str, ...]:
    """Keywords separated by commas (also full-width ones and 、), trimmed, without repeats."""
    words = text.replace("，", ",").replace("、", ",").split(",")
    return tuple(dict.fromkeys(word.strip() for word in words if word.strip()))


async def _in_turn(works: Sequence[Callable[[], Awaitable[None]]]) -> None:
    """Workspaces one after another in one event loop, whose worker processes they share."""
    for work in works:
        await work()


async def _work(
    scope: Scope,
    target: Workspace,
    requests: Sequence[ThemeRequest],
    refine_everything: bool,
    jobs: int | None,
    dry_run: bool,
    report: Report,
) -> None:
    settings = scope.settings_of(target)
    layout = Layout(settings.store(target.id))
    workers = Workers(jobs or settings.jobs)
    async with AsyncExitStack() as stack:
        if dry_run:
            layout = stack.enter_context(_throw_away_copy(layout))
        database = await stack.enter_async_context(open_database(layout.database))
        key = redaction_key(settings.store_root, create=not dry_run)
        async with database.transaction():
            await note_versions(database)
        with progress_bar(f"reading {target.label}") as advance:
            before, refined = report.turns, report.refined
            await catch_up(
                database, target.sessions, key=key, workers=workers, report=report, progress=advance
            )
        await tend_index(database, report.turns - before)
        if refine_everything:
            known = [row[0] for row in await database.rows("SELECT content_id FROM refined")]
            missing = await unrefined(database)
            await refine_all(database, missing, workers=workers, report=report)
            report.note_used(layout.database, known)
        for request in _without_secrets(requests, key):
            await build_theme(database, layout, target.label, request, workers=workers, report=report)
        await close_up(database, report.turns - before + report.refined - refined)


def _without_secrets(requests: Sequence[ThemeRequest], key: bytes) -> Iterator[ThemeRequest]:
    """A name and keywords are kept, and in a file's name too."""
    redact = redactor(key)
    for request in requests:
        yield replace(request, name=redact(request.name), keywords=tuple(map(redact, request.keywords)))


@contextmanager
def _throw_away_copy(layout: Layout) -> Iterator[Layout]:
    """A copy of the store's database and themes in a temporary folder, removed at the end."""
    with tempfile.TemporaryDirectory(prefix="kimi-memory-dry-run-") as folder:
        copy = Layout(Path(folder))
        copy.database.parent.mkdir(parents=True)
        if layout.database.exists():
            copy_database(layout.database, copy.database)
        if layout.themes.is_dir():
            copy.themes.mkdir()
            for path in layout.themes.glob("*.json"):
                (copy.themes / path.name).write_bytes(path.read_bytes())
        yield copy


def copy_database(database: Path, copy: Path) -> None:
    """Copy a database that others may be writing, or that lies where nobody can write."""
    with closing(sqlite3.connect(copy)) as target:
        # On a medium that cannot be written even a reader of a WAL database needs ``immutable``.
        for mode in ("mode=ro", "mode=ro&immutable=1"):
            try:
                with closing(sqlite3.connect(f"{path_uri(database)}?{mode}", uri=True)) as source:
                    source.backup(target)
                return
            except sqlite3.OperationalError:
                if "immutable" in mode or os.access(database.parent, os.W_OK):
                    raise


async def _rebuild(scope: Scope, target: Workspace, jobs: int | None, report: Report) -> None:
    settings = scope.settings_of(target)
    layout = Layout(settings.store(target.id))
    workers = Workers(jobs or settings.jobs)
    try:
        async with open_database(layout.database) as database:
            await _read_again(database, settings, target, workers, report)
    except StoreError as error:
        if "damaged" not in error.hint:
            raise
        aside = set_aside(layout.database)
        click.echo(f"{layout.database} was damaged and is now {aside}", err=True)
        async with open_database(layout.database) as database:
            await _read_again(database, settings, target, workers, report)


async def _read_again(
    database: Any, settings: Any, target: Workspace, workers: Workers, report: Report
) -> None:
    had_refined = [row[0] for row in await database.rows("SELECT content_id FROM refined")]
    await read_everything_again(database)
    key = redaction_key(settings.store_root, create=True)
    with progress_bar(f"reading {target.label}") as advance:
        await catch_up(database, target.sessions, key=key, workers=workers, report=report, progress=advance)
    from pipeline.upkeep import reindex

    await reindex(database)
    await refine_all(database, await unrefined(database, had_refined), workers=workers, report=report)


def _finish(report: Report, as_json: bool, dry_run: bool) -> None:
    if as_json:
        echo_json({**report.as_json(), **({"dryRun": True} if dry_run else {})})
        return
    for theme in report.themes:
        click.echo(f"{theme.theme}: {theme.turns} turns" + ("" if dry_run else f"  → {theme.path}"))
    if dry_run:
        click.echo("dry run: nothing was written")
    for line in report.lines():
        click.echo(line, err=True)
