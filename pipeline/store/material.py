"""What an essence is made from: the memories, the most telling ones whole, the others by a line or a title.

Any number of memories fits: a page has a hard limit in characters, and every memory is named on some page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from pipeline.errors import PipelineError
from pipeline.store import essence, files, names
from pipeline.store.catalogue import Memory
from pipeline.store.index import Json

Tier: TypeAlias = Literal["full", "summary", "title"]

PAGE_CHARS = 12_000
PAGE_LEAST = 2_000
FULL_SHARE, SUMMARY_SHARE = 0.6, 0.3
"""Shares of the first page for whole texts and for summary lines; the titles follow."""

FULL_CHARS = 1_600
SUMMARY_CHARS = 160
TITLE_CHARS = 120
HALF_LIFE_DAYS = 120.0
DAY_MS = 86_400_000

FOLDER_WEIGHTS = {"rules": 1.0, "decisions": 0.9, "knowledge": 0.6, "reference": 0.35}
OTHER_FOLDER, NOTES_FOLDER = 0.5, 0.2
WEIGHTS = {"pin": 3.0, "folder": 1.2, "use": 1.0, "age": 0.8, "links": 0.6, "cited": 0.4}

USAGE_PATH = ".cache/usage.json"
USAGE_KEPT = 5_000

RULES_EN = f"""\
Rules for the essence (essence/essence.md):
1. At most {essence.LIMIT} bytes (UTF-8): identity, rules, preferences, decisions in force; no history.
2. One fact a bullet, in its final form; a superseded decision is replaced, not listed.
3. Every fact cites its memory: "(memory/<folder>/<key>)", or below a list "> Source: memory/<folder>/<key>".
4. Only what the memories or the user say. Leave details where they are; cite them. Nothing secret.
5. Keep what a person wrote or pinned. Write in the language of the memories.
6. Then call organize_memories with the whole text as content: it replaces the essence; the old one is kept"""

RULES_ZH = f"""\
精要（essence/essence.md）的写作规则：
1. 不超过 {essence.LIMIT} 字节（UTF-8）：只写长期有效的身份、规则、偏好和现行决策，不写过程和教程。
2. 一条要点一行，写最终结论；已被取代的决策直接替换，不要并列。
3. 每条关键事实都要注明来源：行内（memory/<folder>/<key>），或列表下方「> 来源：memory/<folder>/<key>」。
4. 只写记忆或用户说过的内容；细节留在原记忆里，引用即可；不得包含任何密钥。
5. 保留用户亲手写下或置顶的内容；使用记忆本身的语言。
6. 写好后再次调用 organize_memories，把全文放在 content 中：它会替换现有精要，旧版本会保留。"""


@dataclass(frozen=True, slots=True)
class Scored:
    """A memory with its score and why: ``parts`` are the weighted components that add up to it."""

    memory: Memory
    score: float
    parts: Mapping[str, float]


class Usage:
    """How often memories were used: a cache, losing it loses no memory. ``now`` gives ms."""

    def __init__(self, store: Path, now: Callable[[], int]) -> None:
        self._store = store
        self._now = now

    def record(self, used: Iterable[str]) -> None:
        """Count one use of each of these memories (``folder/key``). Never raises: reading must work on any
        disk.
        """
        with suppress(PipelineError), files.locked(self._store, USAGE_PATH, timeout=1.0):
            counts = self._read()
            for name in used:
                counts[name] = {"n": self._count(counts.get(name)) + 1, "at": self._now()}
            if len(counts) > USAGE_KEPT:
                latest = sorted(counts.items(), key=lambda one: -int(one[1]["at"]))
                counts = dict(latest[: USAGE_KEPT // 2])
            files.write_json(self._store / USAGE_PATH, counts)

    def counts(self) -> dict[str, int]:
        """Uses by memory name; empty when the cache is missing or unreadable."""
        with suppress(PipelineError):
            return {name: self._count(entry) for name, entry in self._read().items()}
        return {}

    def _read(self) -> Json:
        data = files.read_json(self._store / USAGE_PATH)
        usable = data.items() if isinstance(data, dict) else ()
        return {
            name: entry
            for name, entry in usable
            if isinstance(entry, dict) and isinstance(entry.get("at"), int)
        }

    @staticmethod
    def _count(entry: object) -> int:
        count = entry.get("n") if isinstance(entry, dict) else None
        return count if isinstance(count, int) else 0


def score(
    memories: Iterable[Memory],
    *,
    now: int,
    uses: Mapping[str, int],
    links: Mapping[str, int],
    cited: Iterable[str] = (),
) -> list[Scored]:
    """The memories for an essence, best first; archived ones are left out.

    ``now`` is in ms; ``uses`` and ``links`` (theme links) count by ``folder/key``; ``cited`` are the names
    that the present essence cites.
    """
    held = {names.fold(name) for name in cited}
    found = []
    for memory in memories:
        if memory.archived:
            continue
        days = max(0, now - memory.changed_at) / DAY_MS
        parts = {
            "pin": float(memory.pinned or "pinned" in {tag.casefold() for tag in memory.tags}),
            "folder": _folder_weight(memory.folder),
            "use": min(1.0, math.log1p(uses.get(memory.name, 0)) / math.log(21)),
            "age": 0.5 ** (days / HALF_LIFE_DAYS),
            "links": min(1.0, links.get(memory.name, 0) / 3),
            "cited": float(names.fold(memory.name) in held),
        }
        weighed = {name: WEIGHTS[name] * value for name, value in parts.items()}
        found.append(Scored(memory, sum(weighed.values()), weighed))
    return sorted(found, key=lambda one: (-one.score, one.memory.path))


def material(
    scored: Sequence[Scored], present: str, *, page: int = 1, limit: int = PAGE_CHARS, language: str = ""
) -> Json:
    """One page: ``{page, pages, total, tiers, rules, essence, material}``, in all at most about ``limit``
    characters.

    ``present`` is the essence as it is; it and the rules come with the first page and do not count against
    ``limit``, which bounds ``material``. ``language`` is ``zh`` or ``en``, by default that of the memories.
    """
    limit = max(PAGE_LEAST, limit)
    entries = _entries(scored, limit)
    pages = _paged([text for _, text in entries], limit)
    page = min(max(1, page), len(pages))
    found: Json = {
        "page": page,
        "pages": len(pages),
        "total": len(scored),
        "tiers": {tier: sum(one == tier for one, _ in entries) for tier in ("full", "summary", "title")},
        "material": pages[page - 1],
    }
    if page == 1:
        found["rules"] = RULES_ZH if (language or _language(scored)) == "zh" else RULES_EN
        found["essence"] = present
        found["essenceBytes"] = len(present.encode("utf-8"))
    return found


def _entries(scored: Sequence[Scored], limit: int) -> list[tuple[Tier, str]]:
    """Each memory's text at its tier, in order of score; a tier once closed stays closed."""
    entries: list[tuple[Tier, str]] = []
    room = {"full": limit * FULL_SHARE, "summary": limit * SUMMARY_SHARE}
    tier: Tier = "full"
    for one in scored:
        text = _text(one.memory, tier)
        while tier != "title" and len(text) + 1 > room[tier]:
            tier = "summary" if tier == "full" else "title"
            text = _text(one.memory, tier)
        if tier != "title":
            room[tier] -= len(text) + 1
        entries.append((tier, text))
    return entries


