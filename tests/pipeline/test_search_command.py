"""`pipeline search`: exit codes, JSON alone on stdout, a file of queries."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from pipeline.answers import DETAILS, LEAST_CHARS
from pipeline.commands.search import search
from pipeline.errors import BadInput
from tests.pipeline.search_cases import AT, CWD, MINUTE
from tests.wires import Home, say

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    home = Home(tmp_path / "home")
    session = home.session(CWD, at=AT, title="the port")
    session.main.turn("why is the zirconium port busy?", say("Another window holds it."))
    session.main.turn("端口被占用怎么办", say("换一个端口。"), gap=MINUTE)
    home.write()
    for name, value in {
        "KIMI_CODE_HOME": home.root,
        "KIMI_SHARE_DIR": tmp_path / "none",
        "MEMORY_STORE_ROOT": tmp_path / "store",
        "KIMI_MEMORY_SEARCH_BUDGET_MS": 60_000,
    }.items():
        monkeypatch.setenv(name, str(value))

    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(
            search, [*arguments, "--workspace", CWD], standalone_mode=False, catch_exceptions=True
        )

    return invoke


def test_a_first_search_folds_and_answers(run: Run) -> None:
    result = run("zirconium port")
    assert result.return_value == 0
    assert "zirconium port busy" in result.stdout
    assert "pipeline show session_" in result.stdout and "kimi -r session_" in result.stdout


def test_a_verified_miss_is_exit_1(run: Run) -> None:
    result = run("palladium", "--json")
    assert result.return_value == 1
    assert orjson.loads(result.stdout)["hits"] == []


@pytest.mark.parametrize("detail", DETAILS)
@pytest.mark.parametrize("form", [["--json"], []])
def test_the_least_bound_has_room_for_a_hit(run: Run, detail: str, form: list[str]) -> None:
    result = run("zirconium port", *form, "--detail", detail, "--max-chars", str(LEAST_CHARS))
    assert result.return_value == 0 and len(result.stdout.strip()) <= LEAST_CHARS
    if not form:
        assert re.search(r"session_\S+  turn 0", result.stdout)
        return
    found = orjson.loads(result.stdout)
    assert {"totalMatches", "matchMode", "stale", "incomplete", "nextCursor", "clusters"} <= found.keys()
    (hit,) = found["hits"]
    assert {"sessionId", "agentId", "turnId", "timestamp", "score", "snippet", "why"} <= hit.keys()


def test_json_is_alone_and_bounded(run: Run) -> None:
    result = run("端口", "--json", "--max-chars", "700")
    found = orjson.loads(result.stdout)
    assert result.return_value == 0 and found["hits"][0]["turnId"] == 1
    assert len(result.stdout.strip()) <= 700


def test_a_file_of_queries_gives_one_object_a_line(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "queries.txt"
    path.write_text("zirconium\n\npalladium\n端口 占用\n", encoding="utf-8")
    result = run("--queries", str(path), "--json")
    assert result.return_value == 0
    answers = [orjson.loads(line) for line in result.stdout.splitlines()]
    assert [(answer["query"], answer["totalMatches"]) for answer in answers] == [
        ("zirconium", 1),
        ("palladium", 0),
        ("端口 占用", 1),
    ]


def test_bad_input_names_what_is_wrong(run: Run, tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    assert isinstance(run("--queries", str(tmp_path / "latin")).exception, BadInput)
    assert isinstance(run("  ").exception, BadInput)
    assert isinstance(run("x", "--cursor", "nonsense").exception, BadInput)
