"""A writer that imitates the CLI on the disk: batches with torn tails, undos, compactions, forks, new sessions, and
wires that are rewritten in place or replaced.

Deterministic by its seed; nothing is written but by ``step`` and ``finish``.
"""

from __future__ import annotations

import itertools
import random
from pathlib import Path

from tests.wire_records import dumps
from tests.wires import Home, Session, bash, edit, read, say

CWD = "/home/dev/soak"
AT = 1_796_000_000_000
SESSIONS_MOST = 60
MEGABYTE = 1 << 20
SUBJECTS = (
    ("port", "proxy"),
    ("login cookie", "browser"),
    ("retry queue", "importer"),
    ("upload limit", "gallery"),
    ("page cache", "printer"),
    ("date format", "ledger"),
    ("dark palette", "designer"),
    ("release script", "packager"),
    ("email template", "newsletter"),
    ("search box", "catalogue"),
    ("backup folder", "nightly job"),
    ("audit trail", "auditor"),
)
"""What turns are about, by turns, and what needs it: a theme is a part of what is said, not all of it."""


class Writer:
    """Writes below ``root``. ``operations`` counts what was done, by name."""

    def __init__(self, root: Path, seed: int, *, wire_bytes: int = 2 * MEGABYTE) -> None:
        self.home = Home(root, seed=seed, journal=False)
        self.rng = random.Random(seed)
        self.operations: dict[str, int] = {}
        self.wire_bytes = wire_bytes
        """A session whose wire is larger is written no more."""
        self._words = 0
        self._last = ""
        self._undoable: dict[str, int] = {}
        self._begin()

    @property
    def open(self) -> list[Session]:
        return [one for one in self.home.sessions if self.path(one).stat().st_size < self.wire_bytes]

    def path(self, session: Session) -> Path:
        return session.folder / "agents" / "main" / "wire.jsonl"

    def wires(self) -> list[Path]:
        return [self.path(session) for session in self.home.sessions]

    # --- one operation --------------------------------------------------------------------------------------

    def step(self) -> str:
        """Do something; its name. Most of the time a turn is written, as the CLI does."""
        names, weights = zip(
            ("turn", 60), ("half", 14), ("undo", 6), ("compact", 4), ("new", 6), ("fork", 4), ("rewrite", 4),
            ("replace", 2),
            strict=True,
        )  # fmt: skip
        name: str = self.rng.choices(names, weights)[0]
        if name in ("new", "fork") and len(self.home.sessions) >= SESSIONS_MOST:
            name = "turn"
        if not self.open:
            self._begin()
        session = self.rng.choice(self.open)
        getattr(self, f"_{name}")(session)
        self.operations[name] = self.operations.get(name, 0) + 1
        return name

    def finish(self) -> None:
        """Complete every torn tail: the disk is what the sessions say."""
        for session in self.home.sessions:
            self._append(session, torn=False)
            self._state(session)

    def marker(self) -> tuple[Path, int]:
        """Write one whole turn now; the wire and its size then."""
        session = self.rng.choice(self.open or self.home.sessions)
        self._add_turn(session)
        self._append(session, torn=False)
        return self.path(session), self.path(session).stat().st_size

    # --- operations -----------------------------------------------------------------------------------------

    def _turn(self, session: Session) -> None:
        self._add_turn(session)
        self._append(session, torn=False)

    def _half(self, session: Session) -> None:
        """A batch that ends in the middle of a line: the rest comes with the next one."""
        self._add_turn(session)
        self._append(session, torn=True)

    def _undo(self, session: Session) -> None:
        if self._undoable.get(session.session_id, 0) > 1:
            session.main.undo(1)
            self._undoable[session.session_id] -= 1
        self._append(session, torn=False)

    def _compact(self, session: Session) -> None:
        session.main.compact("So far: the ports were looked at.")
        self._undoable[session.session_id] = 0  # a compaction is a wall
        self._append(session, torn=False)

    def _new(self, _: Session) -> None:
        self._begin()

    def _fork(self, session: Session) -> None:
        self._append(session, torn=False)
        twin = session.fork(session.main.now + 1_000)
        self._write_new(twin)

    def _rewrite(self, session: Session) -> None:
        """In place, other content of the same wire: what was read of it is not what it holds now."""
        self._change(session)
        path = self.path(session)
        with path.open("r+b") as file:
            file.write(session.main.data())
            file.truncate()

    def _replace(self, session: Session) -> None:
        """The whole file anew, by rename."""
        self._change(session)
        path = self.path(session)
        other = path.with_name(f"wire.jsonl.tmp.{self.rng.randrange(1 << 30):x}")
        other.write_bytes(session.main.data())
        other.replace(path)

    # --- parts ----------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        number = len(self.home.sessions)
        session = self.home.session(CWD, at=AT + number * 3_600_000, title=f"session {number}")
        self._add_turn(session)
        self._write_new(session)

    def _write_new(self, session: Session) -> None:
        session.write()
        self.home.write_indexes()

    def _add_turn(self, session: Session) -> None:
        self._words += 1
        word = f"module_{self._words}"
        subject, reason = SUBJECTS[self._words % len(SUBJECTS)]
        # Two operations of one home may not share an instant: ids come from the seed, times from the wire.
        session.main.turn(
            f"Why does {word} fail with the {subject} {4000 + self._words % 50}?",
            say("Let me look.", read(f"src/{word}.py", "x = 1\n" * self.rng.randrange(1, 60))),
            say("", edit(f"src/{word}.py", "x = 1", "x = 2"), bash("make test", "3 passed")),
            say(
                f"Fixed {word}. We decided to keep the {subject} because the {reason} needs it ({self._last})."
            ),
            gap=self.rng.randrange(1_000, 90_000),
        )
        self._undoable[session.session_id] = self._undoable.get(session.session_id, 0) + 1
        self._last = word

    def _change(self, session: Session) -> None:
        """Another text in a line that was written long ago."""
        lines = session.main.lines
        number = self.rng.randrange(len(lines))
        for offset in range(len(lines)):
            at = (number + offset) % len(lines)
            if '"Fixed module_' in lines[at]:
                lines[at] = lines[at].replace('"Fixed module_', '"Fixed at last module_')
                return

    def _append(self, session: Session, *, torn: bool) -> None:
        """What the disk does not hold yet, in batches as the CLI flushes them."""
        path, data = self.path(session), session.main.data()
        at = path.stat().st_size
        end = len(data)
        if torn and end - at > 2:
            end = self.rng.randrange(at + 1, end)
        pieces = self.rng.randrange(1, 4)
        cuts = sorted({at, end, *(self.rng.randrange(at, end + 1) for _ in range(pieces))})
        for begin, stop in itertools.pairwise(cuts):
            with path.open("ab") as file:
                file.write(data[begin:stop])

    def _state(self, session: Session) -> None:
        (session.folder / "state.json").write_text(dumps(session.state()), encoding="utf-8")


__all__ = ["AT", "CWD", "MEGABYTE", "Writer"]
