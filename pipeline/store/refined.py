"""Refined records in the store: which turns lack one, writing them with their entities, reading them for
themes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import orjson

from pipeline.store import codec
from pipeline.store.database import Database, batched
from pipeline.store.turns import OCCURRENCE, Occurrence, bodies, occurrence, unpack
from stages.model import Entities, Fact, Refined, RefinedTurn, Turn, TurnKey, final_text
from stages.refine import REFINER_VERSION

_PLACE = ", ".join(f"o.{column}" for column in OCCURRENCE.split(", "))
LENT_CHARS = 2000
"""How much of a sub-agent's answer is lent to the turn that called it."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A content to refine, the one it may answer (the turn before it), and the directory its paths are under."""

    content_id: int
    previous_id: int | None
    cwd: str | None


async def unrefined(database: Database, content_ids: Iterable[int] | None = None) -> list[Candidate]:
    """Shown turns that have no refined record of this version; of ``content_ids`` only, if given.

    Open turns are left out: their content still changes. In file order, so that bodies are read in sequence.
    """
    where = ""
    if content_ids is not None:
        await _fill(database, content_ids)
        where = "AND c.id IN (SELECT id FROM chosen)"
    found = await database.rows(
        f"""SELECT c.id, (SELECT p.content_id FROM occurrence p WHERE p.session_id=o.session_id
                AND p.agent_id=o.agent_id AND p.position<o.position AND p.undone=0
                ORDER BY p.position DESC LIMIT 1), s.cwd
            FROM content c JOIN occurrence o ON o.id=c.shown
            LEFT JOIN session s ON s.session_id=o.session_id
            LEFT JOIN refined r ON r.content_id=c.id
            WHERE o.open=0 AND (r.version IS NULL OR r.version<>?) {where} ORDER BY c.id""",
        (REFINER_VERSION,),
    )
    return [Candidate(*row) for row in found]


async def refined_among(database: Database, content_ids: Iterable[int]) -> list[int]:
    """Those of ``content_ids`` that have a refined record."""
    await _fill(database, content_ids)
    rows = await database.rows("SELECT content_id FROM refined WHERE content_id IN (SELECT id FROM chosen)")
    return [row[0] for row in rows]


async def _fill(database: Database, content_ids: Iterable[int]) -> None:
    await database.execute("CREATE TEMP TABLE IF NOT EXISTS chosen(id INTEGER PRIMARY KEY)")
    await database.execute("DELETE FROM chosen")
    await database.executemany("INSERT OR IGNORE INTO chosen VALUES(?)", [(i,) for i in content_ids])


class PackedRefined(NamedTuple):
    """A refined record ready to store. Plain tuples: they cross process borders by the thousand."""

    content_id: int
    decision: bool
    body: bytes
    dictionary: int | None
    """What ``body`` is compressed with."""
    mentions: tuple[tuple[int, str, str, bool], ...]
    """Entity number, kind, value, and whether the turn wrote it."""


def pack_refined(content_id: int, record: Refined, dictionary: int | None) -> PackedRefined:
    """Pack one record, with a dictionary that ``codec.use`` has named."""
    written = frozenset(record.entities.files_written)
    mentions = tuple(
        (entity_id(kind, value), kind, value, kind == "file" and value in written)
        for kind, value in record.entities.pairs()
    )
    return PackedRefined(
        content_id, record.decision, codec.compress(_dump(record), dictionary), dictionary, mentions
    )


async def store_refined(database: Database, refined: Sequence[PackedRefined], *, now: int) -> None:
    """Write refined records and their entities; call inside a transaction. Contents gone meanwhile are
    skipped.
    """
    alive: set[int] = set()
    for some in batched(record.content_id for record in refined):
        marks = ",".join("?" * len(some))
        alive.update(
            row[0] for row in await database.rows(f"SELECT id FROM content WHERE id IN ({marks})", some)
        )
    records = [record for record in refined if record.content_id in alive]
    await drop_refined(database, [record.content_id for record in records])  # of an older refiner
    await database.executemany(
        "INSERT OR REPLACE INTO refined(content_id, version, decision, refined_at, body) VALUES(?,?,?,?,?)",
        [
            (r.content_id, REFINER_VERSION, int(r.decision), now, _body(r, database.dictionary))
            for r in records
        ],
    )
    entities = {number: (kind, value) for r in records for number, kind, value, _ in r.mentions}
    await database.executemany(
        "INSERT OR IGNORE INTO entity(id, kind, value) VALUES(?,?,?)",
        [(number, kind, value) for number, (kind, value) in sorted(entities.items())],
    )
    await database.executemany(
        "INSERT OR REPLACE INTO mention(entity_id, content_id, written) VALUES(?,?,?)",
        sorted((number, r.content_id, int(written)) for r in records for number, _, _, written in r.mentions),
    )


def _body(record: PackedRefined, dictionary: int | None) -> bytes:
    """Forgetting may have put another dictionary in place of the one that was packed with."""
    if record.dictionary == dictionary:
        return record.body
    return codec.compress(codec.expand(record.body), dictionary)


@lru_cache(maxsize=20_000)
def entity_id(kind: str, value: str) -> int:
    """The number of an entity: 47 bits of a digest, so that a row holds it in six bytes (two of a million
    entities share one once in three hundred stores)."""
    digest = hashlib.blake2b(f"{kind}\0{value}".encode("utf-8", "replace"), digest_size=6).digest()
    return int.from_bytes(digest, "big") >> 1


