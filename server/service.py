"""The workspaces that one process serves: which one a call means, opened at its first use.

One process serves every session and sub-agent of a workspace (Kimi starts one a workspace; a plugin's server
serves several). Nothing here is done before the first call that needs it.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from anyio import Lock, create_task_group, to_thread
from anyio.abc import TaskGroup

from pipeline import workspaces
from pipeline.config import settings_for
from pipeline.errors import BadInput, UnknownWorkspace
from pipeline.sessions import Cache, Inventory, Session, discover, find_workspace
from pipeline.settings import Settings
from server.session_map import mapped_sessions
from server.space import Space

log = logging.getLogger(__name__)


class Service:
    """Everything the tools work on. ``tasks`` outlives every call and dies with the server.

    ``cwd`` is the directory the server was started in, ``parent`` its parent process (Kimi's).
    """

    def __init__(
        self, env: Mapping[str, str], cwd: str, tasks: TaskGroup, *, parent: int | None = None
    ) -> None:
        self.env = env
        self.cwd = cwd
        self.parent = os.getppid() if parent is None else parent
        self._tasks = tasks
        self._spaces: dict[str, Space] = {}
        self._sessions: Cache = {}
        self._looking = Lock()

    @staticmethod
    def now() -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    async def inventory(self) -> Inventory:
        """Every session there is now; what did not change is not read again."""
        async with self._looking:
            return await to_thread.run_sync(discover, self.settings(), self._sessions)

    def settings(self, workspace_id: str | None = None) -> Settings:
        """The settings in force. Raises ConfigError naming the variable, or the file and key, that is wrong."""
        return settings_for(self.env, workspace_id)

    @property
    def opened(self) -> tuple[Space, ...]:
        """The workspaces that calls have asked for so far."""
        return tuple(self._spaces.values())

    async def space(self, named: str | None = None, *, session_id: str | None = None) -> Space:
        """The workspace of a directory (or id); without one that of the session, else the server's directory.

        Raises BadInput when it cannot be known, with what to do.
        """
        inventory = await self.inventory()
        path = named.strip() if named and named.strip() else self._default(inventory, session_id)
        space_id, label, sessions = _found(inventory, path, self.settings(), explicit=bool(named))
        space = self._spaces.get(space_id)
        if space is None:
            space = self._spaces[space_id] = Space(space_id, label, self.settings(space_id), self)
        space.sessions = sessions
        space.settings = self.settings(space_id)  # an edit of a config.toml counts from the next call on
        return space

    def _default(self, inventory: Inventory, session_id: str | None) -> str:
        if session_id:
            for session in inventory.sessions:
                if session.session_id == session_id:
                    return session.cwd or session.workspace_id
        root = self.env.get("KIMI_PLUGIN_ROOT")
        if not root or not workspaces.same_dir(self.cwd, root):
            return self.cwd
        # A plugin's server starts in the plugin: only the hooks' session map can tell the project (WIRE has no id).
        here = mapped_sessions(self.settings().store_root, self.parent)
        cwds = dict.fromkeys(workspaces.normal(entry.cwd) for entry in here)
        if len(cwds) == 1:
            return next(iter(cwds))
        known = ", ".join(cwds or [space.cwd for space in inventory.workspaces if space.cwd][:5])
        raise BadInput(
            "workspace: this server runs in a plugin's folder and cannot tell which project is meant",
            hint=f"Give workspace, the absolute path of the project. Known: {known or 'none yet'}.",
        )

    def start(self, name: str, work: Callable[..., Awaitable[Any]], *arguments: Any) -> None:
        """Run ``work`` in the background, guarded: whatever it raises is logged and ends nothing else."""
        self._tasks.start_soon(_guarded, name, work, *arguments)

    async def close(self) -> None:
        """Close what was opened. Safe to call on the way out of a cancelled scope that is shielded."""
        async with create_task_group() as closing:
            for space in self._spaces.values():
                closing.start_soon(space.close)


async def _guarded(name: str, work: Callable[..., Awaitable[Any]], *arguments: Any) -> None:
    try:
        await work(*arguments)
    except Exception:  # the boundary of a background task: its failure must not end the connection
        log.exception("%s failed in the background", name)


def _found(
    inventory: Inventory, path: str, settings: Settings, *, explicit: bool
) -> tuple[str, str, tuple[Session, ...]]:
    """Id, directory and sessions of a workspace; one without sessions yet is as good, if its directory exists."""
    try:
        known = find_workspace(inventory, path)
    except UnknownWorkspace as error:
        if any(workspaces.same_dir(path, cwd) for cwd in inventory.excluded):
            raise
        if settings.store(path).is_dir() and path.startswith("workspace-"):
            return path, path, ()
        place = workspaces.spellings(path)[0]
        space_id = workspaces.workspace_id(place, settings.home)
        if explicit and not Path(place).is_dir() and not settings.store(space_id).is_dir():
            raise BadInput(
                f"workspace: {path} is no directory, and no session was recorded in it", hint=error.hint
            ) from error
        return space_id, place, ()
    return known.id, known.label, known.sessions
