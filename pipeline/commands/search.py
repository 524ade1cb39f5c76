"""`pipeline search`: find turns by what was said or done in them."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import click

from pipeline.answers import LEAST_CHARS, Answer, Detail, jump_commands, merged
from pipeline.commands.scope import Scope, echo_json, json_option, period, run_async, scope_options
from pipeline.errors import BadInput, ExitCode
from pipeline.search import Freshness, Searcher
from pipeline.search_freshness import freshen
from pipeline.search_request import SearchRequest
from pipeline.store.layout import Layout

QUERIES_BYTES = 4 * 1024 * 1024
"""The largest file of queries."""


@click.command()
@click.argument("query", required=False)
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="Hits to show.")
@click.option("--since", metavar="DATE", help="Only turns from this local day (or ISO time) on.")
@click.option("--until", metavar="DATE", help="Only turns up to the end of this local day (or ISO time).")
@click.option("--detail", type=click.Choice(get_args(Detail)), default="normal", show_default=True)
@click.option(
    "--max-chars", type=click.IntRange(min=LEAST_CHARS), help="A hard bound on the answer's characters."
)
@click.option("--cursor", metavar="CURSOR", help="Go on where an earlier answer of this query ended.")
@click.option(
    "--queries",
    "queries_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Answer every line of FILE, in one process; with --json one object a line.",
)
@scope_options
@json_option
def search(
    query: str | None,
    limit: int,
    since: str | None,
    until: str | None,
    detail: Detail,
    max_chars: int | None,
    cursor: str | None,
    queries_file: Path | None,
    workspace: str | None,
    all_workspaces: bool,
    as_json: bool,
) -> int:
    """Find turns by what was said or done in them, in any language.

    Everything is text, except "a quoted phrase", NOT word, and the filters file: tool: error: session: agent:
    decision:true since: until: with a value and no space.
    """
    if (query is None) == (queries_file is None):
        raise click.UsageError("Give a QUERY, or --queries FILE.")
    if query is not None and not query.strip():
        raise BadInput("the query is empty", hint="Say what was said or done in the turns you look for.")
    first, last = period(since, until)
    base = SearchRequest(
        query or "",
        limit=limit,
        since=first,
        until=last,
        detail=detail,
        cursor=cursor,
        now=time.time_ns() // 1_000_000,
    )
    stores = _stores(Scope(workspace, all_workspaces))
    if queries_file is not None:
        return _many(stores, base, _lines(queries_file), as_json, max_chars)
    answer = _ask(stores, base)
    _show(answer, as_json, max_chars)
    if answer.hits:
        return ExitCode.DONE
    return ExitCode.UNVERIFIED if answer.incomplete or answer.stale else ExitCode.MISS


def _stores(scope: Scope) -> list[tuple[Searcher, Freshness]]:
    """Each workspace's store, caught up within the budget."""
    found = []
    for target in scope.workspaces():
        settings = scope.settings_of(target)
        layout = Layout(settings.store(target.id))
        budget = settings.search_budget_ms / 1000
        freshness: Freshness = run_async(freshen, layout, target.sessions, settings, budget)
        found.append((Searcher(layout.database), freshness))
    return found


def _ask(stores: Sequence[tuple[Searcher, Freshness]], request: SearchRequest) -> Answer:
    return merged([searcher.answer(request, freshness) for searcher, freshness in stores], request.limit)


def _many(
    stores: Sequence[tuple[Searcher, Freshness]],
    base: SearchRequest,
    queries: Sequence[str],
    as_json: bool,
    max_chars: int | None,
) -> int:
    from dataclasses import replace

    for query in queries:
        _show(_ask(stores, replace(base, query=query, cursor=None)), as_json, max_chars)
    return ExitCode.DONE


def _lines(path: Path) -> list[str]:
    """The queries of a file, one a line; blank lines are left out. Raises BadInput."""
    try:
        if path.stat().st_size > QUERIES_BYTES:
            raise BadInput(
                f"{path}: more than {QUERIES_BYTES // 1024 // 1024} MB of queries", hint="Split it."
            )
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not UTF-8 at byte {error.start}", hint="Save it as UTF-8.") from None
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    return [line.strip() for line in text.split("\n") if line.strip()]


def _show(answer: Answer, as_json: bool, max_chars: int | None) -> None:
    if as_json:
        echo_json(answer.json(max_chars))
        return
    terminal = sys.stdout.isatty()
    text = answer.text(max_chars or 1_000_000, fenced=not terminal)
    if max_chars is None and answer.hits:
        jumps: list[Any] = [f"  {show}   ·   {resume}" for show, resume in jump_commands(answer.hits[:3])]
        text = "\n".join([text, "open, or go on with, the first:", *jumps])
    click.echo(text)
