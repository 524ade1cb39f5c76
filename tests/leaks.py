"""Homes with secrets and look-alikes where they turn up in real sessions, and how a leak is found.

No value may be in any file of a store or in any output, in any of its ``forms`` (byte search).
"""

import base64
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import quote

from tests import wires
from tests.lookalikes import lookalikes
from tests.secrets import Secret, secrets
from tests.wires import Call, say

PLACES = (
    *("prompt", "answer", "command", "output", "edit", "failed output", "steer", "sub-agent"),
    *("read", "write", "grep", "mcp", "todo", "thought", "summary", "error"),
)
"""Where text comes from in a session."""
_WHOLE = ("prompt", "answer", "command")

CWD = "/home/dev/shop"
_START = 1_796_033_702_000
_HOUR = 3_600_000
_TURNS = 48
"""At most so many turns a session."""


def home_with_secrets(
    root: Path, seed: int, *, cwd: str = CWD, shifts: Sequence[int] = (0,)
) -> tuple[Secret, ...]:
    """Writes a home with every secret once for each of ``shifts``, which say in which of PLACES the first one
    stands; the others take turns. Every turn says “quartermaster”, so that a theme finds it. The sessions'
    titles hold a secret each.
    """
    planted = secrets(seed)
    rows = [
        (secret, PLACES[(index + shift) % len(PLACES)])
        for shift in shifts
        for index, secret in enumerate(planted)
    ]
    titles = [secret.text for secret in planted if "\n" not in secret.text]
    _write_home(root, seed, cwd, [(secret.text, place) for secret, place in rows], titles)
    return planted


def home_with_lookalikes(root: Path, seed: int, *, cwd: str = CWD) -> tuple[str, ...]:
    """Writes a home with every look-alike once where it is stored whole: in prompts, answers and commands."""
    planted = lookalikes(seed)
    _write_home(root, seed, cwd, [(text, _WHOLE[index % 3]) for index, text in enumerate(planted)], planted)
    return planted


def _write_home(
    root: Path, seed: int, cwd: str, rows: Sequence[tuple[str, str]], titles: Sequence[str]
) -> None:
    """``rows`` are texts and places, ``titles`` what sessions are called by turns."""
    home = wires.Home(root, seed=seed)
    for first in range(0, len(rows), _TURNS):
        title = f"quartermaster {titles[first % len(titles)]}".strip()
        session = home.session(cwd, at=_START + first * _HOUR, title=title)
        for index, (text, place) in enumerate(rows[first : first + _TURNS], first):
            _plant(session.main, index, text, place)
    home.write()


def _plant(wire: wires.Wire, index: int, text: str, place: str) -> None:
    ask = f"quartermaster step {index}: look at this"
    done = f"Decided for quartermaster step {index}: keep it."
    calls: dict[str, Call] = {
        "command": wires.bash(f"cat <<'EOF'\n{text}\nEOF", "ok"),
        "output": wires.bash("cat .env", f"{text}\nend"),
        "edit": wires.edit(".env", "A=1", text),
        "failed output": wires.bash("run", f"Error: refused\n{text}", code=1),
        "sub-agent": wires.agent(ask, say(f"Report: {text}"), description="Look"),
        "read": wires.read("notes.txt", text),
        "write": wires.write("notes.txt", text),
        "grep": wires.grep(text.split("\n")[0], "src", text),
        "mcp": wires.mcp("vault", "get", {"name": text}, text),
        "todo": wires.todo((text, "pending")),
    }
    others: dict[str, Callable[[], object]] = {
        "prompt": lambda: wire.turn(f"{ask}\n{text}", say(done)),
        "answer": lambda: wire.turn(ask, say(f"I found this:\n{text}\n{done}")),
        "steer": lambda: wire.turn(
            ask, say("One.", wires.bash("ls", "a")), say(done), steers={1: f"also {text}"}
        ),
        "thought": lambda: wire.turn(ask, say(done, think=text)),
        "summary": lambda: wire.compact(f"quartermaster: {text}"),
        "error": lambda: wire.turn(ask, say(""), outcome="failed", error=f"400 refused: {text}"),
    }
    if place in calls:
        wire.turn(ask, say("Let me see.", calls[place]), say(done), gap=60_000)
    else:
        others[place]()


# --- how a leak would look ---------------------------------------------------------------------------------


def forms(value: str) -> frozenset[bytes]:
    """The bytes as which a value may turn up: as it is, folded, in base64, URL-encoded or escaped in JSON."""
    raw = value.encode()
    percent = quote(value, safe="")
    small = re.sub("%..", lambda escape: escape[0].lower(), percent)
    every = "".join(f"%{byte:02X}" for byte in raw)
    written = (value, value.lower(), json.dumps(value)[1:-1], json.dumps(value).replace("/", "\\/")[1:-1])
    return frozenset(
        [text.encode() for text in (*written, percent, small, percent.lower(), every, every.lower())]
        + [coded for shift in range(3) for coded in _in_base64(raw, shift)]
    )


def _in_base64(raw: bytes, shift: int) -> tuple[bytes, bytes]:
    """What base64 of any text shows of ``raw`` that stands ``shift`` bytes behind a multiple of three: the
    characters that depend on nothing before or after it. In both alphabets.
    """
    first, last = (8 * shift + 5) // 6, 8 * (shift + len(raw)) // 6
    padded = b"\0" * shift + raw
    return base64.b64encode(padded)[first:last], base64.urlsafe_b64encode(padded)[first:last]


class Leaks:
    """Finds planted secrets in bytes. ``leaks(data)`` gives the kinds of which a value is there in any form."""

    def __init__(self, planted: Sequence[Secret]) -> None:
        self._needles = {
            needle: secret.kind for secret in planted for value in secret.values for needle in forms(value)
        }

    def __call__(self, data: bytes | str) -> list[str]:
        data = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
        return sorted({kind for needle, kind in self._needles.items() if needle in data})
