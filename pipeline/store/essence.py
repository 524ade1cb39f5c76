"""The essence: at most 15 KiB of standing identity, rules and facts, every one with its source (design: Three
layers).

Three files are read as one: global (all workspaces), the workspace's own, and the project's, which lies with
its code. Only the workspace's is written here; an edit from outside shows at the next call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import BadInput
from pipeline.store import files, memory_file, names
from pipeline.store.catalogue import iso
from pipeline.store.index import Index, Json
from pipeline.store.versions import Versions
from stages.snippet import without_fences

LIMIT = 15 * 1024
"""Bytes of an essence's text in UTF-8, without its frontmatter."""

PATH = "essence/essence.md"
GLOBAL = "global"
PROJECT_PATH = ".kimi-code/memory/essence.md"
SECTIONS_NAMED = 3
FLAGS_SHOWN = 20
FLAG_CHARS = 120

_MEMORY = r"(?:memory|notes|archive)/[^\s,，、;；()（）\[\]<>\"'`|。]+"
_QUOTED = re.compile(r"(?:来源|出处|[Ss]ources?|[Ff]rom)\s*[:：](.*)$", re.MULTILINE)
_BRACKETED = re.compile(rf"[(（\[]\s*((?:{_MEMORY}[\s,，、;；]*)+)[)）\]]")
_NAMED = re.compile(_MEMORY)
_BULLET = re.compile(r"^(\s*)(?:[-*+]|\d+[.)、])\s+")
_HEADING = re.compile(r"^#{1,6}\s+(.*)$")
_RULE = re.compile(r"^\s*([-*_])(?:\s*\1){2,}\s*$")


class EssenceTooLarge(BadInput):
    """The text is over LIMIT. ``size`` is in bytes, ``sections`` are the largest ones as ``(heading,
    bytes)``.
    """

    def __init__(self, size: int, sections: tuple[tuple[str, int], ...]) -> None:
        largest = ", ".join(f"“{heading}” {length} bytes" for heading, length in sections)
        super().__init__(
            f"the essence has {size} bytes; at most {LIMIT} are kept: cut {size - LIMIT}",
            hint=f"Largest sections: {largest}. Shorten them, or leave details to the memories they cite.",
        )
        self.size = size
        self.sections = sections


@dataclass(frozen=True, slots=True)
class Fact:
    """One bullet or paragraph: its 1-based line in the text and the memories it cites."""

    line: int
    text: str
    cites: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Level:
    """One of the three files: ``name`` is global, workspace or project. ``text`` is cut at LIMIT bytes."""

    name: str
    path: Path
    text: str
    size: int
    updated_at: str
    problem: str = ""


