"""`kimi-memory setup` as a person runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from server.cli import cli
from server.setup import agents_md, hooks_toml, mcp_json, record, skill
from server.setup.plugin import TOOLS, write_plugin
from server.setup.wiring import this_installation
from tests.server.setup.homes import OTHER_BLOCK, OTHER_ENTRY, tree, write

FULL: dict[str, bytes | None] = {
    mcp_json.PATH: b'{\r\n   "mcpServers" : { "a":{"command":"x"} }\r\n}',
    agents_md.PATH: "\ufeff# 规则\r\n总是用中文".encode(),
    hooks_toml.PATH: b"# mine\n[a] # x",
    "sessions/keep": b"1",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KIMI_CODE_HOME", str(tmp_path / "kimi"))
    monkeypatch.setenv("LANG", "en_US.UTF-8")
    for name in ("MEMORY_STORE_ROOT", "LC_ALL", "LC_MESSAGES"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "kimi"


def setup(*words: str) -> Result:
    return CliRunner().invoke(cli, ["setup", *words], catch_exceptions=True)


def test_setup_and_undo(home: Path) -> None:
    write(home, FULL)
    before = tree(home)
    done = setup()
    assert done.exit_code == 0, done.output
    assert "+" in done.output and f"Set up in {home}" in done.output
    wired = tree(home)
    assert "already" in setup().output and tree(home) == wired
    undone = setup("--undo")
    assert undone.exit_code == 0 and tree(home) == before
    assert "nothing to undo" in setup("--undo").output


def test_a_home_that_does_not_exist_yet_is_made_and_goes_again(home: Path) -> None:
    assert setup().exit_code == 0
    assert home.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in home.rglob("*") if path.is_file()} == {0o600}
    assert setup("--undo").exit_code == 0
    assert not home.exists()


def test_a_dry_run_shows_all_and_writes_nothing(home: Path) -> None:
    write(home, FULL)
    before = tree(home.parent)
    shown = setup("--dry-run").output
    for name in (mcp_json.PATH, agents_md.PATH, skill.PATH, hooks_toml.PATH):
        assert f"+++ {home / name}" in shown
    assert tree(home.parent) == before
    setup()
    wired = tree(home)
    assert "Nothing was written" in setup("--dry-run", "--undo").output and tree(home) == wired


def test_an_invalid_file_stops_it_before_anything_is_written(home: Path) -> None:
    write(home, FULL | {hooks_toml.PATH: b"x = ["})
    before = tree(home)
    done = subprocess.run(
        [sys.executable, "-m", "server.cli", "setup"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and "config.toml: is no valid TOML" in done.stderr
    assert tree(home) == before
    assert setup("--no-hooks").exit_code == 0
    assert (home / hooks_toml.PATH).read_bytes() == b"x = ["


def test_links_into_dotfiles_and_modes_are_kept(home: Path, tmp_path: Path) -> None:
    write(tmp_path / "dotfiles", FULL)
    home.mkdir()
    for name in (mcp_json.PATH, agents_md.PATH):
        (home / name).symlink_to(tmp_path / "dotfiles" / name)
    (home / hooks_toml.PATH).symlink_to(tmp_path / "dotfiles" / "new.toml")  # dangling
    (tmp_path / "dotfiles" / mcp_json.PATH).chmod(0o640)
    before = tree(home), tree(tmp_path / "dotfiles")
    assert setup().exit_code == 0
    assert (home / agents_md.PATH).is_symlink() and b"KIMI-MEMORY" in (home / agents_md.PATH).read_bytes()
    assert (tmp_path / "dotfiles" / mcp_json.PATH).stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "dotfiles" / "new.toml").exists()
    assert setup("--undo").exit_code == 0
    assert (tree(home), tree(tmp_path / "dotfiles")) == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_what_is_no_file_is_refused(home: Path) -> None:
    home.mkdir()
    os.mkfifo(home / agents_md.PATH)
    done = setup()
    assert done.exit_code != 0 and "not a regular file" in str(done.exception)
    assert not (home / mcp_json.PATH).exists()


def test_the_language_is_asked_for_or_that_of_the_locale(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setup("--lang", "zh")
    assert "何时使用 remember" in (home / skill.PATH).read_text("utf-8")
    setup()
    assert "When to remember" in (home / skill.PATH).read_text("utf-8")
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    setup()
    assert "长期记忆" in (home / agents_md.PATH).read_text("utf-8")


def test_a_switch_from_the_other_server_is_told_and_can_be_undone(home: Path, tmp_path: Path) -> None:
    store = tmp_path / ".kimi-code-memory" / "workspace-0123456789ab" / "memory" / "a.md"
    store.parent.mkdir(parents=True)
    store.write_text("kept", encoding="utf-8")
    write(
        home,
        {
            mcp_json.PATH: json.dumps({"mcpServers": {"kimi-memory": OTHER_ENTRY}}).encode(),
            agents_md.PATH: OTHER_BLOCK.encode(),
            skill.PATH: b"theirs",
        },
    )
    before = tree(home)
    assert "kimi-code-memory-mcp-server is set up" in setup().output
    assert store.read_text("utf-8") == "kept"
    setup("--undo")
    assert tree(home) == before


def test_check_proves_it_by_starting_the_server_and_the_hook(home: Path) -> None:
    missing = setup("--check")
    assert missing.exit_code == 4 and missing.output.count("✗") == 6
    setup()
    before = tree(home.parent)
    found = setup("--check")
    assert found.exit_code == 0, found.output
    assert found.output.count("✓") == 6 and "20 tools" in found.output
    assert tree(home.parent) == before
    value = json.loads((home / mcp_json.PATH).read_text("utf-8"))
    value["mcpServers"]["kimi-memory"]["command"] = "/nowhere/python"
    (home / mcp_json.PATH).write_text(json.dumps(value), encoding="utf-8")
    broken = setup("--check")
    assert broken.exit_code == 4 and "✗ the server does not start" in broken.output


def test_options_that_exclude_each_other(home: Path) -> None:
    for words in (["--undo", "--check"], ["--check", "--dry-run"], ["--plugin", "x", "--undo"]):
        assert setup(*words).exit_code == 2
    assert not home.exists()


def test_the_record_is_ours_alone(home: Path) -> None:
    setup()
    assert [path.name for path in home.iterdir() if path.name.startswith(".")] == [record.FOLDER]
    assert [path.name for path in (home / record.FOLDER).iterdir()] == ["record.json"]


def test_the_plugin_folder_has_all_in_one(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "plugin"
    assert setup("--plugin", str(folder)).exit_code == 0
    manifest = json.loads((folder / "kimi.plugin.json").read_text("utf-8"))
    server = manifest["mcpServers"]["memory"]
    assert server["command"].startswith("./") and os.access(folder / server["command"], os.X_OK)
    assert {hook["event"] for hook in manifest["hooks"]} == {"SessionStart", "Stop", "SessionEnd"}
    rules = (folder / manifest["systemPromptPath"]).read_text("utf-8")
    assert f"{TOOLS}bootstrap_workspace" in rules and "INJECTED" not in rules
    assert (folder / skill.PATH).exists() and not home.exists()
    version = subprocess.run(
        [folder / server["command"], "--version"], capture_output=True, text=True, check=True
    )
    assert "version" in version.stdout
    assert write_plugin(folder, this_installation({}), "en") == ()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "work").touch()
    assert setup("--plugin", str(tmp_path / "mine")).exit_code != 0
