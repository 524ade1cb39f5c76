"""Planted secrets reach no file under the store and no command's output; what only looks like one is kept."""

from __future__ import annotations

import base64
import json
import os
import pty
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

from pipeline.store import codec
from stages.redact import Redactor
from tests.leaks import CWD, PLACES, Leaks, home_with_lookalikes, home_with_secrets
from tests.pipeline.command_line import Result, environment, pipeline
from tests.secrets import Secret, not_yet

SEED = 11
THEME = "quartermaster"
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("turns", "--json"),
    ("turns",),
    ("index", "--json"),
    ("run", "--all", "--theme", THEME, "--keywords", THEME, "--jobs", "1"),
    ("run", "--all", "--jobs", "1", "--json"),
    ("sessions", "--json"),
    ("sessions",),
    ("status", "--json"),
    ("status",),
    ("themes", "--json"),
    ("themes",),
    ("discover",),
    ("search", THEME, "--limit", "100", "--detail", "full", "--json"),
    ("search", "authorization password token", "--limit", "100", "--detail", "full"),
    ("doctor",),
    ("config",),
    ("rebuild", "--jobs", "1"),
)
"""What is run over the home, in this order, with --verbose."""


# --- where a secret could be -------------------------------------------------------------------------------


def database_text(path: Path) -> bytes:
    """A database as readers see it: every value of every table, bodies expanded, and the terms of its index."""
    codec.look_in(path)
    parts: list[bytes] = []
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
        for name, made in tables:
            for row in connection.execute(f'SELECT * FROM "{name}"'):
                parts += [_plain(value) for value in row]
            if "fts5(" in (made or ""):
                connection.execute(
                    f"CREATE VIRTUAL TABLE temp.terms USING fts5vocab('main', '{name}', 'row')"
                )
                parts += [term.encode() for (term,) in connection.execute("SELECT term FROM temp.terms")]
                connection.execute("DROP TABLE temp.terms")
    return b"\n".join(parts)


def _plain(value: object) -> bytes:
    if not isinstance(value, bytes):
        return str(value).encode()
    with suppress(ValueError):
        return codec.expand(value)
    return value


def files_with_leaks(leaks: Leaks, root: Path) -> dict[str, list[str]]:
    """The files below ``root`` that hold a secret, in their bytes or their names, and which kinds."""
    found = {}
    for path in sorted(root.rglob("*")):
        data = str(path.relative_to(root)).encode()
        if path.is_file():
            data += b"\n" + path.read_bytes()
            if data.find(b"SQLite format 3\0") >= 0 and not path.name.endswith("-wal"):
                data += b"\n" + database_text(path)
        if kinds := leaks(data):
            found[str(path.relative_to(root))] = kinds
    return found


