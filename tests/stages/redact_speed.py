"""How fast redaction is on this machine: ``python -m tests.stages.redact_speed``.

The text is mixed as in sessions: prompts, answers and tool output (English and Chinese) of the recorded samples, and
source code and documents of this repository, in pieces of several sizes, one core, best of five, CPU time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from time import process_time

from stages.redact import Redactor

ROOT = Path(__file__).parent.parent.parent
PIECES = (500, 2_000, 8_000, 64_000, 1_000_000)


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


def corpus() -> str:
    texts: list[str] = []
    for wire in sorted((ROOT / "tests").rglob("wire.jsonl")):
        for line in wire.read_text("utf-8", "replace").splitlines():
            try:
                texts += [text for text in strings(json.loads(line)) if len(text) > 20 and " " in text]
            except ValueError:
                continue
    for folder, pattern in (("stages", "*.py"), ("pipeline", "*.py"), ("server", "*.py"), ("docs", "*.md")):
        texts += [path.read_text("utf-8") for path in sorted((ROOT / folder).rglob(pattern))]
    return "\n".join(texts).replace("<private", "<span")  # which would take the rest of the text


def megabytes_a_second(text: str, piece: int) -> float:
    pieces = [text[at : at + piece] for at in range(0, len(text), piece)]
    redactor = Redactor(b"key")
    best = float("inf")
    for _ in range(5):
        start = process_time()
        for part in pieces:
            redactor(part)
        best = min(best, process_time() - start)
    return len(text.encode()) / best / 1e6


def main() -> None:
    text = corpus()
    print(f"{len(text.encode()) / 1e6:.1f} MB of text")
    for piece in PIECES:
        print(f"pieces of {piece:>9,} characters: {megabytes_a_second(text, piece):5.1f} MB/s")


if __name__ == "__main__":
    main()
