"""The bilingual corpora: bilingual.txt and clinic.txt as turns, refined like any other, and the labels in them.

``== id | date | title`` begins a session; ``U`` is what the person wrote (``U[sync]``: a member of the
theme ``sync``; ``U[sync?]``: acceptable either way), ``A`` the answer, ``W``/``R`` a file written or read,
``$`` a command, ``!`` its failing output.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from stages.model import FileTouch, Step, ToolCall, Turn
from tests.quality.themes.corpus import CorpusTurn, refined_session

HERE = Path(__file__).parent
THEMES = {
    "bilingual": {
        "sync": ("note-sync-conflicts", ["sync", "同步", "conflict"]),
        "pay": ("payment-timeouts", ["支付", "timeout", "billing"]),
    },
    "clinic": {
        "wait": ("waiting-queue", ["排队", "queue", "叫号"]),
        "find": ("record-search", ["search", "索引", "index"]),
    },
}
"""The corpora, each with its tags and what a person would type: a theme's name and seeds."""
_USER = re.compile(r"U(?:\[(\w+)(\??)\])? (.*)")
MINUTE = 60_000


@dataclass(slots=True)
class _Said:
    user: str
    theme: str = ""
    either: bool = False
    answer: str = ""
    calls: list[ToolCall] = field(default_factory=list)


def bilingual_corpus(name: str = "bilingual") -> list[CorpusTurn]:
    """Every turn of ``<name>.txt``, by session and position."""
    found: list[CorpusTurn] = []
    for session_id, date, title, said in _sessions(name):
        began = int(datetime.fromisoformat(date).replace(hour=9, tzinfo=UTC).timestamp() * 1000)
        turns = [_turn(position, each, began) for position, each in enumerate(said)]
        found += refined_session(session_id, turns, f"/home/dev/{name}", title)
    return found


def labels_json(corpus: str = "bilingual") -> str:
    """The labels in the corpus, as the text of ``labels_<corpus>.json``."""
    rows = []
    for tag, (name, seeds) in THEMES[corpus].items():
        hits = [
            (each.either, {"sessionId": session_id, "turnId": number})
            for session_id, _, _, said in _sessions(corpus)
            for number, each in enumerate(said)
            if each.theme == tag
        ]
        rows.append(
            {
                "theme": name,
                "seeds": seeds,
                "members": [ref for either, ref in hits if not either],
                "either": [ref for either, ref in hits if either],
            }
        )
    return json.dumps({"corpus": corpus, "themes": rows}, ensure_ascii=False, indent=1) + "\n"


def _sessions(name: str) -> list[tuple[str, str, str, list[_Said]]]:
    found: list[tuple[str, str, str, list[_Said]]] = []
    for line in (HERE / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            session_id, date, title = (part.strip() for part in line[3:].split("|"))
            found.append((session_id, date, title, []))
        elif match := _USER.match(line):
            found[-1][3].append(_Said(match[3], match[1] or "", bool(match[2])))
        elif line and not line.startswith("#"):
            _add(found[-1][3][-1], line[0], line[2:])
    return found


def _add(said: _Said, mark: str, text: str) -> None:
    number = f"call_{len(said.calls)}"
    if mark == "A":
        said.answer = text
    elif mark == "W":
        touch = FileTouch(text, "edit", number)
        said.calls.append(ToolCall(number, "Edit", json.dumps({"path": text}), "ok", files=(touch,)))
    elif mark == "R":
        touch = FileTouch(text, "read", number)
        said.calls.append(ToolCall(number, "Read", json.dumps({"path": text}), "ok", files=(touch,)))
    elif mark == "$":
        said.calls.append(ToolCall(number, "Bash", json.dumps({"command": text}), "ok", command=text))
    elif mark == "!":
        last = said.calls.pop()
        said.calls.append(ToolCall(last.id, last.name, last.args, "error", error=text, command=last.command))


def _turn(position: int, said: _Said, began: int) -> Turn:
    at = began + position * 6 * MINUTE
    steps = (Step(1, (), tuple(said.calls)), Step(2, (said.answer,), ()))
    return Turn(
        position=position,
        turn_id=position,
        origin="user",
        opening_text=said.user,
        user_text=said.user,
        steps=steps,
        status="completed",
        started_at=at,
        ended_at=at + 3 * MINUTE,
        opener_digest=f"{position:08x}",
    )
