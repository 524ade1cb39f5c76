"""Finds every session that Kimi Code and kimi-cli left on this machine, and the workspace each belongs to.

Reads directories and the small files beside the wires; no wire is opened, except the head of one whose
directory nobody else recorded. One odd entry never stops the rest: it is counted in ``Inventory.skipped``
by reason.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline import session_folders, workspaces
from pipeline.config import CONFIG_NAME, TOMBSTONES_NAME, load
from pipeline.errors import ConfigError, UnknownWorkspace
from pipeline.session_folders import EVERYTHING, Agent, Cache, Keeping, Kind, Session
from pipeline.session_head import derive_title, read_head
from pipeline.settings import DEFAULT, Settings
from stages.secret_tokens import without_cut_token

if TYPE_CHECKING:
    from pipeline.store.tombstones import Tombstones

__all__ = [
    "Agent",
    "Cache",
    "Inventory",
    "Kind",
    "Session",
    "Workspace",
    "clean_title",
    "derive_title",
    "discover",
    "find_workspace",
    "folders",
    "read_head",
    "shown_title",
]

EXCLUDED_WORKSPACE = "excluded-workspace"
EXCLUDED_SESSION = "excluded-session"
DUPLICATE_SESSION = "duplicate-session"


@dataclass(frozen=True, slots=True)
class Workspace:
    """A directory and the sessions recorded in it. ``cwd`` is ``None`` where nobody recorded it."""

    id: str
    cwd: str | None
    sessions: tuple[Session, ...]

    @property
    def label(self) -> str:
        """What a person calls it."""
        return self.cwd or self.id


@dataclass(frozen=True, slots=True)
class Inventory:
    """All sessions in order of creation (id where equal or unknown), and what was left out, by reason.

    ``folders`` are the sessions folders that were looked at; ``excluded`` the directories that a rule keeps
    out.
    """

    sessions: tuple[Session, ...]
    workspaces: tuple[Workspace, ...]
    skipped: Counter[str]
    folders: tuple[Path, ...]
    excluded: tuple[str, ...] = ()


def folders(settings: Settings) -> tuple[Path, ...]:
    """The sessions folders to look at, each once, whether they exist or not."""
    named = [settings.sessions_root or settings.kimi_home / "sessions"]
    if settings.reads_legacy:
        named.append(settings.legacy_home / "sessions")
    unique: dict[object, Path] = {}
    for folder in named:
        unique.setdefault(_identity(folder), folder)
    return tuple(unique.values())


def _identity(folder: Path) -> object:
    try:
        found = folder.stat()
    except OSError:
        return folder
    return (found.st_dev, found.st_ino) if found.st_ino else folder


def discover(settings: Settings, cache: Cache | None = None) -> Inventory:
    """Everything there is now. With the same ``cache`` again, only what changed is parsed.

    Raises nothing for what it finds on the disk.
    """
    looked_at = folders(settings)
    scan = session_folders.Scan({} if cache is None else cache)
    found = [session for folder in looked_at for session in scan.folder(folder)]
    scan.forget_unseen()
    found = _once_each(found, scan.skipped)
    found = _in_workspaces(found, settings)
    stores = _stores(found, settings)
    kept, excluded = _allowed(found, settings, stores, scan.skipped)
    kept = _superseded(_kept_by(kept, settings, stores))
    kept.sort(key=lambda session: (session.created_at or session.updated_at or 0, session.session_id))
    return Inventory(tuple(kept), _grouped(kept), scan.skipped, looked_at, excluded)


def find_workspace(inventory: Inventory, path: str) -> Workspace:
    """The workspace of a directory (or with that id), also when it is named through a symlink of this
    machine.

    Raises UnknownWorkspace (exit code 2), which names the nearest known ones.
    """
    by_key: dict[str, Workspace] = {}
    for workspace in inventory.workspaces:
        if workspace.id == path:
            return workspace
        for session in workspace.sessions:
            if session.cwd is not None:
                by_key.setdefault(workspaces.dir_key(session.cwd), workspace)
    named = workspaces.spellings(path)
    for spelling in named:
        if (found := by_key.get(workspaces.dir_key(spelling))) is not None:
            return found
    for workspace in by_key.values():
        if workspace.cwd is not None and workspaces.spellings(workspace.cwd)[-1] == named[-1]:
            return workspace
    raise _unknown(inventory, named[0])


def _unknown(inventory: Inventory, path: str) -> UnknownWorkspace:
    if any(workspaces.same_dir(path, cwd) for cwd in inventory.excluded):
        problem = f"{path}: this workspace is excluded by the setting exclude.workspaces"
        return UnknownWorkspace(path, (), problem, hint="Run `pipeline config` to see where the rule stands.")
    near = workspaces.nearest(path, (space.cwd for space in inventory.workspaces if space.cwd))
    problem = f"{path}: no session was recorded in this directory"
    if not inventory.sessions:
        looked_at = ", ".join(map(str, inventory.folders))
        hint = f"There are no sessions at all in {looked_at}. Set KIMI_CODE_HOME or MEMORY_SESSIONS_ROOT."
    else:
        known = near or tuple(space.id for space in inventory.workspaces[:3])
        hint = f"Nearest known: {', '.join(known)}"
    return UnknownWorkspace(path, near, problem, hint=hint)


# --- from what was found to what counts --------------------------------------------------------------------


def _once_each(found: list[Session], skipped: Counter[str]) -> list[Session]:
    """One session per id. Of copies (a bucket kept as a backup, a linked one) the one at its proper place."""
    best: dict[str, Session] = {}
    for session in found:
        other = best.setdefault(session.session_id, session)
        if other is not session:
            skipped[DUPLICATE_SESSION] += 1
            best[session.session_id] = max(other, session, key=_standing)
    return list(best.values()) if len(best) < len(found) else found


def _standing(session: Session) -> tuple[bool, int, str]:
    proper = session.cwd is not None and session.bucket == workspaces.work_dir_key(session.cwd)
    return proper, session.updated_at or 0, str(session.dir)


def _in_workspaces(found: list[Session], settings: Settings) -> list[Session]:
    """Give each session its workspace: one id for all spellings of a directory.

    Of several spellings (letter case on Windows) the one counts whose store exists, else that of the first
    session.
    """
    home = str(settings.home)
    cwds: defaultdict[str, set[str]] = defaultdict(set)
    for session in found:
        if session.cwd is not None:
            cwds[workspaces.dir_key(session.cwd)].add(session.cwd)
    ids: dict[str, str] = {}
    for key, spelled in cwds.items():
        candidates = {workspaces.workspace_id(cwd, home) for cwd in spelled}
        ids[key] = _chosen(key, candidates, found, settings) if len(candidates) > 1 else candidates.pop()
    return [
        session
        if session.workspace_id == (right := _right_id(session, ids))
        else replace(session, workspace_id=right)
        for session in found
    ]


def _right_id(session: Session, ids: dict[str, str]) -> str:
    if session.cwd is None:
        return workspaces.unknown_id(session.bucket)
    return ids[workspaces.dir_key(session.cwd)]


def _chosen(key: str, candidates: set[str], found: list[Session], settings: Settings) -> str:
    stores = sorted(name for name in candidates if settings.store(name).is_dir())
    if stores:
        return stores[0]
    same = (session for session in found if session.cwd and workspaces.dir_key(session.cwd) == key)
    first = min(same, key=lambda session: (session.created_at or 0, session.session_id))
    return workspaces.workspace_id(first.cwd or "", settings.home)


def _stores(found: Iterable[Session], settings: Settings) -> dict[str, Settings]:
    """What the config.toml of a workspace's store sets, by workspace; one with a mistake is reported by the command
    that works on it."""
    stores: dict[str, Settings] = {}
    for workspace in {session.workspace_id for session in found}:
        path = settings.store(workspace) / CONFIG_NAME
        if path.exists():
            with suppress(ConfigError):
                stores[workspace] = load({"HOME": str(settings.home)}, path)
    return stores


FORGOTTEN_TITLE = "(forgotten)"


def _kept_by(found: list[Session], settings: Settings, stores: Mapping[str, Settings]) -> list[Session]:
    """The sessions with what may be kept and shown of each."""
    known: dict[str, Keeping] = {}
    stones: dict[str, Tombstones] = {}
    for name in {session.workspace_id for session in found}:
        known[name] = _keeping(settings, stores.get(name))
        if (settings.store(name) / TOMBSTONES_NAME).exists():
            from pipeline.store import tombstones  # few stores have any, and a server starts without it

            stones[name] = tombstones.of_store(settings.store(name))
    if not stones and all(keeping == EVERYTHING for keeping in known.values()):
        return found
    sources = {session.session_id: session.forked_from or session.imported_from for session in found}
    return [
        _with_keeping(session, known[session.workspace_id], stones.get(session.workspace_id), sources)
        for session in found
    ]


def _with_keeping(
    session: Session, keeping: Keeping, stones: Tombstones | None, sources: Mapping[str, str | None]
) -> Session:
    forgotten = stones.of_session(session.session_id, sources) if stones is not None else None
    if forgotten is None or stones is None:
        return replace(session, keeping=keeping)
    told = forgotten.concerns_title or stones.within(session.created_at)
    title = FORGOTTEN_TITLE if told else session.title
    return replace(session, title=title, keeping=replace(keeping, forgotten=forgotten))


def _keeping(settings: Settings, own: Settings | None) -> Keeping:
    if own is None:
        return Keeping(settings.exclude_paths, settings.exclude_sessions, settings.retention_days)
    fixed = settings.origins["retention_days"] == "KIMI_MEMORY_RETENTION_DAYS"
    sets = own.origins["retention_days"] != DEFAULT and not fixed
    return Keeping(
        tuple(dict.fromkeys((*settings.exclude_paths, *own.exclude_paths))),
        tuple(dict.fromkeys((*settings.exclude_sessions, *own.exclude_sessions))),
        own.retention_days if sets else settings.retention_days,
    )


def _allowed(
    found: list[Session], settings: Settings, stores: Mapping[str, Settings], skipped: Counter[str]
) -> tuple[list[Session], tuple[str, ...]]:
    """Without what the exclude rules name. A fork or an import of an excluded session repeats it, so it
    goes too."""
    rules = workspaces.resolved(settings.exclude_workspaces)
    if not rules and not settings.exclude_sessions and not stores:
        return found, ()
    verdicts: dict[tuple[str | None, str], bool] = {}
    kept, cwds = [], set()
    for session in found:
        place = (session.cwd, session.workspace_id)
        if place not in verdicts:
            own = stores.get(session.workspace_id)
            more = workspaces.resolved(own.exclude_workspaces) if own else ()
            verdicts[place] = workspaces.excluded_dir((*rules, *more), *place)
        if verdicts[place]:
            skipped[EXCLUDED_WORKSPACE] += 1
            cwds.add(session.cwd or session.workspace_id)
        else:
            kept.append(session)
    named = _with_copies(found, settings.exclude_sessions)
    for workspace, own in stores.items():
        here = [session for session in found if session.workspace_id == workspace]
        named |= _with_copies(here, own.exclude_sessions)
    allowed = [session for session in kept if session.session_id not in named]
    skipped.update({EXCLUDED_SESSION: left_out} if (left_out := len(kept) - len(allowed)) else {})
    return allowed, tuple(sorted(cwds))


def _with_copies(found: Iterable[Session], globs: tuple[str, ...]) -> set[str]:
    copies: defaultdict[str, list[str]] = defaultdict(list)
    pending: list[str] = []
    for session in found:
        for source in (session.forked_from, session.imported_from):
            if source is not None:
                copies[source].append(session.session_id)
        if workspaces.matches_any(session.session_id, globs):
            pending.append(session.session_id)
    named: set[str] = set()
    while pending:
        session_id = pending.pop()
        if session_id not in named:
            named.add(session_id)
            pending += copies[session_id]
    return named


def _superseded(found: list[Session]) -> list[Session]:
    """Mark imports whose original is there: it has real times and all turns (WIRE §7)."""
    originals = {session.session_id for session in found if session.kind == "kimi-cli"}
    return [
        replace(session, superseded_by_original=True) if session.imported_from in originals else session
        for session in found
    ]


def _grouped(found: Iterable[Session]) -> tuple[Workspace, ...]:
    groups: defaultdict[str, list[Session]] = defaultdict(list)
    for session in found:
        groups[session.workspace_id].append(session)
    spaces = (Workspace(name, _spelling(name, group), tuple(group)) for name, group in groups.items())
    return tuple(sorted(spaces, key=attrgetter("label")))


def _spelling(workspace: str, group: list[Session]) -> str | None:
    """The spelling that the id is made of; for the home directory the first one."""
    known = [session.cwd for session in group if session.cwd is not None]
    exact: Iterator[str] = (cwd for cwd in known if workspaces.workspace_id(cwd, "") == workspace)
    return next(exact, known[0] if known else None)


def clean_title(title: str, redact: Callable[[str], str]) -> str:
    """A recorded title without secrets, and without what is left of one that another program cut."""
    return without_cut_token(redact(title))


def shown_title(session: Session, redact: Callable[[str], str]) -> str:
    """A session's title without secrets; one that has none is called by its first prompt."""
    if title := clean_title(session.title or "", redact):
        return title
    main = next((agent for agent in session.agents if agent.agent_id == "main"), None)
    prompt = read_head(main.wire).first_prompt if main else None
    return derive_title(redact(prompt)) if prompt else ""
