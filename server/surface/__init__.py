"""What the model sees of us: names, descriptions and input schemas, as plain data that costs nothing to import.

Kimi shows the model these three only, so all guidance stands here. A tool's handler is named, not imported:
the first call imports it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Schema: TypeAlias = dict[str, Any]
Effect: TypeAlias = Literal["read", "write", "overwrite"]
"""What a call may do to the store: nothing, add to it, or replace or remove what is there (restorably, but
for `forget`)."""

DEFAULT_CHARS, ALL_CHARS = 16_000, 28_000
"""Budgets of the default and of the whole list, as ``json.dumps(tools, ensure_ascii=False)``."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. ``handler`` is ``module:function`` below ``server.tools``; ``default`` tools are always listed."""

    name: str
    description: str
    handler: str
    effect: Effect
    parameters: dict[str, Schema]
    required: tuple[str, ...] = ()
    default: bool = True

    @property
    def input_schema(self) -> Schema:
        """The JSON Schema of the arguments; every tool takes ``workspace``."""
        schema: Schema = {"type": "object", "properties": {**self.parameters, "workspace": WORKSPACE}}
        return {**schema, "required": list(self.required)} if self.required else schema

    @property
    def annotations(self) -> dict[str, bool]:
        """Hints for the client: a call may be sent again, and none leaves this machine."""
        if self.effect == "read":
            return {"readOnlyHint": True, "openWorldHint": False}
        return {"destructiveHint": self.effect == "overwrite", "idempotentHint": True, "openWorldHint": False}


WORKSPACE: Schema = {"type": "string", "description": "project directory"}


def text(description: str = "", *, most: int = 4096, least: int = 0) -> Schema:
    """A text of at most ``most`` characters."""
    schema: Schema = {"type": "string", **_said(description)}
    if least:
        schema["minLength"] = least
    if most != 4096:
        schema["maxLength"] = most
    return schema


def number(description: str = "", *, least: int = 0, most: int, default: int | None = None) -> Schema:
    """A whole number within bounds."""
    schema: Schema = {"type": "integer", "minimum": least, "maximum": most}
    if default is not None:
        schema["default"] = default
    return {**schema, **_said(description)}


def switch(description: str = "") -> Schema:
    """A switch that is off by default."""
    return {"type": "boolean", **_said(description)}


def choice(*values: str, description: str = "", default: str | None = None) -> Schema:
    """One of some words."""
    schema: Schema = {"type": "string", "enum": list(values)}
    if default is not None:
        schema["default"] = default
    return {**schema, **_said(description)}


def texts(description: str = "", *, most: int = 50, of: Schema | None = None) -> Schema:
    """A list of texts."""
    return {"type": "array", "items": of or {"type": "string"}, "maxItems": most, **_said(description)}


def _said(description: str) -> Schema:
    return {"description": description} if description else {}
