"""Finds the effective settings, and where each came from. The table is pipeline/settings.py.

A value is looked for in the environment, then in ``<store>/config.toml``, then in ``<store
root>/config.toml``; the first one found counts. Only exclude rules add up over the three: no file lifts
another's exclusion. A wrong value is a ConfigError that names the variable, or the file and the key.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from pipeline.errors import ConfigError
from pipeline.settings import DEFAULT, SETTINGS, Effective, Scope, Setting, Settings, Value, effective

__all__ = ["CONFIG_NAME", "SETTINGS", "Effective", "Setting", "Settings", "effective", "load", "settings_for"]

CONFIG_NAME = "config.toml"
TOMBSTONES_NAME = "tombstones.json"
"""What a person had forgotten, in each store (pipeline/store/tombstones.py)."""


def load(
    env: Mapping[str, str], store_config: Path | None = None, root_config: Path | None = None
) -> Settings:
    """Settings from the environment and these two files (``None`` or absent: no such file).

    Raises ConfigError for a value that does not fit, an unknown key, and a file that cannot be read or
    parsed. An empty variable counts as unset. A relative path is relative to the current directory in the
    environment, to the file's folder in a file; ``~`` is the home directory.
    """
    home = home_directory(env)
    places = [
        _environment(env),
        *([_file(store_config, "store")] if store_config else []),
        *([_file(root_config, "root")] if root_config else []),
    ]
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for setting in SETTINGS:
        found = [(raw, origin, base) for place in places for raw, origin, base in place.get(setting.name, ())]
        values[setting.name], origins[setting.name] = _decide(setting, found, home)
    return Settings(home=home, origins=origins, **values)


def settings_for(env: Mapping[str, str], workspace_id: str | None = None) -> Settings:
    """load() with the config.toml files where they belong: the store root's, and the workspace's store's."""
    root = load(env).store_root
    store_config = root / workspace_id / CONFIG_NAME if workspace_id else None
    return load(env, store_config, root / CONFIG_NAME)


def home_directory(env: Mapping[str, str]) -> Path:
    """HOME (USERPROFILE), else what the system knows."""
    named = env.get("HOME") or env.get("USERPROFILE")
    return Path(named).absolute() if named else Path.home()


# --- places ------------------------------------------------------------------------------------------------

Found: TypeAlias = tuple[object, str, Path]
"""A raw value, where it stands, and the folder that relative paths in it start from."""

Place: TypeAlias = dict[str, list[Found]]


def _environment(env: Mapping[str, str]) -> Place:
    """Lists are separated as PATH is (``:``, on Windows ``;``)."""
    here = Path.cwd()
    place: Place = {}
    for setting in SETTINGS:
        text = env.get(setting.env, "").strip()
        if text:
            raw = text.split(os.pathsep) if setting.kind == "globs" else text
            place[setting.name] = [(raw, setting.env, here)]
    return place


def _file(path: Path, scope: Scope) -> Place:
    try:
        with path.open("rb") as file:
            table = tomllib.load(file)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(str(path), f"not valid TOML: {error}") from error
    except OSError as error:
        raise ConfigError(str(path), f"cannot be read: {error.strerror or error}") from error
    place: Place = {}
    for key, raw in _keys(table):
        setting = _by_key(path, key, scope)
        place.setdefault(setting.name, []).append((raw, f"{path}: {key}", path.parent))
    return place


def _keys(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _keys(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _by_key(path: Path, key: str, scope: Scope) -> Setting:
    keys = {setting.key: setting for setting in SETTINGS if setting.key}
    setting = keys.get(key)
    if setting is None:
        near = difflib.get_close_matches(key, keys, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"Known keys: {', '.join(keys)}."
        raise ConfigError(f"{path}: {key}", "unknown setting", hint=hint)
    if scope == "store" and setting.scope != "store":
        raise ConfigError(
            f"{path}: {key}",
            "cannot be set for one workspace",
            hint=f"Set {setting.env}, or put the key into the config.toml of the store root.",
        )
    return setting


# --- values ------------------------------------------------------------------------------------------------


def _decide(setting: Setting, found: list[Found], home: Path) -> tuple[Value, str]:
    if not found:
        return _default(setting, home), DEFAULT
    if setting.kind == "globs":
        rules = dict.fromkeys(rule for raw, origin, _ in found for rule in _globs(raw, origin, home))
        return tuple(rules), "; ".join(origin for _, origin, _ in found)
    raw, origin, base = found[0]
    if setting.kind == "path":
        return _path(raw, origin, base, home), origin
    return _PARSERS[setting.kind](setting, raw, origin), origin


def _default(setting: Setting, home: Path) -> Value:
    if setting.name == "jobs":
        return min(_cores(), 4)
    if setting.kind == "globs":
        return ()
    if setting.kind == "path":
        return _path(setting.default, DEFAULT, home, home) if setting.default else None
    return _PARSERS[setting.kind](setting, setting.default, DEFAULT)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _path(raw: object, origin: str, base: Path, home: Path) -> Path:
    if not isinstance(raw, str) or not raw.strip():
        raise ConfigError(origin, f"{raw!r} is not a path")
    path = Path(_at_home(raw.strip(), home))
    return Path(os.path.normpath(base / path))


def _at_home(text: str, home: Path) -> str:
    """``~`` at the start is the home directory; ``~name`` is left as it is."""
    if text == "~" or text.startswith(("~/", "~\\")):
        return str(home) + text[1:]
    return text


def _number(setting: Setting, raw: object, origin: str) -> float:
    if isinstance(raw, str):
        try:
            raw = float(raw)
        except ValueError:
            raise ConfigError(origin, f"{raw!r} is not a number") from None
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise ConfigError(origin, f"{raw!r} is not a number")
    if not setting.least <= raw <= setting.most:
        raise ConfigError(origin, f"{raw:g} is not between {setting.least:g} and {setting.most:g}")
    return float(raw)


def _integer(setting: Setting, raw: object, origin: str) -> int:
    number = _number(setting, raw, origin)
    if not number.is_integer():
        raise ConfigError(origin, f"{number:g} is not a whole number")
    return int(number)


_SWITCHES = dict.fromkeys(("1", "true", "yes", "on"), True) | dict.fromkeys(
    ("0", "false", "no", "off"), False
)


def _switch(_setting: Setting, raw: object, origin: str) -> bool:
    if isinstance(raw, bool):
        return raw
    value = _SWITCHES.get(str(raw).strip().lower())
    if value is None:
        raise ConfigError(origin, f"{raw!r} is neither on nor off", hint="Write 1 or 0, on or off.")
    return value


def _choice(setting: Setting, raw: object, origin: str) -> str:
    value = str(raw).strip().lower()
    if not isinstance(raw, str) or value not in setting.choices:
        raise ConfigError(origin, f"{raw!r} is not one of {', '.join(setting.choices)}")
    return value


def _globs(raw: object, origin: str, home: Path) -> tuple[str, ...]:
    if not isinstance(raw, list) or not all(isinstance(rule, str) for rule in raw):
        raise ConfigError(origin, f"{raw!r} is not a list of texts")
    return tuple(_at_home(rule.strip(), home) for rule in raw if rule.strip())


_PARSERS: dict[str, Callable[[Setting, object, str], Value]] = {
    "integer": _integer,
    "number": _number,
    "switch": _switch,
    "choice": _choice,
}
