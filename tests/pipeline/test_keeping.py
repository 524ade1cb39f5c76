"""Exclude rules, retention and newer redaction rules: what they keep out, and older stores brought up to them."""

from __future__ import annotations

import shutil
import sqlite3
import time
from pathlib import Path

import pytest

from pipeline import keeping
from stages.redact import RULES_VERSION
from tests import wires
from tests.pipeline.command_line import environment, pipeline
from tests.pipeline.test_forgetting import CWD, run, store_of, traces, turns_in
from tests.wires import bash, edit, grep, read, read_missing, say

SECRET = "quagmirex"
"""Stands only in what tools said about excluded files."""
PLAIN = "daffodilic"


@pytest.fixture
def home(tmp_path: Path) -> wires.Home:
    made = wires.Home(tmp_path / "home", seed=9)
    first = made.session(CWD, at=1_796_000_000_000, title="first")
    first.main.turn(
        f"look at the settings, {PLAIN}",
        say("I read.", read("private/keys.txt", f"{SECRET} 1\n"), read_missing(f"private/{SECRET}.txt")),
        say(
            "",
            edit("private/keys.txt", f"{SECRET} 1", f"{SECRET} 2"),
            bash(f"cat private/keys.txt # {SECRET}", SECRET),
        ),
        say("", grep(SECRET, f"{CWD}/private", f"private/keys.txt:1:{SECRET}")),
        say(
            "",
            bash("make check", f"ok\nprivate/keys.txt:3: {SECRET}\n3 passed", code=1),
            read("src/app.py", "x = 1"),
        ),
        say("Done with the settings."),
        gap=60_000,
    )
    first.main.turn(
        "a call without end", say("", bash(f"tail -f private/log # {SECRET}", None)), outcome="killed"
    )
    second = made.session(CWD, at=1_796_100_000_000, title="second")
    second.main.turn("and the second session?", say("It is fine, quillwortish."), gap=60_000)
    second.fork(1_796_200_000_000).main.turn("its fork?", say("Also quillwortish."), gap=60_000)
    made.write()
    return made


@pytest.fixture
def env(tmp_path: Path, home: wires.Home) -> dict[str, str]:
    return environment(home.root, tmp_path / "store")


def test_what_tools_did_to_excluded_paths_is_not_stored(env: dict[str, str]) -> None:
    run(env, "run", "--all", "--theme", "settings", "--keywords", "settings", "--jobs", "1")
    assert traces(store_of(env), SECRET)
    strict = env | {
        "KIMI_MEMORY_EXCLUDE_PATHS": "private",
        "MEMORY_STORE_ROOT": env["MEMORY_STORE_ROOT"] + "2",
    }
    run(strict, "run", "--all", "--theme", "settings", "--keywords", "settings", "--jobs", "2")
    store = store_of(strict)
    assert traces(store, SECRET) == [] and traces(store, "keys.txt") == []
    assert traces(store, PLAIN) and traces(store, "app.py"), "the rest of the turn is kept"
    rows = run(strict, "turns", "--json")
    assert SECRET not in rows.out and "app.py" in rows.out
    for row in rows.lines:
        shown = pipeline(strict, "show", row["sessionId"], str(row["turnId"]), "--json")
        assert shown.code == 0 and SECRET not in shown.out


@pytest.mark.parametrize("where", ["environment", "store's file", "root's file"])
@pytest.mark.parametrize("wire", ["there", "gone"])
def test_a_new_exclude_rule_changes_an_older_store(
    where: str, wire: str, env: dict[str, str], home: wires.Home
) -> None:
    run(env, "run", "--all", "--theme", "settings", "--keywords", "settings", "--jobs", "1")
    store = store_of(env)
    assert traces(store, SECRET)
    if where == "environment":
        env = env | {"KIMI_MEMORY_EXCLUDE_PATHS": "private/**"}
    else:
        folder = store if where == "store's file" else store.parent
        (folder / "config.toml").write_text('[exclude]\npaths = ["private/**"]\n', encoding="utf-8")
    if wire == "gone":
        shutil.rmtree(home.sessions[0].folder)
    run(env, "index")
    assert traces(store, SECRET) == []
    assert traces(store, PLAIN)
    before = turns_in(store)
    run(env, "index")
    assert turns_in(store) == before


