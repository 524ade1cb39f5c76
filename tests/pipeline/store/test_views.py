"""Saved search views: the other server's names and shape, bounded, never in the way of other files."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from pipeline.answers import Answer, Hit, HitCluster
from pipeline.store.views import delete_view, list_views, read_view, save_view, view_key

NOW = 1_796_033_702_000


def answer(query: str) -> Answer:
    hit = Hit("session_1", "main", 4, 4, NOW, 2.0, "matched: port", ("port",), "the port")
    cluster = HitCluster("session_1", "main", (3, 4, 5), (4,), NOW, NOW)
    return Answer(query, 7, "all", (hit,), (cluster,))


def save(root: Path, query: str, now: int = NOW) -> str:
    return save_view(root, answer(query), now=now, gap_seconds=90, max_cluster_size=15)


def test_the_name_is_the_other_servers() -> None:
    assert view_key("Port busy") == view_key("busy port") == "search-ab1e48e060fa"


def test_a_view_holds_the_other_servers_fields(tmp_path: Path) -> None:
    key = save(tmp_path, "port busy")
    found = orjson.loads((tmp_path / "searches" / f"{key}.json").read_bytes())
    assert set(found) >= {
        "query",
        "createdAt",
        "totalMatches",
        "totalRefined",
        "gapSeconds",
        "maxClusterSize",
        "skippedSessions",
        "clusters",
    }
    (cluster,) = found["clusters"]
    assert (cluster["sessionId"], cluster["hitTurnId"], cluster["memberCount"]) == ("session_1", 4, 3)
    assert {"sessionId": "session_1", "agentId": "main", "turnId": 5} in cluster["members"]


def test_saving_again_changes_no_byte(tmp_path: Path) -> None:
    key = save(tmp_path, "port busy")
    path = tmp_path / "searches" / f"{key}.json"
    before = path.read_bytes()
    assert save(tmp_path, "port busy", NOW + 5) == key
    assert path.read_bytes() == before


def test_list_read_delete(tmp_path: Path) -> None:
    assert list_views(tmp_path) == []
    first, second = save(tmp_path, "one"), save(tmp_path, "two", NOW + 1000)
    (tmp_path / "searches" / "search-zz.json").write_text("{}", encoding="utf-8")
    (tmp_path / "searches" / "search-000000000000.json").write_text("torn", encoding="utf-8")
    assert [view.key for view in list_views(tmp_path)] == [second, first]
    assert len(list_views(tmp_path, limit=1)) == 1
    assert (read_view(tmp_path, first) or {})["query"] == "one"
    assert delete_view(tmp_path, first) and not delete_view(tmp_path, first)
    assert read_view(tmp_path, first) is None


@pytest.mark.parametrize("key", ["../themes/x", "search-..", "", "search-123", "search-00000000000g"])
def test_other_names_are_refused(tmp_path: Path, key: str) -> None:
    assert read_view(tmp_path, key) is None
    assert not delete_view(tmp_path, key)


def test_their_number_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.store.views.VIEWS_MOST", 5)
    keys = [save(tmp_path, f"query {number}", NOW + number * 1000) for number in range(9)]
    assert [view.key for view in list_views(tmp_path)] == keys[:-6:-1]
