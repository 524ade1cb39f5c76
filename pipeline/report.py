"""What a run did, counted: the closing line of every command and the object of ``--json``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FAILURES_SHOWN = 20
"""Failures named at the end of a run, one a line."""


@dataclass(frozen=True, slots=True)
class ThemeResult:
    """One theme a run has built: where its file lies and how many turns it points to."""

    workspace: str
    theme: str
    path: str
    turns: int
    changed: bool


@dataclass(slots=True)
class Report:
    """Running totals. ``skipped`` counts by reason what was left out; ``unknown`` record types that we do not
    know.

    ``refined`` turns were refined now, ``reused`` ones were found refined. ``incomplete`` says that a time
    budget ended before all new bytes were folded."""

    files: int = 0
    bytes: int = 0
    turns: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    redacted: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    themes: list[ThemeResult] = field(default_factory=list)
    seconds: float = 0.0
    incomplete: bool = False
    _refined: set[tuple[str, int]] = field(default_factory=set)
    _used: set[tuple[str, int]] = field(default_factory=set)

    @property
    def refined(self) -> int:
        """Turns refined now."""
        return len(self._refined)

    @property
    def reused(self) -> int:
        """Turns used that were found refined; each counts once, however many themes use it."""
        return len(self._used - self._refined)

    def note_refined(self, store: Path, content_ids: Iterable[int]) -> None:
        """These contents of a store were refined now."""
        self._refined.update((str(store), content_id) for content_id in content_ids)

    def note_used(self, store: Path, content_ids: Iterable[int]) -> None:
        """These contents' refined records were used."""
        self._used.update((str(store), content_id) for content_id in content_ids)

    def note(self, counts: Counter[str]) -> None:
        """Sort a splitter's counts into skipped lines and unknown record types."""
        for name, count in counts.items():
            if name.startswith("unknown:"):
                self.unknown[name.removeprefix("unknown:")] += count
            elif name != "noise":
                self.skipped[name] += count

    def as_json(self) -> dict[str, Any]:
        """The stable object of ``pipeline run --json``."""
        return {
            "files": self.files,
            "bytes": self.bytes,
            "turns": self.turns,
            "refined": self.refined,
            "reused": self.reused,
            "skipped": dict(sorted(self.skipped.items())),
            "unknownRecords": dict(sorted(self.unknown.items())),
            "redacted": dict(sorted(self.redacted.items())),
            "failures": self.failures,
            "seconds": round(self.seconds, 3),
            "themes": [
                {
                    "workspace": t.workspace,
                    "theme": t.theme,
                    "path": t.path,
                    "turns": t.turns,
                    "changed": t.changed,
                }
                for t in self.themes
            ],
        }

    def lines(self) -> list[str]:
        """The same for people: what was read, skipped, refined, reused."""
        megabytes = self.bytes / 1_000_000
        lines = [
            f"read {megabytes:.1f} MB from {self.files} wires: {self.turns} turns; "
            f"refined {self.refined}, reused {self.reused} ({self.seconds:.1f} s)"
        ]
        if self.skipped:
            lines.append("skipped: " + ", ".join(f"{name} {n}" for name, n in sorted(self.skipped.items())))
        if self.unknown:
            lines.append(
                "unknown record types: " + ", ".join(f"{k} {n}" for k, n in sorted(self.unknown.items()))
            )
        if self.redacted:
            lines.append(
                "secrets kept out: " + ", ".join(f"{k} {n}" for k, n in sorted(self.redacted.items()))
            )
        lines.extend(self.failures[:FAILURES_SHOWN])
        if len(self.failures) > FAILURES_SHOWN:
            lines.append(f"… and {len(self.failures) - FAILURES_SHOWN} more; --json names them all")
        return lines
