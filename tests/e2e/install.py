"""Installs the real Kimi Code CLI from npm into a cache folder, once: `python -m tests.e2e.install [VERSION]`.

The CLI needs Node 22.19 or newer; npm brings that too, as the package of this platform's binary, which needs no
install script. Nothing is installed outside the folder.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

PACKAGE = "@moonshot-ai/kimi-code"
TESTED = "2.1.0"
"""The version whose behaviour the tests state; `make compat` runs them on the newest one."""
NODE_MAJOR = 22
NODE_LEAST = (22, 19)


@dataclass(frozen=True, slots=True)
class Cli:
    """An installed CLI: the words that start it, and its version."""

    words: tuple[str, ...]
    version: str


class NoNpm(Exception):
    """There is no npm here, so the real CLI cannot be had."""


def cache_folder() -> Path:
    """``.cache/kimi-code`` in the checkout (git ignores it), or in XDG_CACHE_HOME."""
    named = os.environ.get("XDG_CACHE_HOME")
    return (Path(named) if named else Path(__file__).parents[2] / ".cache") / "kimi-code"


def install(version: str = TESTED) -> Cli:
    """The CLI of that version (a number or a tag such as ``latest``), installed unless it is there already.

    Raises NoNpm, and CalledProcessError with npm's output when the registry cannot be reached.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise NoNpm("npm is not on the PATH")
    folder = cache_folder() / version
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".lock"):
        if version != TESTED or not _main(folder).is_file() or not _node(folder):
            wanted = [
                f"{PACKAGE}@{version}",
                *([] if _system_node() else [f"{_node_package()}@{NODE_MAJOR}"]),
            ]
            words = [
                npm,
                "install",
                "--prefix",
                str(folder),
                "--ignore-scripts",
                "--no-audit",
                "--no-fund",
                *wanted,
            ]
            done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)
            if done.returncode:
                raise RuntimeError(f"npm cannot install {wanted}:\n{done.stdout}{done.stderr}")
    node = _node(folder)
    if node is None:
        raise RuntimeError(f"npm installed no Node in {folder}")
    package = json.loads((folder / "node_modules" / PACKAGE / "package.json").read_text("utf-8"))
    return Cli((node, str(_main(folder))), package["version"])


def _main(folder: Path) -> Path:
    return folder / "node_modules" / PACKAGE / "dist" / "main.mjs"


def _node(folder: Path) -> str | None:
    name = "node.exe" if os.name == "nt" else "bin/node"
    own = folder / "node_modules" / _node_package() / name
    return str(own) if own.is_file() else _system_node()


def _system_node() -> str | None:
    node = shutil.which("node")
    if node is None:
        return None
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    match = re.match(r"v(\d+)\.(\d+)", said)
    return node if match and (int(match[1]), int(match[2])) >= NODE_LEAST else None


def _node_package() -> str:
    """The npm package that holds Node's binary for this machine (what the package ``node`` would fetch)."""
    system = {"win32": "win", "darwin": "darwin"}.get(sys.platform, "linux")
    arch = "arm64" if platform.machine().lower() in ("arm64", "aarch64") else "x64"
    prefix = "node-bin" if (system, arch) == ("darwin", "arm64") else "node"
    return f"{prefix}-{system}-{arch}"


if __name__ == "__main__":
    cli = install(*sys.argv[1:2])
    print(f"Kimi Code {cli.version}: {' '.join(cli.words)}")
