"""Our server's entry in ``mcp.json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from server.setup.json_text import Object, drop_member, object_at, parse, set_member
from server.setup.model import InvalidFile, Kept, Piece, line_end, text_of
from server.setup.wiring import CARRIED, NAME, Wiring, is_other_server, is_ours, server_entry

PATH = "mcp.json"
SERVERS = "mcpServers"


@dataclass(frozen=True, slots=True)
class McpJson:
    """The part that edits ``mcp.json``."""

    wiring: Wiring
    path: str = PATH

    def install(self, current: bytes | None) -> tuple[bytes, Piece]:
        """See Part.install. A replaced entry's variables that say where the memory is are carried over."""
        text = text_of(PATH, current)
        value = _value(text)
        old = value.get(SERVERS, {}).get(NAME)
        entry = _entry(self.wiring, old)
        if not text.strip():
            text = '{\n  "mcpServers": {}\n}\n'.replace("\n", line_end(text))
        elif SERVERS not in value:
            text, _ = set_member(text, _root(text), SERVERS, {})
        servers = _servers(text)
        found = servers.find(NAME)
        standing = text[found.value_at : found.end] if found else None
        if old == entry and standing is not None:
            return text.encode("utf-8"), Piece(standing)
        text, written = set_member(text, servers, NAME, entry)
        _verify(value, text, entry)
        return text.encode("utf-8"), Piece(written, standing)

    def remove(self, current: bytes, piece: Piece) -> bytes | Kept:
        """See Part.remove. Kimi itself rewrites this file as a whole: our entry is known by its value."""
        text = text_of(PATH, current)
        value = _value(text)
        entry = value.get(SERVERS, {}).get(NAME)
        if entry is None:
            return current
        if entry != parse(piece.ours):
            return Kept(f'its entry "{NAME}" was changed since')
        servers = _servers(text)
        found = servers.find(NAME)
        assert found is not None
        if piece.replaced is None:
            return drop_member(text, servers, NAME).encode("utf-8")
        return (text[: found.value_at] + piece.replaced + text[found.end :]).encode("utf-8")

    def wired(self, current: bytes | None) -> str:
        """See Part.wired."""
        entry = entry_of(current)
        if entry is None:
            return f'has no entry "{NAME}"'
        if entry != _entry(self.wiring, entry):
            return f'its entry "{NAME}" starts something else than this installation'
        if entry.get("enabled") is False:
            return f'its entry "{NAME}" is disabled'
        return ""


def entry_of(current: bytes | None) -> Any:
    """The entry named as we are, ``None`` when there is none. Raises InvalidFile."""
    return _value(text_of(PATH, current)).get(SERVERS, {}).get(NAME)


def other_servers(current: bytes | None) -> tuple[str, ...]:
    """The names under which the npm server is set up. Raises InvalidFile."""
    servers = _value(text_of(PATH, current)).get(SERVERS, {})
    return tuple(name for name, entry in servers.items() if is_other_server(entry))


def carried(entry: object) -> dict[str, str]:
    """The variables of an entry that ours takes over."""
    env = entry.get("env") if isinstance(entry, Mapping) else None
    if not isinstance(env, Mapping):
        return {}
    named = is_ours(entry)
    return {key: str(text) for key, text in env.items() if named or key in CARRIED}


def _entry(wiring: Wiring, old: object) -> dict[str, object]:
    """Our entry over an old one. What a person set in an entry of ours stays, but for how we are started."""
    entry = server_entry(wiring, carried(old))
    if not isinstance(old, dict) or not is_ours(old):
        return entry
    return entry | {key: value for key, value in old.items() if key not in ("command", "args", "env")}


def _value(text: str) -> dict[str, Any]:
    """The file's object; an empty file is an empty object, as for Kimi."""
    if not text.strip():
        return {}
    try:
        value = parse(text)
    except (ValueError, RecursionError) as error:
        raise InvalidFile(PATH, f"is no valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise InvalidFile(PATH, "must hold a JSON object")
    if not isinstance(value.get(SERVERS, {}), dict):
        raise InvalidFile(PATH, f'"{SERVERS}" must be an object')
    return value


def _root(text: str) -> Object:
    return object_at(text, len(text) - len(text.lstrip(" \t\r\n")))


def _servers(text: str) -> Object:
    member = _root(text).find(SERVERS)
    assert member is not None
    return object_at(text, member.value_at)


def _verify(before: dict[str, Any], text: str, entry: Mapping[str, Any]) -> None:
    """What was written says what it said before, and our entry: a last look before anything is planned on it."""
    expected = {**before, SERVERS: {**before.get(SERVERS, {}), NAME: entry}}
    if parse(text) != expected:
        raise InvalidFile(PATH, "cannot be edited safely", hint="Nothing was changed. Add the entry by hand.")
