"""Which turns hold a token, where and how often: the index read through FTS5, with a bounded cache.

A rare token is read occurrence by occurrence. A common one (over ``OCCURRENCES`` occurrences) says little
about a turn and only its turns are read, as one byte a turn; those bytes are cached, and, since a content row
never changes and its id is never used again, only news are read later. What is live changes with commits;
``refresh`` notices by SQLite's data version.

Everything here is synchronous and belongs to one read-only connection: call from one thread at a time.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

OCCURRENCES = 3000
"""Occurrences of one token that are read one by one (about 2 ms)."""
CACHED_TOKENS = 256
"""Common tokens whose turns are kept: at 33,000 turns 33 KB each."""
CACHED_LENGTHS = 100_000
COLUMNS = ("user", "agent", "actions", "errors")
_NO_LENGTH = (0,) * len(COLUMNS)
PARENT_DEPTH = 6
"""Levels of sub-agents whose turns count for the turn that began it all."""


@dataclass(frozen=True, slots=True)
class Posting:
    """One token's turns. ``counts`` maps (turn, column name) to occurrences; ``None`` for a common token.

    ``turns`` are the distinct turns of a rare token, ``flags`` one byte a turn of a common one.
    """

    count: int
    turns: frozenset[int]
    counts: dict[tuple[int, str], int] | None
    flags: bytes = b""


@dataclass(slots=True)
class Snapshot:
    """What is live. ``shown`` maps a content to the occurrence that shows it (0: none), by position.

    ``parents`` maps a sub-agent's turn to the turn that called it, ``children`` the other way round.
    """

    version: int = -1
    shown: array[int] = field(default_factory=lambda: array("q", [0]))
    live: bytes = b"\x00"
    total: int = 0
    parents: dict[int, int] = field(default_factory=dict)
    children: dict[int, list[int]] = field(default_factory=dict)


def connect(path: Path) -> sqlite3.Connection:
    """A read-only connection for ``Postings``, usable from any one thread at a time. Raises sqlite3.Error.

    On a medium that cannot be written even a reader of a WAL database needs ``immutable``.
    """
    uri = path.absolute().as_uri()
    try:
        connection = _open(f"{uri}?mode=ro")
    except sqlite3.OperationalError:
        if not path.is_file():
            raise
        connection = _open(f"{uri}?mode=ro&immutable=1")
    return connection


def _open(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA busy_timeout=5000")
        connection.execute("PRAGMA temp_store=MEMORY")
        connection.execute("PRAGMA cache_size=-16384")
        connection.execute("PRAGMA mmap_size=268435456")
        connection.execute("SELECT 1 FROM content LIMIT 1").fetchone()
        connection.execute("CREATE VIRTUAL TABLE temp.place USING fts5vocab(main, turn_fts, instance)")
    except BaseException:
        connection.close()
        raise
    return connection


class Postings:
    """The index of one store."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.snapshot = Snapshot()
        self._common: OrderedDict[str, tuple[bytearray, int]] = OrderedDict()
        self._lengths: dict[int, tuple[int, ...]] = {}
        self._averages: tuple[float, ...] = (1.0,) * len(COLUMNS)

    def refresh(self) -> Snapshot:
        """What is live now; read again only after a commit."""
        version = int(self.connection.execute("PRAGMA data_version").fetchone()[0])
        if version != self.snapshot.version:
            self.snapshot = self._read_snapshot(version)
            self._averages = self._read_averages()
        return self.snapshot

    # --- tokens ---------------------------------------------------------------------------------------------

    def posting(self, token: str) -> Posting:
        """The turns that hold ``token``, dead ones included."""
        if token in self._common:
            return self._flags(token)
        rows = self.connection.execute(
            "SELECT doc, col FROM temp.place WHERE term=? LIMIT ?", (token, OCCURRENCES + 1)
        ).fetchall()
        if len(rows) > OCCURRENCES:
            return self._flags(token)
        counts: dict[tuple[int, str], int] = Counter(rows)
        turns = frozenset(doc for doc, _ in counts)
        return Posting(len(turns), turns, counts)

    def matching(self, expression: str) -> list[int]:
        """The turns that an FTS5 expression matches, dead ones included, in order."""
        text = self.connection.execute(
            "SELECT group_concat(rowid) FROM turn_fts WHERE turn_fts MATCH ?", (expression,)
        ).fetchone()[0]
        return list(map(int, text.split(","))) if text else []

    def _flags(self, token: str) -> Posting:
        flags, seen = self._common.pop(token, (bytearray(), -1))
        highest = len(self.snapshot.live) - 1
        if seen < highest:
            flags = bytearray(flags)
            flags.extend(bytes(highest + 1 - len(flags)))
            text = self.connection.execute(
                "SELECT group_concat(rowid) FROM turn_fts WHERE turn_fts MATCH ? AND rowid>? AND rowid<=?",
                (quoted([token]), seen, highest),
            ).fetchone()[0]
            for turn in map(int, text.split(",")) if text else ():
                flags[turn] = 1
        self._common[token] = (flags, highest)
        while len(self._common) > CACHED_TOKENS:
            self._common.popitem(last=False)
        return Posting(flags.count(1), frozenset(), None, bytes(flags[: highest + 1]))

    # --- lengths --------------------------------------------------------------------------------------------

    def lengths(self, turns: Iterable[int]) -> None:
        """Read the lengths of these turns ahead, in one go."""
        missing = [turn for turn in turns if turn not in self._lengths]
        if len(self._lengths) + len(missing) > CACHED_LENGTHS:
            self._lengths.clear()
        for begin in range(0, len(missing), 500):
            some = missing[begin : begin + 500]
            for turn, sizes in self.connection.execute(
                f"SELECT id, sz FROM turn_fts_docsize WHERE id IN ({marks(some)})", some
            ):
                self._lengths[turn] = tuple(_varints(sizes))

    def length(self, turn: int) -> tuple[int, ...]:
        """Tokens of one turn by column."""
        if turn not in self._lengths:
            self.lengths([turn])
        return self._lengths.get(turn, _NO_LENGTH)

    @property
    def averages(self) -> tuple[float, ...]:
        """Mean tokens by column."""
        return self._averages

    def _read_averages(self) -> tuple[float, ...]:
        row = self.connection.execute("SELECT block FROM turn_fts_data WHERE id=1").fetchone()
        values = _varints(row[0]) if row else []
        if len(values) <= len(COLUMNS) or not values[0]:
            return (1.0,) * len(COLUMNS)
        return tuple(max(1.0, size / values[0]) for size in values[1 : 1 + len(COLUMNS)])

    # --- what is live ---------------------------------------------------------------------------------------

    def _read_snapshot(self, version: int) -> Snapshot:
        ids, shown = self.connection.execute(
            "SELECT group_concat(id), group_concat(shown) FROM content WHERE shown>0"
        ).fetchone()
        snapshot = Snapshot(version)
        if ids:
            contents = list(map(int, ids.split(",")))
            highest = max(contents)
            snapshot.shown = array("q", bytes(8 * (highest + 1)))
            live = bytearray(highest + 1)
            for content, occurrence in zip(contents, map(int, shown.split(",")), strict=True):
                snapshot.shown[content] = occurrence
                live[content] = 1
            snapshot.live = bytes(live)
            snapshot.total = len(contents)
            self._read_parents(snapshot)
        return snapshot

    def _read_parents(self, snapshot: Snapshot) -> None:
        """A sub-agent's turn belongs to the last call of that agent that was made before it."""
        calls: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for child, begun, parent, called in self.connection.execute(
            """SELECT o.content_id, coalesce(o.started_at, 0), p.content_id, coalesce(p.started_at, 0)
               FROM source q JOIN spawn s ON s.session_id=q.session_id AND s.agent_id=q.agent_id
               JOIN occurrence o ON o.source_id=q.id
               JOIN occurrence p ON p.session_id=s.session_id AND p.agent_id=s.parent_agent
                   AND p.position=s.position
               WHERE q.kind='sub' ORDER BY p.position"""
        ):
            calls[child].append((called if called <= begun else -1, parent))
        direct = {child: max(found, key=lambda call: call[0])[1] for child, found in calls.items()}
        for child in direct:
            top, depth = child, 0
            while top in direct and depth < PARENT_DEPTH:
                top, depth = direct[top], depth + 1
            if top != child and snapshot.live[child : child + 1] == snapshot.live[top : top + 1] == b"\x01":
                snapshot.parents[child] = top
                snapshot.children.setdefault(top, []).append(child)


def quoted(tokens: Sequence[str]) -> str:
    """An FTS5 phrase of these tokens (none holds a quote)."""
    return '"' + " ".join(tokens) + '"'


def marks(values: Sequence[object]) -> str:
    return ",".join("?" * len(values))


def _varints(data: bytes) -> list[int]:
    """SQLite's big-endian variable-length integers (below 2**56)."""
    found, value = [], 0
    for byte in data:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            found.append(value)
            value = 0
    return found
