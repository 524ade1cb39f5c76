"""index.json, the catalogue that the compatible server reads (``3-kv``): a cache of titles, tags, folder
comments.

We never read titles or tags from it: the files are the truth. Writers bring single entries up to date under
one lock by reading the file again inside it, so that any number of processes end with an index equal to the
files. Archived memories are not in it: the other server knows no archive and would drop them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from pipeline.errors import BadInput
from pipeline.store import catalogue, files, names
from pipeline.store.catalogue import EXTENSION, Catalogue, Memory

INDEX = "index.json"
VERSION = "3-kv"
ESSENCE = "essence"
INDEXED = (names.MEMORY, names.NOTES, ESSENCE)
"""The folders that the index and the structure hash cover."""

KEPT_DIR = ".history"
TREE_NEWEST = 5

Json: TypeAlias = dict[str, Any]


class Index:
    """index.json of one store; ``now`` gives ms. Methods that write raise StoreError when the disk
    refuses."""

    def __init__(self, files_of: Catalogue, now: Callable[[], int]) -> None:
        self._catalogue = files_of
        self._store = files_of.store
        self._now = now

    def read(self) -> Json:
        """The index as it stands, converted to ``3-kv``; made from the files when it is lost or corrupt."""
        data = self._load()
        return data if data is not None else self._derived({})

    def refresh(self, paths: Iterable[str]) -> None:
        """Bring the entries of these files up to date after a write, move or delete of ours.

        Sets structureHash to null as the other server does at each write. Writes nothing when nothing
        differs.
        """
        with files.locked(self._store, INDEX):
            data = self._load()
            if data is None:
                self._save(self._derived({}))
                return
            changed = [path for path in paths if covered(path) and self._refresh_one(data["index"], path)]
            if changed:
                data["meta"]["structureHash"] = None
                self._save(data)

    def sync(self, folder_comments: Mapping[str, str] | None = None) -> Json:
        """Make the index equal to the files, keep folder comments, set those given (``memory/rules`` → text).

        Returns ``{synced, skipped, structureHash, report}`` as the other server does; skipped means
        unchanged. Raises BadInput for a comment on a path outside the store.
        """
        comments = {_folder_path(folder): text for folder, text in (folder_comments or {}).items()}
        with files.locked(self._store, INDEX):
            found = self._load()
            before: Json = found["index"] if found is not None else {}
            # The hash first: a file written meanwhile makes it differ, never the entries.
            digest = structure_hash(self._store)
            data = self._derived(before)
            data = {**(found or data), "meta": {**(found or data)["meta"]}, "index": data["index"]}
            for folder, text in comments.items():
                data["index"][folder] = {**data["index"].get(folder, {}), "comment": text}
            same = data["index"] == before and data["meta"]["structureHash"] == digest
            skipped = found is not None and same
            if not skipped:
                data["meta"]["structureHash"] = digest
                self._save(data)
        return {"synced": True, "skipped": skipped, "structureHash": digest, "report": _report(before, data)}

    def comments(self) -> dict[str, str]:
        """Folder comments by folder path with a final slash."""
        return {
            path: str(entry["comment"])
            for path, entry in self.read()["index"].items()
            if path.endswith("/") and isinstance(entry, dict) and entry.get("comment")
        }

    def _load(self) -> Json | None:
        """The index file in today's form; ``None`` when it is missing or unreadable (a copy of it is
        kept)."""
        path = self._store / INDEX
        data = files.read_json(path)
        if isinstance(data, dict):
            if data.get("version") == VERSION and isinstance(data.get("index"), dict):
                if not isinstance(data.get("meta"), dict):
                    data["meta"] = {}
                data["meta"].setdefault("structureHash", None)
                return data
            if data.get("version") == 1 and isinstance(data.get("entries"), dict):
                return _converted(data["entries"])
        return None

    def _save(self, data: Json) -> None:
        path = self._store / INDEX
        self._keep_foreign(path)
        data["meta"]["lastSyncAt"] = catalogue.iso(self._now())
        files.write_json(path, data)

    def _keep_foreign(self, path: Path) -> None:
        """Before the first write over an index that is not ours to read (v1, corrupt, newer), keep its
        bytes."""
        data = files.read_json(path)
        if not (isinstance(data, dict) and data.get("version") == VERSION) and (
            old := files.read_bytes(path)
        ):
            name = f"index-{hashlib.blake2b(old, digest_size=6).hexdigest()}.json"
            files.write_bytes(self._store / KEPT_DIR / name, old)

    def _derived(self, before: Mapping[str, Any]) -> Json:
        """A whole index from the files, with folder comments and unknown entry fields of the one
        ``before``."""
        entries: Json = {path: entry for path, entry in before.items() if path.endswith("/")}
        for memory in self._catalogue.all(INDEXED):
            entries[memory.path] = {**_extra(before.get(memory.path)), **_entry(memory)}
            _add_folders(entries, memory.path)
        meta = {"lastSyncAt": None, "structureHash": None}
        return {"version": VERSION, "meta": meta, "index": dict(sorted(entries.items()))}

    def _refresh_one(self, entries: Json, path: str) -> bool:
        memory = self._catalogue.at(path)
        if memory is None:
            return entries.pop(path, None) is not None
        entry = {**_extra(entries.get(path)), **_entry(memory)}
        if entries.get(path) == entry:
            return False
        entries[path] = entry
        _add_folders(entries, path)
        return True


def structure_hash(store: Path) -> str:
    """The other server's digest of a store's files, ``""`` for a store without any folder (docs: store
    formats).

    One line a ``.md`` file with its mtime, one a folder that holds none at any depth; sorted as JavaScript
    sorts.
    """
    lines: list[str] = []
    for root in INDEXED:
        if (store / root).is_dir():
            _hash_lines(store, root, lines)
    lines.sort(key=lambda line: line.encode("utf-16-be", "surrogatepass"))
    text = "\n".join(lines)
    return hashlib.md5(text.encode("utf-8", "replace"), usedforsecurity=False).hexdigest() if text else ""


def tree(memories: Sequence[Memory], comments: Mapping[str, str], newest: int = TREE_NEWEST) -> str:
    """The memories as an ASCII tree: folders with comments, files with titles, the newest marked
    ``[new]``."""
    latest = {one.path for one in sorted(memories, key=lambda one: -one.changed_at)[:newest]}
    folders: dict[str, list[str]] = {}
    leaves: dict[str, list[Memory]] = {}
    for memory in memories:
        leaves.setdefault(memory.folder, []).append(memory)
        folder = memory.folder
        while folder and folder not in folders:
            folders[folder] = []
            folder = folder.rpartition("/")[0]
    for folder in sorted(folders):
        folders.get(folder.rpartition("/")[0], []).append(folder)
    lines: list[str] = []
    for root in (folder for folder in sorted(folders) if "/" not in folder):
        lines.append(_folder_line(root, comments))
        _tree_lines(root, folders, leaves, comments, latest, "", lines)
    return "\n".join(lines)


def covered(path: str) -> bool:
    """Whether the index holds this path of the store."""
    return path.partition("/")[0] in INDEXED


def _tree_lines(
    folder: str,
    folders: Mapping[str, list[str]],
    leaves: Mapping[str, list[Memory]],
    comments: Mapping[str, str],
    latest: set[str],
    indent: str,
    lines: list[str],
) -> None:
    below: list[str | Memory] = [*folders[folder], *leaves.get(folder, [])]
    for child in below:
        last = child is below[-1]
        branch, deeper = ("`-- ", "    ") if last else ("|-- ", "|   ")
        if isinstance(child, str):
            lines.append(indent + branch + _folder_line(child, comments))
            _tree_lines(child, folders, leaves, comments, latest, indent + deeper, lines)
        else:
            title = "" if child.title == child.key else f" - {child.title}"
            lines.append(f"{indent}{branch}{child.key}{title}{' [new]' if child.path in latest else ''}")


def _folder_line(folder: str, comments: Mapping[str, str]) -> str:
    comment = comments.get(f"{folder}/", "")
    return f"{folder.rpartition('/')[2]}/" + (f"  # {comment}" if comment else "")


def _hash_lines(store: Path, folder: str, lines: list[str]) -> bool:
    """Append the lines of a folder; whether it holds a ``.md`` file at any depth."""
    holds = False
    try:
        entries = list(os.scandir(store / folder))
    except OSError:
        entries = []
    for entry in entries:
        if entry.name.startswith("."):
            continue
        path = f"{folder}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            holds = _hash_lines(store, path, lines) or holds
        elif entry.name.endswith(EXTENSION) and entry.is_file(follow_symlinks=False):
            lines.append(f"{path}:{_node_time(entry.stat(follow_symlinks=False).st_mtime_ns)}")
            holds = True
    if not holds:
        lines.append(f"{folder}/")
    return holds


def _node_time(mtime_ns: int) -> str:
    """An mtime as Node's ``stat().mtime.toISOString()`` prints it: rounded to ms, not cut (measured on Node
    20)."""
    seconds, nanoseconds = divmod(mtime_ns, 1_000_000_000)
    milliseconds = int(seconds * 1000 + nanoseconds / 1_000_000 + 0.5)
    whole = datetime.fromtimestamp(milliseconds // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{milliseconds % 1000:03d}Z"


def _converted(entries: Mapping[str, Any]) -> Json:
    """A ``version: 1`` index as ``3-kv``."""
    index: Json = {}
    for entry in entries.values():
        if not isinstance(entry, dict) or not entry.get("folder") or not entry.get("key"):
            continue
        path = f"{str(entry['folder']).strip('/')}/{entry['key']}{EXTENSION}"
        tags = entry.get("tags")
        title = str(entry.get("title") or entry["key"])
        index[path] = {"title": title, "tags": tags if isinstance(tags, list) else []}
        _add_folders(index, path)
    return {"version": VERSION, "meta": {"lastSyncAt": None, "structureHash": None}, "index": index}


def _entry(memory: Memory) -> Json:
    return {"title": memory.title, "tags": list(memory.tags)}


def _extra(entry: object) -> Json:
    return entry if isinstance(entry, dict) else {}


def _add_folders(entries: Json, path: str) -> None:
    folder = path.rpartition("/")[0]
    while folder:
        entries.setdefault(f"{folder}/", {"comment": ""})
        folder = folder.rpartition("/")[0]


def _folder_path(folder: str) -> str:
    parts = [part for part in folder.replace("\\", "/").split("/") if part not in ("", ".")]
    if not parts or ".." in parts or parts[0] not in (*INDEXED, names.ARCHIVE):
        raise BadInput(f"folderComments: {folder!r} is not below memory/, notes/, essence/ or archive/")
    return "/".join(parts) + "/"


def _report(before: Mapping[str, Any], data: Json) -> dict[str, int]:
    after = data["index"]
    old = {path for path in before if not path.endswith("/")}
    new = {path for path in after if not path.endswith("/")}
    return {
        "scannedFiles": len(new),
        "addedEntries": len(new - old),
        "removedEntries": len(old - new),
        "updatedEntries": sum(before[path] != after[path] for path in old & new),
        "addedFolders": sum(path.endswith("/") and path not in before for path in after),
    }
