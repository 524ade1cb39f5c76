"""The records that flow from stage to stage. Frozen, slotted, and free of behaviour beyond derived views.

Times ending in ``_at`` are integer milliseconds since the epoch (``None`` where the wire gives none). Texts are
already redacted and capped when they reach these records (see ``stages.redact`` and the caps in
``stages.split``). "WIRE" below is docs/wire-format.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Result: TypeAlias = Literal["ok", "error"]
"""How a tool call ended; a call without a result (killed, still running) has ``None``."""

Status: TypeAlias = Literal["completed", "cancelled", "failed", "blocked", "unfinished", "running"]
Op: TypeAlias = Literal["read", "write", "edit"]
FactType: TypeAlias = Literal["changed", "reason", "error", "decision", "result", "next"]
Via: TypeAlias = Literal["seed", "entity", "follow-up", "tagged"]


# --- tail → split ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where reading of one wire stopped, and how to recognise that it is still the same file.

    ``offset`` is the byte after the last consumed line end. ``head_hash`` digests the first line (at most 4 KiB),
    ``tail_hash`` the last block (at most 4 KiB) before ``offset``: together they tell an append from a rewrite,
    also when the inode did not change.
    """

    dev: int
    ino: int
    offset: int
    head_hash: str
    tail_hash: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole lines of one wire: ``data`` ends with a line end. ``start`` is the byte offset of its first byte.
    The last chunk of a read may be empty: it carries what was skipped, or a checkpoint, alone.

    ``skipped`` counts lines left out unread before this chunk, by reason (``line-too-long`` …).
    """

    data: bytes
    start: int
    end: int
    skipped: tuple[tuple[str, int], ...] = ()


# --- split → store -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FileTouch:
    """A file that a tool call named: ``path`` relative to the session's cwd where below it, else absolute."""

    path: str
    op: Op
    call_id: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call and what came of it.

    ``args`` is compact JSON, capped. ``error`` holds the decisive lines of a failed call's output (empty for a
    good one), ``outcome`` the last lines of a good command's output (empty for other tools).
    ``command`` is the shell command line, if the tool ran one. ``agents`` are the sub-agents it started.
    """

    id: str
    name: str
    args: str = "{}"
    result: Result | None = None
    error: str = ""
    outcome: str = ""
    command: str = ""
    files: tuple[FileTouch, ...] = ()
    agents: tuple[str, ...] = ()
    duration_ms: int | None = None
    own: bool = False
    """A call of our own MCP server: never becomes memory."""


@dataclass(frozen=True, slots=True)
class Step:
    """One model response inside a turn. ``texts`` are its text parts (thinking is never kept)."""

    number: int
    texts: tuple[str, ...] = ()
    tools: tuple[ToolCall, ...] = ()
    finish: str = ""


@dataclass(frozen=True, slots=True)
class Steer:
    """A message that entered a running turn. ``human`` is false for notices and skills the model called.

    ``after_step`` is the number of steps that had begun when it came.
    """

    text: str
    origin: str
    human: bool
    at: int | None
    after_step: int


@dataclass(frozen=True, slots=True)
class Cut:
    """An undo that removed only the end of a turn: everything after ``steps`` steps and ``steers`` steers."""

    steps: int
    steers: int
    at: int | None


@dataclass(frozen=True, slots=True)
class Turn:
    """One exact turn of one agent.

    ``position`` is the ordinal of its opener in the file, copies included, from 0: the stable key together with
    session and agent. ``turn_id`` is the engine's number (WIRE §5); it may repeat (twins).
    ``user_text`` is ``None`` for engine turns, ``opening_text`` is always there. ``status`` is never "running"
    here: an open turn says ``open=True`` and the reader decides by the clock (``split.status_at``).
    ``start``/``end`` are byte offsets in the wire, ``end`` exclusive; ``lines`` are 1-based, inclusive.
    """

    position: int
    turn_id: int
    origin: str
    opening_text: str
    user_text: str | None = None
    prompt_id: str | None = None
    steps: tuple[Step, ...] = ()
    steers: tuple[Steer, ...] = ()
    status: Status = "unfinished"
    open: bool = False
    error: str = ""
    """The turn's own error (WIRE: turn.ended.error.message)."""
    compactions: tuple[str, ...] = ()
    """Summaries of compactions recorded inside or right before this turn, capped."""
    started_at: int | None = None
    ended_at: int | None = None
    last_at: int | None = None
    duration_ms: int | None = None
    """From opener to end record; ``None`` without one."""
    model: str = ""
    cli_version: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    start: int = 0
    end: int = 0
    lines: tuple[int, int] = (0, 0)
    opener_digest: str = ""
    """Hex digest of what opened the turn (origin, prompt id, text): pointers carry it (design: Identity)."""
    copied: bool = False
    """Lies in a prefix copied from another session (fork, import)."""
    undone_at: int | None = None
    undone: bool = False
    cut: Cut | None = None

    @property
    def tools(self) -> Iterator[ToolCall]:
        """All tool calls in call order."""
        return (call for step in self.steps for call in step.tools)

    @property
    def live_steps(self) -> tuple[Step, ...]:
        """The steps that a partial undo left (all, without one)."""
        return self.steps if self.cut is None else self.steps[: self.cut.steps]

    @property
    def live_steers(self) -> tuple[Steer, ...]:
        return self.steers if self.cut is None else self.steers[: self.cut.steers]

    @property
    def shown_text(self) -> str:
        """What to show as its opening: the goal engine's long fixed prompt is just named (WIRE §10)."""
        if self.origin == "system_trigger:goal_continuation":
            return "goal continuation"
        return self.opening_text if self.user_text is None else self.user_text

    @property
    def assistant_text(self) -> str | None:
        """Final answer as recorded: the text parts of the last step that has any; ``None`` if no step has."""
        return final_text(self.steps)


