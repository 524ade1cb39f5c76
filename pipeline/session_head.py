"""What the first lines of a wire tell about its session where state.json does not: directory, time, first
prompt."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from pipeline.session_state import milliseconds
from stages import tail

HEAD_BYTES = 256 << 10
"""The first prompt comes before the tools snapshot (WIRE §4): more is not read."""

TITLE_CHARS = 80

_NOISE = re.compile(
    r"<(system-reminder|git-context|notification|bash-input|bash-stdout|bash-stderr|hook_result|skill|system)\b"
    r"[^>]*?(?:/>|>.*?(?:</\1>|\Z))",
    re.DOTALL,
)
_PLACEHOLDER = re.compile(r"</?(?:image|audio|video)\b[^>]*>|\[Image:[^\]]*\]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b\u2028\u2029\ufeff]+")


@dataclass(frozen=True, slots=True)
class Head:
    """``first_prompt`` is raw: redact it, or the title made from it, before it is kept or shown."""

    cwd: str | None = None
    created_at: int | None = None
    first_prompt: str | None = None


def read_head(wire: Path, size: int = HEAD_BYTES) -> Head:
    """Look at the first ``size`` bytes of a wire. Never raises: what cannot be read tells nothing."""
    try:
        data = tail.head(wire, size)
    except tail.SourceError:
        return Head()
    cwd = created_at = prompt = None
    for record in _records(data):
        created_at = created_at or _created(record)
        cwd = cwd or _cwd(record)
        prompt = prompt or _prompt(record)
        if prompt and cwd:
            break
    return Head(cwd, created_at, prompt)


def derive_title(text: str, limit: int = TITLE_CHARS) -> str:
    """A title from a prompt: its first line that says something, at most ``limit`` characters; "" if none
    does.

    Reminders, context blocks, shell echoes and media placeholders are no part of it (WIRE §10).
    """
    text = _PLACEHOLDER.sub(" ", _NOISE.sub("\n", text))
    for line in text.split("\n"):
        line = " ".join(_CONTROL.sub(" ", line).split()).strip("#`*-=> ")
        if any(char.isalnum() for char in line):
            return _cut(line, limit)
    return ""


def _cut(line: str, limit: int) -> str:
    if len(line) <= limit:
        return line
    space = line.rfind(" ", 0, limit)
    return line[: space if space > limit // 2 else limit - 1].rstrip(" ,;:，、；：") + "…"


def _records(data: bytes) -> Iterator[Mapping[str, object]]:
    for line in data.split(b"\n"):
        if len(line) > tail.BLOCK * 16 or not line.startswith(b"{"):
            continue
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(record, dict):
            yield record


def _created(record: Mapping[str, object]) -> int | None:
    return milliseconds(record.get("created_at")) or milliseconds(record.get("timestamp"))


def _cwd(record: Mapping[str, object]) -> str | None:
    disclosed = record.get("environmentDisclosure")
    holder = disclosed if isinstance(disclosed, dict) else record
    if record.get("type") not in ("profile.bind", "config.update"):
        return None
    cwd = holder.get("cwd")
    return cwd if isinstance(cwd, str) and cwd else None


def _prompt(record: Mapping[str, object]) -> str | None:
    """Of turn.prompt; of a user message (imports, 0.38); of kimi-cli's TurnBegin."""
    kind, message = record.get("type"), record.get("message")
    content: object = None
    if kind == "turn.prompt":
        content = record.get("input")
    elif isinstance(message, dict) and kind == "context.append_message" and message.get("role") == "user":
        origin = message.get("origin")
        if not isinstance(origin, dict) or origin.get("kind") == "user":
            content = message.get("content")
    elif isinstance(message, dict) and message.get("type") == "TurnBegin":
        payload = message.get("payload")
        content = payload.get("user_input") if isinstance(payload, dict) else None
    text = _joined(content).strip()
    return text if derive_title(text) else None


def _joined(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text")
    return "\n".join(text for text in texts if isinstance(text, str))
