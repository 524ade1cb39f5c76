"""What setup did to a home, kept there until undo: for each file, what it was, what it became, and our piece.

``<home>/.kimi-memory-setup/record.json``; the bytes of small text files, in base64.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from server.setup.model import InvalidFile, Piece

FOLDER = ".kimi-memory-setup"
PATH = f"{FOLDER}/record.json"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """One file: ``before`` setup (``None``: there was none), ``after`` it, and our piece in it."""

    before: bytes | None
    after: bytes
    piece: Piece


@dataclass(frozen=True, slots=True)
class Record:
    """The record: entries by path, and the folders that setup made (relative, deepest first)."""

    entries: Mapping[str, Entry] = field(default_factory=dict)
    folders: tuple[str, ...] = ()


def dump(record: Record) -> bytes:
    """The record's file; equal for equal records."""
    value = {
        "version": VERSION,
        "about": "Written by `kimi-memory setup`; `kimi-memory setup --undo` needs it.",
        "folders": list(record.folders),
        "files": {
            path: {
                "before": _encode(entry.before),
                "after": _encode(entry.after),
                "ours": entry.piece.ours,
                "replaced": entry.piece.replaced,
            }
            for path, entry in sorted(record.entries.items())
        },
    }
    return (json.dumps(value, ensure_ascii=True, indent=1) + "\n").encode("ascii")


def load(data: bytes | None) -> Record:
    """The record; an empty one without a file. Raises InvalidFile."""
    if data is None:
        return Record()
    try:
        value = json.loads(data)
        if value["version"] != VERSION:
            raise InvalidFile(
                PATH, "was written by another version", hint="Use that version to undo its setup."
            )
        entries = {str(path): _entry(row) for path, row in value["files"].items()}
        return Record(entries, tuple(str(folder) for folder in value["folders"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidFile(PATH, f"is damaged: {error}") from error


def _entry(row: Mapping[str, Any]) -> Entry:
    after = _decode(row["after"])
    if after is None:
        raise ValueError("an entry without content")
    replaced = row["replaced"]
    return Entry(
        _decode(row["before"]), after, Piece(str(row["ours"]), None if replaced is None else str(replaced))
    )


def _encode(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode("ascii")


def _decode(text: object) -> bytes | None:
    return None if text is None else base64.b64decode(str(text), validate=True)
