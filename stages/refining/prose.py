"""Markdown as people and models write it in chats: blocks with character spans, sentences, and plain text.

Not a CommonMark parser: it keeps the offsets of everything (facts carry spans) and reads each line once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

HEAD = 4_000
TAIL = 8_000
"""Characters of a long text that are read: conclusions stand at the end, what it is about at the
beginning.
"""
MAX_BLOCKS = 240

Kind = Literal["heading", "item", "para", "code", "table", "quote"]


class Block(NamedTuple):
    """One line-like unit. ``start``/``end`` delimit its content (without marker) in the text that was parsed.

    ``section`` is the heading above it, ``lead`` the line ending in a colon that introduces its list,
    ``parent`` the index of the list item it is nested under (-1: none), ``number`` its ordinal if it has one.
    """

    kind: Kind
    text: str
    start: int
    end: int
    level: int = 0
    section: str = ""
    lead: str = ""
    parent: int = -1
    number: str = ""


class Sentence(NamedTuple):
    """A sentence in plain words, and where it stands in the text that was parsed."""

    text: str
    start: int
    end: int
    block: int = 0


_FENCE = re.compile(r"[ \t]{0,8}(```+|~~~+)")
_HEADING = re.compile(r"[ \t]{0,3}(#{1,6})[ \t]+")
_BOLD_LINE = re.compile(r"[ \t]{0,3}\*\*[^*\n]{2,80}\*\*[ \t]*[:：]?[ \t]*$")
_ITEM = re.compile(
    r"([ \t]{0,16})(?:[-*+•][ \t]+(?:\[[ xX]\][ \t]+)?|(\d{1,2}|[A-Za-z])[.)][ \t]+|(\d{1,2})[、）][ \t]*|"
    r"[（(](\d{1,2})[)）][ \t]*|([①②③④⑤⑥⑦⑧⑨])[ \t]*)(?=\S)"
)
_TABLE = re.compile(r"[ \t]{0,3}\|")
_QUOTE = re.compile(r"[ \t]{0,3}>[ \t]?")
_RULE = re.compile(r"[ \t]{0,3}(?:[-*_⸻─=][ \t]?){1,}$")

_LEFT_OUT = re.compile(r"…\[\d+ characters left out\]…")
_LINK = re.compile(r"!?\[([^\]\n]{0,200})\]\((?:[^()\n]{0,400})\)")
# These begin with what all their matches begin with: only so does a search skip what cannot begin one.
_CODE_SPAN = re.compile(r"``?([^`\n]{1,200})``?")
_BOLD = re.compile(r"([*_])\1(?=\S)([^\n]{1,300}?)(?<=\S)\1\1")
_ITALIC = re.compile(r"\*(?<![\w*]\*)(?=[^\s*])([^*\n]{1,200})(?<=[^\s*])\*(?![\w*])")
_MARKS = re.compile(
    r"[\u2705\u274c\u2714\u2716\u26a0\u2b50\ufe0f\u2713\u2717\u2757\U0001f300-\U0001faff]+[ \t]*"
)
_SPACE = re.compile(r"\s+")
_ENDS = re.compile(
    r"[。！？.!?\n](?:(?<=[。！？])[。！？]*[”’」』）)\"]?"
    r"|(?<=[.!?])[.!?]*[\"')\]*_`]{0,3}(?=\s+[\"'(\[*_`]{0,3}[A-Z0-9\u4e00-\u9fff✅❌@/`]|\s*$|[\u4e00-\u9fff])"
    r"|(?<=\n)\n*)"
)
_CLAUSE_END = re.compile(r".*(?:[.!?]\s+|[。！？])", re.DOTALL)
_CASUAL_ENDS = re.compile(
    r"[。！？.!?\n](?:(?<=[。！？])[。！？]*[”’」』）)\"]?"
    r"|(?<=[.!?])[.!?]*[\"')\]]{0,2}(?=\s|$|[\u4e00-\u9fff])|(?<=\n)\n*)"
)
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|vs|etc|cf|approx|no|fig|mr|dr|st)|\b[A-Z]|^\s*\d{1,2}|\.)$", re.IGNORECASE
)
CJK = re.compile(r"[\u3400-\u9fff]")


def plain(text: str) -> str:
    """Without inline Markdown, emoji marks and runs of white space; code spans keep their content."""
    if "](" in text:
        text = _LINK.sub(r"\1", text)
    if "**" in text or "__" in text:
        text = _BOLD.sub(r"\2", text)
        text = text.replace("**", "")
    if "*" in text:
        text = _ITALIC.sub(r"\1", text)
    if "`" in text:
        text = _CODE_SPAN.sub(r"\1", text).replace("`", "")
    if not text.isascii():
        text = _MARKS.sub("", text)
    if "  " in text or "\n" in text or "\t" in text or "\u3000" in text:
        text = _SPACE.sub(" ", text)
    return text.strip()


def is_chinese(text: str) -> bool:
    """Whether a reader would expect Chinese: at least one CJK character for every six Latin words, and
    two in all.
    """
    if text.isascii():
        return False
    cjk = len(CJK.findall(text[:2_000]))
    return cjk >= 2 and cjk * 3 >= len(re.findall(r"[A-Za-z]{2,}", text[:2_000]))


def windows(text: str) -> list[tuple[int, str]]:
    """``(offset, part)`` of what is read of a text: all of it, or head and tail at line ends."""
    if len(text) <= HEAD + TAIL:
        return [(0, text)]
    head_end = text.rfind("\n", 0, HEAD)
    head_end = head_end if head_end > HEAD // 2 else HEAD
    tail_start = text.find("\n", len(text) - TAIL)
    tail_start = tail_start + 1 if 0 <= tail_start < len(text) - TAIL // 2 else len(text) - TAIL
    return [(0, text[:head_end]), (tail_start, text[tail_start:])]


def blocks(text: str, base: int = 0) -> list[Block]:
    """The blocks of a text, at most ``MAX_BLOCKS``. Offsets are raised by ``base``."""
    reader = _Reader(base)
    position = 0
    for line in text.split("\n"):
        reader.line(line, position)
        position += len(line) + 1
        if len(reader.out) >= MAX_BLOCKS:
            break
    return reader.out


class _Reader:
    """Folds lines into blocks; holds the open fence, section, lead and list."""

    def __init__(self, base: int) -> None:
        self.base = base
        self.out: list[Block] = []
        self.fence = ""
        self.section = ""
        self.lead = ""
        self.stack: list[tuple[int, int]] = []  # (indent, block index) of open list items
        self.blank = True

    def line(self, line: str, position: int) -> None:
        stripped = line.strip()
        if self.fence:
            if stripped.startswith(self.fence):
                self.fence = ""
            return
        if not stripped or (stripped[0] == "…" and _LEFT_OUT.fullmatch(stripped)):
            self.blank = True
            return
        first = stripped[0]
        if first in "`~" and (fence := _FENCE.match(line)):
            self.fence = fence[1][:3]
            self._add("code", "", position, position + len(line))
        elif first == "|" and _TABLE.match(line):
            self._add("table", stripped, position, position + len(line))
        elif first == ">" and (quote := _QUOTE.match(line)):
            self._add("quote", line[quote.end() :], position + quote.end(), position + len(line))
        elif first == "#" and (heading := _HEADING.match(line)):
            self._heading(line, heading.end(), position, len(heading[1]))
        elif first == "*" and _BOLD_LINE.match(line):
            self._heading(line, 0, position, 6)
        elif first in "-*_⸻─=" and _RULE.match(line):
            self.blank = True
        elif (not first.isalpha() or stripped[1:2] in ".)") and (item := _ITEM.match(line)):
            self._item(line, item, position)
        else:
            self._para(line, stripped, position)
        self.blank = False

    def _add(self, kind: Kind, text: str, start: int, end: int, level: int = 0, number: str = "") -> None:
        parent = self.stack[-1][1] if self.stack and kind in ("item", "para") else -1
        self.out.append(
            Block(
                kind, text, start + self.base, end + self.base, level, self.section, self.lead, parent, number
            )
        )

    def _heading(self, line: str, skip: int, position: int, level: int) -> None:
        self.section = plain(line[skip:]).rstrip(":： ")
        self.lead = ""
        self.stack = []
        self._add("heading", line[skip:], position + skip, position + len(line), level)

    def _item(self, line: str, item: re.Match[str], position: int) -> None:
        indent = len(item[1].expandtabs(4))
        while self.stack and self.stack[-1][0] >= indent:
            self.stack.pop()
        number = next((group for group in item.groups()[1:] if group), "")
        self._add("item", line[item.end() :], position + item.end(), position + len(line), indent, number)
        self.stack.append((indent, len(self.out) - 1))

    def _para(self, line: str, stripped: str, position: int) -> None:
        start = position + len(line) - len(line.lstrip())
        indent = start - position
        last = self.out[-1] if self.out else None
        if not self.blank and last is not None and _continues(last, stripped):
            joined = last.text + " " * (start + self.base - last.end) + stripped  # offsets stay true
            self.out[-1] = Block(
                last.kind,
                joined,
                last.start,
                start + self.base + len(stripped),
                last.level,
                last.section,
                last.lead,
                last.parent,
                last.number,
            )
            return
        if indent < 2:
            self.stack = []
        self._add("para", stripped, start, start + len(stripped))
        if stripped.rstrip("*_ ").endswith((":", "：")) and indent < 2:
            self.lead = last_clause(stripped)
        elif indent < 2:
            self.lead = ""


def last_clause(text: str) -> str:
    """The last sentence of a lead-in, plain, without its colon: what its list is about."""
    tail = text[-300:]
    before = _CLAUSE_END.match(tail)
    return plain(tail[before.end() :] if before else tail).rstrip(":： ")


def _continues(last: Block, line: str) -> bool:
    """A hard-wrapped line goes on when the one before is long and open, and this one begins in lower case."""
    return (
        last.kind in ("para", "item")
        and len(last.text) >= 50
        and last.text[-1] not in ".!?:;。！？：；"
        and line[0].islower()
    )


def sentences(block: Block, index: int = 0, *, casual: bool = False) -> Iterator[Sentence]:
    """The sentences of one block, in plain words, with spans; never across blocks. ``casual``: lower
    case begins one.
    """
    text = block.text
    start = 0
    for end in _ends(text, _CASUAL_ENDS if casual else _ENDS):
        piece = text[start:end]
        stripped = piece.strip()
        if stripped:
            lead = len(piece) - len(piece.lstrip())
            cleaned = plain(stripped)
            if cleaned:
                first = block.start + start + lead
                yield Sentence(cleaned, first, first + len(stripped), index)
        start = end


def _ends(text: str, pattern: re.Pattern[str]) -> Iterator[int]:
    spans = [span.span() for span in _CODE_SPAN.finditer(text)] if "`" in text else []
    for match in pattern.finditer(text):
        at, behind = match.span()
        if spans and behind < len(text) and any(start < at < end - 1 for start, end in spans):
            continue  # within a code span
        if text[at] == "." and _abbreviates(text, at):
            continue
        yield behind
    yield len(text)


def _abbreviates(text: str, end: int) -> bool:
    """Whether an abbreviation ends here ("e.g", "vs", a letter, a number)."""
    last = text[max(0, end - 4) : end]
    if len(last) == 4 and last.isalpha() and last[-1] not in "xX":
        return False  # a word, and longer than any of them but "approx"
    return _ABBREVIATION.search(text, max(0, end - 8), end) is not None


def joined(texts: list[str]) -> str:
    """Sentences one after the other: a space between them, except behind Chinese punctuation."""
    out = ""
    for text in texts:
        out = f"{out}{text}" if not out or out[-1] in "。！？；：，" else f"{out} {text}"
    return out


def clip(text: str, limit: int) -> str:
    """At most ``limit`` characters, cut at a word or clause with an ellipsis."""
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    best = max(cut.rfind(mark) for mark in " ，；。、,;")
    if best >= limit * 0.6:
        cut = cut[:best]
    return cut.rstrip(" ,;:，；：、—–-(（“\"'") + "…"
