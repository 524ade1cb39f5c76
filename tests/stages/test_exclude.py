"""The exclude rules of a store's configuration."""

from __future__ import annotations

import pytest

from stages.exclude import excluded

WORKSPACE, SESSION = "/home/dev/shop", "session_ab12cd"
PATH = "/home/dev/.kimi-code/sessions/wd_shop/session_ab12cd/agents/main/wire.jsonl"


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([], False),
        (["/home/dev/shop"], True),
        (["/home/dev/shop/"], True),
        (["/home/dev"], True),
        (["/home/dev/sho"], False),
        (["/home/*/shop"], True),
        (["*/secret-*"], False),
        (["session_ab12cd"], True),
        (["session_ab*"], True),
        (["session_ab"], False),
        (["*/wd_shop/*"], True),
        (["session:session_*"], True),
        (["workspace:session_*"], False),
        (["path:/home/dev/.kimi-code"], True),
        (["workspace:/home/dev/.kimi-code"], False),
        (["", "  ", "# /home/dev/shop"], False),
        (["/home/dev/*", "!/home/dev/shop"], False),
        (["!/home/dev/shop", "/home/dev/*"], True),
        (["/HOME/dev/shop"], False),
    ],
)
def test_rules(rules: list[str], expected: bool) -> None:
    assert excluded(rules, workspace=WORKSPACE, session_id=SESSION, path=PATH) is expected


def test_unknown_workspace_and_path_match_no_rule_of_their_kind() -> None:
    assert not excluded(["*home*", "workspace:*", "path:*"], workspace=None, session_id="s1", path=None)
    assert excluded(["*"], workspace=None, session_id="s1", path=None)


def test_windows_paths_are_compared_with_forward_slashes() -> None:
    assert excluded(["C:/code/shop"], workspace="C:\\code\\shop\\api", session_id="s", path=None)
    assert excluded(["C:\\code\\*"], workspace="C:\\code\\shop", session_id="s", path=None)
