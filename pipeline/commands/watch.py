"""`pipeline watch`: the background work in a process of its own, for a shell or a service manager."""

from __future__ import annotations

import os
import signal
from datetime import datetime
from typing import Any

import click

from pipeline.commands.scope import Scope, run_async, scope_options
from pipeline.config import settings_for
from pipeline.errors import ExitCode


@click.command()
@scope_options
def watch(workspace: str | None, all_workspaces: bool) -> None:
    """Keep a workspace (or all) up to date while you are not: read, refine, refresh themes, propose memories.

    Works only when the sessions have been quiet for a while, at the lowest priority, within the share of the
    processor that `pipeline config` shows. Of all processes on a store one works, the others stand by. Says what it
    does on stderr. Ends on Ctrl-C, or with 0 on SIGTERM.
    """
    scope = Scope(workspace, all_workspaces)
    chosen = {space.id: space.label for space in scope.workspaces()}
    stopped_by = run_async(_watch, chosen, all_workspaces)
    if stopped_by == signal.SIGINT:
        raise click.exceptions.Exit(ExitCode.INTERRUPTED)


async def _watch(chosen: dict[str, str], everything: bool) -> int:
    import anyio

    from pipeline.watch import watch_workspaces

    if os.name == "nt":  # no handlers on this event loop: Ctrl-C interrupts it
        await watch_workspaces(_settings, chosen, everything, _say)
    stopped_by = 0
    signals = [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch_workspaces, _settings, chosen, everything, _say)
        with anyio.open_signal_receiver(*signals) as received:
            async for number in received:
                stopped_by = number
                tasks.cancel_scope.cancel()
                break
    return stopped_by


def _settings(workspace_id: str | None) -> Any:
    return settings_for(os.environ, workspace_id)


def _say(label: str, text: str) -> None:
    click.echo(f"{datetime.now():%H:%M:%S} {label}: {text}", err=True)
