"""How a turn's content lies in the database: compact JSON arrays, zstd-compressed, with a digest.

Bodies are short (1 to 4 KB) and alike, so a store learns a dictionary from its first turns; a frame names the
dictionary it needs, and ``use`` makes one known to this process. Everything in a dictionary was redacted.

The digest names content, so it leaves out what belongs to an occurrence: position, turn id, byte and line
ranges, the copied and undone marks, and the time of the last record (a copy made by a fork may lack trailing
records). It keeps the opener's time and prompt id: two genuine repeats are two contents.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import zstandard

from stages.model import Cut, FileTouch, Steer, Step, ToolCall, Turn

LEVEL = 3
"""zstd's default: level 9 is 2 % smaller on real turns and four times slower."""
DICTIONARY_BYTES = 110 * 1024
SAMPLES = 200
"""Bodies a store must have before it learns a dictionary: with fewer the dictionary is larger than what it
saves.
"""
SAMPLE_BYTES = 4 * 1024 * 1024
SEGMENT = 200
"""Bytes of a sample that the trainer takes at once. Left to search for the best length it takes five times as long
for bodies that end up equally small.
"""
BODY_LIMIT = 64 * 1024 * 1024
"""No body of ours is larger unpacked: a damaged frame must not allocate without bound."""

STORES = 64
_stores: dict[Path, None] = {}
_known: dict[int, zstandard.ZstdCompressionDict] = {}
_local = threading.local()


def learn(bodies: Sequence[bytes]) -> bytes:
    """A dictionary for bodies like these (compressed ones, as stored)."""
    samples: list[bytes | bytearray | memoryview] = []
    size = 0
    for body in bodies:
        samples.append(expand(body))
        size += len(samples[-1])
        if size > SAMPLE_BYTES:
            break
    return zstandard.train_dictionary(DICTIONARY_BYTES, samples, k=SEGMENT, d=8).as_bytes()


def learn_and_pack(bodies: Sequence[tuple[bytes, int]]) -> tuple[bytes, list[tuple[bytes, int]]]:
    """``learn`` from bodies with their ids, and the same bodies packed with what was learned: half as large."""
    learned = learn([body for body, _ in bodies])
    number = use(learned)
    return learned, [(compress(expand(body), number), content_id) for body, content_id in bodies]


def use(dictionary: bytes) -> int:
    """Make a dictionary known to this process; returns its number. Known ones cost nothing."""
    number = int.from_bytes(dictionary[4:8], "little")
    if number not in _known:
        known = zstandard.ZstdCompressionDict(dictionary)
        known.precompute_compress(level=LEVEL)
        _known[number] = known
    return number


def look_in(path: Path) -> None:
    """Look for unknown dictionaries in this store: another process may learn a new one at any time."""
    if path not in _stores:
        _stores[path] = None
        while len(_stores) > STORES:
            del _stores[next(iter(_stores))]


def _find(number: int) -> zstandard.ZstdCompressionDict:
    """A dictionary that this process has not met yet. Raises KeyError."""
    for path in list(_stores):
        with suppress(sqlite3.Error):
            connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
            try:
                for row in connection.execute("SELECT data FROM dictionary"):
                    use(row[0])
            finally:
                connection.close()
        if number in _known:
            break
    return _known[number]


def dictionary(number: int | None) -> bytes | None:
    """The bytes of a known dictionary, to hand to another process."""
    return None if number is None else _known[number].as_bytes()


def compress(raw: bytes, dictionary: int | None = None) -> bytes:
    """Compress, with a dictionary that ``use`` has named."""
    # Contexts are not safe to share between threads, and cost more to make than a body to compress.
    makers: dict[int | None, zstandard.ZstdCompressor] = _local.__dict__.setdefault("compressors", {})
    if dictionary not in makers:
        data = None if dictionary is None else _known[dictionary]
        makers[dictionary] = zstandard.ZstdCompressor(level=LEVEL, dict_data=data)
    return makers[dictionary].compress(raw)