def test_a_rule_that_is_lifted_brings_back_what_the_wires_hold(env: dict[str, str]) -> None:
    strict = env | {"KIMI_MEMORY_EXCLUDE_PATHS": "private"}
    run(strict, "index")
    assert traces(store_of(env), SECRET) == []
    run(env, "index")
    assert traces(store_of(env), SECRET)


@pytest.mark.parametrize("where", ["environment", "store's file"])
def test_a_session_excluded_later_goes_with_its_forks(
    where: str, env: dict[str, str], home: wires.Home
) -> None:
    run(env, "index")
    store, session = store_of(env), home.sessions[1].session_id
    if where == "environment":
        strict = env | {"KIMI_MEMORY_EXCLUDE_SESSIONS": session}
    else:
        strict = env
        (store / "config.toml").write_text(f'[exclude]\nsessions = ["{session}"]\n', encoding="utf-8")
    run(strict, "index")
    assert {row[0] for row in turns_in(store)} == {home.sessions[0].session_id}
    assert traces(store, "quillwortish") == []
    (store / "config.toml").unlink(missing_ok=True)
    run(env, "index")
    assert len({row[0] for row in turns_in(store)}) == 3


def test_an_excluded_workspace_keeps_its_store_until_it_is_forgotten(env: dict[str, str]) -> None:
    run(env, "index")
    strict = env | {"KIMI_MEMORY_EXCLUDE_WORKSPACES": CWD}
    assert pipeline(strict, "index", "--workspace", CWD).code == 2
    assert turns_in(store_of(env))
    run(strict, "forget", "--everything", "--yes")
    assert turns_in(store_of(env)) == []


@pytest.mark.parametrize("command", ["index", "rebuild"])
def test_newer_redaction_rules_change_an_older_store(
    command: str, env: dict[str, str], home: wires.Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store of rules that let a token through: its rows, pages and history lose it, whether the wire is there."""
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    for session in (home.sessions[0], home.sessions[1]):
        session.main.turn(f"is {token} in the settings?", say(f"Decided: {token} stays."), gap=60_000)
    home.write()
    with monkeypatch.context() as patch:
        patch.setattr("stages.redact.Redactor.__call__", lambda _self, text: text)
        run(env, "run", "--all", "--theme", "settings", "--keywords", "settings", "--jobs", "1")
    store = store_of(env)
    assert len(traces(store, token.lower())) >= 1
    with sqlite3.connect(store / "refined" / "refined.sqlite") as connection:
        connection.execute("UPDATE kmp_meta SET value=0 WHERE key='rules'")
    connection.close()
    shutil.rmtree(home.sessions[1].folder)
    run(env, command)
    run(env, "index")
    assert traces(store, token.lower()) == [] and (home.sessions[1].session_id, "main", 1) in turns_in(store)
    with sqlite3.connect(store / "refined" / "refined.sqlite") as connection:
        assert (
            connection.execute("SELECT value FROM kmp_meta WHERE key='rules'").fetchone()[0] == RULES_VERSION
        )
    connection.close()


def test_the_raw_index_keeps_a_turn_for_as_long_as_it_was_told(tmp_path: Path) -> None:
    now = time.time_ns() // 1_000_000
    made = wires.Home(tmp_path / "home", seed=2)
    for days, word in ((100, "mossycup"), (3, "goldenrod")):
        session = made.session(CWD, at=now - days * keeping.DAY_MS)
        session.main.turn(f"about the {word} plan", say(f"The {word} plan is decided."), gap=1000)
    made.write()
    env = environment(made.root, tmp_path / "store")
    run(env, "run", "--all", "--theme", "plan", "--keywords", "plan", "--jobs", "1")
    pointers = run(env, "trace", "plan", "--format", "json").json["turns"]
    short = env | {"KIMI_MEMORY_RETENTION_DAYS": "30"}
    run(short, "index")
    store = store_of(env)
    assert len(turns_in(store)) == 1 and "refined/refined.sqlite" not in traces(store, "mossycup")
    assert pipeline(short, "search", "goldenrod", "--workspace", CWD).code == 0
    run(short, "run", "--theme", "plan", "--jobs", "1")
    kept = run(short, "trace", "plan", "--format", "json").json["turns"]
    assert [t["sessionId"] for t in kept] == [t["sessionId"] for t in pointers] and kept[0].get(
        "gone"
    ) is True
    run(env, "index")
    assert len(turns_in(store)) == 2