def on_a_terminal(env: Mapping[str, str], *arguments: str) -> bytes:
    """What `pipeline …` shows on a terminal, its progress bars too."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "pipeline.cli", *arguments]
    shown = {**env, "TERM": "xterm-256color", "COLUMNS": "160"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=shown) as process:
        os.close(theirs)
        data = b"".join(_until_closed(ours))
    os.close(ours)
    assert process.returncode == 0, data
    return data


def _until_closed(terminal: int) -> Iterator[bytes]:
    with suppress(OSError):  # Linux says so when the other end is closed
        while data := os.read(terminal, 65_536):
            yield data


# --- secrets -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ran:
    """A store made of a home with secrets, and all that was said while it was made and read."""

    planted: tuple[Secret, ...]
    leaks: Leaks
    root: Path
    env: dict[str, str]
    results: dict[tuple[str, ...], Result]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    root = tmp_path_factory.mktemp("planted")
    planted = home_with_secrets(root / "home", SEED, shifts=(0, 7))
    env = environment(root / "home", root / "store")
    results = {}
    for arguments in COMMANDS:
        scope = () if arguments[0] == "config" else ("--workspace", CWD)
        results[arguments] = pipeline(env, "--verbose", *arguments, *scope)
    return Ran(planted, Leaks(planted), root, env, results)


def whole_turns(env: Mapping[str, str], *form: str) -> Iterator[str]:
    """Every turn of a home as `pipeline show` shows it."""
    for row in pipeline(env, "turns", "--json", "--workspace", CWD).lines:
        shown = pipeline(env, "show", row["sessionId"], str(row["turnId"]), "--agent", row["agentId"], *form)
        assert shown.code == 0 and shown.out, shown.err
        yield shown.out + shown.err


def test_enough_is_planted(ran: Ran) -> None:
    assert len(ran.planted) >= 120 and len({secret.kind for secret in ran.planted}) >= 80
    data = b"".join(path.read_bytes() for path in ran.root.rglob("wire.jsonl"))
    assert set(ran.leaks(data)) == {secret.kind for secret in ran.planted}


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_no_command_says_a_secret(ran: Ran, arguments: tuple[str, ...]) -> None:
    result = ran.results[arguments]
    assert result.code == 0 and result.out + result.err, result.err
    assert ran.leaks(result.out + result.err) == []


def test_no_report_tells_a_secret(ran: Ran) -> None:
    for form in ("text", "md", "json"):
        told = pipeline(ran.env, "--verbose", "trace", THEME, "--workspace", CWD, "--format", form)
        assert told.code == 0 and told.out.lower().count(THEME) > 10
        assert ran.leaks(told.out + told.err) == []


@pytest.mark.parametrize("form", ["text", "--json"])
def test_no_turn_shows_a_secret(ran: Ran, form: str) -> None:
    shown = list(whole_turns(ran.env, *([] if form == "text" else [form])))
    assert len(shown) >= len(ran.planted)
    assert ran.leaks("\n".join(shown)) == []


def test_a_search_for_secrets_finds_none(ran: Ran, tmp_path: Path) -> None:
    """The answer repeats the question, so what is looked at is the hits."""
    queries = tmp_path / "queries.txt"
    asked = [f'"{secret.values[-1]}" {THEME}' for secret in ran.planted]
    queries.write_text("\n".join(asked) + "\n", encoding="utf-8")
    answers = pipeline(ran.env, "search", "--queries", str(queries), "--json", "--workspace", CWD).lines
    assert len(answers) == len(asked)
    assert ran.leaks(json.dumps([answer["hits"] for answer in answers])) == []


def test_no_file_of_the_store_holds_a_secret(ran: Ran) -> None:
    kept = [path for path in (ran.root / "store").rglob("*") if path.is_file()]
    assert len(kept) > 3 and any(path.suffix == ".sqlite" for path in kept)
    assert files_with_leaks(ran.leaks, ran.root / "store") == {}


def test_every_secret_in_every_place_stays_out_of_the_store(tmp_path: Path) -> None:
    """The wires are read in three pieces, as they grow: what a reader keeps between two is looked at too."""
    planted = home_with_secrets(tmp_path / "home", SEED + 1, shifts=range(len(PLACES)))
    env = environment(tmp_path / "home", tmp_path / "store")
    wires = {path: path.read_bytes() for path in (tmp_path / "home").rglob("wire.jsonl")}
    turns = 0
    for share in (0.3, 0.7, 1.0):
        for path, data in wires.items():
            path.write_bytes(data[: int(len(data) * share)])
        report = pipeline(env, "run", "--all", "--jobs", "1", "--json", "--workspace", CWD).json
        assert report["turns"] > 100 and report["failures"] == []
        assert files_with_leaks(Leaks(planted), tmp_path / "store") == {}
        turns += report["turns"]
    assert turns > 1_000


def test_progress_on_a_terminal_shows_no_secret(ran: Ran, tmp_path: Path) -> None:
    env = {**ran.env, "MEMORY_STORE_ROOT": str(tmp_path / "store")}
    arguments = ("--verbose", "run", "--all", "--theme", THEME, "--keywords", THEME, "--workspace", CWD)
    shown = on_a_terminal(env, *arguments)
    assert b"\x1b[" in shown and THEME.encode() in shown
    assert ran.leaks(shown) == []
    assert files_with_leaks(ran.leaks, tmp_path / "store") == {}


def test_secrets_are_counted_by_kind(ran: Ran) -> None:
    counts = ran.results["index", "--json"].json["redacted"]
    assert sum(counts.values()) >= len(ran.planted) and all(count > 0 for count in counts.values())
    assert len(counts) >= 20 and all(re.fullmatch(r"[a-z0-9-]{3,30}", kind) for kind in counts)
    assert ran.leaks(json.dumps(counts)) == []


# --- what slips through as yet -----------------------------------------------------------------------------


@pytest.mark.parametrize("secret", not_yet(SEED), ids=lambda secret: secret.kind)
def test_what_no_rule_knows_yet(secret: Secret) -> None:
    assert Leaks([secret])(secret.text)
    if Leaks([secret])(Redactor(b"key")(secret.text)):
        pytest.skip("not yet")
    pytest.fail("mended: move its row from NOT_YET to the others, which are planted everywhere")


# --- look-alikes -------------------------------------------------------------------------------------------


def test_what_only_looks_like_a_secret_is_kept_whole(tmp_path: Path) -> None:
    planted = home_with_lookalikes(tmp_path / "home", SEED)
    assert len(set(planted)) >= 60
    env = environment(tmp_path / "home", tmp_path / "store")
    run = ("run", "--all", "--theme", THEME, "--keywords", THEME, "--jobs", "1", "--json")
    report = pipeline(env, *run, "--workspace", CWD).json
    assert report["redacted"] == {}
    (database,) = (tmp_path / "store").rglob("*.sqlite")
    stored = database_text(database).decode("utf-8", "replace")
    assert lost(planted, stored) == []
    assert lost(planted, "\n".join(whole_turns(env, "--json"))) == []
    listed = pipeline(env, "turns", "--json", "--workspace", CWD).out
    assert lost([text for place, text in enumerate(planted) if place % 3 == 0], listed) == []


def lost(texts: Sequence[str], kept: str) -> list[str]:
    """Those that are not in ``kept``, as they are or in JSON, or in JSON within JSON (arguments of a tool)."""
    return [text for text in texts if not any(form in kept for form in _escaped(text))]


def _escaped(text: str) -> tuple[str, str, str]:
    once = json.dumps(text, ensure_ascii=False)[1:-1]
    return text, once, json.dumps(once, ensure_ascii=False)[1:-1]


# --- how the search is made --------------------------------------------------------------------------------


@pytest.mark.parametrize("around", ["{}", "a{}", "ab{}c", "abc{}d/"])
def test_a_value_is_found_in_every_form(around: str) -> None:
    value = "Ab3/dE+6gH9 =kL2"
    leaks = Leaks([Secret("x", "", (value,))])
    plain = around.format(value)
    for coded in (base64.b64encode, base64.urlsafe_b64encode):
        assert leaks(coded(plain.encode())) == ["x"]
    percent = quote(plain, safe="")
    small = re.sub("%..", lambda escape: escape[0].lower(), percent)
    for text in (plain, plain.lower(), json.dumps(plain), percent, small, percent.lower()):
        assert leaks(text) == ["x"], text
    assert leaks(around.format(value[:-1])) == []


def test_a_value_is_found_inside_a_database(tmp_path: Path) -> None:
    path = tmp_path / "any.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE kept(body BLOB)")
        connection.execute("INSERT INTO kept VALUES(?)", (codec.compress(b"x Ab3dE6gH9kL2 y"),))
        connection.commit()
    assert files_with_leaks(Leaks([Secret("x", "", ("Ab3dE6gH9kL2",))]), tmp_path) == {path.name: ["x"]}
