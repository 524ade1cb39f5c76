"""Our rules in ``AGENTS.md``, between two marks that the other server uses too."""

from __future__ import annotations

import re
from dataclasses import dataclass

from server.setup.model import InvalidFile, Kept, Piece, line_end, text_of

PATH = "AGENTS.md"
START, END = "KIMI-MEMORY-INJECTED-START", "KIMI-MEMORY-INJECTED-END"
LIMIT = 2_500
"""Characters of the block: it is in every request of every session."""
_START = re.compile(rf"(?:<!--[^\S\r\n]*)?{START}")
_END = re.compile(rf"{END}(?:[^\S\r\n]*-->)?")


@dataclass(frozen=True, slots=True)
class AgentsMd:
    """The part that edits ``AGENTS.md``. ``block`` has marks and ``\\n`` line ends, none at its end."""

    block: str
    path: str = PATH

    def install(self, current: bytes | None) -> tuple[bytes, Piece]:
        """See Part.install. A block that is there is replaced where it stands, else ours goes to the end."""
        text = text_of(PATH, current, bom=True)
        newline = line_end(text)
        block = self.block.replace("\n", newline)
        span = find_block(text)
        if span is not None:
            start, end = span
            standing = text[start:end]
            changed = text[:start] + block + text[end:]
            return changed.encode("utf-8"), Piece(block, None if standing == block else standing)
        addition = _gap(text, newline) + block + newline
        return (text + addition).encode("utf-8"), Piece(addition)

    def remove(self, current: bytes, piece: Piece) -> bytes | Kept:
        """See Part.remove."""
        text = text_of(PATH, current, bom=True)
        if text.count(piece.ours) == 1:
            return text.replace(piece.ours, piece.replaced or "").encode("utf-8")
        span = find_block(text)
        if span is None:
            return current
        if _plain(text[slice(*span)]) != _plain(piece.ours):
            return Kept("the block between the marks was changed since")
        return (text[: span[0]] + (piece.replaced or "") + text[span[1] :]).encode("utf-8")

    def wired(self, current: bytes | None) -> str:
        """See Part.wired."""
        text = text_of(PATH, current, bom=True)
        span = find_block(text)
        if span is None:
            return "has no memory block"
        if _plain(text[slice(*span)]) != _plain(self.block):
            return "its memory block differs from this version's"
        return ""


def find_block(text: str) -> tuple[int, int] | None:
    """Where the one block is, its marks included. Raises InvalidFile for a lone mark or several blocks."""
    starts, ends = text.count(START), text.count(END)
    if not starts and not ends:
        return None
    start = _START.search(text)
    end = _END.search(text, start.end()) if start else None
    if starts != 1 or ends != 1 or start is None or end is None:
        raise InvalidFile(PATH, f"the marks {START} and {END} must stand there once each, in this order")
    return start.start(), end.end()


def _gap(text: str, newline: str) -> str:
    """What sets our block off from the text before it: one blank line."""
    if not text.strip("\ufeff"):
        return ""
    if not text.endswith("\n"):
        return newline * 2
    return "" if text.endswith(("\n\n", "\n\r\n")) else newline


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").strip()
