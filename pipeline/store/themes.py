"""Theme files: ``themes/<theme>.json``, a superset of what the server we stay compatible with writes.

A theme is a view: pointers, clusters and what a person did to it, never copies of turns. One file is one
theme; its name follows ``names.theme_name`` and is found whatever its case. Every change goes through
``ThemeStore``, under the file's lock, keeps the version before it in ``themes/.history/`` and writes
nothing when nothing changed. A file that is no theme is never overwritten: it is moved aside to
``.corrupt-…`` and named in the error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from pipeline.errors import ExitCode, PipelineError
from pipeline.store import files
from pipeline.store.names import theme_name
from pipeline.store.theme_history import History
from pipeline.store.theme_record import ThemeRecord, decode, encode, fresh
from stages.theme_page import edited, is_generated, marked

THEMES = "themes"
PAGE_ASIDE = ".generated"
"""An edited ``x.md`` is left alone; the new page then goes to ``x.generated.md``."""

Change = Callable[[ThemeRecord], ThemeRecord]


class CorruptTheme(PipelineError):
    """A theme file that cannot be read as one."""


class NoSuchTheme(PipelineError):
    """A theme that does not exist; the message names the nearest ones."""

    code = ExitCode.USAGE


@dataclass(frozen=True, slots=True)
class Written:
    """What a write did: the record as it stands, whether the file changed, and where it is."""

    record: ThemeRecord
    changed: bool
    path: Path


class ThemeStore:
    """The themes of one workspace's store at ``root``. ``now`` arguments are ms since the epoch."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / THEMES
        self.history = History(self.folder)

    # --- reading ---------------------------------------------------------------------------------------

    def paths(self) -> list[Path]:
        """Every theme file, by name."""
        if not self.folder.is_dir():
            return []
        return sorted(
            path for path in self.folder.glob("*.json") if not path.name.startswith(".") and path.is_file()
        )

    def path(self, name: str) -> Path:
        """The file of a theme: an existing one whatever its case, else where it would be."""
        stem = theme_name(name)
        exact = self.folder / f"{stem}.json"
        if exact.is_file():
            return exact
        same = [path for path in self.paths() if path.stem.casefold() == stem.casefold()]
        return same[0] if same else exact

    def read(self, name: str) -> ThemeRecord | None:
        """The theme, or ``None``. Raises CorruptTheme naming the file (which stays where it is)."""
        return self._parse(self.path(name))

    def require(self, name: str) -> ThemeRecord:
        """The theme; raises NoSuchTheme."""
        record = self.read(name)
        if record is None:
            raise NoSuchTheme(f"there is no theme “{name}”", hint=self._nearest(name))
        return record

    def all(self) -> tuple[list[ThemeRecord], list[CorruptTheme]]:
        """Every readable theme, and an error for each file that is none."""
        good: list[ThemeRecord] = []
        bad: list[CorruptTheme] = []
        for path in self.paths():
            try:
                record = self._parse(path)
            except CorruptTheme as error:
                bad.append(error)
            else:
                if record is not None:
                    good.append(record)
        return good, bad

    def _parse(self, path: Path) -> ThemeRecord | None:
        data = files.read_bytes(path)
        if data is None:
            return None
        try:
            return decode(orjson.loads(data.removeprefix(b"\xef\xbb\xbf")), path.stem)
        except (orjson.JSONDecodeError, ValueError) as error:
            raise CorruptTheme(f"{path} is not a theme: {error}") from error

    def _nearest(self, name: str) -> str:
        import difflib

        known = [path.stem for path in self.paths()]
        near = difflib.get_close_matches(theme_name(name), known, 3, 0.4)
        return f"did you mean {', '.join(near)}?" if near else "`pipeline themes` lists the themes there are"

    # --- writing ---------------------------------------------------------------------------------------

    def update(self, name: str, change: Change, now: int, *, op: str, create: bool = True) -> Written:
        """Apply ``change`` to a theme under its lock; a missing one is begun when ``create``, else
        NoSuchTheme.

        ``change`` may be called once only and must not write. A corrupt file is moved aside and raises
        CorruptTheme.
        """
        with self._locked(name):
            path = self.path(name)
            before = self._parse_or_move(path, now)
            if before is None and not create:
                raise NoSuchTheme(f"there is no theme “{name}”", hint=self._nearest(name))
            after = change(before or fresh(name, now))
            return self._put(path, before, after, now, op)

    def rename(self, old: str, new: str, now: int) -> Written:
        """Give a theme another name; its page moves along. Raises when ``new`` is taken by another theme."""
        with self._locked(old, new):
            source, record = self._existing(old, now)
            stem = theme_name(new)
            target = self.folder / f"{stem}.json"
            if stem.casefold() != source.stem.casefold():
                target = self.path(new)
                if target.is_file():
                    raise PipelineError(f"a theme “{new}” exists already: merge them instead", ExitCode.USAGE)
            if target == source and record.theme == new:
                return Written(record, False, source)
            self.history.keep(now, "rename", [source, target])
            renamed = replace(record, theme=stem, display_name=new, updated_at=now)
            files.write_json(target, encode(renamed))
            if target.name != source.name:
                files.remove(source)
                self._move_page(source, target)
            return Written(renamed, True, target)

    def merge(self, source: str, into: str, now: int) -> Written:
        """Put everything of theme ``source`` into ``into`` and drop ``source``; nothing curated is lost."""
        with self._locked(source, into):
            from_path, given = self._existing(source, now)
            to_path, taking = self._existing(into, now)
            if from_path == to_path:
                raise PipelineError(f"“{source}” and “{into}” are the same theme", ExitCode.USAGE)
            self.history.keep(now, "merge", [from_path, to_path])
            merged = replace(taking.absorb(given), updated_at=now)
            files.write_json(to_path, encode(merged))
            files.remove(from_path)
            self._drop_page(from_path)
            return Written(merged, True, to_path)

    def remove(self, name: str, now: int) -> ThemeRecord:
        """Delete a theme (no turn, no memory, no edited page); ``undo`` brings it back."""
        with self._locked(name):
            path, record = self._existing(name, now)
            self.history.keep(now, "rm", [path])
            files.remove(path)
            self._drop_page(path)
            return record

    def forget(self, name: str) -> bool:
        """Remove a theme with its generated page and everything kept of it: nothing can be undone afterwards.

        Says whether there was anything. An edited page stays: it is the person's.
        """
        with self._locked(name):
            path = self.path(name)
            was = files.remove(path)
            self._drop_page(path)
            return self.history.forget(path) or was

    def undo(self, name: str) -> str:
        """Bring back what was before the last change of this theme; returns that change's name.

        Raises NoSuchTheme when nothing is kept for it.
        """
        with self._locked(name):
            return self.history.restore(self.path(name))

    def _existing(self, name: str, now: int) -> tuple[Path, ThemeRecord]:
        path = self.path(name)
        record = self._parse_or_move(path, now)
        if record is None:
            raise NoSuchTheme(f"there is no theme “{name}”", hint=self._nearest(name))
        return path, record

    def _put(self, path: Path, before: ThemeRecord | None, after: ThemeRecord, now: int, op: str) -> Written:
        if before is not None and encode(replace(after, updated_at=before.updated_at)) == encode(before):
            return Written(before, False, path)
        self.history.keep(now, op, [path])
        after = replace(after, updated_at=now)
        files.write_json(path, encode(after))
        return Written(after, True, path)

    def _parse_or_move(self, path: Path, now: int) -> ThemeRecord | None:
        try:
            return self._parse(path)
        except CorruptTheme as error:
            aside = path.with_name(f".corrupt-{path.stem}-{_digest(path)}.json")
            files.rename(path, aside)
            raise CorruptTheme(
                f"{error.message}; moved to {aside}",
                hint="undo the theme's last change for its last good version, or run again to begin afresh",
            ) from error

    @contextmanager
    def _locked(self, *names: str) -> Iterator[None]:
        with files.locked(self.root, *(f"{THEMES}/{theme_name(name).casefold()}.json" for name in names)):
            yield

    # --- pages -----------------------------------------------------------------------------------------

    def write_page(self, name: str, text: str) -> tuple[Path, bool]:
        """Write a theme's generated page; returns where, and whether bytes were written.

        A page that a person edited (or wrote) stays as it is: the new one goes beside it, to
        ``<theme>.generated.md``.
        """
        with self._locked(name):
            page = self.path(name).with_suffix(".md")
            held = files.read_text(page)
            if held is not None and edited(held):
                page = page.with_name(f"{page.stem}{PAGE_ASIDE}.md")
            return page, files.write_text(page, marked(text))

    def _move_page(self, source: Path, target: Path) -> None:
        page = source.with_suffix(".md")
        if page.is_file() and not target.with_suffix(".md").exists():
            files.rename(page, target.with_suffix(".md"))

    def _drop_page(self, path: Path) -> None:
        page = path.with_suffix(".md")
        for each in (page, page.with_name(f"{page.stem}{PAGE_ASIDE}.md")):
            held = files.read_text(each)
            if held is not None and is_generated(held) and not edited(held):
                files.remove(each)


def _digest(path: Path) -> str:
    return hashlib.sha256(files.read_bytes(path) or b"").hexdigest()[:8]
