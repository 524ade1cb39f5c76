"""Keeping themes up with new evidence, without undoing what a person did.

A theme that nobody has touched by hand is rebuilt. One that a person has curated (pins, exclusions, tags, removed
seeds, or written by another program) is left as it is: the turns that a run would add are written beside it, to
``reports/suggestions/<theme>.json``, as references without any text. The file is derived: it is made anew at each
refresh and goes when there is nothing to suggest.
"""

from __future__ import annotations

from pathlib import Path

from anyio import to_thread

from pipeline.report import Report
from pipeline.store import files
from pipeline.store.database import Database
from pipeline.store.layout import Layout
from pipeline.store.theme_record import ThemeRecord, ref_of
from pipeline.store.theme_refs import ThemeTurn, turn_from, turn_json
from pipeline.store.themes import ThemeStore
from pipeline.theming import ThemeRequest, build_theme, gather, resolvable, theme_candidates
from pipeline.workers import Workers
from stages.aggregate import aggregate, place

FOLDER = ("reports", "suggestions")
MOST = 100
"""Suggestions that are kept: nobody reads more."""


def curated(record: ThemeRecord) -> bool:
    """Whether a person decided anything about what belongs to this theme."""
    by_hand = any(turn.via in ("tagged", None) for turn in record.turns)
    return bool(
        record.pins or record.exclusions or record.removed_seeds or by_hand or record.producer is None
    )


async def has_new_evidence(database: Database, record: ThemeRecord, new: set[int]) -> bool:
    """Whether a run of this theme would look at any of these contents."""
    return bool(record.seeds) and not new.isdisjoint(await theme_candidates(database, record.seeds, record))


async def refresh_theme(
    database: Database, layout: Layout, workspace: str, name: str, *, workers: Workers, report: Report
) -> bool:
    """Bring one theme up to date, or its suggestions; whether a file changed. Raises CorruptTheme, StoreError."""
    record = await to_thread.run_sync(ThemeStore(layout.root).read, name)
    if record is None or not record.seeds:
        return False
    if not curated(record):
        await to_thread.run_sync(files.remove, path_of(layout.root, name))
        result = await build_theme(
            database, layout, workspace, ThemeRequest(name), workers=workers, report=report
        )
        return result.changed
    found = await _suggested(database, record, workers, report)
    return await to_thread.run_sync(_write, layout.root, name, found)


async def _suggested(
    database: Database, record: ThemeRecord, workers: Workers, report: Report
) -> list[ThemeTurn]:
    """What a run would add to the theme, best first."""
    record = record.resolve(await resolvable(database))
    turns, stats = await gather(database, record.seeds, record, workers=workers, report=report)
    judged = {place(turn.key): turn.key.opener_digest for turn in turns}
    theme = await to_thread.run_sync(
        lambda: aggregate(record.theme, record.seeds, turns, curation=record.curation(judged), stats=stats)
    )
    found = [
        ThemeTurn(ref_of(pointer.key), pointer.timestamp, pointer.score, pointer.via)
        for pointer in theme.pointers
    ]
    return _open(record, sorted(found, key=lambda turn: (-(turn.score or 0), turn.timestamp or 0)))[:MOST]


def _open(record: ThemeRecord, found: list[ThemeTurn]) -> list[ThemeTurn]:
    """Those that the theme neither holds nor excludes."""
    settled = [*(turn.ref for turn in record.turns), *record.exclusions]
    return [turn for turn in found if not any(turn.ref.is_same(ref) for ref in settled)]


def path_of(root: Path, name: str) -> Path:
    """Where the suggestions for a theme are."""
    return root.joinpath(*FOLDER, f"{ThemeStore(root).path(name).stem}.json")


def _write(root: Path, name: str, found: list[ThemeTurn]) -> bool:
    path = path_of(root, name)
    with files.locked(root, f"reports/{path.name}"):
        if not found:
            return files.remove(path)
        return files.write_json(path, {"theme": name, "turns": [turn_json(turn) for turn in found]})


def suggestions(root: Path, record: ThemeRecord) -> list[ThemeTurn]:
    """The turns that are suggested for a theme and not settled since, best first."""
    held = files.read_json(path_of(root, record.theme))
    rows = held.get("turns") if isinstance(held, dict) else None
    if not isinstance(rows, list):
        return []
    return _open(record, [turn_from(row) for row in rows if isinstance(row, dict)])
