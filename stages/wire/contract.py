"""What every dialect of the wire offers, and what it is told about the agent whose wire it folds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from stages.model import Change, Chunk

Redact: TypeAlias = Callable[[str], str]
"""Takes secrets out of a text. Every text that a splitter keeps has gone through it once."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a wire comes from: what state.json says and the wire itself does not.

    ``context_copied``: the wire starts with a copy of its parent's context (btw, Agent with fork; WIRE §7).
    ``imported``: made by ``kimi migrate`` from a kimi-cli session. ``forked``: the session is a fork.
    """

    session_id: str
    agent_id: str
    cwd: str | None = None
    context_copied: bool = False
    imported: bool = False
    forked: bool = False


class Splitter(Protocol):
    """Folds the chunks of one wire, in order, into changes of its turns.

    Changes are idempotent: applying a list twice, or a later ``Upsert`` of the same position over an earlier
    one, ends in the same turns, whatever the chunks were. No input makes a splitter raise.
    """

    counts: Counter[str]
    """Lines that meant nothing, by reason: ``corrupt-line``, ``not-object``, ``unknown:<type>`` …"""

    def feed(self, chunk: Chunk) -> list[Change]:
        """Fold one chunk. Turns that can still grow are reported by ``provisional`` alone."""
        ...

    def provisional(self) -> list[Change]:
        """The open turns as they stand, for a reader at the end of the file; alters nothing."""
        ...

    def state(self) -> bytes:
        """What is needed to go on after the last chunk: JSON, redacted; compressed, as the store keeps it, at most
        64 KiB plus the anchors."""
        ...
