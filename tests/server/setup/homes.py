"""Kimi homes as people have them: random files in every style that Kimi reads, and a home's bytes to compare."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from server.setup import agents_md, hooks_toml, mcp_json, record, skill
from server.setup.model import Plan
from server.setup.plan import Options
from server.setup.wiring import Wiring

WIRING = Wiring(
    "/home/dev/.venv/bin/python", "/home/dev/it's here/server/cli.py", "/home/dev/it's here/server/hook.py"
)
ENGLISH = Options(WIRING, "en")
CHINESE = Options(WIRING, "zh")
ALL_FOLDERS = (".", "skills", "skills/memory-manage")

OTHER_ENTRY: dict[str, Any] = {
    "command": "npx",
    "args": ["-y", "kimi-code-memory-mcp-server"],
    "env": {"MEMORY_STORE_ROOT": "/home/dev/memory", "LOG_LEVEL": "debug"},
}
OTHER_BLOCK = (
    "<!-- KIMI-MEMORY-INJECTED-START -->\n# 启动协议\n必须先调用 bootstrap\n<!-- KIMI-MEMORY-INJECTED-END -->"
)

WORDS = st.text(
    st.characters(codec="utf-8", exclude_characters="\x00", exclude_categories=["Cs"]), max_size=12
)
SCALARS = st.one_of(WORDS, st.integers(-9, 9), st.booleans(), st.none(), st.floats(-9, 9))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
SERVERS = st.dictionaries(
    WORDS.filter(lambda name: name != "kimi-memory"),
    st.fixed_dictionaries(
        {"command": WORDS}, optional={"args": st.lists(WORDS, max_size=2), "extra": VALUES}
    ),
    max_size=3,
)


@st.composite
def json_files(draw: st.DrawFn) -> bytes | None:
    """A valid mcp.json in any layout, ours, the other server's or nobody's entry in it; or none, or an empty one."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from([None, b"", b"\n", b" \r\n"]))
    value: dict[str, Any] = dict(
        draw(st.dictionaries(WORDS.filter(lambda key: key != "mcpServers"), VALUES, max_size=2))
    )
    if draw(st.booleans()):
        servers = dict(draw(SERVERS))
        if draw(st.booleans()):
            servers["kimi-memory"] = draw(st.sampled_from([OTHER_ENTRY, {"command": "mine"}, "broken", None]))
        value["mcpServers"] = servers
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    if draw(st.booleans()):
        text = json.dumps(
            value, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1, 2, 4, "\t"]))
        )
        text = text.replace("\n", newline)
    else:
        text = "".join(_render(draw, value, newline))
    return (text + draw(st.sampled_from(["", newline, newline * 3, "  "]))).encode("utf-8")


def _render(draw: st.DrawFn, value: object, newline: str) -> list[str]:
    """JSON with white space wherever JSON allows it."""

    def space() -> str:
        return draw(st.sampled_from(["", "", " ", newline, newline + "   ", "\t"]))

    if not isinstance(value, dict | list):
        return [space(), json.dumps(value, ensure_ascii=False), space()]
    pieces = ["{" if isinstance(value, dict) else "[", space()]
    for index, item in enumerate(value):
        pieces += [","] if index else []
        if isinstance(value, dict):
            pieces += [space(), json.dumps(item, ensure_ascii=False), space(), ":"]
            item = value[item]
        pieces += _render(draw, item, newline)
    return [*pieces, space(), "}" if isinstance(value, dict) else "]"]


TOML_LINES = st.sampled_from(
    [
        "",
        "# a comment: 注释",
        'theme = "dark"  # kept',
        "[loop_control]",
        "max_steps_per_turn = 30",
        "   odd.key = [1,\n  2, # two\n]",
        "[providers.kimi]",
        'text = """\nmany\n[[hooks]] # no table\nlines"""',
        '[[hooks]]\nevent = "Stop" # theirs\ncommand = "say done"',
        '[[hooks]]\n\tcommand = "x"\n\tevent = "SessionStart"\n\ttimeout = 3',
    ]
)


@st.composite
def toml_files(draw: st.DrawFn) -> bytes | None:
    """A valid config.toml: comments, odd indentation, hooks as tables or in line; or none."""
    if draw(st.integers(0, 9)) == 0:
        return None
    lines = list(draw(st.lists(TOML_LINES, max_size=8, unique=True)))
    if draw(st.booleans()) and not any("[[hooks]]\n" in line for line in lines):
        lines.insert(
            0, draw(st.sampled_from(["hooks = []", 'hooks = [ {event = "Stop", command = "x"}, ] # theirs']))
        )
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    text = newline.join(line.replace("\n", newline) for line in lines) + draw(st.sampled_from(["", newline]))
    return text.encode("utf-8") if valid_toml(text) else b"# plain\n"


def valid_toml(text: str) -> bool:
    import tomllib

    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


@st.composite
def markdown_files(draw: st.DrawFn) -> bytes | None:
    """An AGENTS.md: with and without a byte order mark, line end, the other server's block."""
    if draw(st.integers(0, 9)) == 0:
        return None
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    words = draw(st.lists(WORDS.filter(lambda word: "KIMI-MEMORY" not in word), max_size=5))
    if draw(st.booleans()):
        words.insert(draw(st.integers(0, len(words))), OTHER_BLOCK.replace("\n", newline))
    text = (
        draw(st.sampled_from(["", "\ufeff"]))
        + newline.join(words)
        + draw(st.sampled_from(["", newline, newline * 2]))
    )
    return text.encode("utf-8")


SKILLS = st.sampled_from([None, b"", b"---\r\nname: memory-manage\r\n---\r\nold", "技能\n".encode()])
HOMES = st.fixed_dictionaries(
    {
        mcp_json.PATH: json_files(),
        agents_md.PATH: markdown_files(),
        skill.PATH: SKILLS,
        hooks_toml.PATH: toml_files(),
        record.PATH: st.none(),
    }
)


def after(files: Mapping[str, bytes | None], plan: Plan) -> dict[str, bytes | None]:
    """The files once the plan is carried out."""
    changed = dict(files)
    for change in plan.changes:
        assert changed.get(change.path) == change.before
        assert change.before != change.after
        changed[change.path] = change.after
    return changed


def write(home: Path, files: Mapping[str, bytes | None]) -> None:
    """Make a home of these files."""
    home.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        if data is not None:
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_bytes(data)


def tree(home: Path) -> dict[str, bytes | str | None]:
    """Everything below a folder: a file's bytes, a link's target, ``None`` for a folder."""
    found: dict[str, bytes | str | None] = {}
    for path in sorted(home.rglob("*")):
        name = path.relative_to(home).as_posix()
        if path.is_symlink():
            found[name] = str(path.readlink())
        else:
            found[name] = path.read_bytes() if path.is_file() else None
    return found
