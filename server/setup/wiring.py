"""The command lines that Kimi starts us with: absolute, so that no PATH, no shell profile and no project decides."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

NAME = "kimi-memory"
"""Our name among the MCP servers, as the other server's: a person who switches keeps tool names and rules."""
CARRIED = ("MEMORY_STORE_ROOT", "MEMORY_SESSIONS_ROOT", "KIMI_CODE_HOME", "KIMI_SHARE_DIR")
"""Variables of an entry we replace that go on to ours: they say where the person's memory is."""
HOOK_EVENTS = ("SessionStart", "Stop", "SessionEnd")
HOOK_TIMEOUT_S = 5
STARTUP_TIMEOUT_MS = 60_000
"""A cold disk may take seconds to load Python; Kimi's default of 30 s would give up, silently under ``-p``."""
TOOL_TIMEOUT_MS = 120_000


@dataclass(frozen=True, slots=True)
class Wiring:
    """The interpreter and the two files of this installation, and the store root if it is not the default one."""

    python: str
    entry: str
    hook: str
    store_root: str = ""
    windows: bool = False

    @property
    def server_args(self) -> list[str]:
        """``-P``: the file's own folder is not searched for modules; ``-E``: nor what PYTHONPATH names."""
        return ["-EP", self.entry, "serve"]

    def hook_command(self) -> str:
        """For the shell: ``$PPID`` there is Kimi's process; whatever happens, it ends with 0 (2 would block a turn)."""
        if self.windows:
            words = [f'"{self.python}"', "-I", "-S", f'"{self.hook}"', "0"]
            return (
                " ".join([*words, *([f'"{self.store_root}"'] if self.store_root else [])]) + " || exit /b 0"
            )
        words = [shlex.quote(self.python), "-I", "-S", shlex.quote(self.hook), "$PPID"]
        return " ".join([*words, *([shlex.quote(self.store_root)] if self.store_root else [])]) + " || true"


def this_installation(env: Mapping[str, str]) -> Wiring:
    """The interpreter that runs now and the files beside this one. A virtual environment's link is kept as it is."""
    folder = Path(__file__).resolve().parent.parent
    root = env.get("MEMORY_STORE_ROOT", "").strip()
    return Wiring(
        python=str(Path(sys.executable).absolute()),
        entry=str(folder / "cli.py"),
        hook=str(folder / "hook.py"),
        store_root=str(Path(root).expanduser().absolute()) if root else "",
        windows=sys.platform == "win32",
    )


def is_passing(python: str) -> bool:
    """Whether an interpreter is of an environment that `uvx` or `pipx run` made for one run: it will be swept away."""
    folders = Path(python).parts
    return "archive-v0" in folders or (".cache" in folders and not {"uv", "pipx"}.isdisjoint(folders))


def server_entry(wiring: Wiring, env: Mapping[str, str]) -> dict[str, object]:
    """Our entry of ``mcp.json``. ``env``: variables that the server gets on top of Kimi's own."""
    entry: dict[str, object] = {"command": wiring.python, "args": wiring.server_args}
    variables = dict(env)
    if wiring.store_root:
        variables["MEMORY_STORE_ROOT"] = wiring.store_root
    if variables:
        entry["env"] = variables
    return {**entry, "startupTimeoutMs": STARTUP_TIMEOUT_MS, "toolTimeoutMs": TOOL_TIMEOUT_MS}


def hook_entries(wiring: Wiring) -> list[dict[str, str | int]]:
    """Our hooks. Exactly fields that Kimi knows: one unknown field voids every hook of the person's file."""
    command = wiring.hook_command()
    return [{"event": event, "command": command, "timeout": HOOK_TIMEOUT_S} for event in HOOK_EVENTS]


def is_ours(entry: object) -> bool:
    """Whether an ``mcp.json`` entry starts this server, of whatever version, wherever installed."""
    if not isinstance(entry, dict):
        return False
    words = [str(entry.get("command", "")), *(str(word) for word in entry.get("args") or [])]
    return any(word.replace("\\", "/").endswith("server/cli.py") for word in words)


def is_our_hook(hook: object) -> bool:
    """Whether a hook runs our hook file."""
    command = str(hook.get("command", "")) if isinstance(hook, Mapping) else ""
    return "server/hook.py" in command.replace("\\", "/")


OTHER_SERVER = "kimi-code-memory-mcp-server"


def is_other_server(entry: object) -> bool:
    """Whether an entry starts the npm package that we are compatible with."""
    if not isinstance(entry, dict):
        return False
    words = [str(entry.get("command", "")), *(str(word) for word in entry.get("args") or [])]
    return any(OTHER_SERVER in word for word in words)
