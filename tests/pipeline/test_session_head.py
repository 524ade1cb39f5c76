"""pipeline/session_head.py: titles from prompts, and what a wire's first lines tell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.session_head import Head, derive_title, read_head


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Fix the build", "Fix the build"),
        ("\n\n  Fix   the\tbuild \nplease", "Fix the build"),
        ("<system-reminder>\nToday is …\n</system-reminder>\n修复 登录", "修复 登录"),
        ('<git-context branch="main"/>\nlook at src', "look at src"),
        ("<git-context>\nmain\n</git-context>look at src", "look at src"),
        ('<image path="a.png">\n</image>what is this?', "what is this?"),
        ("[Image: a.png] why?", "why?"),
        ("<system-reminder> never closed\nFix", ""),
        ("```\n# Heading one", "Heading one"),
        ("a\u2028b\x1b[31mc", "a b [31mc"),
        ("???", ""),
        ("", ""),
    ],
)
def test_derive_title(text: str, title: str) -> None:
    assert derive_title(text) == title


def test_derive_title_cuts_at_a_word() -> None:
    assert derive_title("word " * 40, 20) == "word word word word…"
    assert derive_title("字" * 100, 20) == "字" * 19 + "…"


def write(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(r, separators=(",", ":")) + "\n" for r in records), encoding="utf-8")
    return path


def test_head_of_kimi_code(tmp_path: Path) -> None:
    wire = write(
        tmp_path / "wire.jsonl",
        {"type": "metadata", "protocol_version": "1.5", "created_at": 1796033702300},
        {"type": "profile.bind", "environmentDisclosure": {"cwd": "/home/dev/p"}},
        {"type": "turn.prompt", "input": [{"type": "text", "text": "<system-reminder>x</system-reminder>"}]},
        {"type": "turn.prompt", "input": [{"type": "text", "text": "hello"}]},
    )
    assert read_head(wire) == Head("/home/dev/p", 1796033702300, "hello")


def test_head_of_v1_with_a_cwd_in_config_update(tmp_path: Path) -> None:
    wire = write(
        tmp_path / "wire.jsonl",
        {"type": "config.update", "cwd": "/home/dev/p"},
        {"type": "context.append_message", "message": {"role": "user", "origin": {"kind": "injection"}}},
        {"type": "context.append_message", "message": {"role": "user", "content": "imported prompt"}},
    )
    assert read_head(wire) == Head("/home/dev/p", None, "imported prompt")


def test_head_of_kimi_cli(tmp_path: Path) -> None:
    wire = write(
        tmp_path / "wire.jsonl",
        {"type": "metadata", "protocol_version": "1.10"},
        {"timestamp": 1796034716.5, "message": {"type": "TurnBegin", "payload": {"user_input": "看看"}}},
    )
    assert read_head(wire) == Head(None, 1796034716500, "看看")


def test_head_of_what_cannot_be_read_tells_nothing(tmp_path: Path) -> None:
    garbage = tmp_path / "wire.jsonl"
    garbage.write_bytes(b'\0\xff\n{"type":\n[1]\n{"type":"turn.prompt","input":3}\n')
    assert read_head(garbage) == Head()
    assert read_head(tmp_path) == Head()
    assert read_head(tmp_path / "absent") == Head()


def test_head_stops_at_its_bound(tmp_path: Path) -> None:
    prompt = {"type": "turn.prompt", "input": [{"type": "text", "text": "late"}]}
    wire = write(tmp_path / "wire.jsonl", *[{"type": "x", "fill": "y" * 900}] * 20, prompt)
    assert read_head(wire, 10_000) == Head()
    assert read_head(wire).first_prompt == "late"
