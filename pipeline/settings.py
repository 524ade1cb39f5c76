"""The one table of settings, and the record of their effective values (docs: "Settings")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

Value: TypeAlias = "Path | int | float | bool | str | tuple[str, ...] | None"
Scope: TypeAlias = Literal["environment", "root", "store"]
"""Where a setting may stand: only in the environment; also in the root's config.toml; also in a store's."""

DEFAULT = "default"
"""The origin of a value that nobody set."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table. ``name`` is the field of Settings, ``key`` the dotted key in config.toml ("" =
    none).

    ``least`` and ``most`` bound a number, ``choices`` a text. ``default`` is in the form a person would
    write.
    """

    name: str
    env: str
    key: str
    kind: Literal["path", "integer", "number", "switch", "choice", "globs"]
    default: str
    meaning: str
    scope: Scope = "store"
    least: float = 0
    most: float = float("inf")
    choices: tuple[str, ...] = ()


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "store_root",
        "MEMORY_STORE_ROOT",
        "",
        "path",
        "~/.kimi-code-memory",
        "folder that holds one store per workspace",
        scope="environment",
    ),
    Setting(
        "sessions_root",
        "MEMORY_SESSIONS_ROOT",
        "homes.sessions",
        "path",
        "",
        "the sessions folder itself; wins over KIMI_CODE_HOME, and over ~/.kimi unless KIMI_SHARE_DIR is set",
        scope="root",
    ),
    Setting(
        "kimi_home",
        "KIMI_CODE_HOME",
        "homes.kimi_code",
        "path",
        "~/.kimi-code",
        "Kimi Code's home; sessions are in its sessions/",
        scope="root",
    ),
    Setting(
        "legacy_home",
        "KIMI_SHARE_DIR",
        "homes.kimi_cli",
        "path",
        "~/.kimi",
        "home of the older kimi-cli",
        scope="root",
    ),
    Setting(
        "search_budget_ms",
        "KIMI_MEMORY_SEARCH_BUDGET_MS",
        "search.budget_ms",
        "integer",
        "200",
        "milliseconds a search may spend reading new bytes before it answers",
        most=60_000,
    ),
    Setting(
        "jobs",
        "KIMI_MEMORY_JOBS",
        "run.jobs",
        "integer",
        "the machine's cores, at most 4",
        "worker processes of a long run",
        least=1,
        most=256,
    ),
    Setting(
        "exclude_workspaces",
        "KIMI_MEMORY_EXCLUDE_WORKSPACES",
        "exclude.workspaces",
        "globs",
        "",
        "workspaces never read: globs of directories (all below included) or workspace ids",
    ),
    Setting(
        "exclude_paths",
        "KIMI_MEMORY_EXCLUDE_PATHS",
        "exclude.paths",
        "globs",
        "",
        "files never remembered: globs of paths, absolute or relative to the workspace",
    ),
    Setting(
        "exclude_sessions",
        "KIMI_MEMORY_EXCLUDE_SESSIONS",
        "exclude.sessions",
        "globs",
        "",
        "sessions never read, forks and imports of them included: globs of session ids",
    ),
    Setting(
        "background",
        "KIMI_MEMORY_BACKGROUND",
        "background.enabled",
        "switch",
        "on",
        "work while the workspace is quiet",
    ),
    Setting(
        "quiet_seconds",
        "KIMI_MEMORY_QUIET_SECONDS",
        "background.quiet_seconds",
        "number",
        "30",
        "seconds without a new byte before background work starts",
        most=86_400,
    ),
    Setting(
        "cpu_share",
        "KIMI_MEMORY_CPU_SHARE",
        "background.cpu_share",
        "number",
        "20",
        "per cent of one core, over a minute, that background work may use",
        least=1,
        most=100,
    ),
    Setting(
        "tools",
        "KIMI_MEMORY_TOOLS",
        "server.tools",
        "choice",
        "default",
        "which MCP tools the server offers",
        choices=("default", "all"),
    ),
    Setting(
        "retention_days",
        "KIMI_MEMORY_RETENTION_DAYS",
        "retention.days",
        "integer",
        "0",
        "days that the raw index keeps a turn; 0 = for ever",
        most=36_500,
    ),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Effective settings. Paths are absolute. ``home`` is the person's home directory.

    ``origins`` says for each field where its value came from: a variable's name, ``<file>: <key>`` or
    ``default``.
    """

    home: Path
    store_root: Path
    sessions_root: Path | None
    kimi_home: Path
    legacy_home: Path
    search_budget_ms: int
    jobs: int
    exclude_workspaces: tuple[str, ...]
    exclude_paths: tuple[str, ...]
    exclude_sessions: tuple[str, ...]
    background: bool
    quiet_seconds: float
    cpu_share: float
    tools: str
    retention_days: int
    origins: Mapping[str, str] = field(compare=False, repr=False)

    @property
    def reads_legacy(self) -> bool:
        """Whether kimi-cli's home is read: not by default once somebody named the sessions folder itself."""
        return self.sessions_root is None or self.origins["legacy_home"] != DEFAULT

    def store(self, workspace_id: str) -> Path:
        """The folder of one workspace's store; nothing is created."""
        return self.store_root / workspace_id


@dataclass(frozen=True, slots=True)
class Effective:
    """One line of ``pipeline config``."""

    setting: Setting
    value: Value
    origin: str


def effective(settings: Settings) -> tuple[Effective, ...]:
    """Each setting's value and where it came from, in the table's order."""
    return tuple(
        Effective(setting, getattr(settings, setting.name), settings.origins[setting.name])
        for setting in SETTINGS
    )
