"""The command's stable interfaces: `turns --json`, `run --json`, `trace --format json`, exit codes, messages."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest

import pipeline.demo as demo
from pipeline.commands.run import copy_database
from pipeline.commands.scope import day
from pipeline.errors import BadInput
from tests.pipeline.command_line import Result, environment, pipeline
from tests.pipeline.store_cases import SAMPLES

NAMES = sorted(path.name for path in SAMPLES.iterdir() if (path / "home").is_dir())


def sample(name: str, tmp_path: Path) -> dict[str, str]:
    home = SAMPLES / name / "home"
    legacy = home if name == "l_legacy_kimi_cli" else None
    return environment(tmp_path / "no-home" if legacy else home, tmp_path / "store", legacy)


def expected(name: str) -> list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
    value = orjson.loads((SAMPLES / name / "EXPECTED.json").read_bytes())
    return [
        (session, agent, turn)
        for session in value["sessions"]
        for agent in session["agents"]
        for turn in agent["turns"]
    ]


@pytest.mark.parametrize("name", NAMES)
def test_turns_agree_with_what_was_read_by_hand(name: str, tmp_path: Path) -> None:
    result = pipeline(sample(name, tmp_path), "turns", "--json", "--all-workspaces", "--include-copies")
    assert result.code == 0 and not (tmp_path / "store").exists()
    found = {(row["sessionId"], row["agentId"], row["position"]): row for row in result.lines}
    wanted = expected(name)
    assert len(found) == len(result.lines) == len(wanted)
    for session, agent, turn in wanted:
        row = found[session["session_id"], agent["agent"], turn["index"]]
        assert row["turnId"] == (turn["index"] if turn["turnId"] is None else turn["turnId"])
        assert row["origin"] == turn["opening_kind"]
        assert row["promptId"] == turn.get("promptId")
        assert row["userText"] == turn["user_text"]
        assert row["openingText"].startswith((turn["user_text"] or turn.get("opening_text", ""))[:150])
        assert (row["assistantText"] or "") == (turn["assistant_text_final"] or "")
        assert row["tools"] == [
            {"id": t["id"], "name": t["name"], "result": None if t["result"] == "missing" else t["result"]}
            for t in turn["tools"]
        ]
        assert row["files"] == [{"path": f["path"], "op": f["op"]} for f in turn["files"]]
        assert [(e["tool"], e["id"]) for e in row["errors"]] == [
            (e.get("tool"), e.get("id")) for e in turn["errors"]
        ]
        assert all(e["text"] for e in row["errors"])
        assert row["steers"] == [s["text"] for s in turn["steers"] if s.get("human", True)]
        assert (row["status"], row["undone"]) == (turn["status"], turn["undone"])
        started = turn["started_ms"] if "started_ms" in turn else turn["started_s"] * 1000
        assert row["startedAt"] == pytest.approx(started, abs=1)
        ended = turn.get("ended_ms") if "started_ms" in turn else turn["ended_s"] * 1000
        assert row["endedAt"] == (None if ended is None else pytest.approx(ended, abs=1))
        if turn.get("copied_from_fork"):
            assert row["copyOf"]["sessionId"] == turn["origin_session"]
            assert row["copyOf"]["turnId"] == turn["turnId"]
        else:
            assert row["copyOf"] is None


def test_copies_are_listed_only_when_asked_for(tmp_path: Path) -> None:
    env = sample("c_fork", tmp_path)
    rows = pipeline(env, "turns", "--json", "--all-workspaces").lines
    assert len(rows) == 5 and all(row["copyOf"] is None for row in rows)


def test_a_fork_whose_source_is_gone_is_real_history_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(SAMPLES / "c_fork" / "home", home)
    for folder in home.glob("sessions/*/session_01266767*"):
        shutil.rmtree(folder)
    rows = pipeline(environment(home, tmp_path / "store"), "turns", "--json", "--all-workspaces").lines
    assert [(row["sessionId"][-6:], row["turnId"]) for row in rows] == [
        ("469ace", 0), ("469ace", 1), ("469ace", 2), ("e729ed", 3)
    ]  # fmt: skip


def test_one_session_and_one_agent(tmp_path: Path) -> None:
    env = sample("d_subagent", tmp_path)
    session = "session_9ae88e68-5f41-41d7-a36c-b98f6e4272da"
    rows = pipeline(env, "turns", "--json", "--session", session, "--agent", "agent-1").lines
    assert [(row["agentId"], row["turnId"]) for row in rows] == [("agent-1", 0)]
    agents = [row["agentId"] for row in pipeline(env, "turns", "--json", "--session", session).lines]
    assert agents == ["main"] * 4 + ["agent-0", "agent-1", "agent-2", "agent-3"]


@pytest.fixture
def shop(tmp_path: Path) -> dict[str, str]:
    return environment(demo.home(), tmp_path / "store")


def run_demo(env: dict[str, str], *more: str) -> Result:
    return pipeline(
        env, "run", "--theme", demo.THEME, "--keywords", ",".join(demo.KEYWORDS), "--workspace", demo.WORKSPACE,
        "--jobs", "1", *more,
    )  # fmt: skip


def test_run_then_run_again_reuses_and_writes_nothing(shop: dict[str, str]) -> None:
    first = run_demo(shop, "--json").json
    assert set(first) >= {"files", "bytes", "turns", "refined", "reused", "skipped", "seconds", "themes"}
    assert first["turns"] == 25 and first["refined"] > 0 and first["reused"] == 0
    (theme,) = first["themes"]
    assert theme["workspace"] == demo.WORKSPACE and theme["theme"] == demo.THEME and theme["turns"] > 3
    path = Path(theme["path"])
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in path.parent.rglob("*") if p.is_file()}
    second = run_demo(shop, "--json").json
    assert (second["files"], second["refined"]) == (0, 0) and second["reused"] >= first["refined"]
    assert {
        p: (p.read_bytes(), p.stat().st_mtime_ns) for p in path.parent.rglob("*") if p.is_file()
    } == before


def test_trace_in_three_formats(shop: dict[str, str]) -> None:
    run_demo(shop)
    value = pipeline(shop, "trace", demo.THEME, "--workspace", demo.WORKSPACE, "--format", "json").json
    times = [turn["timestamp"] for turn in value["turns"]]
    assert times == sorted(times) and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", times[0])
    assert set(value["turns"][0]) >= {"sessionId", "agentId", "turnId", "timestamp", "score", "via"}
    assert value["clusters"] and "memories" in value
    assert pipeline(
        shop, "trace", demo.THEME, "--workspace", demo.WORKSPACE, "--format", "md"
    ).out.startswith("# ")
    text = pipeline(shop, "trace", demo.THEME, "--workspace", demo.WORKSPACE)
    assert text.code == 0 and demo.THEME in text.out


def test_dry_run_writes_nothing(shop: dict[str, str], tmp_path: Path) -> None:
    result = run_demo(shop, "--dry-run", "--json")
    assert result.code == 0 and result.json["dryRun"] is True and result.json["themes"][0]["turns"] > 3
    assert not (tmp_path / "store").exists()


def test_many_themes_in_one_fold(shop: dict[str, str], tmp_path: Path) -> None:
    listed = tmp_path / "themes.toml"
    listed.write_text('[themes]\n"搜索" = ["tokenizer"]\nlogin = ["cookie", "令牌"]\n', encoding="utf-8")
    result = pipeline(shop, "run", "--themes", str(listed), "--workspace", demo.WORKSPACE, "--json").json
    assert [theme["theme"] for theme in result["themes"]] == ["搜索", "login"] and result["turns"] == 25


def test_curation_survives_runs(shop: dict[str, str]) -> None:
    run_demo(shop)
    trace = ("trace", demo.THEME, "--workspace", demo.WORKSPACE, "--format", "json")
    first = pipeline(shop, *trace).json["turns"][0]
    place = (demo.THEME, first["sessionId"], str(first["turnId"]), "--workspace", demo.WORKSPACE)
    assert pipeline(shop, "untag", *place).code == 0
    run_demo(shop)
    keys = [(turn["sessionId"], turn["turnId"]) for turn in pipeline(shop, *trace).json["turns"]]
    assert (first["sessionId"], first["turnId"]) not in keys
    assert pipeline(shop, "tag", *place).code == 0
    run_demo(shop)
    kept = {(turn["sessionId"], turn["turnId"]): turn["via"] for turn in pipeline(shop, *trace).json["turns"]}
    assert kept[first["sessionId"], first["turnId"]] == "tagged"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "--theme", "new", "--workspace", demo.WORKSPACE), "no seed keywords"),
        (("run", "--workspace", demo.WORKSPACE), "--theme"),
        (("run", "--theme", "x", "--keywords", "y", "--workspace", "/home/dev/shopp"), "/home/dev/shop"),
        (
            ("run", "--theme", "x", "--keywords", "y", "--since", "yesterday", "--workspace", demo.WORKSPACE),
            "--since",
        ),
        (("trace", "nothing", "--workspace", demo.WORKSPACE), "no theme"),
        (("show", "session_nope", "1"), "no session"),
        (("show", "session_4a4724bf", "99"), "no turn 99"),
        (("turns", "--workspace", "a", "--all-workspaces"), "exclude each other"),
        (("frobnicate",), "No such command"),
        (("run", "--theme", "x", "--jobs", "0", "--workspace", demo.WORKSPACE), "--jobs"),
        (("show", "session_4a4724bf", "9" * 30), "TURN"),
        (("show", "session_4a4724bf", "0", "--position", "9" * 30), "--position"),
        (("tag", "x", "session_4a4724bf", "9" * 30, "--workspace", demo.WORKSPACE), "TURN"),
        (("forget", "--turn", "session_4a4724bf", "9" * 30, "--workspace", demo.WORKSPACE), "turn"),
        (
            ("search", "x", "--since", "2026-11-20", "--until", "2026-11-01", "--workspace", demo.WORKSPACE),
            "before",
        ),
    ],
)
def test_bad_input_is_exit_2_and_says_what_is_wrong(
    arguments: tuple[str, ...], message: str, shop: dict[str, str]
) -> None:
    result = pipeline(shop, *arguments)
    assert result.code == 2 and message in result.err and "Traceback" not in result.err and result.out == ""


def test_a_workspace_is_found_through_spelling_and_copied_homes(tmp_path: Path) -> None:
    home = tmp_path / "copied 家"
    shutil.copytree(demo.home(), home)
    env = environment(home, tmp_path / "store")
    for spelling in ("/home/dev/shop/", "/home/dev/../dev/shop", "/home/dev/shop"):
        assert pipeline(env, "sessions", "--workspace", spelling, "--json").code == 0
    env = environment(tmp_path, tmp_path / "store") | {"MEMORY_SESSIONS_ROOT": str(home / "sessions")}
    assert len(pipeline(env, "sessions", "--workspace", demo.WORKSPACE, "--json").json) == 6


def test_show_gives_the_turn_whole(shop: dict[str, str]) -> None:
    value = pipeline(shop, "show", "session_4a4724bf", "0", "--json")
    assert value.code == 0 and value.json["turnId"] == 0 and len(value.json["records"]) > 2
    assert pipeline(shop, "show", "session_4a4724bf", "0").code == 0


@pytest.mark.parametrize(
    "arguments", [["sessions"], ["turns", "--json"], ["show", "session_4a4724bf", "0"], ["--help"]]
)
def test_a_reader_that_leaves_is_no_failure(shop: dict[str, str], arguments: list[str]) -> None:
    away, ours = os.pipe()
    os.close(away)
    try:
        command = [sys.executable, "-m", "pipeline.cli", *arguments]
        if arguments[0] in ("sessions", "turns"):
            command += ["--workspace", demo.WORKSPACE]
        done = subprocess.run(command, env=shop, stdout=ours, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(ours)
    assert (done.returncode, done.stderr) == (0, "")


def test_show_answers_from_the_store_when_the_wire_is_gone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(demo.home(), home)
    env = environment(home, tmp_path / "store")
    run_demo(env)
    whole = pipeline(env, "show", "session_4a4724bf-7d64-413d-ac2f-f3302f051967", "0", "--json").json
    shutil.rmtree(home / "sessions")
    stored = pipeline(env, "show", "session_4a4724bf-7d64-413d-ac2f-f3302f051967", "0", "--json").json
    assert stored["stored"] is True and "stored" not in whole
    assert [r["text"] for r in stored["records"] if r["kind"] in ("prompt", "text")] == [
        r["text"] for r in whole["records"] if r["kind"] in ("prompt", "text")
    ]


def test_status_and_rebuild(shop: dict[str, str]) -> None:
    before = pipeline(shop, "status", "--workspace", demo.WORKSPACE, "--json").json[0]
    assert before["turns"] == 0 and before["lagBytes"] == before["bytes"] > 0
    run_demo(shop)
    after = pipeline(shop, "status", "--workspace", demo.WORKSPACE, "--json").json[0]
    assert after["lagBytes"] == 0 and after["turns"] >= 20 and after["themes"] == 1
    assert pipeline(shop, "rebuild", "--workspace", demo.WORKSPACE, "--json").json["turns"] == 25
    again = pipeline(shop, "status", "--workspace", demo.WORKSPACE, "--json").json[0]
    assert (again["turns"], again["refined"]) == (after["turns"], after["refined"])


def test_a_damaged_database_is_set_aside_by_rebuild(shop: dict[str, str], tmp_path: Path) -> None:
    run_demo(shop)
    database = next((tmp_path / "store").rglob("refined.sqlite"))
    database.write_bytes(b"not a database at all" * 100)
    for extra in database.parent.glob("refined.sqlite-*"):
        extra.unlink()
    failed = run_demo(shop)
    assert failed.code == 4 and "rebuild" in failed.err
    assert pipeline(shop, "rebuild", "--workspace", demo.WORKSPACE).code == 0
    assert run_demo(shop).code == 0
    assert list(database.parent.glob("*.damaged-*"))


def test_a_newer_store_is_refused(shop: dict[str, str], tmp_path: Path) -> None:
    import sqlite3

    run_demo(shop)
    database = next((tmp_path / "store").rglob("refined.sqlite"))
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE kmp_meta SET value=99 WHERE key='schema'")
    connection.close()
    result = run_demo(shop)
    assert result.code == 4 and "later version" in result.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_store_says_so(shop: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "store").mkdir(mode=0o500)
    result = run_demo(shop)
    assert result.code == 4 and "permission" in result.err.lower()


def test_a_turn_without_a_time_has_its_sessions(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(demo.home(), home)
    for wire in home.glob("sessions/*/*/agents/*/wire.jsonl"):
        wire.write_bytes(re.sub(rb',"time":\d+', b"", wire.read_bytes()))
    env = environment(home, tmp_path / "store")
    run_demo(env)
    rows = pipeline(env, "trace", demo.THEME, "--workspace", demo.WORKSPACE, "--format", "json").json["turns"]
    assert rows and all(row["timestamp"].startswith("2026-11-") for row in rows)
    assert (
        "1970" not in pipeline(env, "trace", demo.THEME, "--workspace", demo.WORKSPACE, "--format", "md").out
    )


@pytest.fixture(params=["UTC", "Asia/Shanghai", "America/Los_Angeles"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", request.param)
        time.tzset()
        yield request.param
    time.tzset()


@pytest.mark.parametrize("end", [False, True])
@pytest.mark.parametrize("date", ["0001-01-01", "9999-12-31", "9999-12-31T23:59:59.999999"])
def test_dates_at_the_ends_of_the_calendar_are_bounds_or_bad_input(zone: str, date: str, end: bool) -> None:
    try:
        assert isinstance(day(date, "--since", end=end), int)
    except BadInput as error:
        assert "is no date" in str(error)


@pytest.mark.parametrize("encoding", ["ascii", "gbk", "latin-1"])
def test_what_an_encoding_lacks_does_not_end_a_command(shop: dict[str, str], encoding: str) -> None:
    env = shop | {"PYTHONIOENCODING": encoding, "KIMI_MEMORY_SEARCH_BUDGET_MS": "60000"}
    for arguments in (["turns"], ["search", "cookie 😀"], ["sessions"], ["search", "cookie", "--json"]):
        command = [sys.executable, "-m", "pipeline.cli", *arguments, "--workspace", demo.WORKSPACE]
        done = subprocess.run(command, env=env, capture_output=True, check=False)
        assert done.returncode == 0 and b"session_" in done.stdout, done.stderr


def test_closed_streams_do_not_end_a_command(shop: dict[str, str]) -> None:
    for streams in (">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"):
        for more in ("", " --json"):
            command = f'"$0" -m pipeline.cli sessions --workspace "$1"{more} {streams}'
            done = subprocess.run(
                ["sh", "-c", command, sys.executable, demo.WORKSPACE], env=shop, check=False
            )
            assert done.returncode == 0, (streams, more)


def test_a_dry_run_reads_a_store_that_cannot_be_written(tmp_path: Path) -> None:
    database, copy = tmp_path / "ro" / "refined.sqlite", tmp_path / "copy.sqlite"
    database.parent.mkdir()
    with closing(sqlite3.connect(database)) as made:
        made.executescript("PRAGMA journal_mode=WAL; CREATE TABLE t(a); INSERT INTO t VALUES(7);")
    mount = ["mount", "-t", "tmpfs", "tmpfs", str(database.parent)]
    content = database.read_bytes()
    if os.name != "posix" or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("cannot mount here")
    try:
        database.write_bytes(content)
        subprocess.run(["mount", "-o", "remount,ro", str(database.parent)], check=True)
        copy_database(database, copy)
    finally:
        subprocess.run(["umount", "--lazy", str(database.parent)], check=True)
    with closing(sqlite3.connect(copy)) as copied:
        assert copied.execute("SELECT a FROM t").fetchall() == [(7,)]


def test_discovered_subjects_name_their_turns_as_json(shop: dict[str, str]) -> None:
    assert pipeline(shop, "run", "--all", "--workspace", demo.WORKSPACE, "--jobs", "1").code == 0
    found = pipeline(shop, "discover", "--json", "--workspace", demo.WORKSPACE).json
    known = {
        (row["sessionId"], row["turnId"])
        for row in pipeline(shop, "turns", "--json", "--workspace", demo.WORKSPACE).lines
    }
    assert found and found[0]["seeds"] and found[0]["sessions"] > 1
    assert all((turn["sessionId"], turn["turnId"]) in known for each in found for turn in each["turns"])


def test_a_secret_in_a_keyword_or_name_is_not_kept(shop: dict[str, str]) -> None:
    secret = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    arguments = ("--keywords", f"cookie,{secret}", "--workspace", demo.WORKSPACE, "--jobs", "1")
    assert pipeline(shop, "run", "--theme", f"about {secret}", *arguments).code == 0
    store = Path(shop["MEMORY_STORE_ROOT"])
    kept = [path for path in store.rglob("*") if path.is_file()]
    assert any(path.suffix == ".md" for path in kept)
    assert [path for path in kept if secret in path.name or secret.encode() in path.read_bytes()] == []


def test_a_title_is_one_short_line_of_the_list(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(demo.home(), home)
    (state,) = home.glob("sessions/*/session_4a4724bf*/state.json")
    value = orjson.loads(state.read_bytes())
    state.write_bytes(orjson.dumps(value | {"title": "a\r\nb\x1b[31m " + "long " * 20_000}))
    listed = pipeline(environment(home, tmp_path / "store"), "sessions", "--workspace", demo.WORKSPACE)
    lines = listed.out.splitlines()
    assert len(lines) == 6 and max(map(len, lines)) < 200 and "a b long" in listed.out
