"""Logging of the server: warnings to stderr, everything to a rotating file below the store root.

A log line never holds a secret: what goes out is redacted, tracebacks too. Nothing is opened before the first
line, and a log that cannot be written never disturbs the server.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from logging.handlers import RotatingFileHandler
from pathlib import Path

LOG = "logs/kimi-memory.log"
LOG_BYTES, LOGS_KEPT = 1 << 20, 3
FORMAT = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"


class Redacting(logging.Formatter):
    """Formats with secrets taken out."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        from pipeline.fold import redactor

        return redactor(b"log lines need no stable placeholders")(text)


class QuietFile(RotatingFileHandler):
    """A rotating file that finds and makes its folder at the first line and swallows what the disk refuses."""

    def __init__(self, env: Mapping[str, str]) -> None:
        super().__init__("unknown", maxBytes=LOG_BYTES, backupCount=LOGS_KEPT, encoding="utf-8", delay=True)
        self._env = env
        self._found = False

    def emit(self, record: logging.LogRecord) -> None:
        if not self._found:
            root = store_root(self._env)
            if root is None:
                return
            self.baseFilename = str(root / LOG)
            self._found = True
        try:
            Path(self.baseFilename).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            return
        super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:
        """A full or read-only disk must not fill stderr."""


def set_up(env: Mapping[str, str]) -> None:
    """Send the root logger to stderr (warnings) and to the log file of the store root; reads no setting yet."""
    formatter = Redacting(FORMAT)
    stderr = logging.StreamHandler(sys.stderr)
    stderr.setLevel(logging.WARNING)
    handlers: list[logging.Handler] = [stderr, QuietFile(env)]
    for handler in handlers:
        handler.setFormatter(formatter)
    logging.basicConfig(level=logging.INFO, handlers=handlers, force=True)
    for noisy in ("mcp", "httpx", "uvicorn", "watchfiles", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def store_root(env: Mapping[str, str]) -> Path | None:
    """Where the stores are; ``None`` when the setting is wrong (the tools will say so)."""
    from pipeline.config import load
    from pipeline.errors import ConfigError

    try:
        return load(env).store_root
    except ConfigError:
        return None