def expand(body: bytes) -> bytes:
    """What ``compress`` was given. Raises ValueError if the frame is damaged or its dictionary unknown."""
    readers: dict[int, zstandard.ZstdDecompressor] = _local.__dict__.setdefault("decompressors", {})
    try:
        number = zstandard.get_frame_parameters(body).dict_id
        if number not in readers:
            data = (_known.get(number) or _find(number)) if number else None
            readers[number] = zstandard.ZstdDecompressor(dict_data=data)
        return readers[number].decompress(body, max_output_size=BODY_LIMIT)
    except (zstandard.ZstdError, KeyError) as error:
        raise ValueError(f"a stored body cannot be read: {error}") from error


def pack(turn: Turn, dictionary: int | None = None) -> tuple[bytes, bytes]:
    """``(digest, body)`` of a turn's content."""
    raw = orjson.dumps(_content(turn))
    return hashlib.blake2b(raw, digest_size=16).digest(), compress(raw, dictionary)


def unpack(body: bytes) -> Turn:
    """The turn that ``pack`` was given, with neutral occurrence fields (position 0, no ranges)."""
    (
        origin, opening, user, prompt_id, steps, steers, status, is_open, error, compactions,
        started_at, ended_at, model, cli, tokens_in, tokens_out, opener, cut,
    ) = orjson.loads(expand(body))  # fmt: skip
    return Turn(
        position=0,
        turn_id=0,
        origin=origin,
        opening_text=opening,
        user_text=opening if user is True else user,
        prompt_id=prompt_id,
        steps=tuple(_step(step) for step in steps),
        steers=tuple(Steer(*steer) for steer in steers),
        status=status,
        open=bool(is_open),
        error=error,
        compactions=tuple(compactions),
        started_at=started_at,
        ended_at=ended_at,
        model=model,
        cli_version=cli,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        opener_digest=opener,
        cut=Cut(*cut) if cut else None,
    )


def _content(turn: Turn) -> list[Any]:
    return [
        turn.origin,
        turn.opening_text,
        True if turn.user_text == turn.opening_text else turn.user_text,
        turn.prompt_id,
        [_step_row(step) for step in turn.steps],
        [[s.text, s.origin, s.human, s.at, s.after_step] for s in turn.steers],
        turn.status,
        1 if turn.open else 0,
        turn.error,
        turn.compactions,
        turn.started_at,
        turn.ended_at,
        turn.model,
        turn.cli_version,
        turn.tokens_in,
        turn.tokens_out,
        turn.opener_digest,
        None if turn.cut is None else [turn.cut.steps, turn.cut.steers, turn.cut.at],
    ]


def _step_row(step: Step) -> list[Any]:
    return [step.number, step.texts, [_tool_row(call) for call in step.tools], step.finish]


def _tool_row(call: ToolCall) -> list[Any]:
    row: list[Any] = [
        call.id,
        call.name,
        call.args,
        call.result,
        call.duration_ms,
        [[touch.path, touch.op] for touch in call.files],
        call.error,
        call.outcome,
        call.command,
        call.agents,
        1 if call.own else 0,
    ]
    while len(row) > 4 and not row[-1]:
        row.pop()
    return row


def _step(row: list[Any]) -> Step:
    number, texts, tools, finish = row
    return Step(number=number, texts=tuple(texts), tools=tuple(_tool(tool) for tool in tools), finish=finish)


def _tool(row: list[Any]) -> ToolCall:
    full = [*row, *(None, [], "", "", "", [], 0)[len(row) - 4 :]]
    call_id, name, args, result, duration, files, error, outcome, command, agents, own = full
    return ToolCall(
        id=call_id,
        name=name,
        args=args,
        result=result,
        error=error,
        outcome=outcome,
        command=command,
        files=tuple(FileTouch(path=path, op=op, call_id=call_id) for path, op in files),
        agents=tuple(agents),
        duration_ms=duration,
        own=bool(own),
    )
