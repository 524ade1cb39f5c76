"""Deterministic identifiers in the CLI's forms, and the constant bulk of every wire."""

import random
from dataclasses import dataclass

from tests.wire_records import dumps

_BASE32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


class Ids:
    """Deterministic identifiers in the CLI's forms."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def uuid(self) -> str:
        text = f"{self.rng.getrandbits(128):032x}"
        return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"

    def message(self, ms: int) -> str:
        """``msg_`` and a ULID: 48 bits of time, 80 of chance."""
        number = (ms << 80) | self.rng.getrandbits(80)
        return "msg_" + "".join(_BASE32[(number >> shift) & 31] for shift in range(125, -1, -5))

    def digest(self) -> str:
        return f"{self.rng.getrandbits(256):064x}"

    def task(self) -> str:
        return "".join(self.rng.choices("0123456789abcdefghijklmnopqrstuvwxyz", k=8))


@dataclass(frozen=True, slots=True)
class Bulk:
    """The constant giants of every wire, as JSON text: tool lists (main's, a sub-agent's), system prompt."""

    tools_json: str
    sub_tools_json: str
    prompt_json: str


def bulk(tools: int = 0, prompt: int = 0) -> Bulk:
    """About this many bytes of each; 0 gives them trimmed to a few hundred."""
    names = ("Agent", "Bash", "Edit", "FetchURL", "Glob", "Grep", "Read", "TodoList", "Write", "WebSearch")
    share = max(0, tools // len(names) - 90)
    filler = (
        "Executes the request and returns its result. Prefer the dedicated tool over the shell. " * 400
    )[:share]
    listed = [{"name": name, "description": filler, "parameters": {"type": "object"}} for name in names]
    fewer = [
        tool for tool in listed if tool["name"] in ("Bash", "FetchURL", "Glob", "Grep", "Read", "WebSearch")
    ]
    text = "You are a coding agent." + (" Follow the conventions of the project you work in." * 600)[:prompt]
    return Bulk(dumps(listed), dumps(fewer), dumps(text))


TRIMMED = bulk()
