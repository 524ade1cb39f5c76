"""One theme file as a record: decoding, encoding, and what a person or a run does to it. No I/O, no clock.

Shape (a superset of the other server's ``{theme, displayName, createdAt, updatedAt, turns, memories}``)::

    {theme, displayName, createdAt, updatedAt, producer, seeds, removedSeeds,
     turns: [{sessionId, agentId, turnId, position, opener, timestamp, score, via, gone?, unresolved?}],
     clusters: [{id, sessionId, agentId, turnIds, positions, start, end, summary, decision, decisions,
     files}], memories: [{key, folder, title, timestamp}], pins: [ref], exclusions: [ref]}

A turn without ``position`` was written by the other server: ``turnId`` is then an ordinal of prompts, to be
mapped (``resolve``). Unknown fields, of the file and of each turn, are kept as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pipeline.store.names import theme_name
from pipeline.store.theme_refs import (
    Ref,
    ThemeMemory,
    ThemeTurn,
    cluster_json,
    iso,
    memory_from,
    memory_json,
    ms_of,
    ref_from,
    ref_json,
    ref_of,
    turn_from,
    turn_json,
)
from stages.aggregate import Curation, Place
from stages.model import Theme, TurnKey

__all__ = [
    "Ref",
    "SessionTurns",
    "ThemeMemory",
    "ThemeRecord",
    "ThemeTurn",
    "cluster_json",
    "decode",
    "encode",
    "fresh",
    "iso",
    "ref_of",
]

PRODUCER = "kimi-memory-pipeline"
SAME_MOMENT_MS = 1_500
TAGGED_AFTER_MS = 60_000
"""A turn may have begun this much after the stamp of a pointer to it (clocks, rounding), not more."""

SessionTurns = Callable[[str], Sequence[tuple[TurnKey, int]]]
"""For a session: its main agent's prompted turns in order, each with its time (ms); empty when unknown."""

