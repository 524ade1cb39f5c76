"""Documentation and code part ways only if a test says so."""

from __future__ import annotations

import re
from pathlib import Path

from pipeline.cli import COMMANDS
from pipeline.errors import ExitCode
from pipeline.settings import SETTINGS

ROOT = Path(__file__).parent.parent


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_every_setting_is_in_the_table() -> None:
    for setting in SETTINGS:
        row = f"| `{setting.env}` | {f'`{setting.key}`' if setting.key else ''} | {setting.default} | {setting.meaning} |"
        assert row in text("docs/settings.md")


def test_every_command_is_in_the_readme() -> None:
    for name in COMMANDS:
        assert re.search(rf"`[^`]*\b{name}\b[^`]*`", text("README.md")), name


def test_every_exit_code_is_documented() -> None:
    for code in ExitCode:
        assert re.search(rf"\|? ?{int(code)}\b", text("docs/cli.md"))


def test_local_links_lead_somewhere() -> None:
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