async def drop_refined(database: Database, content_ids: Iterable[int]) -> None:
    """Drop the refined records of these contents with their mentions; call inside a transaction."""
    for some in batched(content_ids):
        marks = ",".join("?" * len(some))
        found = await database.rows(
            f"SELECT content_id, body FROM refined WHERE content_id IN ({marks})", some
        )
        if not found:
            continue
        mentions = [
            (entity_id(kind, value), row[0])
            for row in found
            for kind, value in unpack_refined(row[1], False).entities.pairs()
        ]
        await database.executemany("DELETE FROM mention WHERE entity_id=? AND content_id=?", mentions)
        await database.executemany(
            "DELETE FROM entity WHERE id=?1 AND NOT EXISTS(SELECT 1 FROM mention WHERE entity_id=?1)",
            [(number,) for number in {number for number, _ in mentions}],
        )
        await database.execute(f"DELETE FROM refined WHERE content_id IN ({marks})", some)


_FIELDS = (
    "files_read",
    "files_written",
    "symbols",
    "commands",
    "errors",
    "tools",
    "urls",
    "packages",
    "issues",
)


def _dump(record: Refined) -> bytes:
    """A refined record as JSON, without the decision flag, which is a column."""
    entities = {name: getattr(record.entities, name) for name in _FIELDS if getattr(record.entities, name)}
    facts = [[fact.type, fact.text, fact.source, fact.span] for fact in record.facts]
    return orjson.dumps([record.summary, facts, entities, record.categories])


def unpack_refined(body: bytes, decision: bool) -> Refined:
    """The record that ``pack_refined`` was given, but for its decision flag."""
    summary, facts, entities, categories = orjson.loads(codec.expand(body))
    return Refined(
        summary=summary,
        facts=tuple(
            Fact(kind, text, source, tuple(span) if span else None) for kind, text, source, span in facts
        ),
        entities=Entities(**{name: tuple(values) for name, values in entities.items()}),
        decision=decision,
        categories=tuple(categories),
    )


async def refined_turns(database: Database, content_ids: Iterable[int] | None = None) -> list[RefinedTurn]:
    """Refined turns in their shown place, in time order; of ``content_ids`` only, if given. A turn without a
    time (WIRE §3) has its session's.

    A sub-agent's turns lend their text and entities to the turn that called it (design: Identity).
    """
    where = ""
    if content_ids is not None:
        await _fill(database, content_ids)
        where = "WHERE c.id IN (SELECT id FROM chosen)"
    found = await database.rows(
        f"""SELECT {_PLACE}, r.body, r.decision, c.body, s.title,
                   coalesce(o.started_at, s.created_at, s.updated_at, 0) AS at
            FROM content c JOIN occurrence o ON o.id=c.shown JOIN refined r ON r.content_id=c.id
            LEFT JOIN session s ON s.session_id=o.session_id {where}
            ORDER BY at, o.session_id, o.agent_id, o.position"""
    )
    lent = await _lent(database)
    turns = []
    for row in found:
        place = occurrence(row)
        turn = _refined_turn(
            place, unpack_refined(row[21], bool(row[22])), unpack(row[23], place), row[24] or "", row[25]
        )
        for child in lent.get((place.session_id, place.agent_id, place.position), ()):
            turn = _lend(turn, child)
        turns.append(turn)
    return turns


def _refined_turn(place: Occurrence, refined: Refined, turn: Turn, title: str, at: int) -> RefinedTurn:
    said = [turn.user_text or "", *(steer.text for steer in turn.live_steers if steer.human)]
    return RefinedTurn(
        key=TurnKey(place.session_id, place.agent_id, place.position, place.turn_id, place.opener_digest),
        origin=place.origin,
        status=turn.status,
        timestamp=at,
        user_text="\n".join(text for text in said if text),
        answer=final_text(turn.live_steps) or "",
        refined=refined,
        ended_at=place.ended_at,
        session_title=title,
    )


@dataclass(frozen=True, slots=True)
class _Loan:
    answer: str
    entities: Entities | None


async def _lent(database: Database) -> dict[tuple[str, str, int], list[_Loan]]:
    """What sub-agents lend, by the calling turn's key."""
    found = await database.rows(
        """SELECT w.session_id, w.parent_agent, w.position, o.content_id, r.body
           FROM spawn w JOIN occurrence o ON o.session_id=w.session_id AND o.agent_id=w.agent_id AND o.undone=0
           LEFT JOIN refined r ON r.content_id=o.content_id ORDER BY o.position"""
    )
    texts = await bodies(database, list({row[3] for row in found})) if found else {}
    loans: dict[tuple[str, str, int], list[_Loan]] = {}
    for session, agent, position, content_id, refined in found:
        body = texts.get(content_id)
        if body is None:
            continue
        place = Occurrence(0, session, agent, position, 0, content_id, "", None, "", "", False, False, False,
                           None, None, None, None, 0, 0, 0, 0)  # fmt: skip
        answer = final_text(unpack(body, place).live_steps) or ""
        loan = _Loan(answer[:LENT_CHARS], unpack_refined(refined, False).entities if refined else None)
        loans.setdefault((session, agent, position), []).append(loan)
    return loans


def _lend(turn: RefinedTurn, loan: _Loan) -> RefinedTurn:
    entities = turn.refined.entities
    if loan.entities is not None:
        entities = Entities(
            **{
                name: tuple(dict.fromkeys((*getattr(entities, name), *getattr(loan.entities, name))))
                for name in _FIELDS
            }
        )
    return replace(
        turn, answer=f"{turn.answer}\n{loan.answer}".strip(), refined=replace(turn.refined, entities=entities)
    )
