"""Running the `pipeline` command in tests, in this process, with a clean environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any
from unittest.mock import patch

import orjson

from pipeline.cli import invoke


@dataclass(frozen=True, slots=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return orjson.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [orjson.loads(line) for line in self.out.split("\n") if line]


def environment(home: Path, store: Path, legacy: Path | None = None) -> dict[str, str]:
    """An environment that looks at one home only."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("KIMI_", "MEMORY_"))}
    return kept | {
        "KIMI_CODE_HOME": str(home),
        "KIMI_SHARE_DIR": str(legacy or home / "no-legacy"),
        "MEMORY_STORE_ROOT": str(store),
    }


def pipeline(env: Mapping[str, str], *arguments: str) -> Result:
    """Run `pipeline …`; stdout and stderr are kept apart."""
    out, err = TextIOWrapper(BytesIO(), "utf-8"), TextIOWrapper(BytesIO(), "utf-8")
    with patch.dict(os.environ, env, clear=True), redirect_stdout(out), redirect_stderr(err):
        code = invoke(list(arguments))
    out.flush()
    err.flush()
    return Result(int(code), out.buffer.getvalue().decode(), err.buffer.getvalue().decode())
