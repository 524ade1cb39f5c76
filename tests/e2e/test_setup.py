"""Setup, then the real client, then undo: the client accepts every file, and gets its own bytes back."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.kimi import Kimi
from tests.e2e.model_server import Call, ModelServer, Reply

FILES = {
    "mcp.json": '{\r\n\t"mcpServers" : {\r\n\t\t"off": { "command":"none", "enabled":false }\r\n\t}\r\n}',
    "AGENTS.md": "# Rules\r\n\r\n总是用中文回答。",
    "config.toml": "# my settings\n[loop_control]\n  max_steps_per_turn = 40 # enough\n\n"
    '[[hooks]]\nevent = "Stop"\ncommand = "true"',
    "skills/other/SKILL.md": "---\nname: other\ndescription: something else\n---\nOther.\n",
}


def write(home: Path) -> None:
    for name, text in FILES.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(text.encode())


def bytes_of(home: Path) -> dict[str, bytes]:
    return {name: (home / name).read_bytes() for name in FILES}


def test_the_home_is_byte_identical_after_undo(bare: Kimi, model: ModelServer) -> None:
    write(bare.home)
    before = bytes_of(bare.home)
    bare.setup()
    assert bytes_of(bare.home) != before
    doctor = bare.run("doctor", "config").checked()
    assert "OK config.toml" in doctor.out
    model.say(Reply(calls=(Call("mcp__kimi-memory__bootstrap_workspace"),)), Reply("Hello."))
    said = bare.prompt("Hello")
    assert "hooks" not in said.err.lower() and "invalid" not in said.err.lower(), said.err
    system = model.answered()[0].system
    assert "总是用中文回答" in system and "something else" in system and "memory-manage" in system
    undone = bare.setup("--undo")
    assert "warning" not in undone.out
    assert bytes_of(bare.home) == before
    assert (
        not (bare.home / ".kimi-memory-setup").exists()
        and not (bare.home / "skills" / "memory-manage").exists()
    )
    bare.prompt("Still there?")
    request = model.answered()[-1]
    assert "kimi-memory" not in request.system and not [
        name for name in request.tools if "kimi-memory" in name
    ]


def test_undo_takes_only_our_part_out_of_a_file_that_kimi_rewrote(bare: Kimi) -> None:
    (bare.home).mkdir()
    provider = '[providers.x]\ntype = "openai"\nbase_url = "http://127.0.0.1:9/v1"\napi_key = "k"\n'
    (bare.home / "config.toml").write_text(f"# mine\n{provider}", encoding="utf-8")
    bare.setup()
    bare.run("provider", "remove", "x").checked()
    assert "providers" not in (bare.home / "config.toml").read_text("utf-8")
    value = json.loads((bare.home / "mcp.json").read_text("utf-8"))
    value["mcpServers"]["later"] = {"command": "none"}
    (bare.home / "mcp.json").write_text(
        json.dumps(value, indent=2) + "\n", encoding="utf-8"
    )  # as Kimi's /mcp does
    undone = bare.setup("--undo")
    assert undone.out.count("only our part is taken out") == 2
    assert (bare.home / "config.toml").read_text("utf-8").strip() == "# mine"
    assert json.loads((bare.home / "mcp.json").read_text("utf-8")) == {
        "mcpServers": {"later": {"command": "none"}}
    }


def test_check_agrees_with_the_client(kimi: Kimi) -> None:
    checked = kimi.ours("server.cli", "setup", "--check").checked()
    assert checked.out.count("✓") == 6, checked.out


def test_the_plugin_serves_the_right_workspace(bare: Kimi, model: ModelServer) -> None:
    """A plugin's server starts in the plugin's folder; the hooks' map tells it where the session is."""
    folder = bare.root / "plugin"
    bare.setup("--plugin", str(folder))
    row = {"id": "kimi-memory", "root": str(folder), "source": "local-path", "enabled": True}
    installed = {"version": 1, "plugins": [row | {"installedAt": "2026-11-30T10:00:00.000Z"}]}
    (bare.home / "plugins").mkdir(parents=True)
    (bare.home / "plugins" / "installed.json").write_text(json.dumps(installed), encoding="utf-8")
    model.say(Reply("We take SQLite for the queue."))
    bare.prompt("Which store for the queue?")
    prefix = "mcp__plugin-kimi-memory_memory__"
    model.say(
        Reply(calls=(Call(f"{prefix}bootstrap_workspace"),)),
        Reply(calls=(Call(f"{prefix}search_context", {"query": "queue", "detail": "normal"}),)),
        Reply("Done."),
    )
    bare.prompt("What do we know?")
    request = model.answered()[-1]
    begun, found = request.results
    assert f"Workspace {bare.project}" in begun, begun
    assert "SQLite for the queue" in found, found
    assert f"{prefix}bootstrap_workspace" in request.system and "memory-manage" in request.system
