"""Our hooks in ``config.toml``.

One entry with a field that Kimi does not know voids every hook of the file, so what is written is parsed again
and compared: all that was there, and exactly our entries.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Array

from server.setup.model import InvalidFile, Kept, Piece, line_end, text_of
from server.setup.wiring import Wiring, hook_entries, is_our_hook

PATH = "config.toml"
FIRST = "# kimi-memory hooks: begin (taken out by `kimi-memory setup --undo`)"
LAST = "# kimi-memory hooks: end"
_BLOCK = re.compile(rf"{re.escape(FIRST)}\r?\n.*?{re.escape(LAST)}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class HooksToml:
    """The part that edits ``config.toml``."""

    wiring: Wiring
    path: str = PATH

    def install(self, current: bytes | None) -> tuple[bytes, Piece]:
        """See Part.install. Ours go to the end of the file; a list written in line gets them at its end."""
        text = text_of(PATH, current)
        wanted = hook_entries(self.wiring)
        hooks = _hooks(text)
        ours = [hook for hook in hooks if is_our_hook(hook)]
        block = _BLOCK.search(text)
        if ours == wanted:
            return text.encode("utf-8"), Piece(block[0] if block else _block(wanted, "\n"))
        others = [hook for hook in hooks if not is_our_hook(hook)]
        if block is not None and len(_hooks(block[0])) == len(ours):
            written = _block(wanted, line_end(text))
            changed = text[: block.start()] + written + text[block.end() :]
            piece = Piece(written, block[0])
        else:
            changed, written = _added(_without(text, others) if ours else text, wanted)
            piece = Piece(written)
        _verify(text, changed, wanted)
        return changed.encode("utf-8"), piece

    def remove(self, current: bytes, piece: Piece) -> bytes | Kept:
        """See Part.remove. Kimi rewrites this file when a setting changes: our hooks are known by their values."""
        text = text_of(PATH, current)
        hooks = _hooks(text)
        ours = [hook for hook in hooks if is_our_hook(hook)]
        if not ours:
            return current
        if ours != hook_entries(self.wiring) and ours != _piece_hooks(piece):
            return Kept("its kimi-memory hooks were changed since")
        rest = [hook for hook in hooks if not is_our_hook(hook)]
        try:
            return _without(text, rest, piece.ours).encode("utf-8")
        except InvalidFile as error:
            return Kept(str(error))

    def wired(self, current: bytes | None) -> str:
        """See Part.wired."""
        ours = [hook for hook in _hooks(text_of(PATH, current)) if is_our_hook(hook)]
        if not ours:
            return "has no kimi-memory hooks"
        if ours != hook_entries(self.wiring):
            return "its kimi-memory hooks run something else than this installation"
        return ""


def _block(entries: list[dict[str, str | int]], newline: str) -> str:
    """The entries as tables between two comments, without a last line end."""
    lines = [FIRST]
    for index, entry in enumerate(entries):
        lines += ["", "[[hooks]]"] if index else ["[[hooks]]"]
        lines += [f"{key} = {tomlkit.item(value).as_string()}" for key, value in entry.items()]
    return newline.join([*lines, LAST])


def _added(text: str, entries: list[dict[str, str | int]]) -> tuple[str, str]:
    """The text with our entries, and what was added."""
    newline = line_end(text)
    if isinstance(_document(text).get("hooks"), Array):
        return _added_in_line(text, entries)
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    addition = gap + _block(entries, newline) + newline
    return text + addition, addition


def _added_in_line(text: str, entries: list[dict[str, str | int]]) -> tuple[str, str]:
    document = _document(text)
    array = document["hooks"]
    assert isinstance(array, Array)
    for entry in entries:
        table = tomlkit.inline_table()
        table.update(entry)
        array.append(table)
    changed = document.as_string()
    start = next((at for at, (a, b) in enumerate(zip(text, changed, strict=False)) if a != b), len(text))
    tail = len(text) - start
    if changed[:start] + changed[len(changed) - tail :] != text:
        raise InvalidFile(PATH, "cannot be edited safely", hint="Nothing was changed. Use --no-hooks.")
    return changed, changed[start : len(changed) - tail]


def _without(text: str, rest: list[Any], ours: str = "") -> str:
    """The text without our hooks; ``rest`` are the others, in order. Raises InvalidFile when it cannot be done safely."""
    block = _BLOCK.search(text)
    candidates = [text.replace(ours, "") if ours and text.count(ours) == 1 else None]
    candidates.append(_cut_block(text, block) if block else None)
    candidates.append(_without_entries(text))
    expected = {**_parsed(text), "hooks": rest}
    for candidate in candidates:
        if candidate is not None and _same(candidate, expected):
            return candidate
    raise InvalidFile(PATH, "our hooks cannot be taken out safely", hint="Take them out by hand.")


def _cut_block(text: str, block: re.Match[str]) -> str:
    """The text without the block, its line end and the blank line before it."""
    before, after = text[: block.start()], re.sub(r"^\r?\n", "", text[block.end() :])
    return re.sub(r"(?<=\n)\r?\n\Z", "", before) + after


def _without_entries(text: str) -> str | None:
    document = _document(text)
    hooks = document.get("hooks")
    if not isinstance(hooks, AoT | Array):
        return None
    try:
        for index in reversed(range(len(hooks))):
            if is_our_hook(hooks[index]):
                del hooks[index]
        if not hooks:
            del document["hooks"]
        changed = document.as_string()
    except (TOMLKitError, IndexError, KeyError, TypeError):
        return None
    return "".join(line for line in changed.splitlines(keepends=True) if line.strip() not in (FIRST, LAST))


def _verify(before: str, after: str, wanted: list[dict[str, str | int]]) -> None:
    value = _parsed(before)
    others = [hook for hook in value.get("hooks", []) if not is_our_hook(hook)]
    found = _parsed(after)
    hooks = found.get("hooks", [])
    right = (
        {**found, "hooks": None} == {**value, "hooks": None}
        and [hook for hook in hooks if not is_our_hook(hook)] == others
        and [hook for hook in hooks if is_our_hook(hook)] == wanted
    )
    if not right:
        raise InvalidFile(PATH, "cannot be edited safely", hint="Nothing was changed. Use --no-hooks.")


def _same(text: str, expected: dict[str, Any]) -> bool:
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return {**found, "hooks": found.get("hooks", [])} == expected


def _hooks(text: str) -> list[Any]:
    hooks = _parsed(text).get("hooks", [])
    if not isinstance(hooks, list):
        raise InvalidFile(PATH, '"hooks" must be a list of tables')
    return hooks


def _piece_hooks(piece: Piece) -> list[Any] | None:
    """What we wrote, as values; ``None`` when the piece is of an in-line list."""
    try:
        return _hooks(piece.ours)
    except InvalidFile:
        return None


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidFile(PATH, f"is no valid TOML: {error}") from error


def _document(text: str) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(text)
    except (TOMLKitError, RecursionError) as error:
        raise InvalidFile(
            PATH, f"cannot be edited: {error}", hint="Nothing was changed. Use --no-hooks."
        ) from error
