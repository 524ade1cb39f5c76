"""Earlier versions of theme files, in ``themes/.history/<theme>/``: every change can be undone, newest first.

One entry is one change: the text of every file it touched, as it was before (``null`` where there was none).
A rename or a merge touches two themes, lies in both folders and is undone in one piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipeline.errors import ExitCode, PipelineError
from pipeline.store import files

HISTORY = ".history"
KEEP = 20
"""Entries kept a theme; older ones go."""


class History:
    """The kept versions of the theme files in ``folder``. Callers hold the themes' locks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def keep(self, now: int, op: str, paths: Sequence[Path]) -> None:
        """Keep the files' texts as they are now, before the change ``op``."""
        number = max((_number(entry) for path in paths for entry in self._of(path.name)), default=0) + 1
        before = {path.name: files.read_text(path) for path in paths}
        for name in before:
            files.write_json(
                self._place(name) / f"{number:08d}.json", {"op": op, "at": now, "before": before}
            )
            for entry in self._of(name)[:-KEEP]:
                files.remove(entry)

    def restore(self, path: Path) -> str:
        """Put back what the newest entry about ``path`` holds, and drop the entry; returns the change's name.

        Raises PipelineError when nothing is kept, or when another theme of the same change was changed since.
        """
        mine = self._of(path.name)
        if not mine:
            raise PipelineError(
                f"nothing is kept from before the last change of “{path.stem}”", ExitCode.USAGE
            )
        value = files.read_json(mine[-1])
        before, op = _before(value), _op(value)
        for name in before:
            newest = self._of(name)[-1:]
            if not newest or newest[0].name != mine[-1].name:
                raise PipelineError(
                    f"“{Path(name).stem}” was changed after this {op}: undo that first", ExitCode.USAGE
                )
        for name, text in before.items():
            if text is None:
                files.remove(self.folder / name)
            else:
                files.write_text(self.folder / name, text)
        for name in before:
            files.remove(self._place(name) / mine[-1].name)
        return op

    def forget(self, path: Path) -> bool:
        """Drop everything kept of a theme, for when a person wants its texts gone for good; was there
        anything?
        """
        entries = self._of(path.name)
        for entry in entries:
            for name in _before(files.read_json(entry)) or (path.name,):  # a merge lies in both folders
                files.remove(self._place(name) / entry.name)
        return bool(entries)

    def _place(self, name: str) -> Path:
        return self.folder / HISTORY / Path(name).stem.casefold()

    def _of(self, name: str) -> list[Path]:
        place = self._place(name)
        return sorted(place.glob("[0-9]*.json")) if place.is_dir() else []


def _number(entry: Path) -> int:
    return int(entry.stem) if entry.stem.isdigit() else 0


def _before(value: object) -> dict[str, str | None]:
    before = value.get("before") if isinstance(value, dict) else None
    return before if isinstance(before, dict) else {}


def _op(value: object) -> str:
    return str(value.get("op", "change")) if isinstance(value, dict) else "change"
