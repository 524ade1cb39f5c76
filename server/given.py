"""What a model hands to a tool, without secrets: nothing downstream can keep or repeat one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pipeline.errors import PipelineError
from pipeline.fold import redactor
from pipeline.store.layout import redaction_key

PROBE = b"\0" * 32
"""Any key tells whether there is something to take out; the store root's own is made only when there is."""


def without_secrets(given: Mapping[str, Any], store_root: Path) -> dict[str, Any]:
    """The arguments with every string of them redacted, names of free properties too."""

    def clean(text: str) -> str:
        if not text.strip() or redactor(PROBE)(text) == text:
            return text
        return redactor(_key(store_root))(text)

    return {clean(name): _cleaned(value, clean) for name, value in given.items()}


def _cleaned(value: Any, clean: Callable[[str], str]) -> Any:
    match value:
        case str():
            return clean(value)
        case list():
            return [_cleaned(each, clean) for each in value]
        case dict():
            return {clean(str(name)): _cleaned(each, clean) for name, each in value.items()}
        case _:
            return value


def _key(store_root: Path) -> bytes:
    """While the store root refuses to hold a key, placeholders need not be equal: nothing is kept either."""
    try:
        return redaction_key(store_root, create=True)
    except PipelineError:
        return PROBE