def final_text(steps: tuple[Step, ...]) -> str | None:
    """The joined text parts of the last step with any non-empty one."""
    for step in reversed(steps):
        texts = [text for text in step.texts if text.strip()]
        if texts:
            return "\n".join(texts)
    return None


@dataclass(frozen=True, slots=True)
class Upsert:
    """The turn at ``turn.position`` is now this one."""

    turn: Turn


@dataclass(frozen=True, slots=True)
class Undo:
    """These turns were undone at ``at`` (idempotent; they stay, marked)."""

    positions: tuple[int, ...]
    at: int | None


@dataclass(frozen=True, slots=True)
class Truncate:
    """The turn at ``position`` lost what ``cut`` says (an undone steer, WIRE §6)."""

    position: int
    cut: Cut


@dataclass(frozen=True, slots=True)
class Copied:
    """Every turn with a position below ``before`` is a copy from another session (WIRE §7)."""

    before: int


@dataclass(frozen=True, slots=True)
class Spawned:
    """A tool call of this agent started a sub-agent: ``call_id`` in the turn at ``position``."""

    agent_id: str
    position: int
    call_id: str


Change: TypeAlias = Upsert | Undo | Truncate | Copied | Spawned


# --- refine → aggregate ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fact:
    """One self-contained sentence about a turn. ``source`` is ``"user"``, ``"text"`` or ``"tool <call id>"``.

    ``span`` is the half-open character range in that source's text, where it was taken from a text.
    """

    type: FactType
    text: str
    source: str
    span: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Entities:
    """What a turn touched. Each tuple is ordered by first mention, without repeats; paths are workspace-relative."""

    files_read: tuple[str, ...] = ()
    files_written: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    issues: tuple[str, ...] = ()

    def pairs(self) -> Iterator[tuple[str, str]]:
        """``(kind, value)`` rows of the inverted table; kinds are ``file``, ``symbol``, ``command`` …"""
        yield from (("file", path) for path in dict.fromkeys((*self.files_written, *self.files_read)))
        for kind, values in (
            ("symbol", self.symbols),
            ("command", self.commands),
            ("error", self.errors),
            ("tool", self.tools),
            ("url", self.urls),
            ("package", self.packages),
            ("issue", self.issues),
        ):
            yield from ((kind, value) for value in values)


@dataclass(frozen=True, slots=True)
class Refined:
    """What a turn meant (seed 000 §3.3): deterministic, made from the turn and the text it answers alone."""

    summary: str
    facts: tuple[Fact, ...] = ()
    decision: bool = False
    categories: tuple[str, ...] = ()
    entities: Entities = field(default_factory=Entities)


@dataclass(frozen=True, slots=True)
class TurnKey:
    """Names one turn: the stable key plus the engine's number, and the opener's digest that proves it."""

    session_id: str
    agent_id: str
    position: int
    turn_id: int
    opener_digest: str = ""


@dataclass(frozen=True, slots=True)
class RefinedTurn:
    """A refined turn in its place: what the aggregator works on."""

    key: TurnKey
    origin: str
    status: Status
    timestamp: int
    user_text: str
    answer: str
    refined: Refined
    ended_at: int | None = None
    session_title: str = ""


@dataclass(frozen=True, slots=True)
class Pointer:
    """A theme's reference to a turn. ``score`` is in 0..1."""

    key: TurnKey
    timestamp: int
    score: float
    via: Via


@dataclass(frozen=True, slots=True)
class Cluster:
    """A run of turns in one session about one thing. ``id`` comes from its first turn's key."""

    id: str
    session_id: str
    agent_id: str
    turn_ids: tuple[int, ...]
    positions: tuple[int, ...]
    start: int
    end: int
    summary: str
    decision: bool
    decisions: tuple[tuple[int, str], ...]
    """``(turn_id, quoted sentence)`` of each decision in it."""
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Theme:
    """A subject followed across sessions: pointers and clusters, never copies of turns."""

    name: str
    seeds: tuple[str, ...]
    pointers: tuple[Pointer, ...]
    clusters: tuple[Cluster, ...]
