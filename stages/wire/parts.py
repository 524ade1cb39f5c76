"""Reading untrusted JSON: typed getters, message parts, origins, noise in user text (WIRE §4.2, §10)."""

from __future__ import annotations

import math
import re
from typing import Any, TypeAlias

import orjson

from stages.wire import caps

Json: TypeAlias = dict[str, Any]

_MS_FROM = 1e12
MS_UNTIL = 253_370_764_800_000
"""The year 9999, ms: no clock of a writer says so, and in no time zone is a time before it past what dates hold."""

_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
"""An escape in a JSON string; group 1 is a surrogate that has no partner."""


def parse(line: bytes) -> Any:
    """The JSON value of a line, or ``None`` if it is corrupt. Lone surrogates become U+FFFD (WIRE §3).

    Only orjson reads, so that a value is nested at most as deep as it allows (1024) whatever its texts hold.
    """
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        pass
    if b"\\ud" not in line and b"\\uD" not in line:
        return None
    try:
        return orjson.loads(_ESCAPE.sub(_paired, line))
    except orjson.JSONDecodeError:
        return None


def _paired(escape: re.Match[bytes]) -> bytes:
    return rb"\ufffd" if escape[1] else escape[0]


def obj(value: Any) -> Json:
    """``value`` if it is an object, else an empty one."""
    return value if type(value) is dict else {}


def word(value: Any) -> str:
    """``value`` if it is a string short enough to be an id or a name, else an empty string."""
    return value if type(value) is str and len(value) <= caps.ID else ""


def string(value: Any) -> str:
    return value if type(value) is str else ""


def count(value: Any) -> int:
    """``value`` if it is a sane non-negative number, else 0."""
    return value if type(value) is int and 0 <= value < 1 << 53 else 0


def turn_number(value: Any) -> int | None:
    """A turn id: a number on ``turn.*`` records, a decimal string inside loop events (WIRE §0.3)."""
    if type(value) is str and len(value) < 16 and value.isascii() and value.isdecimal():
        return int(value)
    if type(value) is int and 0 <= value < 1 << 53:
        return value
    return None


def ms(value: Any) -> int | None:
    """A time in milliseconds; numbers up to 1e12 are seconds (WIRE §3). ``None`` for what no date holds."""
    if type(value) is int and _MS_FROM < value < MS_UNTIL:
        return int(value)
    if type(value) is not int and (type(value) is not float or not math.isfinite(value)):
        return None
    if value <= 0 or value >= MS_UNTIL:
        return None
    at = round(value if value > _MS_FROM else value * 1000)
    return at if at < MS_UNTIL else None


def texts(parts: Any) -> list[str]:
    """The texts of message parts; a plain string is one part. Thinking and media are left out."""
    if type(parts) is str:
        return [parts]
    if type(parts) is not list:
        return []
    return [
        part["text"]
        for part in parts
        if type(part) is dict and part.get("type") == "text" and type(part.get("text")) is str
    ]


def joined(parts: Any) -> str:
    return "\n".join(texts(parts))


# --- origins -------------------------------------------------------------------------------------------


def origin_name(origin: Json) -> str:
    """The raw ``origin.kind``; ``kind:name`` for a system trigger; ``user`` when there is none (WIRE §9)."""
    kind = word(origin.get("kind")) or "user"
    name = word(origin.get("name"))
    return f"{kind}:{name}" if kind == "system_trigger" and name else kind


def is_human(origin: Json) -> bool:
    """Whether a person opened a turn with this origin (WIRE §5)."""
    kind = origin.get("kind")
    if kind in ("skill_activation", "plugin_command"):
        return bool(origin.get("trigger", "user-slash") == "user-slash")
    return kind in (None, "user", "retry")


def is_anchor(origin: Json) -> bool:
    """Whether a user message with this origin is counted by ``context.undo`` (WIRE §6)."""
    return is_human(origin) and origin.get("kind") != "retry" and origin.get("inTurn") is not True


def user_text(parts: Any, origin: Json) -> str:
    """What the person typed: skill bodies become ``/name args``, engine noise is taken out (WIRE §10)."""
    kind = origin.get("kind")
    if kind == "skill_activation":
        return _slash(origin.get("skillName"), origin.get("skillArgs")) or clean(texts(parts))
    if kind == "plugin_command":
        return _slash(origin.get("commandName"), origin.get("commandArgs")) or clean(texts(parts))
    kept = texts(parts)
    activations = origin.get("skillActivations")
    if type(activations) is list and activations:
        kept = kept[len(activations) :]
    return clean(kept)


def _slash(name: Any, args: Any) -> str:
    name = word(name)
    return f"/{name} {string(args)}".rstrip() if name else ""


# --- noise ---------------------------------------------------------------------------------------------

_REMINDER = re.compile(r"\s*<system-reminder>.*?</system-reminder>\s*", re.DOTALL)
_LEADING = re.compile(
    r"\s*(?:<git-context\b[^>]*/>|<git-context\b[^>]*>.*?</git-context>|<hook_result\b[^>]*>.*?</hook_result>"
    r"|<notification\b[^>]*>.*?</notification>|<skill\b[^>]*>.*?</skill>)\s*",
    re.DOTALL,
)
_WHOLE = re.compile(
    r"\s*(?:</?(?:image|audio|video|file)\b[^>]*>|<bash-(?:input|stdout|stderr)>.*</bash-(?:input|stdout|stderr)>"
    r"|User activated the skill\b.*)\s*",
    re.DOTALL,
)
_PLACEHOLDER = re.compile(r"\[(?:Image|Audio|Video): [^\]\n]{0,300}\][ \t]*")
_SYSTEM = re.compile(r"<system>(.*?)</system>", re.DOTALL)


def clean(kept: list[str]) -> str:
    """Text parts without engine noise, joined. Text that has none comes back as it was, spaces included."""
    return "\n".join(text for text in map(_clean_part, kept) if text is not None)


def _clean_part(text: str) -> str | None:
    """One part without noise; ``None`` if it was nothing else."""
    if "<" not in text and "[" not in text and not text.startswith("User activated"):
        return text
    if _WHOLE.fullmatch(text):
        return None
    rest = text
    if "<system-reminder>" in rest:
        rest = _REMINDER.sub("\n", rest)
    while match := _LEADING.match(rest):
        rest = rest[match.end() :]
    rest = _PLACEHOLDER.sub("", rest)
    if rest == text:
        return text
    return rest.strip() or None


def without_system(text: str) -> str:
    """Tool output of v1 and imports without its ``<system>`` notes, unless it is nothing else (WIRE §10)."""
    if "<system>" not in text:
        return text
    return _SYSTEM.sub("", text).strip() or "\n".join(_SYSTEM.findall(text)).strip()
