"""A theme's cold start and its refresh: coarse search ─► refine the candidates ─► aggregate ─► persist.

Only turns that a seed finds, and their neighbours in the session, are refined; a second round looks for the
terms that the sure turns share. What is refined once is reused by every later run and theme (seed 000 §3.3).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from anyio import to_thread

from pipeline.errors import BadInput
from pipeline.refining import refine_all
from pipeline.report import Report, ThemeResult
from pipeline.store import tombstones
from pipeline.store.database import Database
from pipeline.store.layout import Layout
from pipeline.store.refined import refined_among, refined_turns, unrefined
from pipeline.store.theme_record import Ref, ThemeRecord, fresh
from pipeline.store.themes import ThemeStore
from pipeline.workers import Workers
from stages.aggregate import Place, aggregate, in_order, place, read
from stages.discover import suggest_seeds
from stages.evidence import Stats, evidence
from stages.model import RefinedTurn, Theme, TurnKey
from stages.theme_page import Memory, page
from stages.tokens import STOP_WORDS, tokens

NEIGHBOURS = 8
"""Turns before and after a hit, in its session, that are refined and judged with it: follow-ups without
keywords.
"""
SEED_HITS = 600
"""Best hits kept a seed (bm25): a seed that occurs everywhere must not have the whole store refined."""
ROUNDS = 3
EXPANSION_TERMS = 32
EXPANSION_HITS = 60
"""Further rounds: so many terms that the sure turns share are looked for, with so many hits each."""
EXPANSION_LEAST = 100
"""A round may add as many turns as the seeds found, and so many in any case."""
SUGGESTED = 12


@dataclass(frozen=True, slots=True)
class ThemeRequest:
    """One theme to build. Times are ms; ``keywords`` add to the theme's seeds, or replace them."""

    name: str
    keywords: tuple[str, ...] = ()
    replace_keywords: bool = False
    since: int | None = None
    until: int | None = None


class NeedsSeeds(BadInput):
    """A first run without keywords. ``suggested`` are seeds that the store's own words suggest."""

    def __init__(self, name: str, suggested: Sequence[str]) -> None:
        hint = "Run again with --keywords a,b,c (1 to 3 words that only this subject uses)."
        if suggested:
            hint += f"\nSuggested: {', '.join(suggested)}"
        super().__init__(f"theme “{name}” is new and has no seed keywords", hint=hint)
        self.suggested = tuple(suggested)


async def build_theme(
    database: Database,
    layout: Layout,
    workspace: str,
    request: ThemeRequest,
    *,
    workers: Workers,
    report: Report,
) -> ThemeResult:
    """Bring one theme up to date with the (already caught-up) store. Raises NeedsSeeds, CorruptTheme,
    StoreError.
    """
    began = time.monotonic()
    themes = ThemeStore(layout.root)
    forgotten = await database.meta(tombstones.BEGUN)
    record = await to_thread.run_sync(themes.read, request.name)
    seeds = (
        (record or ThemeRecord(request.name, request.name, None, None))
        .add_seeds(request.keywords, replacing=request.replace_keywords and bool(request.keywords))
        .seeds
    )
    if not seeds and not (record and record.turns):
        raise NeedsSeeds(request.name, await suggested_seeds(database, request.name))
    openers = await resolvable(database)
    if record is not None:
        record = record.resolve(openers)
    turns, stats = await gather(database, seeds, record, workers=workers, report=report)
    turns = [turn for turn in turns if _in_period(turn, request)]
    result = await _persist(database, themes, request, openers, turns, stats)
    if await database.meta(tombstones.BEGUN) != forgotten:  # what was just written may tell of it
        from pipeline.forgetting import purge_theme

        await purge_theme(database, layout, request.name)
        return await build_theme(database, layout, workspace, request, workers=workers, report=report)
    report.seconds += time.monotonic() - began
    report.themes.append(ThemeResult(workspace, *result))
    return report.themes[-1]


async def gather(
    database: Database,
    seeds: Sequence[str],
    record: ThemeRecord | None,
    *,
    workers: Workers,
    report: Report,
) -> tuple[list[RefinedTurn], Stats]:
    """The turns that a theme with these seeds is judged over, refined, and the statistics to judge them by.

    ``record`` is the theme as it stands, its references resolved.
    """
    candidates = await theme_candidates(database, seeds, record)
    turns = await _refined(database, candidates, workers, report)
    stats = await corpus_stats(database)
    room = max(EXPANSION_LEAST, len(candidates))
    for _ in range(ROUNDS):
        shared = await to_thread.run_sync(_shared_terms, seeds, turns, stats)
        more = await _kin(database, shared, candidates, room)
        if not more:
            break
        candidates |= more
        turns = await _refined(database, candidates, workers, report)
    report.note_used(database.path, await refined_among(database, candidates))
    return turns, stats


