"""Argument checks: what fits is taken, what does not is named with what would."""

from __future__ import annotations

from typing import Any

import pytest

from server.arguments import BadArgument, checked
from server.surface.everything import TOOLS

TOO_LONG = "x" * 10_000


def test_defaults_are_filled_in_and_nothing_else() -> None:
    assert checked(TOOLS["bootstrap_workspace"], None) == {
        "detailed_rounds": 3,
        "summary_rounds": 2,
        "max_chars": 12_000,
    }


@pytest.mark.parametrize(
    ("tool", "given", "found"),
    [
        ("refine_session_turns", {"session_id": "s"}, {"sessionId": "s"}),
        ("load_more_context", {"beforeTurnId": 4}, {"before_turn_id": 4}),
        ("search_context", {"query": "x", "limit": "5", "cursor": None}, {"query": "x", "limit": 5}),
        ("search_context", {"query": "x", "detail": "Full"}, {"detail": "full"}),
        ("search_context", {"query": 404}, {"query": "404"}),
        ("run_theme", {"theme": "x", "keywords": "a，b、c, d"}, {"keywords": ["a", "b", "c", "d"]}),
        ("run_theme", {"theme": "x", "keywords": '["a"]', "replace_keywords": "true"}, {"replace_keywords": True}),
        (
            "load_turn_context",
            {"references": {"session_id": "s", "turn_id": "3"}},
            {"references": [{"sessionId": "s", "turnId": 3}]},
        ),
        ("sync_workspace_index", {"folderComments": '{"memory": "all"}'}, {"folderComments": {"memory": "all"}}),
    ],
)  # fmt: skip
def test_what_can_only_be_meant_one_way_is_taken(
    tool: str, given: dict[str, Any], found: dict[str, Any]
) -> None:
    arguments = checked(TOOLS[tool], given)
    assert {name: arguments[name] for name in found} == found


@pytest.mark.parametrize(
    ("tool", "given", "name", "says"),
    [
        ("search_context", {}, "query", "missing"),
        ("search_context", {"query": "  "}, "query", "is empty"),
        ("search_context", {"query": ["a"]}, "query", "It takes a text"),
        ("search_context", {"query": "x", "limit": 0}, "limit", "from 1 to 100"),
        ("search_context", {"query": "x", "limit": 101}, "limit", "from 1 to 100"),
        ("search_context", {"query": "x", "limit": 2.5}, "limit", "a whole number"),
        ("search_context", {"query": "x", "limit": True}, "limit", "a whole number"),
        ("search_context", {"query": "x", "detail": "big"}, "detail", "compact, normal, full"),
        ("search_context", {"query": TOO_LONG}, "query", "at most 2000"),
        ("search_context", {"query": "x", "colour": 1}, "colour", "takes query, date_from"),
        ("bootstrap_workspace", {"force": "maybe"}, "force", "true or false"),
        ("load_turn_context", {"references": [{"sessionId": "s"}]}, "references[0].turnId", "missing"),
        (
            "load_turn_context",
            {"references": [{"sessionId": "s", "turnId": "x"}]},
            "references[0].turnId",
            "number",
        ),
        ("load_turn_context", {"references": 4}, "references", "a list"),
        ("load_turn_context", {"references": [], "include": ["all"]}, "include[0]", "args, results, diffs"),
        ("remember", {"key": "k", "tags": [1, {}]}, "tags[1]", "a text"),
        ("remember", {"key": "k", "tags": ["x"] * 51}, "tags", "at most 50"),
        ("remember", {"key": "k", "source": "chat"}, "source", "sessionId, turnId"),
        ("resolve_proposal", {"id": "a", "action": "keep"}, "action", "accept, edit, reject"),
        ("manage_theme", {"action": "drop", "theme": "x"}, "action", "rename, merge, undo"),
    ],
)
def test_what_does_not_fit_is_named_with_what_would(
    tool: str, given: dict[str, Any], name: str, says: str
) -> None:
    with pytest.raises(BadArgument) as caught:
        checked(TOOLS[tool], given)
    assert caught.value.name == name
    assert str(caught.value).startswith(f"{name}: ") and says in str(caught.value)


def test_a_long_value_is_not_echoed_whole() -> None:
    with pytest.raises(BadArgument) as caught:
        checked(TOOLS["search_context"], {"query": "x", "detail": TOO_LONG})
    assert len(str(caught.value)) < 200
