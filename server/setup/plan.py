"""Decides what a setup, or its undo, changes. Pure: from the files' bytes to a Plan; nothing is read or written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from server.setup import agents_md, hooks_toml, mcp_json, record, skill
from server.setup.agents_md import AgentsMd
from server.setup.hooks_toml import HooksToml
from server.setup.mcp_json import McpJson
from server.setup.model import Change, InvalidFile, Kept, Part, Piece, Plan
from server.setup.record import Entry, Record
from server.setup.skill import Language, Skill
from server.setup.wiring import NAME, OTHER_SERVER, Wiring, is_other_server, is_ours, is_passing

PLUGINS = "plugins/installed.json"
PATHS = (mcp_json.PATH, agents_md.PATH, skill.PATH, hooks_toml.PATH, record.PATH, PLUGINS)
"""Every file of the home that planning looks at."""

Files = Mapping[str, bytes | None]


@dataclass(frozen=True, slots=True)
class Options:
    """What a person asked for."""

    wiring: Wiring
    language: Language = "en"
    hooks: bool = True


def parts(options: Options) -> tuple[Part, ...]:
    """What setup edits, in the order it is written: after the first file our server can start, and finish the rest."""
    wired: tuple[Part, ...] = (
        McpJson(options.wiring),
        AgentsMd(skill.agents_block(options.language)),
        Skill(skill.skill_text(options.language)),
    )
    return (*wired, HooksToml(options.wiring)) if options.hooks else wired


def settled(files: Files, options: Options) -> Options:
    """The options with the store root of the entry that is there, when nobody names another: hooks need it too."""
    try:
        root = mcp_json.carried(mcp_json.entry_of(files.get(mcp_json.PATH))).get("MEMORY_STORE_ROOT", "")
    except InvalidFile:
        root = ""
    if not root or options.wiring.store_root:
        return options
    return replace(options, wiring=replace(options.wiring, store_root=root))


def plan_setup(files: Files, folders: Sequence[str], options: Options) -> Plan:
    """The plan that wires this installation in. ``folders`` exist already (relative to the home).

    Planning it on its own result gives no change. Raises InvalidFile, and then nothing may be written.
    """
    options = settled(files, options)
    old = record.load(files.get(record.PATH))
    notes, warnings = list(_found(files)), list(_beside(files))
    if is_passing(options.wiring.python):
        warnings.append(
            f"{options.wiring.python} was made for one run only: install kimi-memory, then set it up."
        )
    changes: list[Change] = []
    entries: dict[str, Entry] = {}
    wanted = parts(options)
    for part in wanted:
        current = files.get(part.path)
        after, piece = part.install(current)
        entry, problem = _entry(part, old.entries.get(part.path), current, after, piece)
        entries[part.path] = entry
        warnings += [f"{part.path}: {problem}; this replaces it, undo brings it back"] if problem else []
        changes += [Change(part.path, current, after)] if after != current else []
    dropped = Record({path: entry for path, entry in old.entries.items() if path not in entries})
    undone = _undo_files(files, dropped, options)
    changes += undone.changes
    made = _missing(folders, [part.path for part in wanted])
    new = record.dump(Record(entries, old.folders or made))
    changes += [Change(record.PATH, files.get(record.PATH), new)] if new != files.get(record.PATH) else []
    return Plan(tuple(changes), tuple(notes), (*warnings, *undone.warnings), made=made)


def plan_undo(files: Files, options: Options) -> Plan:
    """The plan that gives back what was there; what a person changed since stays, and a warning says so."""
    data = files.get(record.PATH)
    if data is None:
        return Plan((), (f"No setup of {NAME} is recorded in this home: there is nothing to undo.",))
    old = record.load(data)
    undone = _undo_files(files, old, settled(files, options))
    changes = (*undone.changes, Change(record.PATH, data, None))
    return Plan(changes, undone.notes, undone.warnings, prune=(*old.folders, record.FOLDER))


def _undo_files(files: Files, old: Record, options: Options) -> Plan:
    by_path = {part.path: part for part in parts(replace(options, hooks=True))}
    changes: list[Change] = []
    warnings: list[str] = []
    notes: list[str] = []
    order = sorted(
        old.entries.items(), key=lambda item: item[0] == mcp_json.PATH
    )  # as long as we can be started
    for path, entry in order:
        current = files.get(path)
        if current == entry.after:
            changes += [Change(path, current, entry.before)] if current != entry.before else []
        elif current == entry.before:
            continue
        elif current is None:
            warnings.append(f"{path}: was removed since; it is left so")
        else:
            left = _removed(by_path[path], current, entry.piece)
            if isinstance(left, Kept):
                warnings.append(f"{path}: {left.why}; it is left as it is")
            elif left == current:
                notes.append(f"{path}: our part is gone already; the file is left as it is")
            else:
                notes.append(f"{path}: was changed since; only our part is taken out")
                changes.append(Change(path, current, left))
    return Plan(tuple(changes), tuple(notes), tuple(warnings))


def _removed(part: Part, current: bytes, piece: Piece) -> bytes | Kept:
    try:
        return part.remove(current, piece)
    except InvalidFile as error:
        return Kept(error.message.partition(": ")[2])


def _entry(
    part: Part, old: Entry | None, current: bytes | None, after: bytes, piece: Piece
) -> tuple[Entry, str]:
    """What to record for a file, and what of a person's work the new piece replaces (empty: nothing)."""
    if old is None or current is None or current == old.before:
        return Entry(current, after, piece), ""
    ours = _inherited(old.piece, piece, unchanged=after == current)
    if current == old.after:
        return Entry(old.before, after, ours), ""
    left = _removed(part, current, old.piece)
    if isinstance(left, Kept):
        return Entry(current, after, piece), "" if after == current else left.why
    if left == current:  # our piece had been taken out by hand
        return Entry(current, after, piece), ""
    return Entry(left, after, ours), ""


