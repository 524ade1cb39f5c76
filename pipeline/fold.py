"""One bounded piece of work on one wire: read, split, redact, pack and tokenise. Runs in any thread or
process.

``fold`` is pure but for reading the file: it starts from a checkpoint and a saved splitter state and returns
the rows to store together with the next checkpoint and state. Nothing is committed here (see
pipeline/folding.py); doing the same piece twice gives the same rows."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from pipeline.exclusion import Excluded, shut_calls, without_excluded
from pipeline.store import codec
from stages import tail
from stages.document import document
from stages.model import Change, Checkpoint, Copied, Spawned, Truncate, Turn, Undo, Upsert
from stages.redact import Redactor
from stages.split import Origin, Splitter, apply_truncate, open_splitter
from stages.tokens import encode
from stages.wire.blank import Opened, blank_compactions, blank_turns

if TYPE_CHECKING:  # a worker process needs no database
    from pipeline.store.tombstones import Forgotten

FORGOTTEN = "forgotten"
"""Turns left out because a person had them forgotten, in the counts of a wire."""
EXPIRED = "expired"
"""Turns older than the retention rule allows."""
BATCH_BYTES = 8 * 1024 * 1024
"""Wire bytes folded per piece: large enough to amortise a hop to a worker, small enough to bound memory."""
HEAD_BYTES = 4096


@dataclass(frozen=True, slots=True)
class FoldJob:
    """What to fold next of one wire. ``checkpoint`` and ``state`` are ``None`` for a read from the start."""

    path: str
    origin: Origin
    key: bytes
    checkpoint: Checkpoint | None = None
    state: bytes | None = None
    limit: int = BATCH_BYTES
    dictionary: bytes | None = None
    """What bodies are compressed with (``codec``)."""
    forgotten: Forgotten | None = None
    retold: bool = False
    """The wire held a forgotten turn: its summaries of compactions may retell it and are not kept."""
    exclude: tuple[str, ...] = ()
    """Rules of paths that are never remembered (``pipeline.exclusion``)."""
    expired: int | None = None
    """Turns that began before this moment (ms) are kept no longer."""


Fields = tuple[Any, ...]


class PackedTurn(NamedTuple):
    """A turn ready to store: its occurrence fields, its content, and its index tokens by column.

    Plain tuples: they cross process borders by the thousand.
    """

    position: int
    fields: Fields
    """In the order of ``FIELDS``."""
    digest: bytes
    body: bytes
    tokens: tuple[str, str, str, str]


FIELDS = (
    "position", "turn_id", "opener_digest", "prompt_id", "origin", "status", "open", "copied", "undone", "undone_at",
    "started_at", "ended_at", "last_at", "start", "end", "line_first", "line_last",
)  # fmt: skip


@dataclass(slots=True)
class FoldBatch:
    """The outcome of one FoldJob. ``marks`` are the changes to turns that earlier batches stored."""

    turns: list[PackedTurn] = field(default_factory=list)
    marks: list[Undo | Truncate | Copied | Spawned] = field(default_factory=list)
    checkpoint: Checkpoint | None = None
    state: bytes | None = None
    at_end: bool = True
    read: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    redacted: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


@lru_cache(maxsize=8)
def redactor(key: bytes) -> Redactor:
    """One redactor per key and process: compiling its rules costs more than a small file."""
    return Redactor(key)


def fold(job: FoldJob) -> FoldBatch:
    """Fold at most about ``job.limit`` bytes. Raises what ``stages.tail`` raises (gone, irregular,
    rewritten).
    """
    began = time.perf_counter()
    redact = redactor(job.key)
    redact.counts.clear()
    batch = FoldBatch(checkpoint=job.checkpoint, state=job.state)
    folded = Folded()
    splitter: Splitter | None = None
    if job.state is not None:
        splitter = open_splitter(b"", job.origin, redact, job.state)
    begin = job.checkpoint.offset if job.checkpoint else 0
    for chunk, checkpoint in tail.read(job.path, job.checkpoint, limit=job.limit):
        if splitter is None and chunk.data:
            splitter = open_splitter(chunk.data[:HEAD_BYTES], job.origin, redact)
        if splitter is not None:
            folded.apply(splitter.feed(chunk))
        batch.checkpoint = checkpoint
        batch.read = checkpoint.offset - begin
        batch.counts.update(dict(chunk.skipped))
    batch.at_end = batch.read < job.limit
    if splitter is not None:
        if batch.at_end:
            folded.apply(splitter.provisional())
        _keep_out(job, folded, splitter, batch.counts)
        batch.state = splitter.state()
        batch.counts.update(named(splitter.counts))
    dictionary = codec.use(job.dictionary) if job.dictionary else None
    batch.turns = [pack(turn, dictionary) for turn in folded.turns.values()]
    batch.marks = folded.marks
    batch.redacted.update(redact.counts)
    batch.seconds = time.perf_counter() - began
    return batch


def _keep_out(job: FoldJob, folded: Folded, splitter: Splitter, counts: Counter[str]) -> None:
    """Take what is forgotten or excluded out of the turns and out of what the splitter holds of them."""
    retold = job.retold
    if job.forgotten is not None:
        gone = [position for position, turn in folded.turns.items() if job.forgotten(turn)]
        for position in gone:
            del folded.turns[position]
        blank_turns(splitter, job.forgotten)
        if gone:
            counts[FORGOTTEN] += len(gone)
            folded.marks = [
                mark for mark in folded.marks if not (isinstance(mark, Spawned) and mark.position in gone)
            ]
        retold = retold or bool(gone)
    if retold:
        blank_compactions(splitter)
        for position, turn in folded.turns.items():
            folded.turns[position] = replace(turn, compactions=())
    if job.expired is not None:
        too_old = _Older(job.expired)
        blank_turns(splitter, too_old)
        for position in [position for position, turn in folded.turns.items() if too_old(turn)]:
            del folded.turns[position]
            counts[EXPIRED] += 1
    if job.exclude:
        excluded = Excluded(job.exclude, job.origin.cwd)
        shut_calls(splitter, excluded)
        for position, turn in folded.turns.items():
            folded.turns[position] = without_excluded(turn, excluded)


class _Older:
    """Whether a turn began before a moment (ms); one without a time did not."""

    def __init__(self, moment: int) -> None:
        self.moment = moment

    def __call__(self, turn: Opened) -> bool:
        return turn.started_at is not None and turn.started_at < self.moment


_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]{0,63}")


def named(counts: Mapping[str, int]) -> Counter[str]:
    """Counts by reason; a record type that looks like no name could be anything and is not kept."""
    kept: Counter[str] = Counter()
    for reason, count in counts.items():
        kept[reason if _NAME.fullmatch(reason) else f"{reason.partition(':')[0]}:other"] += count
    return kept


class Folded:
    """Turns by position with all changes applied that concern them; what concerns older turns is kept as
    marks.
    """

    def __init__(self) -> None:
        self.turns: dict[int, Turn] = {}
        self.marks: list[Undo | Truncate | Copied | Spawned] = []

    def apply(self, changes: list[Change]) -> None:
        """Apply changes in order."""
        for change in changes:
            match change:
                case Upsert(turn):
                    self.turns[turn.position] = turn
                case Undo(positions, at):
                    self._undo(change, positions, at)
                case Truncate(position, _):
                    if position in self.turns:
                        self.turns[position] = apply_truncate(self.turns[position], change)
                    else:
                        self.marks.append(change)
                case Copied(before):
                    for position in [p for p in self.turns if p < before]:
                        self.turns[position] = replace(self.turns[position], copied=True)
                    self.marks.append(change)
                case Spawned():
                    self.marks.append(change)

    def _undo(self, change: Undo, positions: tuple[int, ...], at: int | None) -> None:
        for position in positions:
            if position in self.turns:
                self.turns[position] = replace(self.turns[position], undone=True, undone_at=at)
        if any(position not in self.turns for position in positions):
            self.marks.append(change)


def pack(turn: Turn, dictionary: int | None = None) -> PackedTurn:
    """Pack one turn: digest, compressed body, index tokens, occurrence fields."""
    digest, body = codec.pack(turn, dictionary)
    return PackedTurn(turn.position, fields_of(turn), digest, body, tokens_of(turn))


def tokens_of(turn: Turn) -> tuple[str, str, str, str]:
    """The turn's index tokens by column."""
    columns = document(turn)
    return encode(columns.user), encode(columns.agent), encode(columns.actions), encode(columns.errors)


def fields_of(turn: Turn) -> Fields:
    """What belongs to the occurrence, not to the content."""
    return (
        turn.position, turn.turn_id, turn.opener_digest, turn.prompt_id, turn.origin, turn.status, turn.open,
        turn.copied, turn.undone, turn.undone_at, turn.started_at, turn.ended_at, turn.last_at, turn.start, turn.end,
        *turn.lines,
    )  # fmt: skip