_FIELDS = (
    "theme", "displayName", "createdAt", "updatedAt", "producer", "seeds", "removedSeeds", "turns",
    "clusters", "memories", "pins", "exclusions",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ThemeRecord:
    """A theme file. Times are ms; ``clusters`` are kept as written."""

    theme: str
    display_name: str
    created_at: int | None
    updated_at: int | None
    producer: str | None = PRODUCER
    seeds: tuple[str, ...] = ()
    removed_seeds: tuple[str, ...] = ()
    turns: tuple[ThemeTurn, ...] = ()
    clusters: tuple[Mapping[str, Any], ...] = ()
    memories: tuple[ThemeMemory, ...] = ()
    pins: tuple[Ref, ...] = ()
    exclusions: tuple[Ref, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    # --- what a person does ----------------------------------------------------------------------------

    def tag(self, ref: Ref, timestamp: int | None) -> ThemeRecord:
        """Put a turn into the theme; lifts an exclusion of it."""
        turn = ThemeTurn(ref, timestamp, 1.0, "tagged")
        others = tuple(each for each in self.turns if not each.ref.is_same(ref))
        held = [each for each in self.turns if each.ref.is_same(ref)]
        if held:
            turn = replace(held[0], via="tagged", gone=False)
        return self._with_turns((*others, turn))._without("exclusions", ref)

    def untag(self, ref: Ref) -> ThemeRecord:
        """Take a turn out and keep it out: the same as ``exclude``, whoever put it in."""
        return self.exclude(ref)

    def exclude(self, ref: Ref) -> ThemeRecord:
        """Take a turn out of the theme; no run brings it back. Drops its pin."""
        bare = self._without("pins", ref)
        kept = (
            bare.exclusions if any(each.is_same(ref) for each in bare.exclusions) else (*bare.exclusions, ref)
        )
        return replace(
            bare, turns=tuple(each for each in bare.turns if not each.ref.is_same(ref)), exclusions=kept
        )

    def include(self, ref: Ref) -> ThemeRecord:
        """Lift an exclusion: the next run judges the turn again."""
        return self._without("exclusions", ref)

    def pin(self, ref: Ref, timestamp: int | None) -> ThemeRecord:
        """Make a turn a member for good and mark it as important; lifts an exclusion of it."""
        bare = self._without("exclusions", ref)
        if not any(each.is_same(ref) for each in bare.pins):
            bare = replace(bare, pins=(*bare.pins, ref))
        if any(each.ref.is_same(ref) for each in bare.turns):
            return bare
        return bare._with_turns((*bare.turns, ThemeTurn(ref, timestamp, 1.0, "tagged")))

    def unpin(self, ref: Ref) -> ThemeRecord:
        """Take the mark off; the turn stays until a run judges it."""
        return self._without("pins", ref)

    def remember(self, memory: ThemeMemory) -> ThemeRecord:
        """Link a memory (once for each folder and key)."""
        others = tuple(
            each for each in self.memories if (each.folder, each.key) != (memory.folder, memory.key)
        )
        held = [each for each in self.memories if (each.folder, each.key) == (memory.folder, memory.key)]
        kept = replace(held[0], title=memory.title or held[0].title) if held else memory
        rows = sorted((*others, kept), key=lambda each: (each.timestamp or 0, each.folder, each.key))
        return replace(self, memories=tuple(rows))

    def forget_memory(self, folder: str, key: str) -> ThemeRecord:
        """Unlink a memory."""
        return replace(self, memories=tuple(e for e in self.memories if (e.folder, e.key) != (folder, key)))

    def add_seeds(self, seeds: Sequence[str], *, replacing: bool = False) -> ThemeRecord:
        """Add seed keywords (or put them in place of the old ones); naming a removed one brings it back."""
        given = tuple(dict.fromkeys(seed.strip() for seed in seeds if seed.strip()))
        kept = given if replacing else tuple(dict.fromkeys((*self.seeds, *given)))
        return replace(self, seeds=kept, removed_seeds=tuple(s for s in self.removed_seeds if s not in given))

    def remove_seed(self, seed: str) -> ThemeRecord:
        """Drop a seed keyword for good (until a person names it again)."""
        removed = tuple(dict.fromkeys((*self.removed_seeds, seed)))
        return replace(self, seeds=tuple(each for each in self.seeds if each != seed), removed_seeds=removed)

    def absorb(self, other: ThemeRecord) -> ThemeRecord:
        """Everything of ``other`` too. What either one excluded stays out, unless the other one pinned or
        tagged it.
        """
        wanted = [turn.ref for turn in (*self.turns, *other.turns) if turn.via == "tagged"]
        wanted += [*self.pins, *other.pins]
        merged = replace(
            self,
            seeds=tuple(dict.fromkeys((*self.seeds, *other.seeds))),
            removed_seeds=tuple(
                s for s in dict.fromkeys((*self.removed_seeds, *other.removed_seeds))
                if s not in self.seeds and s not in other.seeds
            ),
            pins=_union(self.pins, other.pins),
            exclusions=tuple(
                ref
                for ref in _union(self.exclusions, other.exclusions)
                if not any(ref.is_same(each) for each in wanted)
            ),
            created_at=min((t for t in (self.created_at, other.created_at) if t is not None), default=None),
            extra={**other.extra, **self.extra},
        )  # fmt: skip
        turns = list(merged.turns)
        for turn in other.turns:
            if not any(turn.ref.is_same(held.ref) for held in turns):
                turns.append(turn)
            elif turn.via == "tagged":
                turns = [
                    replace(held, via="tagged") if held.ref.is_same(turn.ref) else held for held in turns
                ]
        clusters = {str(each.get("id")): each for each in (*other.clusters, *self.clusters)}
        ordered = sorted(clusters.values(), key=lambda each: (str(each.get("start")), str(each.get("id"))))
        merged = replace(merged, clusters=tuple(ordered))
        for memory in other.memories:
            merged = merged.remember(memory)
        out = [t for t in turns if not any(t.ref.is_same(ref) for ref in merged.exclusions)]
        return merged._with_turns(out)

    # --- what a run does -------------------------------------------------------------------------------

    def curation(self, openers: Mapping[Place, str]) -> Curation:
        """What the aggregator must respect. ``openers`` tells the digest of each turn at hand: a place that
        now holds another turn (after a repair) is nobody's tag.
        """

        def places(refs: Sequence[Ref]) -> frozenset[Place]:
            found = set()
            for ref in refs:
                spot = ref.place
                if spot is not None and (not ref.opener or openers.get(spot, ref.opener) in ("", ref.opener)):
                    found.add(spot)
            return frozenset(found)

        return Curation(
            tagged=places([turn.ref for turn in self.turns if turn.via == "tagged"]),
            pinned=places(self.pins),
            excluded=places(self.exclusions),
            removed_seeds=frozenset(self.removed_seeds),
        )

    def rebuilt(
        self, theme: Theme, judged: Mapping[Place, str], exists: Callable[[Ref], bool]
    ) -> ThemeRecord:
        """The record after a run.

        ``judged`` are the turns the run looked at (place → opener): among them membership is the run's,
        except for what a person did. Pointers outside (another period, another machine's session) are kept;
        those whose turn no longer ``exists`` are marked gone, and so are those whose place now holds
        another turn.
        """
        found = [
            _pointer_turn(pointer.key, pointer.timestamp, pointer.score, pointer.via)
            for pointer in theme.pointers
        ]
        held = {turn.ref.place: turn for turn in self.turns if turn.ref.place is not None}
        turns = [
            replace(turn, extra=held[turn.ref.place].extra) if turn.ref.place in held else turn
            for turn in found
        ]
        fresh = {turn.ref.place: turn.ref for turn in found}
        for turn in self.turns:
            spot = turn.ref.place
            if spot in fresh and turn.ref.is_same(fresh[spot]):
                continue
            if spot is None:
                turns.append(turn)
                continue
            other = bool(turn.ref.opener and judged.get(spot, turn.ref.opener) not in ("", turn.ref.opener))
            if spot in judged and not other and turn.via != "tagged":
                continue
            turns.append(replace(turn, gone=other or not exists(turn.ref)))
        fresh_clusters = tuple(cluster_json(cluster) for cluster in theme.clusters)
        sessions = {session for session, _, _ in judged}
        kept = tuple(each for each in self.clusters if each.get("sessionId") not in sessions)
        clusters = sorted(
            (*kept, *fresh_clusters), key=lambda each: (str(each.get("start")), str(each.get("id")))
        )
        return replace(self, producer=PRODUCER, seeds=theme.seeds, clusters=tuple(clusters))._with_turns(
            turns
        )

    def resolve(self, session_turns: SessionTurns) -> ThemeRecord:
        """Map the other server's pointers (prompt ordinals) to turns, checked by their time; the rest is
        unresolved.

        Its timestamp is the turn's time or, later, that of the tagging: a turn at that very moment is the
        one meant; else the ordinal's, if it had begun by then.
        """
        turns: list[ThemeTurn] = []
        for turn in self.turns:
            if turn.ref.position is not None:
                turns.append(turn)
                continue
            key = _meant(turn, session_turns(turn.ref.session_id))
            if key is None:
                turns.append(replace(turn, unresolved=True))
                continue
            mapped = replace(turn, ref=ref_of(key), via=turn.via or "tagged", unresolved=False)
            if not any(
                mapped.ref.is_same(held.ref)
                for held in (*turns, *self.turns)
                if held.ref.position is not None
            ):
                turns.append(mapped)
        return self._with_turns(turns) if tuple(turns) != self.turns else self

    def _with_turns(self, turns: Sequence[ThemeTurn]) -> ThemeRecord:
        return replace(self, turns=tuple(sorted(turns, key=_turn_order)))

    def _without(self, name: str, ref: Ref) -> ThemeRecord:
        refs: tuple[Ref, ...] = getattr(self, name)
        kept = tuple(each for each in refs if not each.is_same(ref))
        return replace(self, **{name: kept}) if kept != refs else self  # type: ignore[arg-type]


def _meant(turn: ThemeTurn, prompted: Sequence[tuple[TurnKey, int]]) -> TurnKey | None:
    stamp = turn.timestamp
    if stamp is not None:
        same = [key for key, at in prompted if abs(at - stamp) <= SAME_MOMENT_MS]
        if len(same) == 1:
            return same[0]
    if 0 <= turn.ref.turn_id < len(prompted):
        key, at = prompted[turn.ref.turn_id]
        if stamp is None or at <= stamp + TAGGED_AFTER_MS:
            return key
    return None


def _turn_order(turn: ThemeTurn) -> tuple[int, str, str, int, int]:
    ref = turn.ref
    return (
        turn.timestamp or 0,
        ref.session_id,
        ref.agent_id,
        -1 if ref.position is None else ref.position,
        ref.turn_id,
    )


def _union(left: Sequence[Ref], right: Sequence[Ref]) -> tuple[Ref, ...]:
    return (*left, *(ref for ref in right if not any(ref.is_same(held) for held in left)))


def _pointer_turn(key: TurnKey, timestamp: int, score: float, via: str) -> ThemeTurn:
    return ThemeTurn(ref_of(key), timestamp, score, via)


def fresh(name: str, now: int) -> ThemeRecord:
    """A new, empty theme: ``theme`` is its file's name, ``display_name`` what the person called it."""
    return ThemeRecord(theme_name(name), name.strip(), now, now)


# --- JSON --------------------------------------------------------------------------------------------


def encode(record: ThemeRecord) -> dict[str, Any]:
    """The JSON object of a record: known fields first, in a fixed order, then what was unknown."""
    known: dict[str, Any] = {
        "theme": record.theme,
        "displayName": record.display_name,
        "createdAt": iso(record.created_at),
        "updatedAt": iso(record.updated_at),
        "producer": record.producer,
        "seeds": list(record.seeds),
        "removedSeeds": list(record.removed_seeds),
        "turns": [turn_json(turn) for turn in record.turns],
        "clusters": [dict(each) for each in record.clusters],
        "memories": [memory_json(each) for each in record.memories],
        "pins": [ref_json(ref) for ref in record.pins],
        "exclusions": [ref_json(ref) for ref in record.exclusions],
    }
    if record.producer is None:
        del known["producer"]
    return {**known, **record.extra}


def decode(value: object, stem: str) -> ThemeRecord:
    """A record from parsed JSON. Raises ValueError (saying which field) when it is no theme."""
    if not isinstance(value, dict):
        raise ValueError("the file holds no JSON object")
    name = value.get("theme", stem)
    if not isinstance(name, str) or not name:
        raise ValueError("“theme” is no text")
    display = value.get("displayName")
    producer = value.get("producer")
    return ThemeRecord(
        theme=name,
        display_name=display if isinstance(display, str) and display else name,
        created_at=ms_of(value.get("createdAt")),
        updated_at=ms_of(value.get("updatedAt")),
        producer=producer if isinstance(producer, str) else None,
        seeds=_texts(value, "seeds"),
        removed_seeds=_texts(value, "removedSeeds"),
        turns=tuple(turn_from(row) for row in _rows(value, "turns")),
        clusters=tuple(_rows(value, "clusters")),
        memories=tuple(memory_from(row) for row in _rows(value, "memories")),
        pins=tuple(ref_from(row, "pins") for row in _rows(value, "pins")),
        exclusions=tuple(ref_from(row, "exclusions") for row in _rows(value, "exclusions")),
        extra={key: each for key, each in value.items() if key not in _FIELDS},
    )


def _rows(value: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    rows = value.get(name, [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"“{name}” is no list of objects")
    return rows


def _texts(value: Mapping[str, Any], name: str) -> tuple[str, ...]:
    texts = value.get(name, [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"“{name}” is no list of texts")
    return tuple(texts)
