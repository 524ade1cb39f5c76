"""Planted secrets reach no file under the store and no command's output."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from pipeline.store import codec
from tests.pipeline.command_line import environment, pipeline
from tests.secrets import Secret, home_with_secrets

CWD = "/home/dev/shop"


def leaks(planted: tuple[Secret, ...], data: bytes) -> list[str]:
    """Kinds of which a value stands in ``data``, also in lower case (index terms are folded)."""
    return [
        secret.kind
        for secret in planted
        for value in secret.values
        if value.encode() in data or value.lower().encode() in data
    ]


def everything_in(path: Path) -> bytes:
    """A database's text as readers see it: bodies are compressed, index terms are split."""
    parts = []
    connection = sqlite3.connect(path)
    try:
        for (body,) in connection.execute(
            "SELECT body FROM content UNION ALL SELECT body FROM refined"
            " UNION ALL SELECT state FROM source WHERE state IS NOT NULL"
        ):
            parts.append(codec.expand(body))
        for table in (
            "session",
            "source",
            "occurrence",
            "entity",
            "mention",
            "dictionary",
            "kmp_meta",
            "turn_fts_data",
        ):
            for row in connection.execute(f"SELECT * FROM {table}"):
                parts += [value if isinstance(value, bytes) else str(value).encode() for value in row]
        connection.execute("CREATE VIRTUAL TABLE temp.terms USING fts5vocab('main', 'turn_fts', 'row')")
        parts += [row[0].encode() for row in connection.execute("SELECT term FROM temp.terms")]
    finally:
        connection.close()
    return b"\n".join(parts)


def test_no_planted_secret_is_kept_or_shown(tmp_path: Path) -> None:
    planted = home_with_secrets(tmp_path / "home", 11, cwd=CWD)
    assert len(planted) >= 40
    env = environment(tmp_path / "home", tmp_path / "store")
    outputs = []
    for arguments in (
        ("turns", "--json"),
        ("turns",),
        ("run", "--all", "--theme", "quartermaster", "--keywords", "quartermaster", "--jobs", "1", "--json"),
        ("index",),
        ("sessions", "--json"),
        ("status", "--json"),
        ("themes", "--json"),
        ("discover",),
    ):
        result = pipeline(env, *arguments, "--workspace", CWD)
        assert result.code == 0, result.err
        outputs += [result.out, result.err]
    for form in ("text", "md", "json"):
        outputs.append(pipeline(env, "trace", "quartermaster", "--workspace", CWD, "--format", form).out)
    for row in pipeline(env, "turns", "--json", "--workspace", CWD).lines:
        shown = pipeline(env, "show", row["sessionId"], str(row["turnId"]), "--json")
        assert shown.code == 0
        outputs.append(shown.out)
    assert leaks(planted, "\n".join(outputs).encode()) == []
    kept = [path for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert len(kept) > 3
    for path in kept:
        assert leaks(planted, path.read_bytes()) == [], path
        if path.name == "refined.sqlite":
            assert leaks(planted, everything_in(path)) == []
