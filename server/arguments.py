"""Checks a call's arguments against the tool's own schema, and says which one is wrong and what it takes.

The schema is the one the client got; the low-level server of the SDK checks nothing (MCP leaves it to us). Names
are taken in either spelling (``session_id``, ``sessionId``), and a text stands for a number, a switch or a list
where it can mean nothing else: some models write everything as text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pipeline.errors import BadInput
from server.surface import Schema, Tool

SHOWN_CHARS = 60


class BadArgument(BadInput):
    """An argument does not fit. ``name`` is the argument's path, such as ``references[2].turnId``."""

    def __init__(self, name: str, problem: str, *, hint: str = "") -> None:
        super().__init__(f"{name}: {problem}", hint=hint)
        self.name = name


def checked(tool: Tool, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The arguments under their own names, with defaults; ``None`` counts as not given. Raises BadArgument."""
    return _object(tool.input_schema, dict(given or {}), "", tool.name)


def _object(schema: Schema, given: Mapping[str, Any], at: str, owner: str) -> dict[str, Any]:
    properties: Mapping[str, Schema] = schema.get("properties", {})
    if not properties:
        free = schema.get("additionalProperties")
        return {
            name: _value(free, value, f"{at}.{name}") if isinstance(free, dict) else value
            for name, value in given.items()
        }
    spelled = {_spelling(name): name for name in properties}
    found: dict[str, Any] = {}
    for name, value in given.items():
        known = name if name in properties else spelled.get(_spelling(name))
        place = f"{at}.{name}" if at else name
        if known is None:
            raise BadArgument(place, "unknown argument", hint=f"{owner} takes {', '.join(properties)}.")
        if value is not None:
            found[known] = _value(properties[known], value, place)
    for name in schema.get("required", ()):
        if name not in found:
            about = properties[name].get("description", "")
            raise BadArgument(f"{at}.{name}" if at else name, "missing", hint=_takes(properties[name], about))
    defaults = {name: each["default"] for name, each in properties.items() if "default" in each}
    return {**defaults, **found}


def _spelling(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _value(schema: Schema, value: Any, at: str) -> Any:
    return _KINDS[schema["type"]](schema, value, at)


def _text(schema: Schema, value: Any, at: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _wrong(schema, value, at)
    text = str(value)
    if "enum" in schema:
        word = text.strip().lower()
        if word not in schema["enum"]:
            raise _wrong(schema, value, at)
        return word
    if len(text.strip()) < schema.get("minLength", 0):
        raise BadArgument(at, "is empty", hint=_takes(schema, schema.get("description", "")))
    most = schema.get("maxLength", 4096)
    if len(text) > most:
        raise BadArgument(at, f"has {len(text)} characters; at most {most} are taken")
    return text


def _integer(schema: Schema, value: Any, at: str) -> int:
    if isinstance(value, str):
        try:
            value = int(value.strip())
        except ValueError:
            raise _wrong(schema, value, at) from None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(schema, value, at)
    if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        raise _wrong(schema, value, at)
    return value


def _switch(schema: Schema, value: Any, at: str) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in ("true", "false"):
        return word == "true"
    raise _wrong(schema, value, at)


def _list(schema: Schema, value: Any, at: str) -> list[Any]:
    if isinstance(value, str):
        value = _listed(value)
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        raise _wrong(schema, value, at)
    if len(value) > schema["maxItems"]:
        raise BadArgument(at, f"has {len(value)} entries; at most {schema['maxItems']} are taken")
    return [_value(schema["items"], each, f"{at}[{place}]") for place, each in enumerate(value)]


def _listed(text: str) -> Any:
    """A list that came as text: JSON, or words separated by commas (Chinese ones too)."""
    if text.strip().startswith(("[", "{")):
        import json

        try:
            return json.loads(text)
        except ValueError:
            return text
    words = text.replace("，", ",").replace("、", ",").split(",")
    return [word.strip() for word in words if word.strip()]


def _mapping(schema: Schema, value: Any, at: str) -> dict[str, Any]:
    if isinstance(value, str) and value.strip().startswith("{"):
        value = _listed(value)
    if not isinstance(value, dict):
        raise _wrong(schema, value, at)
    return _object(schema, value, at, at)


_KINDS: dict[str, Callable[[Schema, Any, str], Any]] = {
    "string": _text,
    "integer": _integer,
    "boolean": _switch,
    "array": _list,
    "object": _mapping,
}


def _wrong(schema: Schema, value: object, at: str) -> BadArgument:
    shown = repr(value)
    shown = shown if len(shown) <= SHOWN_CHARS else shown[:SHOWN_CHARS] + "…"
    return BadArgument(at, f"{shown} is not taken", hint=_takes(schema, ""))


def _takes(schema: Schema, about: str) -> str:
    """What an argument accepts, in words."""
    kind = schema["type"]
    if "enum" in schema:
        words = f"one of {', '.join(schema['enum'])}"
    elif kind == "integer":
        bounds = [f"from {schema['minimum']}"] if "minimum" in schema else []
        bounds += [f"to {schema['maximum']}"] if "maximum" in schema else []
        words = " ".join(["a whole number", *bounds])
    elif kind == "array":
        words = f"a list: each {_takes(schema['items'], '').removeprefix('It takes ').rstrip('.')}"
    elif kind == "object":
        words = f"an object with {', '.join(schema.get('properties', {})) or 'texts'}"
    else:
        words = {"string": "a text", "boolean": "true or false"}[kind]
    return f"It takes {words}{f' ({about})' if about else ''}."
