"""Markdown memories: what a person or a model wrote down on purpose (design: Three layers).

One file a memory below ``memory/``, ``notes/`` or ``archive/``; the file is the truth. Every method that
writes may be called again with the same arguments (the client resends a call after a crash) and then changes
nothing. Versions that are overwritten stay in ``.history/``, deleted memories in ``.trash/``. Methods raise
BadInput for arguments that cannot be meant and StoreError when the disk refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias, get_args

from pipeline.errors import BadInput
from pipeline.store import files, memory_edit, memory_file, names
from pipeline.store.catalogue import EXTENSION, Memory, iso
from pipeline.store.index import Index
from pipeline.store.memory_edit import Mode, Wish
from pipeline.store.memory_file import clean_tags, printable
from pipeline.store.recalling import Json, MemoryReader
from pipeline.store.versions import Versions
from stages.snippet import without_fences

Source: TypeAlias = Mapping[str, object] | str | None
"""Where a memory comes from: ``session``, ``agent``, ``turn``, ``tool``, ``confirmedBy``, or a text."""

Redact: TypeAlias = Callable[[str], str]

CONTENT_LIMIT = 1 << 20
"""Bytes of one memory's content: more is a document, which a memory can point at."""

_SOURCE_FIELDS = {"sessionId": "session", "agentId": "agent", "turnId": "turn"}
# The other server reads line by line and would take these for the memory's own fields.
_TAKEN_FIELDS = frozenset({"key", "title", "tags", "createdAt", "updatedAt"})


class ThemeLinks(Protocol):
    """Who keeps the ``memories[]`` of the themes. Places are ``(folder, key)``; both calls must be
    idempotent.
    """

    def link(self, theme: str, folder: str, key: str, title: str) -> None:
        """The theme names this memory."""

    def follow(self, old: tuple[str, str], new: tuple[str, str], title: str) -> None:
        """Every theme that named the memory at ``old`` names ``new`` instead."""


