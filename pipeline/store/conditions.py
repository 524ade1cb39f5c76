"""Which turns meet the conditions of a query: quoted phrases, filters, times, and turns that are left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from pipeline.store.evidence import Evidence, Flags, to_flags
from pipeline.store.postings import marks, quoted
from stages import tokens
from stages.query import Filter, Query

Key: TypeAlias = tuple[str, str, int]
"""Session, agent, position."""


class Met:
    """The turns that meet this or that, as sets of listed turns."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._postings = evidence.postings
        self._connection = evidence.postings.connection

    def required(self, query: Query) -> Iterator[tuple[str, Flags]]:
        """Each phrase and filter of a query, as typed, with the turns that meet it."""
        for phrase in query.phrases:
            yield f'"{phrase.text}"', self.matching(quoted(phrase.tokens))
        for condition in query.filters:
            yield f"{condition.name}:{condition.value}", self._filter(condition)

    def matching(self, expression: str) -> Flags:
        """An FTS5 expression's turns."""
        return self._evidence.folded(self._postings.matching(expression))

    def between(self, since: int | None, until: int | None) -> Flags:
        """Turns that began in ``[since, until)``, ms; a bound that is ``None`` is none."""
        return self._contents(
            "SELECT content_id FROM occurrence WHERE coalesce(started_at, last_at)>=?"
            " AND coalesce(started_at, last_at)<?",
            (since if since is not None else -(2**62), until if until is not None else 2**62),
        )

    def named(self, keys: Iterable[Key]) -> Flags:
        """These very turns, whether listed or not."""
        found: list[int] = []
        for key in keys:
            rows = self._connection.execute(
                "SELECT content_id FROM occurrence WHERE session_id=? AND agent_id=? AND position=?", key
            )
            found.extend(row[0] for row in rows)
        return to_flags(found, self._evidence.size)

    def _filter(self, condition: Filter) -> Flags:
        value = condition.value
        match condition.name:
            case "file":
                return self._in_column("actions", _path_tokens(value))
            case "tool":
                return self._in_column("actions", [tokens.tool_token(value)])
            case "error":
                return self._in_column("errors", tokens.tokens(value))
            case "session":
                return self._sessions([value, f"session_{value}", f"ses_{value}"])
            case "agent":
                agents = [value, f"agent-{value}"]
                return self._contents(
                    f"SELECT content_id FROM occurrence WHERE agent_id IN ({marks(agents)})", agents
                )
            case "decision":
                return self._contents("SELECT content_id FROM refined WHERE decision=1", ())
            case "since" | "until":  # the caller turns dates into times: days are local
                return self._evidence.listed

    def _in_column(self, column: str, found: Sequence[str]) -> Flags:
        return self.matching(f"{{{column}}} : {quoted(found)}") if found else 0

    def _sessions(self, beginnings: Sequence[str]) -> Flags:
        like = " OR ".join("substr(session_id, 1, ?)=?" for _ in beginnings)
        values = [item for text in beginnings for item in (len(text), text)]
        return self._contents(f"SELECT content_id FROM occurrence WHERE {like}", values)

    def _contents(self, sql: str, values: Sequence[object]) -> Flags:
        return self._evidence.folded(row[0] for row in self._connection.execute(sql, values))


def _path_tokens(value: str) -> list[str]:
    """A path's parts without the token of the whole, so that ``file:src/a.ts`` finds
    ``/home/dev/x/src/a.ts``."""
    found = tokens.tokens(value)
    return found[1:] if "/" in value.strip("/").replace("\\", "/") and len(found) > 1 else found
