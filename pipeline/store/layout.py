"""Where things lie in a store, and the secret key that makes equal secrets equal placeholders.

One store per workspace: ``<store root>/<workspace id>/`` with ``refined/refined.sqlite``, ``themes/``,
``memory/`` and the rest of design: Workspaces and stores. The key is one for all stores of a root
(``redaction.key``, 0600)."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from pipeline.store.files import make_dirs, refusal

KEY_NAME = "redaction.key"
KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths of one store. Nothing is created by asking for a path."""

    root: Path

    @property
    def database(self) -> Path:
        return self.root / "refined" / "refined.sqlite"

    @property
    def themes(self) -> Path:
        return self.root / "themes"

    @property
    def searches(self) -> Path:
        return self.root / "searches"


def redaction_key(store_root: Path, *, create: bool) -> bytes:
    """The key of a store root. Without one, ``create`` makes it; else a key for this process alone is
    returned.

    Raises PipelineError if it cannot be read or made.
    """
    path = store_root / KEY_NAME
    for _ in range(2):
        try:
            key = path.read_bytes()
        except FileNotFoundError:
            if not create:
                return secrets.token_bytes(KEY_BYTES)
            _make_key(path)
        except OSError as error:
            raise refusal(error, path, "read") from error
        else:
            if len(key) >= KEY_BYTES:
                return key
            path.unlink(missing_ok=True)  # torn by a power cut: placeholders made from now on differ, no more
            _make_key(path)
    return path.read_bytes()


def _make_key(path: Path) -> None:
    """Write a new key whole or not at all; of two processes the first one's stays."""
    make_dirs(path.parent)
    temporary = path.with_name(f".tmp-{secrets.token_hex(8)}")
    try:
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)  # fails if it exists: never replaces another process's key
        except FileExistsError:
            pass
        except OSError:
            if not path.exists():  # a file system without hard links
                temporary.replace(path)
                return
        temporary.unlink(missing_ok=True)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise refusal(error, path, "write") from error
