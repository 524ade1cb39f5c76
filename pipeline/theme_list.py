"""The file of `pipeline run --themes`: many themes, each with its keywords.

TOML::

    [themes]
    "port-conflict" = ["EADDRINUSE", "端口"]

JSON: ``{"themes": {"port-conflict": ["EADDRINUSE"]}}``, the inner object alone, or a list of
``{"theme": …, "keywords": […]}``.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import orjson

from pipeline.errors import BadInput


def read_theme_list(path: Path) -> list[tuple[str, tuple[str, ...]]]:
    """``(theme, keywords)`` in the file's order. Raises BadInput naming the file and what is wrong in it."""
    value = _parse(path)
    if isinstance(value, dict):
        value = value.get("themes", value)
    if isinstance(value, dict):
        return [(_name(path, name), _keywords(path, name, words)) for name, words in value.items()]
    if isinstance(value, list):
        return [_entry(path, number, entry) for number, entry in enumerate(value, 1)]
    raise BadInput(f"{path}: holds no themes", hint='Write [themes] and then "name" = ["keyword", …].')


def _parse(path: Path) -> Any:
    try:
        data = path.read_bytes()
        if path.suffix.lower() == ".json":
            return orjson.loads(data)
        return tomllib.loads(data.decode("utf-8-sig"))
    except (orjson.JSONDecodeError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: {error}") from error
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror or error}") from error


def _entry(path: Path, number: int, entry: object) -> tuple[str, tuple[str, ...]]:
    if not isinstance(entry, dict) or "theme" not in entry:
        raise BadInput(f"{path}: entry {number} has no “theme”")
    name = _name(path, entry["theme"])
    return name, _keywords(path, name, entry.get("keywords", entry.get("seeds", [])))


def _name(path: Path, name: object) -> str:
    if not isinstance(name, str) or not name.strip():
        raise BadInput(f"{path}: a theme's name is {name!r}, not a text")
    return name.strip()


def _keywords(path: Path, name: str, words: object) -> tuple[str, ...]:
    if isinstance(words, str):
        words = words.split(",")
    if isinstance(words, dict):
        words = words.get("keywords", words.get("seeds"))
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise BadInput(f"{path}: the keywords of “{name}” are no list of texts")
    return tuple(dict.fromkeys(word.strip() for word in words if word.strip()))
