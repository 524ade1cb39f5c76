"""What a tool's handler is given: its checked arguments, the service, and a way to report progress."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from server.service import Service
    from server.space import Space

Progress: TypeAlias = Callable[[float, float | None, str], Awaitable[None]]
"""Called with done, total (``None``: unknown) and a word; does nothing unless the client asked for progress."""


async def no_progress(done: float, total: float | None, word: str) -> None:
    """Progress that nobody asked for."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of one tool. ``given`` are the arguments as the client sent them, ``arguments`` the checked ones."""

    tool: str
    given: Mapping[str, Any]
    arguments: Mapping[str, Any]
    service: Service
    progress: Progress = no_progress

    def __getitem__(self, name: str) -> Any:
        """An argument; ``None`` when it was not given and has no default."""
        return self.arguments.get(name)

    async def space(self) -> Space:
        """The workspace that the call is about."""
        return await self.service.space(self["workspace"], session_id=self["session_id"])


Handler: TypeAlias = Callable[[Call], Awaitable[str]]
