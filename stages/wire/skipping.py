"""Which kimi-code lines mean nothing, told by the nine bytes after ``{"type":"`` (WIRE §8).

A line is looked up in the table of the moment: while a turn runs, after its end record, or between turns.
Lines that are not in it are parsed.
"""

from __future__ import annotations

NOISE = 0
"""Skipped; it counts as the running turn's last line."""
BETWEEN = 1
"""Skipped; not part of a turn when it is the last thing before the next."""
TAIL = 2
"""After the end record: still the turn's."""
BREAK = 3
"""After the end record: not the turn's, and nothing after it is."""
TELLING = 4
"""``mcp.tools_discovered``: parsed when it names our own server, else as BETWEEN."""
UNDO = 5
"""``context.undo`` is parsed, ``context.update_token_count`` is skipped."""
USAGE = 6
"""``usage.record``: skipped once its model is known."""

_IN_TURN = (
    "cron.add",
    "cron.cursor",
    "cron.delete",
    "file_history.",
    "goal.clear",
    "goal.update",
    "interaction.",
    "llm.request",
    "llm.tools_snapshot",
    "micro_compaction.",
    "plan.revision",
    "plan_mode.",
    "prompt.aborted",
    "prompt.completed",
    "prompt.steered",
    "swarm_mode.",
    "task.waitDelivered",
    "token_counting.",
    "tools.update_store",
    "tower_mode.",
    "turn.step.",
)
_BETWEEN = (
    "agent.switched",
    "config.update",
    "full_compaction.",
    "goal.create",
    "interruptionReminder.",
    "permission.",
    "plugin.session_start",
    "profile.bind",
    "prompt.accepted",
    "runtime.set_binding",
    "staleGuard.",
    "tools.register_user_tool",
    "tools.reset_active_tools",
    "tools.set_active_tools",
    "tools.unregister_user_tool",
)
_TAIL = (
    "file_history.",
    "goal.clear",
    "goal.update",
    "prompt.aborted",
    "prompt.completed",
    "swarm_mode.",
    "token_counting.",
    "tower_mode.",
)
_BREAK = (
    "agent.switched",
    "config.update",
    "full_compaction.",
    "goal.create",
    "profile.bind",
    "prompt.accepted",
    "runtime.set_binding",
)


def _keys(names: tuple[str, ...], kind: int) -> dict[bytes, int]:
    return {f'{name}",'.encode()[:9]: kind for name in names}


_SPECIAL = {b"mcp.tools": TELLING, b"context.u": UNDO, b"usage.rec": USAGE}
OPEN = {**_keys(_IN_TURN, NOISE), **_keys(_BETWEEN, BETWEEN), **_SPECIAL}
ENDED = {**dict.fromkeys(OPEN, BETWEEN), **_keys(_TAIL, TAIL), **_keys(_BREAK, BREAK), **_SPECIAL}
IDLE = {**dict.fromkeys(OPEN, BETWEEN), **_SPECIAL}
