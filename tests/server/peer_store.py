"""A store as the compatible TypeScript server leaves it, quirks included (docs: store formats)."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

STAMP = "2026-11-11T08:20:00.000Z"


def write(path: Path, text: str, mtime_ms: int = 1_796_033_702_123) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    os.utime(path, ns=(mtime_ms * 1_000_000, mtime_ms * 1_000_000))


def memory(key: str, title: str, tags: list[str], body: str) -> str:
    """Single-quoted scalars, apostrophes doubled (and doubled again at each write), block lists."""
    quoted = "\n".join(f"  - '{tag}'" for tag in tags)
    head = f"key: '{key}'\ntitle: '{title}'\ntags:\n{quoted}\ncreatedAt: '{STAMP}'\nupdatedAt: '{STAMP}'"
    return f"---\n{head}\n---\n\n{body}\n"


def peer_store(store: Path, *, known_session: str, lost_session: str) -> None:
    """Memories, notes, essence, a ``3-kv`` index, two themes, a kept search and refined rows.

    ``known_session`` has a wire; of ``lost_session`` only the refined rows are left.
    """
    write(
        store / "memory/decisions/auth.md",
        memory("auth", "We don''''t use localStorage", ["auth", "决定"], "HttpOnly cookie."),
    )
    write(
        store / "memory/knowledge/front end.md",
        memory("front_end", "Front end", ["ui"], "React.\n\n> quoted"),
    )
    write(store / "memory/端口.md", memory("端口", "端口约定", ["net"], "开发端口 8081"), 1_796_033_702_124)
    write(store / "notes/todo.md", memory("todo", "To do", ["scratch"], "renew the certificate"))
    write(
        store / "essence/essence.md",
        f"---\nkey: essence\ntitle: 'Essence'\ntags:\n  - 'essence'\nupdatedAt: '{STAMP}'\n---\n\n"
        "- HttpOnly cookie\n> 来源：memory/decisions/auth\n",
    )
    (store / "memory" / "rules").mkdir()
    index = {
        "version": "3-kv",
        "meta": {"lastSyncAt": STAMP, "structureHash": "0" * 32},
        "index": {
            "memory/": {"comment": "完整记忆索引"},
            "memory/decisions/": {"comment": "关键决策"},
            "memory/decisions/auth.md": {"title": "We don't use localStorage", "tags": ["auth"]},
            "memory/gone.md": {"title": "Gone", "tags": []},
        },
    }
    write(store / "index.json", json.dumps(index, ensure_ascii=False, indent=2))
    theme = {
        "theme": "login-tokens", "displayName": "login-tokens", "createdAt": STAMP, "updatedAt": STAMP,
        "turns": [
            {"sessionId": known_session, "turnId": 1, "timestamp": "2026-11-30T00:00:00.000Z"},
            {"sessionId": lost_session, "turnId": 0, "timestamp": STAMP},
        ],
        "memories": [{"key": "auth", "folder": "memory/decisions", "title": "auth", "timestamp": STAMP}],
    }  # fmt: skip
    write(store / "themes/login-tokens.json", json.dumps(theme, ensure_ascii=False, indent=2))
    view = {
        "query": "cookie", "createdAt": STAMP, "totalMatches": 3, "totalRefined": 1, "gapSeconds": 90, "maxClusterSize": 15,
        "skippedSessions": 0, "clusters": [{"sessionId": known_session, "hitTurnId": 1, "memberCount": 1, "refinedCount": 1,
                                            "members": [{"sessionId": known_session, "turnId": 1}]}],
    }  # fmt: skip
    write(store / "searches/search-0123456789ab.json", json.dumps(view))
    write(
        store.parent / "mcp-config.json", json.dumps({"version": 1, "contextWindow": {"detailedRounds": 3}})
    )
    refined(store / "refined" / "refined.sqlite", known_session, lost_session)


def refined(path: Path, known_session: str, lost_session: str) -> None:
    path.parent.mkdir(parents=True)
    connection = sqlite3.connect(path)
    connection.execute(
        "CREATE TABLE refined_turns(session_id TEXT, turn_id INTEGER, timestamp TEXT, summary TEXT, facts TEXT,"
        " notes TEXT, entities TEXT, categories TEXT, PRIMARY KEY(session_id, turn_id))"
    )
    entities = json.dumps({"files": [], "tools": ["Read"], "errors": []})
    for session, turn, summary in (
        (known_session, 1, "claimed: cookie instead of localStorage"),
        (lost_session, 0, "claimed: chose the payment provider"),
    ):
        connection.execute(
            "INSERT INTO refined_turns VALUES(?,?,?,?,?,?,?,?)",
            (session, turn, STAMP, summary, json.dumps(["a fact"]), "[]", entities, json.dumps(["code"])),
        )
    connection.commit()
    connection.close()
