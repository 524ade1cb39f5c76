"""Finishes, when we start, what a killed `kimi-memory setup` had begun. One look at a path when there is nothing."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path

log = logging.getLogger(__name__)


def finish_setup(env: Mapping[str, str]) -> None:
    """Make the changes that are left of an interrupted setup or undo. Never raises: the server starts in any case."""
    home = env.get("KIMI_CODE_HOME") or Path(env.get("HOME") or os.path.expanduser("~"), ".kimi-code")  # noqa: PTH111
    path = Path(home, ".kimi-memory-setup", "journal.json")
    if not path.exists():
        return
    from pipeline.errors import PipelineError
    from server.setup import journal

    try:
        journal.recover(Path(home))
        log.warning("an interrupted setup of %s was finished", home)
    except (OSError, PipelineError):
        log.exception("an interrupted setup of %s could not be finished", home)