def _text(memory: Memory, tier: Tier) -> str:
    name = memory.name
    if tier == "title":
        return f"- {name}" + ("" if memory.title == memory.key else f": {_line(memory.title, TITLE_CHARS)}")
    if tier == "summary":
        gist = _line(_first_sentence(memory.body), SUMMARY_CHARS)
        return f"- {name}: {_line(memory.title, TITLE_CHARS)} — {gist}"
    body = memory.body if len(memory.body) <= FULL_CHARS else memory.body[:FULL_CHARS].rstrip() + " …"
    tags = f" [{', '.join(memory.tags)}]" if memory.tags else ""
    return f"## {name}: {_line(memory.title, TITLE_CHARS)}{tags} ({memory.updated_at[:10]})\n{body}\n"


def _paged(texts: Sequence[str], limit: int) -> list[str]:
    pages: list[list[str]] = [[]]
    length = 0
    for text in texts:
        text = text[:limit]
        if pages[-1] and length + len(text) + 1 > limit:
            pages.append([])
            length = 0
        pages[-1].append(text)
        length += len(text) + 1
    return ["\n".join(page) for page in pages]


def _first_sentence(body: str) -> str:
    for line in body.split("\n"):
        if (text := line.strip(" \t-*>|`")) and not text.startswith("#"):
            return text
    return ""


def _line(text: str, limit: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _folder_weight(folder: str) -> float:
    top, _, rest = folder.partition("/")
    if top == names.NOTES:
        return NOTES_FOLDER
    return FOLDER_WEIGHTS.get(rest.partition("/")[0].casefold(), OTHER_FOLDER)


def _language(scored: Sequence[Scored]) -> str:
    """``zh`` when a good part of the best memories is written in Chinese characters."""
    sample = "".join(one.memory.title + one.memory.body[:400] for one in scored[:40])
    letters = sum(character.isalpha() for character in sample)
    return "zh" if sum("\u4e00" <= one <= "\u9fff" for one in sample) > 0.15 * max(letters, 1) else "en"
