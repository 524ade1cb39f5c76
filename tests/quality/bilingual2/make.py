"""Writes the second bilingual corpus (``home/``) and its labels from ``dialogues``.

    python -m tests.quality.bilingual2.make

Both are committed. The labels were set by reading, before any output was seen: themes as in
tests/quality/themes/README.md; ``decisions`` are fifteen turns with whether a choice was made in them.
"""

import datetime
import json
import re
import shutil
import sys
from pathlib import Path

from tests.quality.bilingual2.dialogues import TALKS, Talk
from tests.wires import Home, Session

HERE = Path(__file__).parent
CWD = "/home/dev/subloom"
THEMES = {
    "T": (
        "subtitle-drift",
        ("drift", "时间轴", "alignment"),
        "Subtitles that come too early or too late against the sound: frame rates, milliseconds, edit points. "
        "Not the looks of the editor's timeline, not the upload's offset.",
    ),
    "G": (
        "customer-glossary",
        ("术语", "glossary"),
        "The customers' lists of terms: import, matching, use in translation, conflicts.",
    ),
    "E": (
        "subtitle-delivery",
        ("导出", "srt", "export"),
        "The subtitle files handed to customers: formats, encoding, wrapping, fonts. "
        "Not invoices, not the metrics exporter.",
    ),
}


def _write(home: Home, talk: Talk) -> Session:
    at = datetime.datetime(2026, 10, talk.day, talk.hour, tzinfo=datetime.UTC)
    session = home.session(CWD, at=int(at.timestamp() * 1000), title=talk.title)
    for number, one in enumerate(talk.asks):
        session.main.turn(one.user, *one.steps, gap=(3 + number * 7 % 11) * 60_000)
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
    decisions = [{**where, "decision": one.decided} for one, where in turns if one.decided is not None]
    return {"corpus": "subloom", "cut": "held-out", "themes": themes, "decisions": decisions}


def make(root: Path) -> dict[str, object]:
    """Writes the home to ``root``; returns the labels."""
    home = Home(root, seed=20261005, journal=False)
    sessions = [_write(home, talk) for talk in TALKS]
    home.write()
    return labels(sessions)


def text_of(labelled: dict[str, object]) -> str:
    """labels.json as committed: one turn a line."""
    text = json.dumps(labelled, ensure_ascii=False, indent=1)
    return (
        re.sub(r'{\s+("sessionId": [^{}]+?)\s+}', lambda m: "{" + " ".join(m[1].split()) + "}", text) + "\n"
    )


if __name__ == "__main__":
    shutil.rmtree(HERE / "home", ignore_errors=True)
    made = make(HERE / "home")
    (HERE / "labels.json").write_text(text_of(made), encoding="utf-8")
    sys.stdout.write(f"{sum(len(talk.asks) for talk in TALKS)} turns in {len(TALKS)} sessions\n")