class Essence:
    """The essence of one store. ``now`` gives ms; ``redact`` is applied before the text is written."""

    def __init__(
        self, store: Path, index: Index, *, now: Callable[[], int], redact: Callable[[str], str]
    ) -> None:
        self.path = store / PATH
        self._store = store
        self._index = index
        self._versions = Versions(store, now)
        self._now = now
        self._redact = redact

    def write(self, content: str, known: Iterable[str], title: str = "") -> Json:
        """Store the text: ``{success, changed, path, bytes, limit, previous, facts, uncited, dangling, …}``.

        ``known`` are the names (``folder/key``) of the memories there are. Uncited and dangling facts are
        flagged, not refused. Raises BadInput for an empty text or broken frontmatter and EssenceTooLarge,
        without a write.
        """
        # A frontmatter that came along is ours to write.
        body = memory_file.parse(memory_file.printable_body(self._redact(without_fences(content)))).body
        if not body:
            raise BadInput(
                "content is empty: an essence is never wiped; edit or remove essence/essence.md by hand"
            )
        size = len(body.encode("utf-8"))
        if size > LIMIT:
            raise EssenceTooLarge(size, largest_sections(body))
        with files.locked(self._store, PATH):
            old = files.read_bytes(self.path)
            data = self._render(old, body, memory_file.printable(self._redact(title)))
            previous = None
            if data != old:
                previous = None if old is None else self._versions.keep(PATH, old)
                files.write_bytes(self.path, data)
        self._index.refresh([PATH])
        return {
            "success": True,
            "changed": data != old,
            "path": str(self.path),
            "bytes": size,
            "limit": LIMIT,
            "previous": previous,
            **check(body, known),
        }

    def read(self) -> str:
        """The workspace's own essence as it is now, without frontmatter; empty when there is none."""
        return memory_file.parse(files.read_text(self.path) or "").body

    def previous(self) -> tuple[Path, ...]:
        """The versions that were overwritten, newest first."""
        return self._versions.of(PATH)

    def _render(self, old: bytes | None, body: str, title: str) -> bytes:
        file = memory_file.parse((old or b"").decode("utf-8", "replace"))
        now = iso(self._now())
        if old is None or file.problem is not None:  # the broken version is kept in the history
            fields = {"key": "essence", "title": title or "Essence", "tags": ["essence"], "updatedAt": now}
            return memory_file.render(memory_file.create(fields, body)).encode("utf-8")
        if file.body == body and (not title or title == file.title):
            return old or b""
        changes: dict[str, memory_file.Value] = {"updatedAt": now}
        if title or "title" not in file.fields:
            changes["title"] = title or "Essence"
        if "key" not in file.fields:
            changes["key"] = "essence"
        try:
            return memory_file.render(memory_file.edited(file, changes, body)).encode("utf-8")
        except ValueError:  # a field given twice: as for broken frontmatter
            return self._render(None, body, title)


def levels(store: Path, *, store_root: Path | None = None, project: Path | None = None) -> tuple[Level, ...]:
    """The essences that exist, from the most general to the most specific, as they are now.

    ``store_root`` is the parent of all stores (by default that of ``store``), ``project`` the project's
    directory.
    """
    root = store.parent if store_root is None else store_root
    places = [(GLOBAL, root / GLOBAL / PATH), ("workspace", store / PATH)]
    if project is not None:
        places.append(("project", project / PROJECT_PATH))
    return tuple(level for name, path in places if (level := _level(name, path)) is not None)


def merged(found: Sequence[Level]) -> str:
    """The levels as one text, each under its name; the later, more specific one wins where they disagree.

    A paragraph or list that a more specific level repeats word for word is shown there only.
    """
    seen: set[str] = set()
    parts: list[str] = []
    for level in reversed(found):
        blocks = [block for block in re.split(r"\n{2,}", level.text) if block.strip()]
        fresh = [block for block in blocks if block.lstrip().startswith("#") or block not in seen]
        seen.update(blocks)
        note = f" (unreadable frontmatter: {level.problem})" if level.problem else ""
        parts.append(f"[essence: {level.name}{note}]\n" + "\n\n".join(fresh))
    return "\n\n".join(reversed(parts))


def check(text: str, known: Iterable[str]) -> Json:
    """How well a text cites: ``{facts, cited, uncited, uncitedTotal, dangling}``.

    ``uncited`` are facts without a source, ``dangling`` citations of memories that are not there
    (``archived`` when they lie in the archive now). Both are shown to FLAGS_SHOWN.
    """
    found = list(facts(text))
    present = {names.fold(name): name for name in known}
    uncited = [fact for fact in found if not fact.cites]
    dangling = []
    for fact in found:
        for cite in dict.fromkeys(fact.cites):
            if names.fold(cite) not in present:
                folder, _, key = cite.partition("/")
                kept = f"archive/{key if folder == names.MEMORY else cite}"
                dangling.append({"line": fact.line, "cites": cite, "archived": names.fold(kept) in present})
    return {
        "facts": len(found),
        "cited": len(found) - len(uncited),
        "uncited": [{"line": fact.line, "text": fact.text[:FLAG_CHARS]} for fact in uncited[:FLAGS_SHOWN]],
        "uncitedTotal": len(uncited),
        "dangling": dangling[:FLAGS_SHOWN],
    }


