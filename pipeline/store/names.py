"""File names from what people and models call things: keys, folders, themes.

The rules of the server we stay compatible with (docs: store formats): ``\\ / : * ? " < > |`` become ``_``,
runs of white space become ``_``, names are cut at 120 characters, an empty one is ``untitled``. Beyond it, a
name works on every file system (Windows' reserved names, trailing dots, NAME_MAX in bytes), is never hidden
and never leaves its folder. Chinese and every other script stay as they are, in NFC.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from pipeline.errors import BadInput

NAME_CHARS = 120
NAME_BYTES = 240
"""File systems allow 255 bytes; 120 Chinese characters are 360. Leaves room for an extension."""

FOLDER_DEPTH = 8
MEMORY, NOTES, ARCHIVE = "memory", "notes", "archive"
ROOTS = (MEMORY, NOTES, ARCHIVE)
"""The top folders that hold Markdown memories."""

UNTITLED = "untitled"
_FORBIDDEN = re.compile(r'[\\/:*?"<>|]')
_SPACE = re.compile(r"[\s\ufeff]+")
# Controls, lone surrogates and direction marks: they break terminals or make a name look like another one.
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_FOREIGN = re.compile(r'[\s\x00-\x1f:*?"<>|]')
_RESERVED = re.compile(r"(?i)^(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?=\.|$)")
_DRIVE = re.compile(r"^[A-Za-z]:")


def file_name(text: str) -> str:
    """The file name (no extension) for any text: one path segment, never empty, hidden or reserved."""
    name = unicodedata.normalize("NFC", text).strip()
    name = _UNSEEN.sub("_", _SPACE.sub("_", _FORBIDDEN.sub("_", name)))
    name = _fit(name[:NAME_CHARS])
    if name.startswith("."):
        name = "_" + name[1:]
    if name.endswith("."):  # Windows drops trailing dots, so "a." would be "a"
        name = name.rstrip(".") + "_"
    if _RESERVED.match(name):
        name = _RESERVED.sub(lambda match: match[0] + "_", name)
    return name or UNTITLED


def key_name(key: str) -> str:
    """The sanitised key of a memory: file_name without a ``.md`` that belongs to the file, not to the key.

    Raises BadInput for a key that climbs (a ``..`` segment) or holds a NUL: never meant well, so never
    repaired.
    """
    _refuse_climbing(key, "key")
    return file_name(key[:-3] if key.lower().endswith(".md") else key)


def theme_name(theme: str) -> str:
    """The file name (no extension) of a theme; raises BadInput as key_name does, and when empty."""
    _refuse_climbing(theme, "theme")
    if not theme.strip():
        raise BadInput("theme is empty: give it a name")
    return file_name(theme)


def folder_name(folder: str | None) -> str:
    """The folder of a memory, relative to the store, "/"-separated: ``memory``, ``notes/x``,
    ``archive/decisions``.

    Empty means ``memory``; a bare category (``decisions``) lies below ``memory``. Raises BadInput for an
    absolute path, a ``..`` segment, more than FOLDER_DEPTH segments, or a folder of the store that is not for
    memories.
    """
    text = (folder or "").strip().replace("\\", "/")
    _refuse_climbing(text, "folder")
    if text.startswith("/") or _DRIVE.match(text):
        raise BadInput(f"folder {folder!r} is absolute: name one below memory/")
    parts = [file_name(part) for part in text.split("/") if part.strip() not in ("", ".")]
    if not parts:
        return MEMORY
    if (top := fold(parts[0])) in ROOTS:
        parts[0] = top
    elif top in _RESERVED_FOLDERS:
        raise BadInput(
            f"folder {folder!r} is kept by the store itself: memories live in memory/, notes/ or archive/"
        )
    else:
        parts.insert(0, MEMORY)
    if len(parts) > FOLDER_DEPTH:
        raise BadInput(f"folder {folder!r} is deeper than {FOLDER_DEPTH} levels")
    return "/".join(parts)


_RESERVED_FOLDERS = frozenset({"essence", "themes", "searches", "refined", "reports", "proposals", "global"})


def fold(name: str) -> str:
    """What two names share when some file system takes them for one: NFC, case folded. For identity only."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


@lru_cache(4096)
def identity(path: str) -> str:
    """What a name or "/"-separated path is compared by: sanitised as our own names are, then folded.

    Files made by hand may be called what we never would (``by hand.md``): they are found by it.
    """
    return fold("/".join(file_name(part) for part in path.split("/")))


def same(wanted: str, existing: Iterable[str]) -> str | None:
    """The one of ``existing`` that ``wanted`` means: itself where it is there, else the first that differs in
    case or in characters that we replace.
    """
    folded, found = fold(wanted), None
    for name in existing:
        if name == wanted:
            return name
        if found is None and folded == (identity(name) if _FOREIGN.search(name) else fold(name)):
            found = name
    return found


def inside(root: Path, path: Path) -> Path:
    """``path``, checked to lie below ``root`` also when symbolic links are followed. Raises BadInput."""
    if not path.parent.resolve().is_relative_to(root.resolve()):
        raise BadInput(f"{path} leads out of the store {root}")
    return path


def _refuse_climbing(text: str, what: str) -> None:
    if "\0" in text:
        raise BadInput(f"{what} holds a NUL character")
    if any(part.strip() == ".." for part in re.split(r"[\\/]", text)):
        raise BadInput(f"{what} {text[:80]!r} climbs out of its folder: leave out '..'")


def _fit(name: str) -> str:
    """``name`` within NAME_BYTES; a cut one ends in a digest, so that two long names stay two."""
    data = name.encode("utf-8", "surrogatepass")
    if len(data) <= NAME_BYTES:
        return name
    digest = hashlib.blake2b(data, digest_size=4).hexdigest()
    return data[: NAME_BYTES - 9].decode("utf-8", "ignore") + "-" + digest
