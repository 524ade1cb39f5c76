"""Forgetting: what goes is gone from every file, and no rescan, rebuild, fork or import brings it back."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest

from pipeline.store import codec, tombstones
from pipeline.store.memories import Memories
from pipeline.store.proposals import Draft, Proposals
from tests import wires
from tests.pipeline.command_line import Result, environment, pipeline
from tests.wires import agent, bash, read, say

CWD = "/home/dev/vault"
START = 1_796_000_000_000
DAY = 86_400_000
MARK = "falconryx"
"""A word that only the forgotten turn, and what was made of it, holds."""


def vault(root: Path, *, sessions: int = 3) -> wires.Home:
    """Sessions about a vault. The second turn of the first speaks of MARK: in its prompt, calls, sub-agent, answer;
    a compaction and the turn after it retell it, and a fork copies it."""
    home = wires.Home(root, seed=5)
    for number in range(sessions):
        session = home.session(CWD, at=START + number * DAY, title=f"vault {number}")
        main = session.main
        main.turn(
            "where is the vault opened?", say("In vault.py.", read("vault.py", "open()\n" * 5)), gap=60_000
        )
        if number == 0:
            session.title = f"the {MARK} salary"
            main.turn(
                f"what does the {MARK} salary list say about the vault?",
                say("", bash(f"cat {MARK}.txt", f"{MARK} 9000", code=1)),
                say("", agent(f"look at {MARK}", say(f"{MARK} found"), description="look")),
                say(f"The {MARK} list: should I raise the vault limit to 9000 for {MARK}?"),
                gap=60_000,
            )
            main.turn("yes, do that", say("Raised the vault limit to 9000."), gap=60_000)
            main.compact(f"The person asked about {MARK}.")
        main.turn("close the vault", say("The vault is closed: decided to lock it daily."), gap=60_000)
    home.sessions[0].fork(START + 40 * DAY).main.turn(
        "and in the fork?", say("The vault is the same."), gap=60_000
    )
    home.write()
    return home


@pytest.fixture
def home(tmp_path: Path) -> wires.Home:
    return vault(tmp_path / "home")


@pytest.fixture
def env(tmp_path: Path, home: wires.Home) -> dict[str, str]:
    return environment(home.root, tmp_path / "store")


def run(env: dict[str, str], *arguments: str) -> Result:
    result = pipeline(env, *arguments, "--workspace", CWD)
    assert result.code == 0, result.err
    return result


def build(env: dict[str, str]) -> None:
    """Refine all, a theme about the vault (and an older version of it in its history)."""
    run(env, "run", "--all", "--theme", "vault", "--keywords", "vault", "--jobs", "1")
    run(env, "run", "--theme", "vault", "--keywords", "limit", "--jobs", "1")


def store_of(env: dict[str, str]) -> Path:
    return next(Path(env["MEMORY_STORE_ROOT"]).glob("workspace-*"))


def traces(root: Path, word: str = MARK) -> list[str]:
    """Where in the files of a store (bodies expanded, index terms listed) a word stands."""
    found = []
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        data = path.read_bytes()
        if path.name == "refined.sqlite":
            data += expanded(path)
        if word.encode() in data.lower() or word in path.name:
            found.append(path.relative_to(root).as_posix())
    return found


def expanded(path: Path) -> bytes:
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        for (data,) in connection.execute("SELECT data FROM dictionary"):
            codec.use(data)
        bodies = connection.execute(
            "SELECT body FROM content UNION ALL SELECT body FROM refined"
            " UNION ALL SELECT state FROM source WHERE state IS NOT NULL"
        ).fetchall()
        parts = [codec.expand(body) for (body,) in bodies]
        connection.execute("CREATE VIRTUAL TABLE temp.terms USING fts5vocab('main', 'turn_fts', 'row')")
        parts += [row[0].encode() for row in connection.execute("SELECT term FROM temp.terms")]
    finally:
        connection.close()
    return b"\n".join(parts)


def turns_in(store: Path) -> list[tuple[str, str, int]]:
    connection = sqlite3.connect(f"{(store / 'refined' / 'refined.sqlite').as_uri()}?mode=ro", uri=True)
    try:
        return connection.execute(
            "SELECT session_id, agent_id, turn_id FROM occurrence ORDER BY 1, 2, 3"
        ).fetchall()
    finally:
        connection.close()


def wires_of(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_without_yes_nothing_changes_and_the_plan_is_shown(env: dict[str, str], home: wires.Home) -> None:
    build(env)
    store = store_of(env)
    before = wires_of(store)
    session = home.sessions[0].session_id
    plan = run(env, "forget", "--turn", session, "1", "--json").json
    (space,) = plan["workspaces"]
    assert plan["done"] is False and space["forgotten"] is False
    assert (
        space["turns"] == 2 and space["occurrences"] == 4
    )  # with its sub-agent's, and both again in the fork
    assert space["themes"] == ["vault"] and any(entry["kind"] == "history" for entry in space["files"])
    told = run(env, "forget", "--turn", session, "1")
    assert "would forget 2 turns" in told.out and "--yes" in told.out and MARK not in told.out
    assert wires_of(store) == before


@pytest.mark.parametrize("how", ["turn", "session", "period", "match", "theme", "everything"])
def test_what_is_forgotten_is_in_no_file_and_stays_away(
    how: str, env: dict[str, str], home: wires.Home, tmp_path: Path
) -> None:
    build(env)
    store, session = store_of(env), home.sessions[0]
    assert f"refined/{'refined.sqlite'}" in traces(store)
    asked = {
        "turn": ("--turn", session.session_id, "1"),
        "session": ("--session", session.session_id),
        "period": ("--since", "2026-11-28T00:00+00:00", "--until", "2026-12-01T00:00+00:00"),
        "match": ("--match", MARK.upper()),
        "theme": ("--theme", "vault"),
        "everything": ("--everything",),
    }[how]
    kimi = wires_of(home.root)
    result = run(env, "forget", *asked, "--yes", "--json").json
    assert result["workspaces"][0]["forgotten"] and result["workspaces"][0]["emptied"]
    assert traces(store) == []
    for command in (("turns", "--json"), ("turns",), ("sessions", "--json"), ("sessions",), ("status",)):
        assert MARK not in run(env, *command).out, command
    assert pipeline(env, "show", session.session_id, "1").code == 2
    after = pipeline(env, "show", session.session_id, str(session.main.turns - 1), "--json")
    assert MARK not in after.out
    left = turns_in(store)
    assert (session.session_id, "main", 1) not in left and not any(row[1] == "agent-0" for row in left)
    # Rebuild, and re-ingest the untouched wires into a database made anew.
    assert pipeline(env, "rebuild", "--workspace", CWD).code == 0
    run(env, "run", "--all", "--theme", "vault", "--keywords", "vault", "--jobs", "1")
    assert traces(store) == [] and turns_in(store) == left
    for path in (store / "refined").glob("refined.sqlite*"):
        path.unlink()
    run(env, "run", "--all", "--theme", "vault", "--keywords", "vault", "--jobs", "2")
    assert traces(store) == [] and turns_in(store) == left
    assert wires_of(home.root) == kimi
    # A fork of it made afterwards, and one of that fork.
    twin = session.fork(START + 50 * DAY)
    twin.main.turn("what next in this fork?", say("Nothing."), gap=60_000)
    again = twin.fork(START + 51 * DAY)
    again.main.turn("and after it?", say("Nothing either."), gap=60_000)
    home.write()
    run(env, "run", "--all", "--theme", "vault", "--keywords", "vault", "--jobs", "1")
    assert traces(store) == []
    own = {row[2] for row in turns_in(store) if row[0] == again.session_id and row[1] == "main"}
    assert max(own) == again.main.turns - 1, "what the fork said itself is kept"


def test_a_theme_is_told_anew_as_if_the_turn_had_never_been(env: dict[str, str], home: wires.Home) -> None:
    build(env)
    run(env, "forget", "--turn", home.sessions[0].session_id, "1", "--yes")
    run(env, "run", "--theme", "fresh", "--keywords", "vault,limit", "--jobs", "1")
    told, fresh = (run(env, "trace", name, "--format", "json").json for name in ("vault", "fresh"))
    assert told["turns"] == fresh["turns"] and told["clusters"] == fresh["clusters"] and told["turns"]
    assert (home.sessions[0].session_id, 1) not in {
        (turn["sessionId"], turn["turnId"]) for turn in told["turns"]
    }
    assert run(env, "trace", "vault", "--format", "md").out.startswith("# ")
    hits = run(env, "search", "vault", "--json").json
    assert len(hits["clusters"]) >= 3
    assert pipeline(env, "search", MARK, "--workspace", CWD).code == 1


def test_a_turn_that_is_still_growing_leaves_no_text_in_saved_states(
    env: dict[str, str], home: wires.Home
) -> None:
    session = home.sessions[1]
    session.main.turn(
        f"about {MARK}", say(f"I look at {MARK}.", bash("make", None)), outcome="killed", gap=60_000
    )
    home.write()
    build(env)
    run(env, "forget", "--match", MARK, "--yes")
    assert traces(store_of(env)) == []
    session.main.turn("and now?", say("Fine."), gap=60_000)
    home.write()
    run(env, "index")
    assert traces(store_of(env)) == []
    assert (session.session_id, "main", session.main.turns - 1) in turns_in(store_of(env))


def test_equal_openers_without_a_prompt_id_are_told_apart(tmp_path: Path) -> None:
    def place(
        session: str, position: int, at: int | None, *, copied: bool = False, prompt: str | None = None
    ) -> Any:
        return type("Turn", (), {"opener_digest": "ab", "position": position, "started_at": at, "copied": copied,
                                 "prompt_id": prompt, "session": session})()  # fmt: skip

    grave = tombstones.Grave("ab", "s1", "main", 4, 4, 1000, prompted=False)
    stones = tombstones.Tombstones().and_also([grave])
    sources = {"s1": None, "s2": "s1", "s3": None}
    of = {name: stones.of_session(name, sources) for name in sources}
    assert all(of.values())
    assert of["s1"](place("s1", 4, 1000)) and not of["s1"](place("s1", 9, 2000))  # type: ignore[misc]
    assert of["s2"](place("s2", 1, None, copied=True)) and not of["s2"](place("s2", 1, 5))  # type: ignore[misc]
    assert not of["s3"](place("s3", 4, 2000)) and of["s3"](place("s3", 1, 1000))  # type: ignore[misc]


def test_an_import_of_a_forgotten_kimi_cli_session_stays_away(tmp_path: Path) -> None:
    from tests.pipeline.store_cases import SAMPLES

    legacy = tmp_path / "legacy"
    shutil.copytree(SAMPLES / "l_legacy_kimi_cli" / "home", legacy)
    env = environment(tmp_path / "none", tmp_path / "store", legacy)
    rows = pipeline(env, "sessions", "--all-workspaces", "--json").json
    gone = rows[0]["sessionId"]
    assert pipeline(env, "forget", "--session", gone, "--yes").code == 0
    assert pipeline(env, "index", "--all-workspaces").code == 0
    left = [row for store in (tmp_path / "store").glob("workspace-*") for row in turns_in(store)]
    assert not any(row[0] == gone for row in left)


def test_files_that_tell_of_it_go_and_memories_only_when_asked_for(
    env: dict[str, str], home: wires.Home
) -> None:
    build(env)
    store, session = store_of(env), home.sessions[0].session_id
    memories = Memories(store, now=lambda: START, redact=str)
    source = {"session": session, "turn": 1}
    memories.remember("salary", f"The {MARK} salary is 9000.", folder="decisions", source=source)
    memories.remember(
        "other", "The vault is locked daily.", folder="decisions", source={"session": session, "turn": 3}
    )
    memories.remember("old", f"An older {MARK} note.", folder="decisions", source=source)
    memories.delete("old", "decisions")
    proposals = Proposals(memories, now=lambda: START, redact=str)
    proposals.propose(Draft(f"Decided: pay {MARK} 9000.", "pay", source={"sessionId": session, "turnId": 1}))
    proposals.propose(Draft("Decided: lock daily.", "lock", source={"sessionId": session, "turnId": 3}))
    (store / "reports").mkdir()
    (store / "reports" / "drift.md").write_text(f"{session}: {MARK}\n", encoding="utf-8")
    (store / "essence").mkdir(exist_ok=True)
    essence = store / "essence" / "essence.md"
    essence.write_text(
        f"---\nkey: essence\n---\n# Facts\n\n- {MARK} earns 9000 (memory/decisions/salary)\n"
        "- the vault is locked daily (memory/decisions/other)\n",
        encoding="utf-8",
    )
    kept = run(env, "forget", "--turn", session, "1", "--json").json["workspaces"][0]["memoriesKept"]
    assert kept == ["memory/decisions/salary.md"]
    run(env, "forget", "--turn", session, "1", "--yes")
    assert traces(store) == ["essence/essence.md", "memory/decisions/salary.md"]
    assert [p["title"] for p in proposals.list(None)["items"]] == ["lock"]
    run(
        env, "forget", "--turn", session, "0", "--memories", "--yes"
    )  # another turn: these are not its memories
    assert "memory/decisions/salary.md" in traces(store)
    run(env, "forget", "--match", MARK, "--memories", "--yes")
    assert traces(store) == []
    assert "locked daily" in essence.read_text(encoding="utf-8")
    assert (store / "memory" / "decisions" / "other.md").exists()


def test_what_was_set_aside_or_left_by_a_killed_writer_goes_too(
    env: dict[str, str], home: wires.Home
) -> None:
    build(env)
    store, session = store_of(env), home.sessions[0].session_id
    aside = store / "refined" / "refined.sqlite.damaged-20260101-000000"
    aside.write_bytes((store / "refined" / "refined.sqlite").read_bytes())
    (store / "themes" / ".tmp-1-aabb").write_text(f"{session} {MARK}", encoding="utf-8")
    (store / "themes" / ".corrupt-x-aabb.json").write_text(f"{{{session} {MARK}", encoding="utf-8")
    run(env, "forget", "--turn", session, "1", "--yes")
    assert traces(store) == [] and not aside.exists()


def test_saved_searches_that_show_it_go(env: dict[str, str], home: wires.Home) -> None:
    build(env)
    store, session = store_of(env), home.sessions[0].session_id
    folder = store / "searches"
    folder.mkdir(exist_ok=True)
    for name, turn in (("search-aaaaaaaaaaaa", 1), ("search-bbbbbbbbbbbb", 0)):
        member = {"sessionId": session, "turnId": turn}
        view = {
            "query": "vault",
            "clusters": [{"sessionId": session, "hitTurnId": turn, "members": [member]}],
        }
        (folder / f"{name}.json").write_bytes(orjson.dumps(view))
    run(env, "forget", "--turn", session, "1", "--yes")
    assert [path.stem for path in folder.glob("*.json")] == ["search-bbbbbbbbbbbb"]


def test_the_other_servers_records_of_it_go_and_its_table_stays(
    env: dict[str, str], home: wires.Home
) -> None:
    build(env)
    store, session = store_of(env), home.sessions[0].session_id
    path = store / "refined" / "refined.sqlite"
    at = next(
        r["startedAt"]
        for r in run(env, "turns", "--json").lines
        if r["sessionId"] == session and r["turnId"] == 1
    )
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at / 1000)) + f".{at % 1000:03d}Z"
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE refined_turns(session_id TEXT, turn_id INTEGER, timestamp TEXT, summary TEXT, facts TEXT,"
            " notes TEXT, entities TEXT, categories TEXT, PRIMARY KEY(session_id, turn_id))"
        )
        for number, (time_text, text) in enumerate([("2026-01-01T00:00:00.000Z", "kept"), (stamp, MARK)]):
            connection.execute(
                "INSERT INTO refined_turns VALUES(?,?,?,?,'[]','[]','{}','[]')",
                (session, number, time_text, text),
            )
    connection.close()
    run(env, "forget", "--turn", session, "1", "--yes")
    assert traces(store) == []
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT summary FROM refined_turns").fetchall() == [("kept",)]
    connection.close()


@pytest.mark.parametrize("loss", ["lost", "torn", "restored backup"])
def test_tombstones_survive_their_file_and_a_restored_database(
    loss: str, env: dict[str, str], home: wires.Home, tmp_path: Path
) -> None:
    build(env)
    store = store_of(env)
    database = store / "refined" / "refined.sqlite"
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    backup = database.read_bytes()
    run(env, "forget", "--match", MARK, "--yes")
    left = turns_in(store)
    stones = store / tombstones.NAME
    assert stones.stat().st_mode & 0o777 == 0o600
    if loss == "lost":
        stones.unlink()
    elif loss == "torn":
        stones.write_bytes(stones.read_bytes()[:40])
    else:
        for path in database.parent.glob("refined.sqlite*"):
            path.unlink()
        database.write_bytes(backup)
    run(env, "rebuild")
    assert traces(store) == [] and turns_in(store) == left


def test_with_neither_file_nor_copy_nothing_is_read(env: dict[str, str]) -> None:
    build(env)
    store = store_of(env)
    run(env, "forget", "--match", MARK, "--yes")
    (store / tombstones.NAME).write_bytes(b"{")
    for path in (store / "refined").glob("refined.sqlite*"):
        path.unlink()
    result = pipeline(env, "index", "--workspace", CWD)
    assert result.code == 4 and "what was forgotten" in result.err


def test_a_writer_with_the_old_dictionary_goes_on_with_the_new_one(tmp_path: Path) -> None:
    from pipeline.forgetting import Request, forget, plan
    from pipeline.report import Report
    from pipeline.store.database import open_database
    from pipeline.store.layout import Layout
    from pipeline.store.turns import bodies
    from pipeline.workers import Workers
    from tests.pipeline.store_cases import KEY, inventory

    made = wires.Home(tmp_path / "home", seed=3)
    session = made.session(CWD, at=START)
    for number in range(codec.SAMPLES + 60):
        text = f"question {number} about {MARK if number % 50 == 7 else 'vaults'} and module_{number}"
        session.main.turn(text, say(f"answer {number}"), gap=1000)
    made.write()
    found = inventory(tmp_path / "home")
    path = tmp_path / "store" / "refined" / "refined.sqlite"

    async def work() -> None:
        from pipeline.catchup import catch_up

        workers = Workers(1)
        async with open_database(path) as first, open_database(path) as second:
            await catch_up(first, found.sessions, key=KEY, workers=workers, report=Report())
            await catch_up(second, found.sessions, key=KEY, workers=workers, report=Report())
            old = second.dictionary or first.dictionary
            wanted = await plan(first, Layout(tmp_path / "store"), Request(match=MARK), now=START + DAY)
            await forget(first, Layout(tmp_path / "store"), wanted, workers=workers)
            assert first.dictionary not in (None, old)
            ids = [row[0] for row in await second.rows("SELECT id FROM content LIMIT 3")]
            codec._known.pop(first.dictionary or 0, None)
            codec._local.__dict__.clear()
            assert all(codec.unpack(body).opening_text for body in (await bodies(second, ids)).values())
            session.main.turn("one more", say("yes"), gap=1000)
            made.write()
            await catch_up(second, found.sessions, key=KEY, workers=workers, report=Report())
            assert second.dictionary == first.dictionary

    anyio.run(work)
    assert traces(tmp_path / "store") == []


@pytest.mark.parametrize("match", [MARK, "raised the vault"])
def test_a_fold_under_way_elsewhere_brings_nothing_back(match: str, home: wires.Home, tmp_path: Path) -> None:
    """The wire is folded, then its turn is forgotten by another process, then the fold's rows are to be written."""
    from pipeline.catchup import catch_up
    from pipeline.forgetting import Request, forget, plan
    from pipeline.report import Report
    from pipeline.store.database import open_database
    from pipeline.store.layout import Layout
    from pipeline.workers import Workers
    from tests.pipeline.store_cases import KEY, inventory

    path = tmp_path / "store" / "refined" / "refined.sqlite"
    layout = Layout(tmp_path / "store")

    class Slow(Workers):
        """Lets another process forget after each fold, before its rows are written."""

        asked = False

        async def run(self, work: Any, argument: Any) -> Any:
            found = await super().run(work, argument)
            if not self.asked and type(argument).__name__ == "FoldJob":
                self.asked = True
                async with open_database(path) as other:
                    wanted = await plan(other, layout, Request(match=match), now=START + 90 * DAY)
                    assert wanted.places
                    await forget(other, layout, wanted, workers=Workers(1))
            return found

    async def work() -> None:
        found = inventory(home.root)
        async with open_database(path) as database:
            await catch_up(database, found.sessions, key=KEY, workers=Workers(1), report=Report())
            async with database.transaction():  # as after an update of this program
                await database.execute("UPDATE source SET head_hash=NULL, offset=0, state=NULL, complete=0")
            workers = Slow(1)
            await catch_up(database, found.sessions, key=KEY, workers=workers, report=Report())
            assert workers.asked

    anyio.run(work)
    assert traces(tmp_path / "store", match.split()[0]) == []