async def _kin(database: Database, shared: Sequence[str], known: set[int], room: int) -> set[int]:
    """Turns that hold what the sure turns share, and their neighbours: the most telling terms first, about as many
    as the seeds found themselves.
    """
    found: set[int] = set()
    for term in shared:
        hits = await _hits(
            database, [tokens(term.partition(":")[2]) if ":" in term else [term]], EXPANSION_HITS
        )
        if hits - known - found:
            found |= await _with_neighbours(database, hits) - known
        if len(found) >= room:
            break
    return found


def _in_period(turn: RefinedTurn, request: ThemeRequest) -> bool:
    return (request.since is None or turn.timestamp >= request.since) and (
        request.until is None or turn.timestamp <= request.until
    )


def _shared_terms(seeds: Sequence[str], turns: Sequence[RefinedTurn], stats: Stats) -> list[str]:
    reading = read(seeds, [evidence(turn) for turn in in_order(turns)], stats)
    weights = reading.expansion.weights
    return sorted(weights, key=lambda term: (-weights[term], term))[:EXPANSION_TERMS]


async def _persist(
    database: Database,
    themes: ThemeStore,
    request: ThemeRequest,
    openers: Callable[[str], Sequence[tuple[TurnKey, int]]],
    turns: Sequence[RefinedTurn],
    stats: Stats,
) -> tuple[str, str, int, bool]:
    judged: dict[Place, str] = {place(turn.key): turn.key.opener_digest for turn in turns}
    existing = await _existing(database)
    built: list[Theme] = []

    def asked(record: ThemeRecord) -> ThemeRecord:
        return record.resolve(openers).add_seeds(
            request.keywords, replacing=request.replace_keywords and bool(request.keywords)
        )

    def judge(record: ThemeRecord) -> Theme:
        return aggregate(record.theme, record.seeds, turns, curation=record.curation(judged), stats=stats)

    # Judged before the theme is locked, which others wait for, and again only if it is another one by then.
    now = time.time_ns() // 1_000_000
    held = await to_thread.run_sync(themes.read, request.name)
    first = asked(held or fresh(request.name, now))
    theme = await to_thread.run_sync(judge, first)

    def change(record: ThemeRecord) -> ThemeRecord:
        record = asked(record)
        same = (record.theme, record.seeds) == (first.theme, first.seeds) and (
            record.curation(judged) == first.curation(judged)
        )
        built.append(theme if same else judge(record))
        return record.rebuilt(built[-1], judged, lambda ref: _exists(existing, ref))

    written = await to_thread.run_sync(lambda: themes.update(request.name, change, now, op="run"))
    text = await to_thread.run_sync(theme_page, written.record, built[-1], turns)
    await to_thread.run_sync(themes.write_page, written.record.theme, text)
    return written.record.theme, str(written.path), len(written.record.turns), written.changed


def theme_page(record: ThemeRecord, theme: Theme, turns: Sequence[RefinedTurn]) -> str:
    """The Markdown page of a theme as it stands, with local days."""
    return page(
        theme,
        turns,
        display_name=record.display_name,
        memories=[Memory(memory.folder, memory.key, memory.title) for memory in record.memories],
        pinned=frozenset(ref.place for ref in record.pins if ref.place is not None),
        zone=LocalZone(),
    )


class LocalZone(tzinfo):
    """The machine's time zone with its rules: a summer's day stays the same day in winter."""

    def fromutc(self, dt: datetime) -> datetime:
        offset = time.localtime(dt.replace(tzinfo=UTC).timestamp()).tm_gmtoff
        return dt + timedelta(seconds=offset)

    def utcoffset(self, dt: datetime | None) -> timedelta | None:
        return (
            None
            if dt is None
            else timedelta(seconds=time.localtime(dt.replace(tzinfo=None).timestamp()).tm_gmtoff)
        )

    def dst(self, dt: datetime | None) -> timedelta | None:
        return None

    def tzname(self, dt: datetime | None) -> str | None:
        return None


def _exists(existing: dict[Place, str], ref: Ref) -> bool:
    opener = existing.get(ref.place) if ref.place is not None else None
    return opener is not None and (not ref.opener or ref.opener == opener)


async def _existing(database: Database) -> dict[Place, str]:
    return {
        (row[0], row[1], row[2]): row[3]
        for row in await database.rows("SELECT session_id, agent_id, position, opener_digest FROM occurrence")
    }


