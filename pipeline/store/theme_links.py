"""Links from themes to memories, kept in the themes: ``remember`` adds them, ``move`` takes them along."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from pipeline.store.theme_record import ThemeMemory, ThemeRecord
from pipeline.store.themes import ThemeStore


class StoredThemeLinks:
    """The ThemeLinks of a store (see memories.ThemeLinks). ``now`` gives ms."""

    def __init__(self, themes: ThemeStore, now: Callable[[], int]) -> None:
        self._themes = themes
        self._now = now

    def link(self, theme: str, folder: str, key: str, title: str) -> None:
        """The theme names this memory; it is made when it is new."""
        at = self._now()
        memory = ThemeMemory(key=key, folder=folder, title=title, timestamp=at)
        self._themes.update(theme, lambda record: record.remember(memory), at, op="tag")

    def follow(self, old: tuple[str, str], new: tuple[str, str], title: str) -> None:
        """Every theme that named the memory at ``old`` (folder, key) names ``new``, since when it did."""
        for record in self._themes.all()[0]:
            held = next((one for one in record.memories if (one.folder, one.key) == old), None)
            if held is None:
                continue
            moved = replace(held, key=new[1], folder=new[0], title=title)

            def change(theme: ThemeRecord, moved: ThemeMemory = moved) -> ThemeRecord:
                return theme.forget_memory(*old).remember(moved)

            self._themes.update(record.theme, change, self._now(), op="move", create=False)

    def counts(self) -> dict[str, int]:
        """How many themes name each memory, by ``folder/key``."""
        linked = (f"{one.folder}/{one.key}" for record in self._themes.all()[0] for one in record.memories)
        return dict(Counter(linked))
