"""A clock that a test moves."""

from __future__ import annotations


class Clock:
    """Seconds of a monotonic clock; ``move`` lets time pass."""

    def __init__(self, at: float = 1_000.0) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at

    def move(self, seconds: float) -> None:
        self.at += seconds