async def resolvable(database: Database) -> Callable[[str], Sequence[tuple[TurnKey, int]]]:
    """For mapping the peer server's prompt ordinals: a session's prompted main turns in order, with their
    times.
    """
    sessions: dict[str, list[tuple[TurnKey, int]]] = {}
    for row in await database.rows(
        "SELECT session_id, agent_id, position, turn_id, opener_digest, started_at FROM occurrence"
        " WHERE agent_id='main' AND prompt_id IS NOT NULL OR agent_id='main' AND origin='user'"
        " ORDER BY session_id, position"
    ):
        sessions.setdefault(row[0], []).append((TurnKey(*row[:5]), row[5] or 0))
    return lambda session_id: sessions.get(session_id, [])


# --- candidates --------------------------------------------------------------------------------------------


async def theme_candidates(database: Database, seeds: Sequence[str], record: ThemeRecord | None) -> set[int]:
    """Contents that a seed finds, those the theme points to already, and the neighbours of all."""
    terms = [[t for t in tokens(seed) if t not in STOP_WORDS] or tokens(seed) for seed in seeds]
    hits = await _hits(database, terms, SEED_HITS)
    if record is not None:
        hits |= await _pointed(database, [turn.ref for turn in record.turns])
    return await _with_neighbours(database, hits)


async def _hits(database: Database, seeds: Iterable[Sequence[str]], limit: int) -> set[int]:
    """Shown contents that hold all tokens of a seed, the best of each."""
    found: set[int] = set()
    for terms in seeds:
        if not terms:
            continue
        match = " AND ".join(f'"{term}"' for term in terms)
        rows = await database.rows(
            "SELECT turn_fts.rowid FROM turn_fts JOIN content c ON c.id=turn_fts.rowid"
            " WHERE turn_fts MATCH ? AND c.shown IS NOT NULL ORDER BY rank LIMIT ?",
            (match, limit),
        )
        found.update(row[0] for row in rows)
    return found


async def _pointed(database: Database, refs: Sequence[Ref]) -> set[int]:
    found: set[int] = set()
    for ref in refs:
        if ref.position is None:
            continue
        row = await database.row(
            "SELECT content_id FROM occurrence WHERE session_id=? AND agent_id=? AND position=?",
            (ref.session_id, ref.agent_id, ref.position),
        )
        if row is not None:
            found.add(row[0])
    return found


async def _with_neighbours(database: Database, hits: set[int]) -> set[int]:
    """The hits and the shown turns around each; a sub-agent's hit brings the turn that called it."""
    await database.execute("CREATE TEMP TABLE IF NOT EXISTS hit(id INTEGER PRIMARY KEY)")
    await database.execute("DELETE FROM hit")
    await database.executemany("INSERT OR IGNORE INTO hit VALUES(?)", [(i,) for i in hits])
    rows = await database.rows(
        """WITH spot(session_id, agent_id, position) AS (
               SELECT o.session_id, o.agent_id, o.position FROM hit JOIN content c ON c.id=hit.id
                   JOIN occurrence o ON o.id=c.shown
               UNION
               SELECT w.session_id, w.parent_agent, w.position FROM hit JOIN content c ON c.id=hit.id
                   JOIN occurrence o ON o.id=c.shown
                   JOIN spawn w ON w.session_id=o.session_id AND w.agent_id=o.agent_id)
           SELECT DISTINCT n.content_id FROM spot JOIN occurrence n ON n.session_id=spot.session_id
               AND n.agent_id=spot.agent_id AND n.position BETWEEN spot.position-? AND spot.position+?
           JOIN content c ON c.id=n.content_id WHERE c.shown IS NOT NULL""",
        (NEIGHBOURS, NEIGHBOURS),
    )
    return {row[0] for row in rows} | hits


async def _refined(
    database: Database, candidates: set[int], workers: Workers, report: Report
) -> list[RefinedTurn]:
    missing = await unrefined(database, candidates)
    await refine_all(database, missing, workers=workers, report=report)
    return await refined_turns(database, candidates)


async def corpus_stats(database: Database) -> Stats:
    """Document frequencies of all tokens over the whole index."""
    await database.execute(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.turn_vocab USING fts5vocab('main', 'turn_fts', 'row')"
    )
    turns = (await database.row("SELECT count(*) FROM content WHERE shown IS NOT NULL"))[0]
    rows = await database.rows("SELECT term, doc FROM temp.turn_vocab")
    return Stats(turns, {row[0]: row[1] for row in rows})


async def suggested_seeds(database: Database, name: str) -> tuple[str, ...]:
    """Seeds for a theme that nobody has given words yet, from what is refined so far."""
    turns = await refined_turns(database)
    return tuple(await to_thread.run_sync(lambda: suggest_seeds(turns, name)))[:SUGGESTED]
