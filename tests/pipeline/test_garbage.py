"""Damaged homes: exit 0, every healthy session there, each skip counted by reason, memory bounded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from tests import garbage
from tests.pipeline.command_line import environment, pipeline

RSS_LIMIT_MB = 900
"""A 100 MB turn has to be parsed once; the 300 MB line must not be held at all."""


def test_damage_never_hides_healthy_sessions(tmp_path: Path) -> None:
    made = garbage.write(tmp_path / "home", garbage.QUICK)
    env = environment(tmp_path / "home", tmp_path / "store")
    result = pipeline(env, "run", "--all", "--workspace", garbage.CWD, "--jobs", "1", "--json")
    assert result.code == 0 and result.json["failures"] == []
    skipped = result.json["skipped"]
    assert {"corrupt-line", "not-regular"} <= set(skipped) and all(count > 0 for count in skipped.values())
    rows = pipeline(env, "turns", "--json", "--workspace", garbage.CWD).lines
    by_session: dict[str, list[str]] = {}
    for row in rows:
        by_session.setdefault(row["sessionId"], []).append(row["userText"])
    for session in made.healthy:
        name = session.removeprefix("session_")
        assert by_session[session] == [f"{name} question {number}" for number in range(3)]
    for session in made.damaged:
        assert by_session.get(session)
    status = pipeline(env, "status", "--workspace", garbage.CWD, "--json").json[0]
    assert status["turns"] >= 3 * len(made.healthy) and status["skipped"]


@pytest.mark.soak
def test_giants_stay_bounded(tmp_path: Path) -> None:
    garbage.write(tmp_path / "home", garbage.FULL)
    env = environment(tmp_path / "home", tmp_path / "store")
    program = (
        "import resource, sys\n"
        "from pipeline.cli import invoke\n"
        "code = invoke(['index', '--workspace', sys.argv[1], '--jobs', '1', '--json'])\n"
        "sys.stdout.flush()\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, garbage.CWD], env=env, capture_output=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    report, rss = done.stdout.decode().splitlines()
    assert orjson.loads(report)["failures"] == []
    assert int(rss) < RSS_LIMIT_MB