def citations(text: str) -> tuple[str, ...]:
    """The ``folder/key`` names a text cites, in order: after ``来源：`` or ``Source:`` or in brackets."""
    spots = [match[1] for match in _QUOTED.finditer(text)] + [match[1] for match in _BRACKETED.finditer(text)]
    found = (name.rstrip(".:：/").removesuffix(".md") for spot in spots for name in _NAMED.findall(spot))
    return tuple(dict.fromkeys(found))


def facts(text: str) -> Iterator[Fact]:
    """The bullets and paragraphs of a text. A quote that cites speaks for the list or paragraph right above
    it.

    Left out: headings, code, rules and lines that only lead in (``…:``). A bullet shares its parent's
    citations.
    """
    group: list[Fact] = []
    parents: list[tuple[int, tuple[str, ...]]] = []
    for line, block in _blocks(text):
        if not block.strip() or _HEADING.match(block):
            if _HEADING.match(block):
                yield from group
                group, parents = [], []
            elif group and not group[-1].text.startswith("\0"):
                group.append(Fact(line, "\0", ()))  # a blank line: a quote may still follow
            continue
        if block.lstrip().startswith(">"):
            group = list(_covered(group, citations(block)))
            continue
        if group and group[-1].text == "\0":
            yield from (fact for fact in group if fact.text != "\0")
            group = []
        bullet = _BULLET.match(block)
        depth = len(bullet[1].expandtabs(4)) if bullet else -1
        parents = [parent for parent in parents if parent[0] < depth]
        cites = citations(block) or (parents[-1][1] if parents and bullet else ())
        parents.append((depth, cites))
        if not block.rstrip().endswith((":", "：")):
            group.append(Fact(line, " ".join(block.split()), cites))
    yield from (fact for fact in group if fact.text != "\0")


def largest_sections(text: str) -> tuple[tuple[str, int], ...]:
    """The largest sections by bytes, as ``(heading, bytes)``; what stands above the first heading is the
    “beginning”.
    """
    sizes: dict[str, int] = {}
    heading = "beginning"
    for line in text.split("\n"):
        if match := _HEADING.match(line):
            heading = match[1].strip()
        sizes[heading] = sizes.get(heading, 0) + len(line.encode("utf-8")) + 1
    return tuple(sorted(sizes.items(), key=lambda one: -one[1])[:SECTIONS_NAMED])


def _covered(group: Iterable[Fact], cites: tuple[str, ...]) -> Iterator[Fact]:
    """The group once a quote below it cited: its uncited facts share the quote's source."""
    for fact in group:
        if fact.text != "\0":
            yield fact if fact.cites or not cites else Fact(fact.line, fact.text, cites)


def _blocks(text: str) -> Iterator[tuple[int, str]]:
    """Line and text of each heading, bullet, quote, paragraph or blank line; code and rules left out."""
    start, fence = 0, ""
    lines: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.lstrip()
        opens = stripped[:3] if stripped.startswith(("```", "~~~")) else ""
        if fence or opens:
            fence = "" if fence and opens == fence else fence or opens
            continue
        single = not stripped or _HEADING.match(line) or _RULE.match(line)
        begins = (
            single
            or _BULLET.match(line)
            or (stripped[0] == ">") != (bool(lines) and lines[0].lstrip()[0] == ">")
        )
        if begins and lines:
            yield start, "\n".join(lines)
            lines = []
        if single:
            if not _RULE.match(line):
                yield number, line
            continue
        if not lines:
            start = number
        lines.append(line)
    if lines:
        yield start, "\n".join(lines)


def _level(name: str, path: Path) -> Level | None:
    data = files.read_bytes(path, limit=4 * LIMIT)
    if data is None:
        return None
    file = memory_file.parse(data.decode("utf-8", "replace"))
    body = file.body.encode("utf-8")
    text = file.body
    if len(body) > LIMIT:
        text = body[:LIMIT].decode("utf-8", "ignore") + f"\n… (cut at {LIMIT} bytes)"
    problem = f"{path}:{file.problem.line}" if file.problem else ""
    updated = memory_file.scalar(file.fields.get("updatedAt")) or iso(path.stat().st_mtime_ns // 1_000_000)
    return Level(name, path, text, len(body), updated, problem)
