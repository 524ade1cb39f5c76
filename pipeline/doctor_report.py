"""What a check found: the lines of `pipeline doctor`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

Level: TypeAlias = Literal["ok", "note", "warning", "problem"]
"""``problem``: something is wrong now. ``warning``: worth a person's look, and nothing fails. ``note``: a fact."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. ``fix`` names what ``--fix`` does about it ("": nothing is safe to do)."""

    check: str
    level: Level
    text: str
    hint: str = ""
    fix: str = ""
    fixed: bool = False

    def as_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def mended(self, text: str = "") -> Finding:
        """The same once ``--fix`` has dealt with it."""
        return replace(self, fixed=True, text=text or self.text)

    @property
    def bad(self) -> bool:
        """Whether it makes the doctor's exit code 4."""
        return self.level == "problem" and not self.fixed


def healthy(findings: Iterable[Finding]) -> bool:
    """Whether nothing is wrong (any more)."""
    return not any(finding.bad for finding in findings)
