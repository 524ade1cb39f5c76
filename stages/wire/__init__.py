"""The dialects of the wire: one module each, picked by looking at bytes, never by a version (WIRE §12.13)."""

from __future__ import annotations

import re

import orjson

from stages.wire.contract import Origin, Redact
from stages.wire.fold import VERSION, Fold, StateMismatch
from stages.wire.kimi_cli import KimiCli
from stages.wire.kimi_code import KimiCode

DIALECTS: dict[str, type[KimiCode] | type[KimiCli]] = {KimiCode.dialect: KimiCode, KimiCli.dialect: KimiCli}
_CLI = re.compile(rb'^\{"(?:timestamp": |type": "metadata")', re.MULTILINE)
_CODE = re.compile(rb'^\{"(?:type":"|message":\{|turnId":)', re.MULTILINE)


def dialect_of(head: bytes) -> str:
    """The dialect of a wire by its first lines; kimi-code where they do not tell.

    kimi-cli writes Python's JSON, with spaces, and wraps each record in a timestamp (WIRE §11).
    """
    cli, code = _CLI.search(head), _CODE.search(head)
    if cli is not None and (code is None or cli.start() < code.start()):
        return KimiCli.dialect
    return KimiCode.dialect


def open_dialect(
    head: bytes, origin: Origin, redact: Redact, state: bytes | None = None
) -> KimiCode | KimiCli:
    """A splitter for this wire, at its start or going on from ``state``. Raises ``StateMismatch``."""
    if state is None:
        return DIALECTS[dialect_of(head)](origin, redact)
    try:
        saved = orjson.loads(state)
        dialect = DIALECTS[saved["dialect"]]
        version = saved["v"]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise StateMismatch(f"saved splitter state cannot be read: {error}") from error
    if version != VERSION:
        raise StateMismatch(f"saved splitter state has version {version}, this is {VERSION}")
    splitter = dialect(origin, redact)
    splitter.load(saved)
    return splitter


__all__ = ["DIALECTS", "Fold", "StateMismatch", "dialect_of", "open_dialect"]
