"""`make compat`: the tests of this folder on the newest published Kimi Code CLI, and what its logs hold that we do
not know. The log format moves fast; this is the early warning. `python -m tests.e2e.compat [VERSION]`.

Ends with 1 when a test fails or something unknown was seen: then read it, decide what it means, and add it here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from tests.e2e.install import TESTED, NoNpm, install


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


KNOWN_TYPES = _names(
    """
    metadata forked turn.prompt turn.steer turn.ended turn.cancel turn.step.retrying turn.step.interrupted
    context.append_message context.append_loop_event context.apply_compaction context.undo context.undone
    context.clear context.update_token_count agent.switched agent.message.appended agent.turn.started
    agent.turn.ended prompt.accepted prompt.completed prompt.steered prompt.aborted llm.request llm.tools_snapshot
    usage.record token_counting.measured token_counting.turn_recorded
    token_counting.rebased token_counting.truncated profile.bind config.update
    runtime.set_binding full_compaction.begin full_compaction.complete full_compaction.cancel
    micro_compaction.apply permission.set_mode permission.record_approval_result interaction.request
    interaction.resolved mcp.tools_discovered tools.set_active_tools tools.reset_active_tools
    tools.register_user_tool tools.unregister_user_tool tools.update_store file_history.tracked
    file_history.checkpoint plan_mode.enter plan_mode.exit plan_mode.cancel plan.revision goal.create goal.update
    goal.clear swarm_mode.enter swarm_mode.exit tower_mode.enter tower_mode.exit task.started task.terminated
    task.waitDelivered cron.add cron.delete cron.cursor subagent.spawned subagent.started subagent.completed
    subagent.failed subagent.cancelled plugin.session_start interruptionReminder.recorded
    """
)
KNOWN_EVENTS = _names("step.begin step.end content.part tool.call tool.result")
KNOWN_ORIGINS = _names(
    """
    user skill_activation plugin_command injection shell_command compaction_summary system_trigger task
    background_task cron_job cron_missed hook_result retry
    """
)
KNOWN_FIELDS = {
    "turn.prompt": _names("type agentId input origin promptId turnId time"),
    "turn.ended": _names("type agentId turnId reason error durationMs stopReason time"),
    "context.undo": _names("type agentId count time"),
}
"""The records that a turn is made of: a new field there may change what a turn is."""


def main(version: str = "latest") -> int:
    """Run the tests on that version and report; the exit code."""
    try:
        cli = install(version)
    except NoNpm as error:
        print(f"nothing was tested: {error}")
        return 1
    print(f"Kimi Code {cli.version} (the tests are written for {TESTED})", flush=True)
    with tempfile.TemporaryDirectory(prefix="kimi-compat-") as folder:
        here = Path(__file__).parent
        words = [sys.executable, "-m", "pytest", str(here), f"--ignore={here / 'test_compat.py'}"]
        words.append(f"--basetemp={folder}/run")
        failed = subprocess.run(
            words, env={**os.environ, "KIMI_E2E_VERSION": version}, check=False
        ).returncode
        seen, unknown = survey(Path(folder))
    print(f"{sum(seen.values())} records of {len(seen)} types")
    for name, count in sorted(unknown.items()):
        print(f"unknown: {name} ({count})")
    if not unknown:
        print("no record type, event, origin or turn field that we do not know")
    return 1 if failed or unknown or not seen else 0


def survey(folder: Path) -> tuple[Counter[str], Counter[str]]:
    """How many records of each type the wires below ``folder`` hold, and how many things we do not know."""
    seen: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    for wire in sorted(folder.rglob("wire.jsonl")):
        for line in wire.read_bytes().split(b"\n")[:-1]:  # what follows the last line end was torn by a kill
            if line.strip():
                record = _record(line)
                seen[str(record.get("type"))] += 1
                unknown.update(news(record))
    return seen, unknown


def news(record: dict[str, Any]) -> Iterator[str]:
    """What one record holds that we do not know."""
    kind = str(record.get("type"))
    if kind not in KNOWN_TYPES:
        yield f"record type {kind}"
    for name in record.keys() - KNOWN_FIELDS.get(kind, record.keys()):
        yield f"field {name} of {kind}"
    event = record.get("event")
    if (
        kind == "context.append_loop_event"
        and isinstance(event, dict)
        and event.get("type") not in KNOWN_EVENTS
    ):
        yield f"loop event {event.get('type')}"
    message = record.get("message")
    for origin in (record.get("origin"), message.get("origin") if isinstance(message, dict) else None):
        if isinstance(origin, dict) and origin.get("kind") not in KNOWN_ORIGINS:
            yield f"origin {origin.get('kind')}"


def _record(line: bytes) -> dict[str, Any]:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return {"type": "a line that is no JSON"}
    return record if isinstance(record, dict) else {"type": "a line that is no object"}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
