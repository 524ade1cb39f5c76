"""The aggregator on invented dialogues: what belongs to a theme, and what only looks like it."""

from __future__ import annotations

from stages.aggregate import aggregate
from stages.model import RefinedTurn, Theme
from tests.stages.dialogues import Said, session

PORT = [
    Said(
        "two windows fight for the port: the second server dies with EADDRINUSE",
        "src/mcp/server.ts always binds port 3000, so the second window fails with EADDRINUSE.",
        ("src/mcp/server.ts",),
        symbols=("listenPort",),
    ),
    Said(
        "fall back to 3001 and never kill the other process",
        "listenPort now tries 3001 when 3000 is taken and leaves the other process alone.",
        ("src/mcp/server.ts",),
        decided="Fall back to port 3001 and never kill the other process.",
        symbols=("listenPort",),
    ),
    Said("still fails", "The fallback was only used for IPv4; it is used for IPv6 now too."),
    Said("commit it", "Committed."),
]
COLOURS = [
    Said(
        "let's add a dark theme to the settings page",
        "The settings page has a dark theme; colours come from palette.css.",
        ("web/palette.css", "web/settings.tsx"),
    ),
    Said("make the buttons rounder", "Buttons have a radius of 8 px now.", ("web/palette.css",)),
    Said("commit it", "Committed."),
]
INVOICES = [
    Said("export invoices as PDF", "Invoices are exported with pdfkit.", ("billing/pdf.py",)),
    Said(
        "the totals are wrong when VAT is zero",
        "The VAT rate of zero was taken for none.",
        ("billing/vat.py",),
    ),
    Said("add a test for that", "tests/test_vat.py covers zero VAT.", ("tests/test_vat.py",)),
]


def members(theme: Theme) -> list[tuple[str, int]]:
    return [(pointer.key.session_id, pointer.key.turn_id) for pointer in theme.pointers]


def corpus() -> list[RefinedTurn]:
    return [
        *session("s1", [*PORT, *COLOURS]),
        *session("s2", INVOICES, day=1),
        *session(
            "s3",
            [COLOURS[1], Said("the port of the proxy is blocked: EADDRINUSE again", "server.ts"), PORT[2]],
            day=2,
        ),
    ]


def test_follow_ups_belong_and_a_new_subject_in_the_same_session_does_not() -> None:
    theme = aggregate("port-fight", ["EADDRINUSE", "port"], corpus())
    assert [number for session_id, number in members(theme) if session_id == "s1"] == [0, 1, 2, 3]
    assert not [number for session_id, number in members(theme) if session_id == "s2"]