def test_a_theme_being_built_meanwhile_tells_nothing_of_it(
    env: dict[str, str], home: wires.Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipeline import theming

    build(env)
    gather = theming.gather
    asked: list[bool] = []

    async def slow(*arguments: Any, **named: Any) -> Any:
        found = await gather(*arguments, **named)
        if not asked:
            asked.append(True)
            command = [
                sys.executable,
                "-m",
                "pipeline.cli",
                "forget",
                "--match",
                MARK,
                "--yes",
                "--workspace",
                CWD,
            ]
            done = await anyio.run_process(command, env={**os.environ, **env})
            assert done.returncode == 0
        return found

    monkeypatch.setattr(theming, "gather", slow)
    run(env, "run", "--theme", "vault", "--keywords", "salary", "--jobs", "1")
    assert asked and traces(store_of(env)) == []
    theme = orjson.loads((store_of(env) / "themes" / "vault.json").read_bytes())
    assert theme["turns"] and (home.sessions[0].session_id, 1) not in [
        (turn["sessionId"], turn["turnId"]) for turn in theme["turns"]
    ]


def test_a_kill_at_any_instant_leaves_before_or_after(
    env: dict[str, str], home: wires.Home, tmp_path: Path
) -> None:
    build(env)
    whole = tmp_path / "store"
    name = store_of(env).name
    arguments = ("forget", "--match", MARK, "--yes")
    template = tmp_path / "template"
    shutil.copytree(whole, template)
    began = time.monotonic()
    run(env, *arguments)
    after, duration = turns_in(whole / name), time.monotonic() - began
    rng = random.Random(2)
    for number in range(10):
        store = tmp_path / f"killed-{number}"
        shutil.copytree(template, store)
        process = subprocess.Popen(
            [sys.executable, "-m", "pipeline.cli", *arguments, "--workspace", CWD],
            env={**os.environ, **env, "MEMORY_STORE_ROOT": str(store)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            process.wait(timeout=0.35 + rng.uniform(0.0, 1.2) * duration)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        begun = (store / name / tombstones.NAME).exists()
        run(env | {"MEMORY_STORE_ROOT": str(store)}, "index")
        if begun:
            assert turns_in(store / name) == after and traces(store) == []
        else:
            assert turns_in(store / name) == turns_in(template / name)
        assert not unfinished(store / name)


def unfinished(store: Path) -> bool:
    path = store / tombstones.NAME
    return path.exists() and bool(orjson.loads(path.read_bytes()).get("pending"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing named"),
        (("--everything", "--theme", "x"), "name one thing"),
        (("--turn", "session_nope", "1"), "knows no turn"),
        (("--session", "session_nope"), "no session"),
        (("--match", "a"), "too short"),
        (("--theme", "nope"), "no theme"),
        (("--since", "2026-02-02", "--until", "2026-01-01"), "ends before"),
        (("--turn", "s", "one"), "no turn number"),
    ],
)
def test_bad_requests_are_exit_2(arguments: tuple[str, ...], message: str, env: dict[str, str]) -> None:
    run(env, "index")
    result = pipeline(env, "forget", *arguments, "--workspace", CWD)
    assert result.code == 2 and message in result.err and result.out == ""


def test_a_store_outlives_its_sessions_and_can_still_forget(env: dict[str, str], home: wires.Home) -> None:
    build(env)
    shutil.rmtree(home.root / "sessions")
    run(env, "forget", "--everything", "--yes")
    assert traces(store_of(env)) == [] and turns_in(store_of(env)) == []