def _inherited(old: Piece, new: Piece, *, unchanged: bool) -> Piece:
    """The new piece in the old one's place: what stood there before us, and the space we set around it."""
    if unchanged:
        return old
    ours = new.ours
    if new.replaced and new.replaced in old.ours:
        ours = old.ours.replace(new.replaced, new.ours)
    return Piece(ours, old.replaced)


def _missing(folders: Sequence[str], paths: Sequence[str]) -> tuple[str, ...]:
    """The folders of these files that do not exist yet, deepest first; "." is the home itself."""
    needed = {"."}
    for path in paths:
        steps = path.split("/")[:-1]
        needed |= {"/".join(steps[: depth + 1]) for depth in range(len(steps))}
    return tuple(
        sorted(needed - set(folders), key=lambda folder: (folder == ".", -folder.count("/"), folder))
    )


# --- what a person should know -----------------------------------------------------------------------------


def _found(files: Files) -> list[str]:
    """Of an installation of the other server: what is there, and what becomes of it."""
    notes = []
    entry = mcp_json.entry_of(files.get(mcp_json.PATH))
    if is_other_server(entry):
        kept = ", ".join(mcp_json.carried(entry))
        notes.append(
            f'{OTHER_SERVER} is set up as "{NAME}": its entry is replaced by ours'
            + (f" ({kept} carried over)" if kept else "")
            + ". Its store stays where it is, and both servers can go on using it."
        )
    elif entry is not None and not is_ours(entry):
        notes.append(
            f'{mcp_json.PATH} has an entry "{NAME}" of another program: it is replaced, undo brings it back.'
        )
    return notes


def _beside(files: Files) -> list[str]:
    """What would run beside us, offering the same tools twice."""
    warnings = [
        f'{OTHER_SERVER} also runs as "{name}": the model would see two memories. Consider removing that entry.'
        for name in mcp_json.other_servers(files.get(mcp_json.PATH))
        if name != NAME
    ]
    if NAME in _plugins(files.get(PLUGINS)):
        warnings.append(
            f"The plugin {NAME} is installed too: one of the two is enough. Remove it with /plugins."
        )
    return warnings


def _plugins(data: bytes | None) -> set[str]:
    try:
        rows = json.loads(data or b"{}").get("plugins", [])
        return {str(row["id"]) for row in rows if row.get("enabled", True)}
    except (ValueError, AttributeError, KeyError, TypeError):
        return set()  # Kimi's own file, and only a hint to us
