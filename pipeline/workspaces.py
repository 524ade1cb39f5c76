"""Which directories are the same, which workspace one belongs to, and which are excluded. Pure but for
realpath().

Directories are the strings that sessions recorded; they need not exist here. Slashes are normalised,
trailing ones dropped, and Windows-shaped paths compared without case, as upstream does (WIRE §2).
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

DEFAULT_ID = "workspace-default"
UNKNOWN_PREFIX = "workspace-unknown-"

_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\|//")
_SLUG = re.compile(r"[^a-z0-9._-]+")
_SLUG_CHARS = 40


def windows_shaped(path: str) -> bool:
    """Whether a path is one of Windows: a drive, or a share."""
    return _WINDOWS.match(path) is not None


@lru_cache(maxsize=16_384)
def normal(path: str) -> str:
    """The path with ``/`` only and no trailing one; a root keeps its own."""
    slashed = path.replace("\\", "/")
    bare = slashed.rstrip("/")
    return slashed[: len(bare) + 1] if not bare or bare.endswith(":") else bare


@lru_cache(maxsize=16_384)
def dir_key(path: str) -> str:
    """Equal for two spellings of the same directory."""
    return normal(path).lower() if windows_shaped(path) else normal(path)


def same_dir(a: str, b: str) -> bool:
    """Whether two recorded paths name the same directory (no file system is asked)."""
    return dir_key(a) == dir_key(b)


def workspace_id(cwd: str, home: str | os.PathLike[str]) -> str:
    """``workspace-`` and 12 hex of the directory's sha256; ``workspace-default`` for the home directory.

    The other server's ids, so that its stores are found: cwd with ``/`` for ``\\``.
    """
    if same_dir(cwd, os.fspath(home)):
        return DEFAULT_ID
    return f"workspace-{_hash(normal(cwd))}"


def unknown_id(bucket: str) -> str:
    """The workspace of sessions whose directory nobody recorded, by the folder they lie in."""
    return UNKNOWN_PREFIX + bucket


def work_dir_key(cwd: str) -> str:
    """The folder in which Kimi Code 0.33 and later keeps this directory's sessions (WIRE §2)."""
    bare = cwd.replace("\\", "/").rstrip("/")
    slug = _SLUG.sub("-", bare.rsplit("/", 1)[-1].lower()).strip("-")[:_SLUG_CHARS].strip("-")
    return f"wd_{'workspace' if slug in ('', '.', '..') else slug}_{_hash(bare)}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]


# --- the directory a person names --------------------------------------------------------------------------


def spellings(path: str) -> tuple[str, ...]:
    """The recorded paths that ``path`` may mean: itself made absolute, and what its symlinks lead to.

    A Windows-shaped path is taken as it is on a system where it cannot be a path.
    """
    if windows_shaped(path) and os.name != "nt" and not path.startswith("//"):
        return (path,)
    absolute = os.path.normpath(Path(os.path.expanduser(path)).absolute())  # noqa: PTH111 ("~nobody" stays)
    return tuple(dict.fromkeys((absolute, os.path.realpath(absolute))))


def nearest(path: str, known: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """Up to ``count`` known directories that ``path`` may have meant, best first.

    A directory above or below comes first, then one of the same name elsewhere, then the most similar.
    """
    wanted = dir_key(path)
    matcher = difflib.SequenceMatcher(b=wanted)

    def score(other: str) -> tuple[float, str]:
        key = dir_key(other)
        matcher.set_seq1(key)
        related = 2 * (key.startswith(wanted + "/") or wanted.startswith(key + "/"))
        named = key.rsplit("/", 1)[-1] == wanted.rsplit("/", 1)[-1]
        return -(related + named + matcher.ratio()), other

    return tuple(sorted(known, key=score)[:count])


# --- exclude rules -----------------------------------------------------------------------------------------


def resolved(globs: Iterable[str]) -> tuple[str, ...]:
    """Directory rules, with what a symlink among them leads to: sessions record the resolved path (WIRE
    §2)."""
    rules = dict.fromkeys(globs)
    for rule in tuple(rules):
        if rule.startswith("/") and not any(sign in rule for sign in "*?["):
            rules[os.path.realpath(rule)] = None
    return tuple(rules)


def excluded_dir(globs: Iterable[str], cwd: str | None, workspace: str) -> bool:
    """Whether a rule names this workspace: by its id, its directory, or one above it."""
    return any(
        fnmatchcase(workspace, rule) or (cwd is not None and _covers(rule, dir_key(cwd))) for rule in globs
    )


def matches_any(name: str, globs: Iterable[str]) -> bool:
    """Whether a rule fits the whole name."""
    return any(fnmatchcase(name, rule) for rule in globs)


def excluded_path(globs: Iterable[str], path: str, cwd: str | None) -> bool:
    """Whether a rule names this file, absolute or relative to ``cwd``, or a folder above it.

    ``*`` and ``**`` stand for any characters, ``/`` included; a rule without ``/`` fits any part of the path.
    """
    forms = [dir_key(path)]
    if cwd is not None:
        base = dir_key(cwd).rstrip("/") + "/"
        if forms[0].startswith(base):
            forms.append(forms[0][len(base) :])
        elif not forms[0].startswith("/") and not windows_shaped(path):
            forms.append(base + forms[0])
    return any(_covers(rule, form) for rule in globs for form in forms)


def _covers(rule: str, key: str) -> bool:
    pattern = dir_key(rule.removesuffix("/**").removesuffix("\\**"))
    if "/" not in pattern:
        return any(fnmatchcase(part, pattern) for part in key.split("/"))
    return fnmatchcase(key, pattern) or fnmatchcase(key, pattern.rstrip("/") + "/*")
