"""Small stores for search tests: sessions written as the CLI writes them and folded as usual."""

from __future__ import annotations

from pathlib import Path

from pipeline.answers import Answer
from pipeline.search import Searcher
from pipeline.search_request import SearchRequest
from tests.pipeline.store_cases import fill, inventory
from tests.wires import Home, Session

CWD = "/home/dev/shop"
AT = 1_796_033_702_000
MINUTE = 60_000


class Store:
    """A home and its store, folded on demand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = Home(folder / "home")
        self.path = folder / "refined.sqlite"
        self.searcher = Searcher(self.path)

    def session(self, *, at: int = AT, title: str | None = None) -> Session:
        return self.home.session(CWD, at=at, title=title)

    def fold(self, *, refine: bool = False) -> None:
        self.home.write()
        fill(self.path, inventory(self.home.root), refine=refine)

    def ask(self, query: str, **changes: object) -> Answer:
        return self.searcher.answer(SearchRequest(query, **{"now": AT, **changes}))  # type: ignore[arg-type]

    def turns(self, query: str, **changes: object) -> list[int]:
        """The turn ids of the hits, best first."""
        return [hit.turn_id for hit in self.ask(query, **changes).hits]
