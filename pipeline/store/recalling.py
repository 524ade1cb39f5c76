"""Reading memories: by key, by folder and tag, by what they say.

Methods return JSON-ready dicts with the field names of the compatible server.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from pipeline.errors import BadInput
from pipeline.store import names
from pipeline.store.catalogue import EXTENSION, Catalogue, Memory
from pipeline.store.memory_file import clean_tags
from pipeline.store.memory_search import Hit, MemorySearch

Json: TypeAlias = dict[str, Any]

PREVIEW_CHARS = 400
SEARCH_LIMIT = 10
RECENT_LIMIT = 5
NEAREST = 5


class MemoryReader:
    """The memories of one store, as their files are at each call. Writes nothing; safe to use from several
    threads.
    """

    def __init__(self, store: Path) -> None:
        self.store = store
        self.catalogue = Catalogue(store)
        self._search = MemorySearch()

    def all(self) -> tuple[Memory, ...]:
        """Every memory, archived ones included, by path."""
        return self.catalogue.all()

    def get(self, key: str, folder: str | None = None, *, exact: bool = False) -> Memory | None:
        """The memory that this key means: in the folder, else below it, else (no folder given) anywhere.

        Case does not matter where it does not decide; a ``key`` field is tried where no file name fits. With
        ``exact`` (for writes) more than one candidate raises BadInput that lists them; else the newest live
        one is taken.
        """
        wanted = names.key_name(key)
        if (folder or "").strip():
            place = names.folder_name(folder)
        elif found := self._exact(names.MEMORY, wanted):
            return found
        else:
            place = ""
        if place and (found := self._exact(place, wanted)):
            return found
        candidates = self._candidates(wanted, key, self._within(place))
        if not candidates and not place and "/" in key:  # a citation: memory/decisions/auth-flow
            above, _, last = key.rpartition("/")
            return self._exact(names.folder_name(above), names.key_name(last)) if above and last else None
        if exact and len(candidates) > 1:
            raise BadInput(f"key {key!r} is in several folders: name one of {_listing(candidates)}")
        return candidates[0] if candidates else None

    def recall(self, key: str, folder: str | None = None) -> Json:
        """One memory whole: ``{found, key, folder, title, content, tags, createdAt, updatedAt, source, …}``.

        Not found: the nearest keys. ``problem`` names file and line when its frontmatter is broken.
        """
        memory = self.get(key, folder)
        return {"found": False, **self._missing(key, folder)} if memory is None else _whole(memory)

    def recall_recent(self, limit: int = RECENT_LIMIT) -> Json:
        """The memories changed last, whole, newest first: ``{items}``; archived ones are left out."""
        live = [memory for memory in self.all() if not memory.archived]
        return {"items": [_whole(one) for one in sorted(live, key=_by_change)[: max(1, limit)]]}

    def list(self, folder: str | None = None, limit: int | None = None, tag: str | None = None) -> Json:
        """``{items, total}`` newest first, archived last; a folder includes its sub-folders, tags match in
        any case.

        With a limit each item has a ``preview``.
        """
        found = self._within(names.folder_name(folder) if folder else "")
        if tag:
            wanted = next(iter(clean_tags([tag])), "").casefold()
            found = [memory for memory in found if wanted in {one.casefold() for one in memory.tags}]
        found = sorted(found, key=lambda memory: (memory.archived, *_by_change(memory)))
        shown = found if limit is None else found[: max(1, limit)]
        return {"items": [_item(one, preview=limit is not None) for one in shown], "total": len(found)}

    def list_tags(self) -> Json:
        """``{tags, counts}``: all tags in use, each in its commonest spelling, by name."""
        spellings = Counter(tag for memory in self.all() for tag in memory.tags)
        counts: dict[str, int] = {}
        shown: dict[str, str] = {}
        for tag, count in spellings.most_common():
            name = shown.setdefault(tag.casefold(), tag)
            counts[name] = counts.get(name, 0) + count
        return {"tags": sorted(counts), "counts": dict(sorted(counts.items()))}

    def find(
        self, query: str, folder: str | None = None, limit: int = SEARCH_LIMIT
    ) -> tuple[tuple[Hit, ...], int]:
        """The best memories for a query and how many match (see MemorySearch.find). Raises BadInput for no
        query.
        """
        if not query.strip():
            raise BadInput("query is empty: give words that the memory may hold")
        within = self._within(names.folder_name(folder) if folder else "")
        return self._search.find(within, query, max(1, limit))

    def search(self, query: str, folder: str | None = None, limit: int = SEARCH_LIMIT) -> Json:
        """find as ``{items: [{key, folder, title, tags, updatedAt, matches, score}], total}``."""
        hits, total = self.find(query, folder, limit)
        items = [
            {**_item(hit.memory), "matches": list(hit.snippets), "score": round(hit.score, 3)} for hit in hits
        ]
        return {"items": items, "total": total}

    def _place(self, folder: str, key: str) -> str:
        """The path of a memory: an existing folder or file that differs only in case is taken."""
        found = ""
        for part in folder.split("/"):
            found = f"{found}/{_present(self.store / found, part)}".lstrip("/")
        path = f"{found}/{_present(self.store / found, key + EXTENSION)}"
        names.inside(self.store, self.store / path)
        return path

    def _exact(self, folder: str, key: str) -> Memory | None:
        return self.catalogue.at(self._place(folder, key))

    def _within(self, folder: str) -> Sequence[Memory]:
        if not folder:
            return self.all()
        place = names.identity(folder) + "/"
        return [one for one in self.all() if f"{names.identity(one.folder)}/".startswith(place)]

    def _candidates(self, wanted: str, key: str, memories: Iterable[Memory]) -> Sequence[Memory]:
        by_name, by_field = [], []
        for memory in memories:
            if names.identity(memory.key) == names.fold(wanted):
                by_name.append(memory)
            elif memory.written_key and names.fold(memory.written_key) in (
                names.fold(key),
                names.fold(wanted),
            ):
                by_field.append(memory)
        return sorted(by_name or by_field, key=lambda memory: (memory.archived, *_by_change(memory)))

    def _missing(self, key: str, folder: str | None) -> Json:
        known = {memory.key: memory for memory in self.all()}
        near = difflib.get_close_matches(names.key_name(key), known, NEAREST, 0.5)
        return {
            "key": key,
            "folder": names.folder_name(folder),
            "error": "Memory not found",
            "nearest": [{"key": one, "folder": known[one].folder} for one in near],
        }


def _present(folder: Path, name: str) -> str:
    """``name``, or the entry of ``folder`` that differs from it in case only."""
    if (folder / name).exists():
        return name
    try:
        return names.same(name, sorted(entry.name for entry in folder.iterdir())) or name
    except OSError:
        return name


def _by_change(memory: Memory) -> tuple[int, str]:
    return (-memory.changed_at, memory.path)


def _listing(memories: Sequence[Memory]) -> str:
    return ", ".join(memory.folder for memory in memories[:NEAREST]) + (
        "…" if len(memories) > NEAREST else ""
    )


def _item(memory: Memory, *, preview: bool = False) -> Json:
    item: Json = {
        "key": memory.key,
        "folder": memory.folder,
        "title": memory.title,
        "tags": list(memory.tags),
        "updatedAt": memory.updated_at,
        "size": memory.size,
    }
    if preview:
        item["preview"] = memory.body[:PREVIEW_CHARS]
    return {**item, "problem": memory.problem} if memory.problem else item


def _whole(memory: Memory) -> Json:
    found: Json = {
        "found": True,
        "key": memory.key,
        "folder": memory.folder,
        "title": memory.title,
        "content": memory.body,
        "tags": list(memory.tags),
        "createdAt": memory.created_at,
        "updatedAt": memory.updated_at,
    }
    if memory.source:
        found["source"] = dict(memory.source)
    return {**found, "problem": memory.problem} if memory.problem else found
