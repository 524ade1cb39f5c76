"""Writes the bilingual corpus (``home/``) and its labels from ``dialogues``.

    python -m tests.quality.bilingual.make

Both are committed; ``tests/test_wires.py`` checks that they are what this writes. Labels: themes as in
tests/quality/themes/README.md; ``decisions`` are all turns in which a choice was made, ``decisionsEither``
those that count neither for nor against.
"""

import datetime
import json
import re
import shutil
import sys
from pathlib import Path

from tests.quality.bilingual.dialogues import TALKS, Ask, Talk
from tests.wires import Home, Say, Session, say

HERE = Path(__file__).parent
CWD = "/home/dev/outpost"
THEMES = {
    "C": (
        "answer-cache",
        ("缓存", "redis"),
        "The Redis cache of product answers: stale prices, invalidation by events, stampedes. "
        "Not browser or build caches, not the rate limiter's state.",
    ),
    "T": (
        "access-tokens",
        ("token", "令牌"),
        "Access and refresh tokens of the gateway: lifetime, revoking, renewing. "
        "Not the language model's tokens, not the token bucket.",
    ),
}


def _says(one: Ask) -> tuple[Say, ...]:
    if not one.calls:
        return (say(one.answer),)
    return (say("", *one.calls), say(one.answer))


def _write(home: Home, talk: Talk) -> Session:
    at = datetime.datetime(2026, 11, talk.day, talk.hour, tzinfo=datetime.UTC)
    session = home.session(CWD, at=int(at.timestamp() * 1000), title=talk.title)
    for number, one in enumerate(talk.asks):
        session.main.turn(one.user, *_says(one), gap=(2 + number % 5) * 60_000)
    return session


def labels(sessions: list[Session]) -> dict[str, object]:
    """The labels of ``TALKS`` as written into ``sessions``."""
    turns = [
        (one, {"sessionId": session.session_id, "turnId": number})
        for session, talk in zip(sessions, TALKS, strict=True)
        for number, one in enumerate(talk.asks)
    ]
    themes = [
        {
            "theme": name,
            "seeds": list(seeds),
            "about": about,
            "members": [where for one, where in turns if letter in one.themes],
            "either": [where for one, where in turns if letter.lower() in one.themes],
        }
        for letter, (name, seeds, about) in THEMES.items()
    ]
    decisions = [where for one, where in turns if one.decided]
    either = [where for one, where in turns if one.decided is None]
    return {
        "corpus": "outpost",
        "cut": "test",
        "themes": themes,
        "decisions": decisions,
        "decisionsEither": either,
    }


def make(root: Path) -> dict[str, object]:
    """Writes the home to ``root``; returns the labels."""
    home = Home(root, seed=20261102, journal=False)
    sessions = [_write(home, talk) for talk in TALKS]
    home.write()
    return labels(sessions)


def text_of(labelled: dict[str, object]) -> str:
    """labels.json as committed: one turn a line."""
    text = json.dumps(labelled, ensure_ascii=False, indent=1)
    return re.sub(r'{\s+("sessionId": "[^"]+"),\s+("turnId": \d+)\s+}', r"{\1, \2}", text) + "\n"


if __name__ == "__main__":
    shutil.rmtree(HERE / "home", ignore_errors=True)
    made = make(HERE / "home")
    (HERE / "labels.json").write_text(text_of(made), encoding="utf-8")
    sys.stdout.write(f"{sum(len(talk.asks) for talk in TALKS)} turns in {len(TALKS)} sessions\n")
