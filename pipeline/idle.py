"""When background work may run: the workspace is quiet, no call waits, the processor's share is not used up, and
the machine is not on battery.

Nothing here keeps a task or a thread: the pieces are asked before each step. Clocks are arguments, in seconds of a
monotonic clock.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

POWER_SUPPLIES = Path("/sys/class/power_supply")
BATTERY_CHECK_S = 30.0
WINDOW_S = 60.0
"""The share of the processor is counted over this long."""
HEAVY_PART = 0.8
"""The part of the share that long work may use: the rest is for reading what a session has just written."""
NICENESS = 19
CALM_S = 1.0
"""After a call no step begins for this long: another one is likely to follow."""

Clock = Callable[[], float]


class CpuShare:
    """Processor seconds used in the last minute against what is allowed of one core.

    A sliding window, not a bucket: no minute, wherever it begins, holds more than the share and the step that
    crossed it.
    """

    def __init__(self, percent: float, *, clock: Clock = time.monotonic, window: float = WINDOW_S) -> None:
        self.window = window
        self.allow(percent)
        self._clock = clock
        self._spent: deque[tuple[float, float]] = deque()
        self._sum = 0.0

    def allow(self, percent: float) -> None:
        """Set the share anew; what was spent stays spent."""
        self.allowed = percent / 100 * self.window

    def spend(self, seconds: float) -> None:
        """Count ``seconds`` of processor time as used now."""
        if seconds > 0:
            self._spent.append((self._clock(), seconds))
            self._sum += seconds

    @property
    def used(self) -> float:
        """Processor seconds of the last minute."""
        horizon = self._clock() - self.window
        while self._spent and self._spent[0][0] <= horizon:
            self._sum -= self._spent.popleft()[1]
        if not self._spent:
            self._sum = 0.0  # no rounding errors over months
        return self._sum

    def wait(self, *, heavy: bool) -> float:
        """Seconds until there is room for a step; 0 when there is."""
        limit = self.allowed * (HEAVY_PART if heavy else 1.0)
        over = self.used - limit
        if over < 0:
            return 0.0
        for at, seconds in self._spent:
            over -= seconds
            if over < 0:
                return max(0.0, at + self.window - self._clock())
        return self.window


class Quiet:
    """How long the wires of a workspace have been without a new byte.

    What counts is what changes while we look, by the monotonic clock: a wall clock that jumps, or a file with a
    time in the future, neither hurries nor stops the work.
    """

    def __init__(self, *, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[str, tuple[int, int]] | None = None
        self._last = clock()

    def touched(self) -> None:
        """Somebody (a file event) says that a wire changed now."""
        self._last = self._clock()

    def observe(self, wires: Mapping[str, tuple[int, int]], now: float) -> None:
        """The wires' size and mtime (ns) as they are; ``now`` is the wall clock in seconds."""
        if self._seen is None:
            newest = max((mtime for _, mtime in wires.values()), default=0) / 1e9
            self._last = self._clock() - max(0.0, now - newest)
        elif wires != self._seen:
            self._last = self._clock()
        self._seen = dict(wires)

    @property
    def seconds(self) -> float:
        return self._clock() - self._last


def on_battery(folder: Path = POWER_SUPPLIES) -> bool | None:
    """Whether the machine runs on its battery; ``None`` where the platform does not tell.

    A mains supply that is online wins; without any, a discharging system battery (not a mouse's) counts.
    """
    mains: list[bool] = []
    discharging = False
    try:
        supplies = sorted(folder.iterdir())
    except OSError:
        return None
    for supply in supplies:
        kind = _fact(supply / "type")
        if kind in ("Mains", "USB"):
            mains.append(_fact(supply / "online") == "1")
        elif kind == "Battery" and _fact(supply / "scope") != "Device":
            discharging = discharging or _fact(supply / "status") == "Discharging"
    if any(mains):
        return False
    if discharging:
        return True
    return None if not mains else False


def _fact(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


class Battery:
    """``on_battery``, asked again only after a while."""

    def __init__(self, ask: Callable[[], bool | None] = on_battery, *, clock: Clock = time.monotonic) -> None:
        self._ask = ask
        self._clock = clock
        self._at = float("-inf")
        self._found: bool | None = None

    def __call__(self) -> bool:
        if self._clock() - self._at >= BATTERY_CHECK_S:
            self._at, self._found = self._clock(), self._ask()
        return bool(self._found)


@dataclass(slots=True)
class Idle:
    """All conditions together. ``in_flight`` tells how many calls wait for an answer now."""

    quiet_seconds: float
    share: CpuShare
    quiet: Quiet
    in_flight: Callable[[], int] = lambda: 0
    battery: Callable[[], bool] = field(default_factory=Battery)
    clock: Clock = time.monotonic
    _called: float = float("-inf")

    def calling(self) -> bool:
        """Whether a call is in flight now."""
        if self.in_flight():
            self._called = self.clock()
            return True
        return False

    def why_not(self, *, urgent: bool = False, heavy: bool = True) -> tuple[str, float]:
        """Why no step may run now (``""``: one may), and after how many seconds it is worth asking again.

        ``urgent`` work (a client said that its turn has ended) does not wait for the wires to be quiet.
        """
        if self.calling():
            return CALL, CALM_S / 4
        if (since := self.clock() - self._called) < CALM_S:  # calls come in rows
            return CALL, CALM_S - since
        missing = self.quiet_seconds - self.quiet.seconds
        if missing > 0 and not urgent:
            return NOT_QUIET, min(missing, 60.0)
        if self.battery():
            return ON_BATTERY, BATTERY_CHECK_S
        if (wait := self.share.wait(heavy=heavy and not urgent)) > 0:
            return SHARE_USED, wait
        return "", 0.0


CALL = "a tool call is in flight"
NOT_QUIET = "the wires are not quiet"
ON_BATTERY = "on battery"
SHARE_USED = "the processor's share is used up"
SHARED_REASONS = frozenset((NOT_QUIET, ON_BATTERY, SHARE_USED))
"""Reasons to wait that every process would have: who waits for one of these is not stuck."""


def lower_priority() -> None:
    """Give this whole process the lowest priority; call in a process that does background work alone."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    else:  # Windows
        import ctypes

        kernel = ctypes.windll.kernel32  # type: ignore[attr-defined, unused-ignore]
        kernel.SetPriorityClass(kernel.GetCurrentProcess(), 0x40)


def cpu_seconds() -> float:
    """Processor time of this process and its ended children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
