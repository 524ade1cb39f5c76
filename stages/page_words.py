"""The words of generated pages, in English and Chinese."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Words:
    """One language's labels and punctuation."""

    chinese: bool
    seeds: str
    decided: str
    later: str
    files: str
    memories: str
    pinned: str
    open: str
    colon: str
    comma: str
    semicolon: str

    def counts(self, sessions: int, turns: int) -> str:
        if self.chinese:
            return f"{sessions} 个会话，{turns} 轮"
        return f"{sessions} session{'s' * (sessions != 1)}, {turns} turn{'s' * (turns != 1)}"

    def session(self, title: str) -> str:
        return f"会话“{title}”" if self.chinese else f"session “{title}”"

    def turns(self, ranges: str) -> str:
        if self.chinese:
            return f"第 {ranges} 轮"
        return f"turn{'' if ranges.isdigit() else 's'} {ranges}"

    def turn(self, number: int) -> str:
        return f"第 {number} 轮" if self.chinese else f"turn {number}"

    def more(self, count: int) -> str:
        return f"另有 {count} 条" if self.chinese else f"and {count} more"


ENGLISH = Words(
    False,
    "seeds",
    "Decided",
    "later on the same subject",
    "Files",
    "Memories",
    "Pinned",
    "Open",
    ": ",
    ", ",
    "; ",
)
CHINESE = Words(
    True, "关键词", "决定", "同一主题的后续决定", "文件", "相关记忆", "置顶", "未了结", "：", "，", "；"
)


def day(date: datetime, words: Words, *, year: bool = False) -> str:
    """``20 June`` or ``6月20日``, with the year when asked."""
    if words.chinese:
        return f"{date.year}年{date.month}月{date.day}日" if year else f"{date.month}月{date.day}日"
    return f"{date.day} {_MONTHS[date.month - 1]}" + (f" {date.year}" if year else "")


def day_range(first: datetime, last: datetime, words: Words) -> str:
    """``20 June – 2 July 2026``, ``20–21 July 2025``, or one day."""
    if first.date() == last.date():
        return day(first, words, year=True)
    if first.year != last.year:
        return f"{day(first, words, year=True)} – {day(last, words, year=True)}"
    if words.chinese:
        return f"{day(first, words, year=True)} – {day(last, words)}"
    if first.month == last.month:
        return f"{first.day}–{day(last, words, year=True)}"
    return f"{day(first, words)} – {day(last, words, year=True)}"
