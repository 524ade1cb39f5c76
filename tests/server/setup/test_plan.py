"""Setup and undo on any home: identical bytes, once is enough, what a person did stays."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.setup import agents_md, hooks_toml, mcp_json, record, skill
from server.setup.model import InvalidFile
from server.setup.plan import PLUGINS, Options, plan_setup, plan_undo, settled
from server.setup.wiring import Wiring, hook_entries, is_our_hook, server_entry
from tests.server.setup.homes import (
    ALL_FOLDERS,
    CHINESE,
    ENGLISH,
    HOMES,
    OTHER_BLOCK,
    OTHER_ENTRY,
    WIRING,
    after,
)

Home = dict[str, bytes | None]
NOTHING: Home = dict.fromkeys((mcp_json.PATH, agents_md.PATH, skill.PATH, hooks_toml.PATH, record.PATH))


def set_up(home: Home, options: Options = ENGLISH) -> Home:
    return after(home, plan_setup(home, ALL_FOLDERS, options))


def undone(home: Home, options: Options = ENGLISH) -> Home:
    return after(home, plan_undo(home, options))


@settings(max_examples=100, deadline=None)
@given(HOMES, st.booleans())
def test_setup_then_undo_gives_identical_bytes(home: Home, hooks: bool) -> None:
    options = Options(WIRING, "en", hooks)
    wired = set_up(home, options)
    assert wired != home
    assert undone(wired, options) == home


@settings(max_examples=100, deadline=None)
@given(HOMES)
def test_setup_twice_is_setup_once(home: Home) -> None:
    wired = set_up(home)
    assert plan_setup(wired, ALL_FOLDERS, ENGLISH).changes == ()


@settings(max_examples=60, deadline=None)
@given(HOMES)
def test_another_language_or_no_hooks_replaces_what_was_there(home: Home) -> None:
    assert set_up(set_up(home), CHINESE) == set_up(home, CHINESE)
    without = Options(WIRING, "en", hooks=False)
    assert set_up(set_up(home), without) == set_up(home, without)
    assert undone(set_up(set_up(home), CHINESE)) == home


@settings(max_examples=100, deadline=None)
@given(HOMES)
def test_every_other_byte_stays(home: Home) -> None:
    wired = set_up(home)
    for name in (agents_md.PATH, hooks_toml.PATH):
        before, now = home[name] or b"", wired[name] or b""
        if OTHER_BLOCK.split("\n")[0].encode() not in before:
            assert is_insertion(before, now)
    before, now = home[mcp_json.PATH] or b"", wired[mcp_json.PATH] or b""
    if before.strip() and b"kimi-memory" not in before and b"mcpServers" in before:
        assert is_insertion(before, now) or json.loads(before)["mcpServers"] == {}
    expected: dict[str, Any] = json.loads(before) if before.strip() else {}
    found = json.loads(now)
    assert found.pop("mcpServers") | {"kimi-memory": 0} == expected.pop("mcpServers", {}) | {"kimi-memory": 0}
    assert found == expected


def is_insertion(before: bytes, now: bytes) -> bool:
    """Whether ``now`` is ``before`` with one run of bytes put in somewhere."""
    start = next(
        (at for at, (a, b) in enumerate(zip(before, now, strict=False)) if a != b), min(len(before), len(now))
    )
    return len(now) >= len(before) and now.endswith(before[start:])


@settings(max_examples=60, deadline=None)
@given(HOMES)
def test_kimi_reads_our_hooks_and_all_of_the_persons(home: Home) -> None:
    wired = set_up(home)
    theirs = tomllib.loads((home[hooks_toml.PATH] or b"").decode()).get("hooks", [])
    hooks = tomllib.loads((wired[hooks_toml.PATH] or b"").decode())["hooks"]
    assert hooks == theirs + hook_entries(settled(home, ENGLISH).wiring)
    for hook in hook_entries(WIRING):
        assert set(hook) <= {"event", "matcher", "command", "timeout"}


def test_what_a_person_added_since_stays_and_only_our_part_goes() -> None:
    home = NOTHING | {mcp_json.PATH: b'{"mcpServers": {"a": {"command": "x"}}}', agents_md.PATH: b"# Rules\n"}
    wired = set_up(home)
    value = json.loads(wired[mcp_json.PATH] or b"")
    value["mcpServers"]["later"] = {"command": "y"}
    wired[mcp_json.PATH] = json.dumps(value, indent=2).encode()  # as Kimi rewrites it
    wired[agents_md.PATH] = (wired[agents_md.PATH] or b"") + b"\nAlways answer in French.\n"
    wired[hooks_toml.PATH] = b'theme = "dark"\n' + (wired[hooks_toml.PATH] or b"")
    plan = plan_undo(wired, ENGLISH)
    left = after(wired, plan)
    assert json.loads(left[mcp_json.PATH] or b"") == {
        "mcpServers": {"a": {"command": "x"}, "later": {"command": "y"}}
    }
    assert left[agents_md.PATH] == b"# Rules\n\nAlways answer in French.\n"
    assert left[hooks_toml.PATH] == b'theme = "dark"\n'
    assert len(plan.notes) == 3 and all("was changed since" in note for note in plan.notes)


def test_hooks_go_also_when_kimi_rewrote_the_file_without_our_comments() -> None:
    wired = set_up(NOTHING | {hooks_toml.PATH: b'[[hooks]]\nevent = "Stop"\ncommand = "say"\n'})
    lines = (wired[hooks_toml.PATH] or b"").decode().splitlines(keepends=True)
    wired[hooks_toml.PATH] = "".join(['model = "k3"\n', *(line for line in lines if line[0] != "#")]).encode()
    left = undone(wired)[hooks_toml.PATH] or b""
    assert tomllib.loads(left.decode()) == {"model": "k3", "hooks": [{"event": "Stop", "command": "say"}]}


def test_a_piece_that_a_person_changed_is_left_and_named() -> None:
    wired = set_up(NOTHING)
    wired[mcp_json.PATH] = (wired[mcp_json.PATH] or b"").replace(b"120000", b"7")
    wired[agents_md.PATH] = (wired[agents_md.PATH] or b"").replace(b"Cite", b"Never cite")
    wired[skill.PATH] = (wired[skill.PATH] or b"") + b"my own rule\n"
    wired[hooks_toml.PATH] = (wired[hooks_toml.PATH] or b"").replace(b"timeout = 5", b"timeout = 6")
    plan = plan_undo(wired, ENGLISH)
    left = after(wired, plan)
    assert {name: data for name, data in left.items() if name != record.PATH} == {
        name: data for name, data in wired.items() if name != record.PATH
    }
    assert len(plan.warnings) == 4


def test_setup_over_a_persons_change_says_so_and_undo_brings_it_back() -> None:
    wired = set_up(NOTHING)
    wired[agents_md.PATH] = (wired[agents_md.PATH] or b"").replace(b"Cite", b"Never cite")
    plan = plan_setup(wired, ALL_FOLDERS, ENGLISH)
    assert any(warning.startswith("AGENTS.md: ") for warning in plan.warnings)
    again = after(wired, plan)
    assert b"Never cite" not in (again[agents_md.PATH] or b"")
    assert undone(again)[agents_md.PATH] == wired[agents_md.PATH]


def test_a_file_that_is_gone_stays_gone() -> None:
    wired = set_up(NOTHING | {agents_md.PATH: b"# Rules"})
    wired[agents_md.PATH] = None
    plan = plan_undo(wired, ENGLISH)
    assert after(wired, plan)[agents_md.PATH] is None
    assert any("AGENTS.md: was removed" in warning for warning in plan.warnings)


def test_the_other_server_is_found_and_its_store_is_carried_over() -> None:
    entry = json.dumps({"mcpServers": {"kimi-memory": OTHER_ENTRY, "old": OTHER_ENTRY}}).encode()
    home = NOTHING | {mcp_json.PATH: entry, agents_md.PATH: OTHER_BLOCK.encode(), skill.PATH: b"old skill"}
    plan = plan_setup(home, ALL_FOLDERS, ENGLISH)
    assert "kimi-code-memory-mcp-server" in plan.notes[0] and "MEMORY_STORE_ROOT" in plan.notes[0]
    assert '"old"' in plan.warnings[0]
    wired = after(home, plan)
    ours = json.loads(wired[mcp_json.PATH] or b"")["mcpServers"]["kimi-memory"]
    assert ours["env"] == {"MEMORY_STORE_ROOT": "/home/dev/memory"}
    hooks = tomllib.loads((wired[hooks_toml.PATH] or b"").decode())["hooks"]
    assert all("/home/dev/memory" in hook["command"] for hook in hooks)
    assert (wired[agents_md.PATH] or b"").count(b"INJECTED-START") == 1
    assert "启动协议" not in (wired[agents_md.PATH] or b"").decode()
    assert undone(wired) == home
    assert plan_setup(wired, ALL_FOLDERS, ENGLISH).changes == ()


def test_a_plugin_that_is_installed_too_is_named() -> None:
    plugins = b'{"version": 1, "plugins": [{"id": "kimi-memory", "enabled": true}]}'
    plan = plan_setup(NOTHING | {PLUGINS: plugins}, ALL_FOLDERS, ENGLISH)
    assert "plugin" in plan.warnings[0]


def test_what_a_person_set_in_our_entry_stays_and_an_older_installation_is_replaced() -> None:
    old = server_entry(Wiring("/old/python", "/old/server/cli.py", "/old/server/hook.py"), {"X": "1"})
    home = NOTHING | {
        mcp_json.PATH: json.dumps({"mcpServers": {"kimi-memory": old | {"toolTimeoutMs": 9}}}).encode()
    }
    entry = json.loads(set_up(home)[mcp_json.PATH] or b"")["mcpServers"]["kimi-memory"]
    assert entry == server_entry(WIRING, {"X": "1"}) | {"toolTimeoutMs": 9}


def test_hooks_of_an_older_installation_are_replaced_in_place() -> None:
    old = Options(Wiring("/old/python", "/old/server/cli.py", "/old/server/hook.py"))
    wired = set_up(NOTHING | {hooks_toml.PATH: b"# mine\n"}, old)
    wired[hooks_toml.PATH] = (wired[hooks_toml.PATH] or b"") + b"\n[later]\n"
    text = (set_up(wired)[hooks_toml.PATH] or b"").decode()
    assert "/old/" not in text and text.startswith("# mine\n") and text.endswith("[later]\n")
    assert len([hook for hook in tomllib.loads(text)["hooks"] if is_our_hook(hook)]) == 3


@pytest.mark.parametrize(
    ("name", "data"),
    [
        (mcp_json.PATH, b"{"),
        (mcp_json.PATH, b'{"mcpServers": {},}'),
        (mcp_json.PATH, b'{"mcpServers": {} /* c */}'),
        (mcp_json.PATH, b'{"mcpServers": NaN}'),
        (mcp_json.PATH, b"[]"),
        (mcp_json.PATH, b'{"mcpServers": []}'),
        (mcp_json.PATH, b'\xef\xbb\xbf{"mcpServers": {}}'),
        (mcp_json.PATH, b'{"a": "\xff"}'),
        (mcp_json.PATH, b"[" * 100_000),
        (agents_md.PATH, "text".encode("utf-16")),
        (agents_md.PATH, b"KIMI-MEMORY-INJECTED-START"),
        (agents_md.PATH, b"KIMI-MEMORY-INJECTED-END\nKIMI-MEMORY-INJECTED-START"),
        (agents_md.PATH, OTHER_BLOCK.encode() * 2),
        (hooks_toml.PATH, b"x = "),
        (hooks_toml.PATH, b"\xef\xbb\xbfx = 1"),
        (hooks_toml.PATH, b'hooks = "none"'),
        (record.PATH, b"{}"),
    ],
)
def test_an_invalid_file_stops_everything(name: str, data: bytes) -> None:
    with pytest.raises(InvalidFile, match=name.replace(".", r"\.")) as caught:
        plan_setup(NOTHING | {name: data}, ALL_FOLDERS, ENGLISH)
    assert caught.value.exit_code == 2


def test_the_block_is_small_in_both_languages_and_names_what_matters() -> None:
    for language in ("en", "zh"):
        block = skill.agents_block(language)
        assert len(block) <= agents_md.LIMIT
        for word in (
            "bootstrap_workspace",
            "remember",
            "search_context",
            "decision_guard",
            "run_theme",
            "trace_theme",
        ):
            assert word in block
        text = skill.skill_text(language)
        assert text.startswith("---\nname: memory-manage\n")
        assert all(tool in text for tool in ("`remember`", "`recall`", "`trace_theme`", "`run_theme`"))


def test_commands_are_absolute_and_survive_any_path() -> None:
    command = WIRING.hook_command()
    assert command.startswith("/home/dev/.venv/bin/python ") and command.endswith(" $PPID || true")
    windows = Wiring(r"C:\a b\python.exe", r"C:\a b\cli.py", r"C:\a b\server\hook.py", r"D:\m", windows=True)
    assert (
        windows.hook_command() == r'"C:\a b\python.exe" -I -S "C:\a b\server\hook.py" 0 "D:\m" || exit /b 0'
    )
    assert is_our_hook({"command": windows.hook_command()})


def test_an_environment_made_for_one_run_is_named() -> None:
    for python in ("/home/dev/.cache/uv/archive-v0/x1/bin/python", "/home/dev/.cache/pipx/8f/bin/python"):
        plan = plan_setup(NOTHING, ALL_FOLDERS, Options(Wiring(python, WIRING.entry, WIRING.hook)))
        assert "for one run only" in plan.warnings[0]
    for python in (
        "/home/dev/.local/pipx/venvs/kimi-memory/bin/python",
        "/home/dev/.local/share/uv/tools/k/bin/python",
    ):
        assert (
            plan_setup(NOTHING, ALL_FOLDERS, Options(Wiring(python, WIRING.entry, WIRING.hook))).warnings
            == ()
        )
