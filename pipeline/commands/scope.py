"""Which workspaces a command works on, and how it prints."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import anyio
import click
import orjson

from pipeline.config import settings_for
from pipeline.errors import BadInput
from pipeline.sessions import Inventory, Session, Workspace, discover, find_workspace
from pipeline.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])


def scope_options(command: F) -> F:
    """``--workspace PATH`` (default: the current directory) and ``--all-workspaces``."""
    command = click.option(
        "--all-workspaces",
        is_flag=True,
        help="Work on every workspace that has sessions, each in its own store.",
    )(command)
    return click.option(
        "--workspace",
        "workspace",
        metavar="PATH",
        help="The directory that the sessions recorded as theirs; it need not exist here. Default: the current one.",
    )(command)


def json_option(command: F) -> F:
    """``--json``: stdout is JSON alone."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, and nothing else, on stdout.")(
        command
    )


class Scope:
    """The settings, what discovery found, and the workspaces a command was pointed at."""

    def __init__(self, workspace: str | None, all_workspaces: bool) -> None:
        if workspace is not None and all_workspaces:
            raise click.UsageError("--workspace and --all-workspaces exclude each other.")
        self.settings: Settings = settings_for(os.environ)
        self.inventory: Inventory = discover(self.settings)
        self._workspace = workspace
        self._all = all_workspaces

    def workspaces(self) -> tuple[Workspace, ...]:
        """Raises UnknownWorkspace (exit 2) for a directory without sessions."""
        if self._all:
            if not self.inventory.workspaces:
                looked_at = ", ".join(map(str, self.inventory.folders))
                raise BadInput(
                    f"no Kimi sessions found in {looked_at}",
                    hint="Set KIMI_CODE_HOME or MEMORY_SESSIONS_ROOT to where they are.",
                )
            return self.inventory.workspaces
        return (find_workspace(self.inventory, self._workspace or str(Path.cwd())),)

    def one(self) -> Workspace:
        """The single workspace of commands that work on one only."""
        if self._all:
            raise click.UsageError("This command works on one workspace: give --workspace PATH.")
        return self.workspaces()[0]

    def settings_of(self, workspace: Workspace) -> Settings:
        """The settings in force for one workspace's store."""
        return settings_for(os.environ, workspace.id)

    def session(self, session_id: str) -> Session:
        """A session by id (or an unambiguous beginning of it), in any workspace."""
        found = [s for s in self.inventory.sessions if s.session_id == session_id] or [
            s
            for s in self.inventory.sessions
            if s.session_id.removeprefix("session_").startswith(session_id)
            or s.session_id.startswith(session_id)
        ]
        if not found:
            raise BadInput(
                f"no session {session_id}", hint="`pipeline sessions --all-workspaces` lists them."
            )
        if len(found) > 1:
            names = ", ".join(s.session_id for s in found[:5])
            raise BadInput(f"{session_id} could be any of {names}", hint="Give more of the id.")
        return found[0]


def run_async(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run an async function from a command."""
    return anyio.run(function, *arguments)


NUMBER = click.IntRange(0, 2**53 - 1)
"""A turn's number or position: what a wire can hold."""


def echo_json(value: object) -> None:
    """One JSON value on stdout, UTF-8 whatever the locale."""
    sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE))


def echo_lines(lines: Iterable[bytes]) -> None:
    """Lines of bytes on stdout."""
    for line in lines:
        sys.stdout.buffer.write(line)


def period(since: str | None, until: str | None) -> tuple[int | None, int | None]:
    """``--since`` and ``--until`` in ms. A period that ends before it begins would look like a verified miss."""
    first, last = day(since, "--since"), day(until, "--until", end=True)
    if first is not None and last is not None and last < first:
        raise BadInput(f"--until {until} is before --since {since}")
    return first, last


def day(text: str | None, name: str, *, end: bool = False) -> int | None:
    """A date or time argument in ms: ``2026-06-20`` is a local day, with ``end`` its last ms; ISO times as
    given.
    """
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        if end and len(text) == 10:
            moment += timedelta(days=1, milliseconds=-1)
        return int(moment.timestamp() * 1000)
    except (ValueError, OverflowError, OSError):  # the last two: a year at the end of the calendar
        raise BadInput(
            f"{name} {text!r} is no date", hint="Write 2026-06-20, or 2026-06-20T15:00+08:00."
        ) from None
