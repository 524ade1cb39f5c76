"""What a session should know when it begins: the snapshot of one workspace, within a bound.

Sections in order of reading: session, essence, previous session, memories, proposals, themes, notes. When they do
not fit, they give way in this order: notes, themes, proposals, memories, previous session, essence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from anyio import to_thread

from pipeline.answers import local_time
from pipeline.errors import PipelineError
from pipeline.sessions import clean_title
from pipeline.store import essence, names
from pipeline.store.catalogue import Memory
from pipeline.store.index import tree
from pipeline.store.theme_record import ThemeRecord
from server.current_session import Current
from server.pages import FENCE_CHARS, Section, counted, fenced, fitted, some_lines
from server.recent import Activity, activity, detailed_turns, last_turns, summary_line
from server.space import Space
from stages.snippet import one_line, shorten

PROPOSALS_SHOWN, THEMES_SHOWN, NOTES_SHOWN = 8, 15, 15
LINE_CHARS = 160
TREE_LEAST = 400
"""Characters of the memory tree that are always there: its folders and newest entries."""


async def snapshot(
    space: Space, current: Current, *, detailed: int, summaries: int, limit: int, freshness: str
) -> str:
    """The whole answer of ``bootstrap_workspace``, in at most ``limit`` characters."""
    problems: list[str] = [freshness] if freshness else []
    recent = await _recent(space, current, detailed, summaries)
    files = await to_thread.run_sync(_files, space, problems)
    sections = [
        Section("essence", 6, 3_000, lambda room: _fenced_section("## Essence", files.essence, room)),
        Section("previous session", 5, 2_500, recent),
        Section("memories", 4, 900, lambda room: _memories(files, room, space)),
        Section("proposals", 3, 250, lambda room: _proposals(files, room)),
        Section("themes", 2, 250, lambda room: _themes(files, room)),
        Section("notes", 1, 150, lambda room: space.redact(_notes(files, room))),
    ]
    return fitted(_head(space, current, problems), sections, limit)


def _head(space: Space, current: Current, problems: Sequence[str]) -> str:
    lines = [f"Workspace {space.label} ({space.id}), store {space.layout.root}", _session_line(current)]
    lines += [f"note: {one_line(problem)}" for problem in problems]
    return "\n".join(lines)


def _session_line(current: Current) -> str:
    if current.session is not None:
        return f"This session: {current.session.session_id} ({current.how})"
    names_ = ", ".join(one.session_id for one in current.candidates[:5])
    return f"This session: {current.how}" + (f": {names_}" if names_ else "")


# --- the previous session ----------------------------------------------------------------------------------


async def previous_session(space: Space, current: Current) -> Activity | None:
    """The latest active session with turns that is not the asking one, nor one that may be."""
    asking = {one.session_id for one in current.candidates}
    if current.session is not None:
        asking.add(current.session.session_id)
    for each in await activity(space):
        if each.session.session_id not in asking and each.turns:
            return each
    return None


async def _recent(space: Space, current: Current, detailed: int, summaries: int) -> _Recent:
    previous = await previous_session(space, current)
    if previous is None or not detailed + summaries:
        return _Recent("", (), (), "")
    found = await last_turns(space, previous.session.session_id, detailed + summaries + 1)
    turns = found.turns[-(detailed + summaries) :]
    split = max(0, len(turns) - detailed)
    offset = len(found.turns) - len(turns)
    lines = [
        summary_line(turn, found.turns[offset + place - 1] if offset + place else None, previous.session.cwd)
        for place, turn in enumerate(turns[:split])
    ]
    title = one_line(clean_title(previous.session.title or "", space.redact))
    head = f"## Previous session: {previous.session.session_id} · {local_time(previous.last_at).strip()}"
    if title:
        head += f" · {shorten(title, 60)}"
    before = found.before + offset
    more = (
        f"({before} earlier turns: load_more_context before_turn_id={turns[0].turn_id})"
        if turns and before
        else ""
    )
    return _Recent(head, tuple(lines), turns[split:], more)


@dataclass(frozen=True, slots=True)
class _Recent:
    """Renders the previous session at any length: details shorter first, then the summaries go."""

    head: str
    lines: tuple[str, ...]
    turns: Sequence[object]
    more: str

    def __call__(self, room: int) -> str:
        if not self.head:
            return ""
        room -= len(self.head) + len(self.more) + FENCE_CHARS + 4
        lines = "\n".join(self.lines)
        if self.turns and len(lines) > room // 3:
            lines = some_lines(self.lines, room // 3)
        details = detailed_turns(self.turns, max(200, room - len(lines) - 2)) if self.turns else ""  # type: ignore[arg-type]
        body = fenced("\n\n".join(part for part in (lines, details) if part))
        return "\n".join(part for part in (self.head, body, self.more) if part)


# --- what lies in files ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Files:
    essence: str
    memories: tuple[Memory, ...]
    comments: dict[str, str]
    notes: tuple[Memory, ...]
    proposals: tuple[list[dict[str, object]], int]
    themes: list[ThemeRecord]


def _files(space: Space, problems: list[str]) -> _Files:
    """Everything a bootstrap reads from files; what cannot be read is named in ``problems``, never fatal."""
    everything = space.memories.all()
    live = [one for one in everything if not one.archived]
    problems += [f"frontmatter cannot be read: {one.problem}" for one in live if one.problem][:3]
    project = Path(space.label) if Path(space.label).is_absolute() else None
    try:
        levels = essence.levels(space.layout.root, store_root=space.settings.store_root, project=project)
        comments = space.memories.index.comments()
    except PipelineError as error:
        problems.append(error.message)
        levels, comments = (), {}
    queue = space.proposals.list("open", PROPOSALS_SHOWN)
    good, bad = space.themes.all()
    problems += [error.message for error in bad[:3]]
    good.sort(key=lambda each: (-(each.updated_at or 0), each.theme))
    is_note = [one.folder.partition("/")[0] == names.NOTES for one in live]
    return _Files(
        essence=space.redact(essence.merged(levels)) if levels else "",
        memories=tuple(one for one, note in zip(live, is_note, strict=True) if not note),
        comments=comments,
        notes=tuple(one for one, note in zip(live, is_note, strict=True) if note),
        proposals=(queue["items"], queue["total"]),
        themes=good,
    )


def _fenced_section(head: str, text: str, room: int) -> str:
    if not text:
        return f"{head}\nnone yet: organize_memories writes it"
    room = max(200, room - len(head) - FENCE_CHARS - 2)
    return f"{head}\n{fenced(some_lines(text.splitlines(), room, '{} more lines: read essence/essence.md'))}"


def _memories(files: _Files, room: int, space: Space) -> str:
    if not files.memories:
        return "## Memories\nnone yet: remember saves one"
    head = f"## Memories ({len(files.memories)}): recall key, search query"
    room = max(TREE_LEAST, room - len(head) - FENCE_CHARS - 2)
    return f"{head}\n{fenced(space.redact(shorter_tree(tree(files.memories, files.comments), room)))}"


def shorter_tree(text: str, limit: int) -> str:
    """A memory tree within ``limit`` characters: folders and new entries first, then the others in order."""
    lines = text.split("\n")
    if len(text) <= limit:
        return text
    telling = [place for place, line in enumerate(lines) if _is_folder(line) or line.endswith("[new]")]
    others = [place for place in range(len(lines)) if place not in set(telling)]
    room, chosen = limit - 50, set[int]()
    for place in (*telling, *others):
        room -= len(lines[place]) + 1
        if room < 0:
            break
        chosen.add(place)
    kept = [line for place, line in enumerate(lines) if place in chosen]
    return "\n".join([*kept, f"… {len(lines) - len(kept)} more: list folder"])


def _is_folder(line: str) -> bool:
    name = line.rpartition("-- ")[2].partition("  # ")[0]
    return name.endswith("/")


def _proposals(files: _Files, room: int) -> str:
    items, total = files.proposals
    if not total:
        return ""
    lines = [
        f"{one['id']} {one['folder']}/{one['key']}: {shorten(one_line(str(one['text'])), LINE_CHARS)}"
        for one in items
    ]
    head = f"## Open proposals ({total}): ask the user, then resolve_proposal"
    return f"{head}\n{fenced(some_lines(lines, max(100, room - len(head) - FENCE_CHARS), '{} more'))}"


def _themes(files: _Files, room: int) -> str:
    if not files.themes:
        return ""
    lines = [
        f"{one.display_name} · {counted(len(one.turns), 'turn')} · {local_time(one.updated_at)[:10]}"
        + (f" · {', '.join(one.seeds)}" if one.seeds else "")
        for one in files.themes[:THEMES_SHOWN]
    ]
    head = f"## Themes ({len(files.themes)}): trace_theme"
    lines = [shorten(one_line(line), LINE_CHARS) for line in lines]
    return f"{head}\n{fenced(some_lines(lines, max(100, room - len(head) - FENCE_CHARS)))}"


def _notes(files: _Files, room: int) -> str:
    if not files.notes:
        return ""
    latest = sorted(files.notes, key=lambda one: (-one.changed_at, one.path))[:NOTES_SHOWN]
    lines = [shorten(one_line(f"{one.name}: {one.title}"), LINE_CHARS) for one in latest]
    head = f"## Notes ({len(files.notes)})"
    return f"{head}\n{fenced(some_lines(lines, max(100, room - len(head) - FENCE_CHARS)))}"