class Memories(MemoryReader):
    """The memories of one store. ``now`` gives ms; ``redact`` is applied to every text before it is written.

    Safe to use from several threads and processes at once.
    """

    def __init__(
        self, store: Path, *, now: Callable[[], int], redact: Redact, links: ThemeLinks | None = None
    ) -> None:
        super().__init__(store)
        self.index = Index(self.catalogue, now)
        self.versions = Versions(store, now)
        self._now = now
        self._redact = redact
        self._links = links

    def remember(
        self,
        key: str,
        content: str | None = None,
        *,
        folder: str | None = None,
        tags: Sequence[str] | None = None,
        themes: Sequence[str] = (),
        title: str | None = None,
        mode: Mode = "replace",
        source: Source = None,
    ) -> Json:
        """Write a memory: ``{success, created, changed, folder, key, title, tags, themes, filePath,
        previous}``.

        ``replace`` writes or overwrites, ``append`` adds a paragraph (and tags), ``create`` refuses a key
        that says something else. Without content the body stays; without tags (or with none), title or source
        those stay. ``previous`` is where the overwritten version lies. Raises BadInput for a new memory
        without content, content over CONTENT_LIMIT, and a file that cannot be edited without loss (named with
        its line).
        """
        if mode not in get_args(Mode):
            raise BadInput(f"mode {mode!r} is not one of {', '.join(get_args(Mode))}")
        for theme in themes:
            names.theme_name(theme)
        path = self._place(names.folder_name(folder), names.key_name(self._redact(key)))
        wish = Wish(
            key=_key_of(path),
            body=self._clean_content(content),
            title=printable(self._redact(title or "")),
            tags=clean_tags([self._redact(tag) for tag in tags or ()]),
            source=self._clean_source(source),
            mode=mode,
        )
        created, previous, changed = self._write(path, wish)
        self.index.refresh([path])
        memory = self._at(path)
        if self._links is not None:
            for theme in themes:
                self._links.link(theme, memory.folder, memory.key, memory.title)
        return {
            "success": True,
            "created": created,
            "changed": changed,
            "folder": memory.folder,
            "key": memory.key,
            "title": memory.title,
            "tags": list(memory.tags),
            "themes": list(themes),
            "filePath": str(self.store / path),
            "previous": previous,
        }

    def delete(self, key: str, folder: str | None = None) -> Json:
        """Move a memory to the trash: ``{success, deleted, folder, key, restorable}``; again: ``deleted`` is
        false.

        ``success`` is false, with the nearest keys, when there never was one. Raises BadInput for an
        ambiguous key.
        """
        named = self._place(names.folder_name(folder), names.key_name(key))
        memory = self.catalogue.at(named)
        if memory is None and self.versions.in_trash(named):  # a resend must not take a namesake elsewhere
            return {"success": True, "deleted": False, **_place_of(named), "restorable": True}
        memory = memory or self.get(key, folder, exact=True)
        if memory is None:
            gone = self._trashed(key, folder)
            if gone is None:
                return {"success": False, **self._missing(key, folder)}
            return {"success": True, "deleted": False, **_place_of(gone[0]), "restorable": True}
        with files.locked(self.store, memory.path):
            deleted = self.versions.trash(memory.path)
        self.index.refresh([memory.path])
        return {"success": True, "deleted": deleted, **_place_of(memory.path), "restorable": True}

    def restore(self, key: str, folder: str | None = None) -> Json:
        """Bring the newest deleted version back: ``{success, restored, folder, key}``; again: ``restored`` is
        false.

        Raises BadInput when another memory has taken its place.
        """
        gone = self._trashed(key, folder)
        if gone is None:
            memory = self.get(key, folder, exact=True)
            if memory is None:
                return {"success": False, **self._missing(key, folder)}
            return {"success": True, "restored": False, **_place_of(memory.path)}
        path, version = gone
        with files.locked(self.store, path):
            present = files.read_bytes(self.store / path)
            if present is not None and present != files.read_bytes(version):
                raise BadInput(f"{path} exists again: move or delete it before restoring the older one")
            self.versions.untrash(path, version)
        self.index.refresh([path])
        return {"success": True, "restored": True, **_place_of(path)}

    def move(
        self, key: str, folder: str | None, to_folder: str | None = None, new_key: str | None = None
    ) -> Json:
        """Move or rename: ``{success, moved, key, newKey, fromFolder, toFolder}``; again: ``moved`` is false.

        Theme links and history follow. Raises BadInput when another memory is at the target.
        """
        source = names.folder_name(folder)
        wanted = names.key_name(self._redact(new_key)) if new_key else names.key_name(key)
        memory = self._exact(source, names.key_name(key))
        if memory is None:
            there = self._exact(names.folder_name(to_folder) if to_folder else source, wanted)
            if there is not None:  # done before: a resend must not take a namesake elsewhere
                return _moved((source, names.key_name(key)), there, moved=False)
            memory = self.get(key, folder, exact=True)
        if memory is None:
            return {"success": False, **self._missing(key, folder)}
        wanted = wanted if new_key else memory.key
        path = self._place(names.folder_name(to_folder) if to_folder else memory.folder, wanted)
        if path == memory.path:  # at most a change of case
            path = f"{memory.folder}/{wanted}{EXTENSION}"
        if path != memory.path:
            self._move_file(memory, path)
        return _moved((memory.folder, memory.key), self._at(path), moved=path != memory.path)

    def archive(self, key: str, folder: str | None = None) -> Json:
        """Move a memory below ``archive/``, where it is kept, ranked last and out of the essence; as move."""
        source = names.folder_name(folder)
        memory = self._exact(source, names.key_name(key))
        memory = memory or self._exact(_archive_folder(source), names.key_name(key))
        memory = memory or self.get(key, folder, exact=True)
        if memory is None:
            return {"success": False, **self._missing(key, folder)}
        if memory.archived:
            return _moved((memory.folder, memory.key), memory, moved=False)
        return self.move(memory.key, memory.folder, _archive_folder(memory.folder))

    def erase(self, key: str, folder: str | None = None) -> int:
        """Remove a memory for good with its history and its trash; how many files went."""
        path = self._place(names.folder_name(folder), names.key_name(key))
        with files.locked(self.store, path):
            erased = int(files.remove(self.store / path)) + self.versions.erase(path)
        self.index.refresh([path])
        return erased

    def _write(self, path: str, wish: Wish) -> tuple[bool, str | None, bool]:
        """Fulfil a wish: whether the memory is new, where its former version lies, whether it changed."""
        target = self.store / path
        with files.locked(self.store, path):
            files.sweep(target.parent)
            old = files.read_bytes(target)
            text = memory_edit.written(path, _strictly(path, old), wish, iso(self._now()))
            data = text.encode("utf-8")
            if data == old:
                return False, None, False
            # Kept first: a crash in between leaves an extra version, never a lost one.
            previous = None if old is None else self.versions.keep(path, old)
            files.write_bytes(target, data)
        return old is None, previous, True

    def _clean_content(self, content: str | None) -> str | None:
        """Content as kept: redacted, without what we recalled ourselves; ``None`` when nothing is left."""
        if content is None or not content.strip():
            return None
        size = len(content.encode("utf-8", "replace"))
        if size > CONTENT_LIMIT:
            raise BadInput(f"content has {size} bytes; a memory holds at most {CONTENT_LIMIT}")
        return memory_file.printable_body(self._redact(without_fences(content))) or None

    def _clean_source(self, source: Source) -> dict[str, str | int]:
        if source is None or isinstance(source, str):
            source = {"text": source or ""}
        kept: dict[str, str | int] = {}
        for field, value in source.items():
            name = _SOURCE_FIELDS.get(field, printable(field))
            if isinstance(value, int) and not isinstance(value, bool):
                kept[name] = value
            elif value is not None and (text := printable(self._redact(str(value)))):
                kept[name] = text
        if taken := _TAKEN_FIELDS & kept.keys():
            raise BadInput(f"source: {', '.join(sorted(taken))} are fields of the memory itself")
        return kept

    def _at(self, path: str) -> Memory:
        memory = self.catalogue.at(path)
        if memory is None:
            raise BadInput(f"{path} was removed meanwhile by another process")
        return memory

    def _trashed(self, key: str, folder: str | None) -> tuple[str, Path] | None:
        within = names.folder_name(folder) if (folder or "").strip() else None
        return self.versions.trashed(names.key_name(key), within)

    def _move_file(self, memory: Memory, path: str) -> None:
        source, target = self.store / memory.path, self.store / path
        with files.locked(self.store, memory.path, path):
            data = files.read_bytes(source)
            if data is None:
                raise BadInput(f"{memory.path} was removed meanwhile by another process")
            data = _with_key(data, _key_of(path))
            twin = target.exists() and not source.samefile(target)
            if twin and files.read_bytes(target) != data:
                raise BadInput(f"{path} exists already: choose another newKey or folder")
            if self._links is not None:
                # Before the file: a resend after a crash no longer finds out where the memory was.
                place = _place_of(path)
                self._links.follow((memory.folder, memory.key), (place["folder"], place["key"]), memory.title)
            if twin:  # a first try copied it and died
                files.remove(source)
            else:
                # Moved first, then its key field: a crash in between leaves one file, in its new place.
                files.rename(source, target)
                files.write_bytes(target, data)
            self.versions.follow(memory.path, path)
        self.index.refresh([memory.path, path])


