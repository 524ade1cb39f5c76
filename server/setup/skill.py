"""The texts a model reads about memory: the skill, and the block for AGENTS.md, in English or Chinese."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal, TypeAlias

from server.setup.agents_md import END, START
from server.setup.model import Kept, Piece, text_of

PATH = "skills/memory-manage/SKILL.md"
Language: TypeAlias = Literal["en", "zh"]


def skill_text(language: Language) -> str:
    """The skill's file, with ``\\n`` line ends."""
    return _packaged(language, "SKILL.md")


def agents_block(language: Language) -> str:
    """The block for AGENTS.md with its marks, without a last line end."""
    return f"<!-- {START} -->\n{_packaged(language, 'AGENTS.md').strip()}\n<!-- {END} -->"


def language_of(env: Mapping[str, str]) -> Language:
    """The language of a person's locale."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if env.get(name):
            return "zh" if env[name].lower().startswith("zh") else "en"
    return "en"


@dataclass(frozen=True, slots=True)
class Skill:
    """The part that is the skill's file; it is ours as a whole."""

    text: str
    path: str = PATH

    def install(self, current: bytes | None) -> tuple[bytes, Piece]:
        """See Part.install. A skill of that name, the other server's say, is replaced; undo brings it back."""
        replaced = None if current is None else text_of(PATH, current, bom=True)
        return self.text.encode("utf-8"), Piece(self.text, None if replaced == self.text else replaced)

    def remove(self, current: bytes, piece: Piece) -> bytes | Kept:
        """See Part.remove."""
        return Kept("it was edited since")

    def wired(self, current: bytes | None) -> str:
        """See Part.wired."""
        if current is None:
            return "is missing"
        return "" if current == self.text.encode("utf-8") else "differs from this version's"


def _packaged(language: Language, name: str) -> str:
    text = files("server").joinpath("skill", language, name).read_text("utf-8")
    return text.replace("\r\n", "\n")
