"""The doctor tells the truth on each kind of damage, and mends what is safe to mend."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from pipeline.store.memories import Memories
from pipeline.store.tombstones import NAME
from tests import wires
from tests.pipeline.command_line import environment, pipeline
from tests.pipeline.test_forgetting import CWD, MARK, START, build, run, store_of, traces, turns_in, vault


@pytest.fixture
def home(tmp_path: Path) -> wires.Home:
    return vault(tmp_path / "home")


@pytest.fixture
def env(tmp_path: Path, home: wires.Home) -> dict[str, str]:
    env = environment(home.root, tmp_path / "store")
    build(env)
    return env


def examine(env: dict[str, str], *more: str) -> tuple[int, list[dict[str, Any]]]:
    result = pipeline(env, "doctor", "--json", *more, "--workspace", CWD)
    assert result.code in (0, 4), result.err
    value = result.json
    assert value["ok"] is (result.code == 0)
    findings: list[dict[str, Any]] = value["workspaces"][0]["findings"]
    return result.code, findings


def worst(findings: list[dict[str, Any]], check: str) -> dict[str, Any]:
    order = ("problem", "warning", "note", "ok")
    found: dict[str, Any] = min(
        (each for each in findings if each["check"] == check), key=lambda each: order.index(each["level"])
    )
    return found


def database(env: dict[str, str]) -> Path:
    return store_of(env) / "refined" / "refined.sqlite"


def sql(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    try:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    finally:
        connection.close()


def test_a_sound_store_is_told_to_be_sound_and_nothing_is_written(env: dict[str, str]) -> None:
    files = {
        path: path.stat().st_mtime_ns for path in store_of(env).rglob("*") if path.suffix in (".json", ".md")
    }
    before = turns_in(store_of(env))
    code, findings = examine(env, "--deep")
    assert code == 0 and not [each for each in findings if each["level"] in ("problem", "warning")], findings
    checks = {each["check"] for each in findings}
    assert checks >= {
        "homes",
        "key",
        "disk",
        "permissions",
        "database",
        "index",
        "bodies",
        "wires",
        "secrets",
    }
    text = pipeline(env, "doctor", "--workspace", CWD)
    assert text.code == 0 and "all is well" in text.out and "\x1b" not in text.out
    assert turns_in(store_of(env)) == before
    assert files == {path: path.stat().st_mtime_ns for path in files}


@pytest.mark.skipif(os.name == "nt", reason="modes mean nothing there")
def test_modes_are_named_and_mended(env: dict[str, str]) -> None:
    store = store_of(env)
    store.chmod(0o755)
    (store / "themes" / "vault.json").chmod(0o644)
    code, findings = examine(env)
    assert code == 4 and worst(findings, "permissions")["level"] == "problem"
    code, findings = examine(env, "--fix")
    assert code == 0 and worst(findings, "permissions")["fixed"]
    assert stat.S_IMODE(store.stat().st_mode) == 0o700
    assert stat.S_IMODE((store / "themes" / "vault.json").stat().st_mode) == 0o600


def break_pages(path: Path) -> None:
    sql(path, "PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA journal_mode=DELETE")
    size = path.stat().st_size
    with path.open("r+b") as file:
        for at in range(3 * 16_384, size, 16_384):
            file.seek(at)
            file.write(b"\xff" * 64)


def test_a_damaged_database_is_a_problem_and_stays_where_it_is(env: dict[str, str]) -> None:
    break_pages(database(env))
    before = database(env).read_bytes()
    code, findings = examine(env, "--fix")
    found = worst(findings, "database")
    assert code == 4 and found["level"] == "problem" and "rebuild" in found["hint"]
    assert database(env).read_bytes() == before
    database(env).write_bytes(b"no database at all" * 1000)
    code, findings = examine(env)
    assert code == 4 and worst(findings, "database")["level"] == "problem"


def test_a_newer_store_is_left_alone(env: dict[str, str]) -> None:
    sql(database(env), "UPDATE kmp_meta SET value=99 WHERE key='schema'")
    code, findings = examine(env, "--fix")
    assert code == 4 and "later version" in worst(findings, "database")["text"]


@pytest.mark.parametrize(
    ("check", "statements"),
    [
        ("index", ("INSERT INTO turn_fts(turn_fts) VALUES('delete-all')",)),
        ("index", ("DELETE FROM turn_fts_data WHERE id>10",)),
        ("turns", ("DELETE FROM refined WHERE content_id=1", "DELETE FROM content WHERE id=2")),
        ("turns", ("UPDATE content SET shown=99999 WHERE id=1",)),
        ("turns", ("INSERT INTO content(digest, body, shown) VALUES(x'00', x'28b52ffd2000', NULL)",)),
        ("bodies", ("UPDATE content SET body=x'deadbeef00112233445566778899aabbccddeeff' WHERE id=3",)),
        ("checkpoints", ("UPDATE source SET state=x'00' WHERE id=1",)),
        ("checkpoints", ("UPDATE source SET state=NULL WHERE id=1",)),
        ("redaction", ("UPDATE kmp_meta SET value=0 WHERE key='rules'",)),
        ("index", ("UPDATE kmp_meta SET value=0 WHERE key='tokenizer'",)),
    ],
)
def test_damage_inside_the_database_is_found_and_mended(
    check: str, statements: tuple[str, ...], env: dict[str, str]
) -> None:
    before = turns_in(store_of(env))
    sql(database(env), *statements)
    code, findings = examine(env)
    found = worst(findings, check)
    assert found["level"] in ("problem", "warning") and found["fix"], findings
    assert code == (4 if found["level"] == "problem" else 0)
    code, findings = examine(env, "--fix")
    assert worst(findings, check)["fixed"], findings
    run(env, "run", "--all", "--jobs", "1")
    code, findings = examine(env)
    assert code == 0 and worst(findings, check)["level"] == "ok" if check != "checkpoints" else code == 0
    assert turns_in(store_of(env)) == before
    assert pipeline(env, "search", "vault", "--workspace", CWD).code == 0


def test_wires_that_are_behind_rewritten_or_gone_are_facts(env: dict[str, str], home: wires.Home) -> None:
    import shutil

    home.sessions[1].main.turn("more", say_nothing(), gap=1000)
    home.write()
    wire = next(home.sessions[2].folder.rglob("wire.jsonl"))
    wire.write_bytes(wire.read_bytes().replace(b"vault", b"VAULT"))
    shutil.rmtree(home.sessions[3].folder)
    code, findings = examine(env)
    texts = " ".join(each["text"] for each in findings if each["check"] == "wires")
    assert code == 0 and "not read yet" in texts and "rewritten" in texts and "gone" in texts
    run(env, "index")
    texts = " ".join(each["text"] for each in examine(env)[1] if each["check"] == "wires")
    assert "all read" in texts and "rewritten" not in texts


def say_nothing() -> Any:
    from tests.wires import say

    return say("Nothing.")


def test_skipped_lines_are_named_by_reason(env: dict[str, str], home: wires.Home) -> None:
    wire = next(home.sessions[2].folder.rglob("wire.jsonl"))
    with wire.open("ab") as file:
        file.write(b"{torn\n" + b'{"type":"of.the.future"}\n')
    run(env, "index")
    texts = " ".join(each["text"] for each in examine(env)[1])
    assert "corrupt-line 1" in texts and "unknown:of.the.future 1" in texts


def test_files_that_people_and_killed_writers_left(env: dict[str, str]) -> None:
    store = store_of(env)
    memories = Memories(store, now=lambda: START, redact=str)
    memories.remember("good", "fine", folder="decisions")
    (store / "memory" / "decisions" / "bad.md").write_text("---\ntitle: [x\n---\nbody\n", encoding="utf-8")
    (store / "themes" / "torn.json").write_text('{"theme": "torn", "turns": [', encoding="utf-8")
    leftover = store / "themes" / ".tmp-1-aabbcc"
    leftover.write_bytes(b"x")
    os.utime(leftover, (1, 1))
    index = orjson.loads((store / "index.json").read_bytes())
    index["index"]["memory/decisions/lost.md"] = {"title": "lost", "tags": []}
    (store / "index.json").write_bytes(orjson.dumps(index))
    code, findings = examine(env)
    assert code == 4 and "torn.json" in worst(findings, "themes")["text"]
    assert "bad.md:" in worst(findings, "memories")["text"]
    assert worst(findings, "leftovers")["level"] == worst(findings, "index.json")["level"] == "warning"
    code, findings = examine(env, "--fix")
    assert code == 4 and worst(findings, "leftovers")["fixed"] and worst(findings, "index.json")["fixed"]
    assert not leftover.exists() and (store / "themes" / "torn.json").exists()
    assert "memory/decisions/lost.md" not in orjson.loads((store / "index.json").read_bytes())["index"]
    assert worst(examine(env)[1], "index.json")["level"] == "ok"


def test_an_interrupted_forgetting_is_a_problem_and_is_finished(
    env: dict[str, str], home: wires.Home
) -> None:
    store = store_of(env)
    script = (
        "import os, pipeline.forgetting as f, pipeline.cli as c\n"
        "async def die(*_): os._exit(9)\n"
        "f._rows = die\n"
        f"c.main(['forget', '--match', '{MARK}', '--yes', '--workspace', '{CWD}'])\n"
    )
    died = subprocess.run([sys.executable, "-c", script], env={**os.environ, **env}, check=False)
    assert died.returncode == 9 and traces(store)
    code, findings = examine(env)
    assert code == 4 and "interrupted" in worst(findings, "forgotten")["text"]
    code, findings = examine(env, "--fix")
    assert code == 0 and any(each["fixed"] for each in findings if each["check"] == "forgotten")
    assert traces(store) == []
    (store / NAME).write_bytes(b"{")
    code, findings = examine(env)
    assert code == 4
    assert examine(env, "--fix")[0] == 4, "the file itself was damaged when it was looked at"
    assert examine(env)[0] == 0


def test_the_key_is_missed(env: dict[str, str]) -> None:
    key = Path(env["MEMORY_STORE_ROOT"]) / "redaction.key"
    key.unlink()
    code, findings = examine(env)
    assert code == 0 and worst(findings, "key")["level"] == "warning"
    examine(env, "--fix")
    assert key.stat().st_size == 32 and stat.S_IMODE(key.stat().st_mode) == 0o600


def test_deep_finds_what_slipped_through_names_no_value_and_mends_it(
    env: dict[str, str], home: wires.Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.wires import say

    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    home.sessions[1].main.turn(f"what about {token}?", say("Nothing."), gap=1000)
    home.write()
    with monkeypatch.context() as patch:
        patch.setattr("stages.redact.Redactor.__call__", lambda _self, text: text)
        run(env, "index", "--jobs", "1")
    assert examine(env)[0] == 0
    code, findings = examine(env, "--deep")
    found = worst(findings, "secrets")
    assert code == 4 and "github" in found["text"] and home.sessions[1].session_id in found["text"]
    assert token not in str(findings)
    assert examine(env, "--deep", "--fix")[0] == 0
    assert examine(env, "--deep")[0] == 0
    run(env, "index")
    assert traces(store_of(env), token.lower()) == []


def test_the_second_opinion_is_asked_where_it_is_installed(
    env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.doctor_deep.has_detect_secrets", lambda: False)
    texts = [each["text"] for each in examine(env, "--deep")[1] if each["check"] == "secrets"]
    assert any("not installed" in text for text in texts)
    monkeypatch.undo()
    monkeypatch.setattr("stages.redact.Redactor.__call__", lambda _self, text: text)
    from pipeline.doctor_deep import opinion

    assert opinion(
        {1: ["AKIA" + "IOSFODNN7EXAMPLQ", "[secret:aws:12345678]"], 2: ["plain words"]}
    ).keys() == {1}


def test_stores_without_sessions_and_homes_without_stores(env: dict[str, str], tmp_path: Path) -> None:
    nowhere = env | {"KIMI_CODE_HOME": str(tmp_path / "nowhere")}
    result = pipeline(nowhere, "doctor", "--all-workspaces", "--json")
    assert result.code == 0
    (space,) = result.json["workspaces"]
    assert (
        space["workspaceId"] == store_of(env).name and worst(space["findings"], "homes")["level"] == "warning"
    )
    assert pipeline(env, "doctor", "--workspace", "/home/dev/nothing").code == 2
