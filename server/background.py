"""The background work of the workspaces that this server serves: begun a moment after the start, for its whole life."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from pipeline.errors import PipelineError

if TYPE_CHECKING:
    from server.app import App
    from server.space import Space

log = logging.getLogger(__name__)

BEGIN_S = 3.0
"""The client's handshake and its first call come first."""
AGAIN_S = 30.0
"""A workspace that cannot be told yet (a plugin's server before its first session) is asked for again."""


async def keep_up(app: App) -> None:
    """Do the background work of the server's own workspace and of those that calls open. Never raises.

    The setting ``background.enabled`` (``KIMI_MEMORY_BACKGROUND=0``) turns it off.
    """
    await anyio.sleep(BEGIN_S)
    begun: set[str] = set()
    async with anyio.create_task_group() as tasks:
        while True:
            try:
                await to_thread.run_sync(import_module, "pipeline.background", abandon_on_cancel=True)
                for space in await _spaces(app):
                    if space.id not in begun and app.service.settings(space.id).background:
                        begun.add(space.id)
                        tasks.start_soon(_work, app, space)
            except PipelineError as error:
                log.info("no background work: %s", error.message)
            except Exception:  # the server goes on without
                log.exception("background work cannot begin")
            await anyio.sleep(AGAIN_S)


async def _spaces(app: App) -> tuple[Space, ...]:
    """The server's own workspace, where it can be told, and those that calls have opened."""
    try:
        await app.service.space()
    except PipelineError as error:
        log.info("no workspace of its own: %s", error.message)
    return app.service.opened


async def _work(app: App, space: Space) -> None:
    from pipeline.background import background

    await background(
        space.settings,
        space.id,
        in_flight=lambda: app.active,
        current=lambda: app.service.settings(space.id),
    )