def _moved(old: tuple[str, str], new: Memory, *, moved: bool) -> Json:
    return {
        "success": True,
        "moved": moved,
        "key": old[1],
        "newKey": new.key,
        "fromFolder": old[0],
        "toFolder": new.folder,
    }


def _key_of(path: str) -> str:
    return path.rpartition("/")[2][: -len(EXTENSION)]


def _place_of(path: str) -> Json:
    return {"folder": path.rpartition("/")[0], "key": _key_of(path)}


def _archive_folder(folder: str) -> str:
    top, _, rest = folder.partition("/")
    below = rest if top in (names.MEMORY, names.ARCHIVE) else folder
    return f"{names.ARCHIVE}/{below}" if below else names.ARCHIVE


def _strictly(path: str, data: bytes | None) -> str | None:
    """The text of a file that is going to be edited. Raises BadInput when that would lose bytes."""
    try:
        return None if data is None else data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise BadInput(f"{path}:{line}: not UTF-8; convert the file before writing to it") from error


def _with_key(data: bytes, key: str) -> bytes:
    """A memory file with its ``key`` field set, where it has one that can be edited; else as it is."""
    try:
        file = memory_file.parse(data.decode("utf-8"))
        if "key" in file.fields and file.fields["key"] != key:
            return memory_file.render(memory_file.edited(file, {"key": key})).encode("utf-8")
    except ValueError:  # broken or not UTF-8: a person's to mend, moved untouched
        pass
    return data
