"""Feeding wires to a splitter in tests: whole, in chunks, and with the state saved and resumed in between."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from stages.model import Change, Chunk, Copied, Spawned, Truncate, Turn, Undo, Upsert
from stages.split import Origin, Redact, apply_truncate, open_splitter

ORIGIN = Origin("session_1", "main", cwd="/home/dev/proj")


def keep(text: str) -> str:
    """A redactor that finds nothing."""
    return text


class Folded:
    """Turns by position after changes, applied in order as a store would."""

    def __init__(self) -> None:
        self.turns: dict[int, Turn] = {}
        self.spawned: list[Spawned] = []
        self.counts: Counter[str] = Counter()
        self.largest_state = 0

    def apply(self, changes: Iterable[Change]) -> None:
        for change in changes:
            match change:
                case Upsert(turn):
                    self.turns[turn.position] = turn
                case Undo(positions, at):
                    for position in positions:
                        if position in self.turns:
                            self.turns[position] = replace(self.turns[position], undone=True, undone_at=at)
                case Truncate(position, _):
                    if position in self.turns:
                        self.turns[position] = apply_truncate(self.turns[position], change)
                case Copied(before):
                    for position in [p for p in self.turns if p < before]:
                        self.turns[position] = replace(self.turns[position], copied=True)
                case Spawned():
                    if change not in self.spawned:
                        self.spawned.append(change)

    @property
    def list(self) -> list[Turn]:
        return [self.turns[position] for position in sorted(self.turns)]


def chunks_of(data: bytes, cuts: Sequence[int] = ()) -> list[Chunk]:
    """``data`` as chunks that end at the given line numbers, and at its end."""
    lines = _on_newlines(data)
    edges = [0, *sorted({cut for cut in cuts if 0 < cut < len(lines)}), len(lines)]
    chunks, start = [], 0
    for a, b in pairwise(edges):
        piece = b"".join(lines[a:b])
        if piece:
            chunks.append(Chunk(piece, start, start + len(piece)))
        start += len(piece)
    return chunks


def _on_newlines(data: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def fold(
    data: bytes,
    origin: Origin = ORIGIN,
    *,
    cuts: Sequence[int] = (),
    resume: bool = False,
    peek: bool = False,
    redact: Redact = keep,
) -> Folded:
    """Fold a whole wire. ``resume``: save and reload after every chunk. ``peek``: report open turns there."""
    folded = Folded()
    splitter = open_splitter(data[:4096], origin, redact)
    for chunk in chunks_of(data, cuts):
        folded.apply(splitter.feed(chunk))
        if peek:
            folded.apply(splitter.provisional())
        if resume:
            state = splitter.state()
            folded.largest_state = max(folded.largest_state, len(zlib.compress(state)))
            folded.counts += splitter.counts
            splitter = open_splitter(b"", origin, redact, state)
    folded.apply(splitter.provisional())
    folded.counts += splitter.counts
    return folded
