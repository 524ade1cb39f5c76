"""Writes a Kimi Code plugin folder: server, skill, rules and hooks in one install (docs/plugin.md).

A manifest may start a command on the PATH or one inside the folder, never an absolute path. So the folder holds
a small launcher that names this installation.
"""

from __future__ import annotations

import json
import os
from importlib.resources import files
from pathlib import Path
from typing import Any

from pipeline.errors import BadInput
from pipeline.store.files import write_bytes
from server.setup import skill
from server.setup.skill import Language
from server.setup.wiring import Wiring, hook_entries

MANIFEST = "kimi.plugin.json"
TOOLS = "mcp__plugin-kimi-memory_memory__"
"""How Kimi names the tools of the server ``memory`` of the plugin ``kimi-memory``."""


def plugin_files(wiring: Wiring, language: Language) -> dict[str, bytes]:
    """The folder's files by relative path."""
    manifest: dict[str, Any] = json.loads(files("server").joinpath("plugin", MANIFEST).read_text("utf-8"))
    launcher, script = _launcher(wiring)
    manifest["mcpServers"]["memory"] |= {"command": f"./{launcher}", "args": ["serve"]}
    manifest["hooks"] = hook_entries(wiring)
    rules = skill.agents_block(language).split("\n", 1)[1].rpartition("\n")[0]
    return {
        MANIFEST: (json.dumps(manifest, ensure_ascii=False, indent=2) + "\n").encode("utf-8"),
        "RULES.md": (rules.replace("mcp__kimi-memory__", TOOLS) + "\n").encode("utf-8"),
        skill.PATH: skill.skill_text(language).encode("utf-8"),
        launcher: script.encode("utf-8"),
    }


def write_plugin(folder: Path, wiring: Wiring, language: Language) -> tuple[str, ...]:
    """Write the folder; returns the files that changed. Raises BadInput for a folder that holds something else."""
    if folder.exists() and not (folder / MANIFEST).exists() and any(folder.iterdir()):
        raise BadInput(f"{folder}: is not empty and holds no plugin", hint="Name a new folder.")
    changed = []
    for name, data in plugin_files(wiring, language).items():
        if write_bytes(folder / name, data):
            changed.append(name)
        if name.startswith("bin/") and os.name != "nt":
            (folder / name).chmod(0o700)
    return tuple(changed)


def _launcher(wiring: Wiring) -> tuple[str, str]:
    if wiring.windows:
        return "bin/kimi-memory.cmd", f'@"{wiring.python}" -EP "{wiring.entry}" %*\r\n'
    quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in (wiring.python, "-EP", wiring.entry))
    return "bin/kimi-memory", f'#!/bin/sh\nexec {quoted} "$@"\n'
