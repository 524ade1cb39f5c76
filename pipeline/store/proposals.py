"""Memories that the service proposes: a queue that only a person's (or the model's asked-for) word moves on.

One JSON file a proposal below ``proposals/``, named by the digest of what it says. Nothing enters ``memory/``
unconfirmed; a rejected proposal stays as a record and so never comes back, whatever turn it is found in
again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from pipeline.errors import BadInput
from pipeline.store import files, names
from pipeline.store.catalogue import iso
from pipeline.store.memories import Memories
from pipeline.store.memory_file import clean_tags, printable
from pipeline.store.recalling import Json
from stages.snippet import without_fences
from stages.tokens import fold

Status: TypeAlias = Literal["open", "accepted", "rejected"]
Action: TypeAlias = Literal["accept", "edit", "reject"]

FOLDER = "proposals"
LIST_LIMIT = 20
KEY_CHARS = 60
OPEN_LIMIT = 200
"""Open proposals that are kept: above it the oldest give way, a queue that nobody can read helps nobody."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What is proposed, from a refined turn. ``source`` names ``sessionId``, ``agentId`` and ``turnId``.

    ``key`` is made from the title when it is empty. ``why`` says what in the turn made it worth keeping.
    """

    text: str
    title: str
    folder: str = "decisions"
    tags: tuple[str, ...] = ()
    source: Mapping[str, str | int] | None = None
    why: str = ""
    key: str = ""


class Proposals:
    """The queue of one store. Safe to use from several threads and processes; ``now`` gives ms."""

    def __init__(self, memories: Memories, *, now: Callable[[], int], redact: Callable[[str], str]) -> None:
        self._memories = memories
        self._folder = memories.store / FOLDER
        self._now = now
        self._redact = redact

    def propose(self, draft: Draft) -> Json:
        """Queue a draft: ``{id, status, created, …}``. What was proposed before, in whatever state, is left
        as it is.

        Raises BadInput for a draft without text.
        """
        text = self._redact(without_fences(draft.text)).strip()
        if not text:
            raise BadInput("text is empty: a proposal says what to remember")
        folder = names.folder_name(draft.folder)
        identity = digest(text)
        path = self._folder / f"{identity}.json"
        if (present := self._read(path)) is not None:
            return {"created": False, **present}
        title = printable(self._redact(draft.title)) or text.split("\n")[0][:KEY_CHARS]
        record: Json = {
            "id": identity,
            "status": "open",
            "text": text,
            "title": title,
            "folder": folder,
            "key": names.key_name(self._redact(draft.key) or _key(title)),
            "tags": list(clean_tags([self._redact(tag) for tag in draft.tags])),
            "source": {name: self._redacted(value) for name, value in (draft.source or {}).items()},
            "why": printable(self._redact(draft.why)),
            "createdAt": iso(self._now()),
        }
        with files.locked(self._memories.store, f"{FOLDER}/{identity}"):
            if (present := self._read(path)) is not None:  # another process was first
                return {"created": False, **present}
            files.write_json(path, record)
        self._bound()
        return {"created": True, **record}

    def list(self, status: Status | None = "open", limit: int = LIST_LIMIT) -> Json:
        """``{items, total}`` of this status (``None``: all), newest first."""
        found = [one for one in self._all() if status in (None, one["status"])]
        found.sort(key=_by_age, reverse=True)
        return {"items": found[: max(1, limit)], "total": len(found)}

    def resolve(
        self,
        identity: str,
        action: Action,
        *,
        text: str | None = None,
        title: str | None = None,
        folder: str | None = None,
        key: str | None = None,
        tags: Sequence[str] | None = None,
        by: str = "user",
    ) -> Json:
        """Settle a proposal: ``{id, status, changed, memory?}``; the same call again changes nothing.

        ``accept`` and ``edit`` (with the given fields instead of the proposed ones) write the memory with its
        source and ``confirmedBy``; it never overwrites another memory, a taken key gets the proposal's id.
        ``reject`` is for good. Raises BadInput for an unknown id or action, for ``edit`` without a change,
        and for a settled proposal.
        """
        if action not in get_args(Action):
            raise BadInput(f"action {action!r} is not one of {', '.join(get_args(Action))}")
        edits = {"text": text, "title": title, "folder": folder, "key": key, "tags": tags}
        given = {name: value for name, value in edits.items() if value is not None}
        if action == "edit" and not given:
            raise BadInput("action edit needs what to change: text, title, folder, key or tags")
        path = self._path(identity)
        with files.locked(self._memories.store, f"{FOLDER}/{identity}"):
            record = self._read(path)
            if record is None:
                raise BadInput(f"no proposal {identity!r}: list them for their ids")
            wanted: Status = "rejected" if action == "reject" else "accepted"
            if record["status"] != "open":
                if record["status"] != wanted:
                    raise BadInput(f"proposal {identity} is {record['status']} already")
                return {"id": identity, "status": wanted, "changed": False, **_memory_of(record)}
            if wanted == "accepted":
                # The memory first: a crash in between resends the call, which finds it written and goes on.
                written = self._remember(record | given if action == "edit" else record, by)
                record = {**record, "memory": {"folder": written["folder"], "key": written["key"]}}
            settled = {
                "status": wanted,
                "resolvedAt": iso(self._now()),
                "resolvedBy": printable(self._redact(by)),
            }
            files.write_json(path, {**record, **settled})
        return {"id": identity, "status": wanted, "changed": True, **_memory_of(record)}

    def _remember(self, record: Mapping[str, Any], by: str) -> Json:
        folder, key = names.folder_name(record["folder"]), names.key_name(record["key"])
        there = self._memories.get(key, folder)
        taken = there is not None and there.folder == folder and not there.body.startswith(record["text"])
        return self._memories.remember(
            f"{key}-{record['id'][:6]}" if taken else key,
            record["text"],
            folder=folder,
            tags=list(record["tags"]),
            title=record["title"],
            source={
                **record["source"],
                "tool": "resolve_proposal",
                "proposal": record["id"],
                "confirmedBy": by,
            },
        )

    def _all(self) -> Sequence[Json]:
        try:
            paths = sorted(self._folder.glob("*.json"))
        except OSError:
            return []
        return [record for path in paths if (record := self._read(path)) is not None]

    def _read(self, path: Path) -> Json | None:
        data = files.read_json(path)
        usable = isinstance(data, dict) and data.get("status") in get_args(Status)
        if not isinstance(data, dict) or not usable or not str(data.get("text", "")).strip():
            return None  # torn or foreign: as if it were not there
        blank = {"title": "", "folder": "memory", "key": "", "tags": [], "source": {}, "why": ""}
        return {**blank, **data, "id": path.stem}

    def _path(self, identity: str) -> Path:
        if not identity.isalnum():
            raise BadInput(f"no proposal {identity!r}: list them for their ids")
        return self._folder / f"{identity}.json"

    def _bound(self) -> None:
        still_open = [one for one in self._all() if one["status"] == "open"]
        still_open.sort(key=_by_age)
        for record in still_open[:-OPEN_LIMIT]:
            files.remove(self._folder / f"{record['id']}.json")

    def _redacted(self, value: str | int) -> str | int:
        return value if isinstance(value, int) else printable(self._redact(value))


def digest(text: str) -> str:
    """What makes two proposals one: their words, whatever case, spacing or punctuation around them."""
    words = " ".join(fold(text).split()).strip(" .。!！;；")
    return hashlib.blake2b(words.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _key(title: str) -> str:
    """A kebab-case key from a title, in any script."""
    words = "".join(letter if letter.isalnum() else " " for letter in title).lower().split()
    return "-".join(words)[:KEY_CHARS].strip("-") or names.UNTITLED


def _by_age(record: Mapping[str, Any]) -> tuple[str, str]:
    return (str(record.get("createdAt", "")), str(record["id"]))


def _memory_of(record: Mapping[str, Any]) -> Json:
    return {"memory": record["memory"]} if "memory" in record else {}
