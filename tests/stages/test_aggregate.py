"""The aggregator on invented dialogues: what belongs to a theme, and what only looks like it."""

from __future__ import annotations

import dataclasses

import pytest

from stages.aggregate import aggregate, is_candidate
from stages.clusters import later_decisions
from stages.evidence import Stats
from stages.model import Entities, RefinedTurn, Theme
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


def members(theme: Theme, session_id: str) -> list[int]:
    return [pointer.key.turn_id for pointer in theme.pointers if pointer.key.session_id == session_id]


def corpus(*more: RefinedTurn) -> list[RefinedTurn]:
    """Ordinary work around the theme: a small project's other sessions."""
    other = [
        Said(
            "the search box loses focus while typing",
            "The input kept its key; focus stays.",
            ("web/search.tsx",),
        ),
        Said("sort results by date", "Results are sorted by date, newest first.", ("web/search.tsx",)),
        Said("bump the linter", "ESLint is 9.31 now; two rules were renamed.", ("package.json",)),
    ]
    return [
        *session("colours", COLOURS, day=3),
        *session("invoices", INVOICES, day=4),
        *session("other", other, day=5),
        *more,
    ]


def test_follow_ups_belong_and_a_new_subject_in_the_same_session_does_not() -> None:
    found = corpus(*session("s", [*PORT, *COLOURS]))
    theme = aggregate("port-fight", ["EADDRINUSE", "port"], found)
    assert members(theme, "s") == [0, 1, 2, 3]
    assert {pointer.key.session_id for pointer in theme.pointers} == {"s"}


def test_an_interlude_about_something_else_does_not_belong() -> None:
    found = corpus(*session("s", [*PORT[:2], COLOURS[0], COLOURS[1], *PORT[2:]]))
    theme = aggregate("port-fight", ["EADDRINUSE", "port", "listenPort"], found)
    assert members(theme, "s")[:2] == [0, 1]
    assert not {2, 3} & set(members(theme, "s"))


def test_chinese_follow_ups_belong() -> None:
    said = [
        Said(
            "端口 3000 被占用，第二个窗口的服务起不来",
            "监听端口写死为 3000，第二个服务报端口被占用。",
            ("src/server.ts",),
        ),
        Said("改成被占用就换端口", "端口被占用时换到 3001。", ("src/server.ts",)),
        Said("还是报错", "IPv6 没有换端口，已一并处理。"),
        Said("好，提交吧", "已提交。"),
        Said("另外，把登录页的按钮改成蓝色", "登录按钮改成了 #1f6feb。", ("web/login.css",)),
        Said("圆角再大一点", "圆角改为 10px。", ("web/login.css",)),
    ]
    theme = aggregate("端口冲突", ["端口", "被占用"], corpus(*session("s", said)))
    assert members(theme, "s") == [0, 1, 2, 3]


def test_via_says_how_a_turn_came_in() -> None:
    theme = aggregate("port-fight", ["EADDRINUSE", "port"], corpus(*session("s", PORT)))
    via = {pointer.key.turn_id: pointer.via for pointer in theme.pointers}
    assert via[0] == "seed" and via[3] == "follow-up"
    assert all(0 < pointer.score <= 1 for pointer in theme.pointers)


def test_other_words_and_the_other_language_are_found_through_what_sure_turns_share() -> None:
    told = [
        Said(
            "the cache of parsed wires grows without bound",
            "WireCache in src/wire_cache.py never evicts: OOM.",
            ("src/wire_cache.py",),
            symbols=("WireCache", "max_entries"),
        ),
        Said(
            "evict the oldest",
            "WireCache evicts the oldest entry above max_entries.",
            ("src/wire_cache.py",),
            symbols=("WireCache", "max_entries"),
        ),
    ]
    again = [
        Said(
            "内存一直涨，WireCache 的 max_entries 没有生效",
            "max_entries 从未传给 WireCache，现在传了。",
            ("src/wire_cache.py",),
            symbols=("WireCache", "max_entries"),
        )
    ]
    found = corpus(*session("s1", told), *session("s2", told[:1], day=1), *session("s3", again, day=2))
    theme = aggregate("cache-growth", ["evict", "cache"], found)
    assert members(theme, "s3") == [0]


EVERYWHERE = [
    Said(f"change {what} in main.go", f"main.go now handles {what}.", ("main.go",))
    for what in ("flags", "signals", "colours", "locale", "retries", "paths", "umask", "pager")
]


def test_a_seed_that_is_everywhere_does_not_drag_everything_in() -> None:
    found = [
        turn
        for number, said in enumerate(EVERYWHERE)
        for turn in session(
            f"w{number}",
            [
                said,
                Said(f"write a test for {said.user.split()[1]}", "Done, main.go is covered.", ("main.go",)),
            ],
            day=number,
        )
    ]
    found += session(
        "proxy",
        [
            Said(
                "requests through the SOCKS proxy hang in main.go",
                "The SOCKS dialer had no deadline.",
                ("main.go", "proxy/socks.go"),
            ),
            Said("give the SOCKS dialer a deadline", "dialTimeout is 10 s.", ("proxy/socks.go",)),
        ],
        day=20,
    )
    theme = aggregate("socks-proxy", ["SOCKS", "main.go"], found)
    assert members(theme, "proxy") == [0, 1]
    assert len(theme.pointers) <= 4


def test_the_company_of_a_seed_settles_its_meaning() -> None:
    auth = [
        Said(
            "the login token expires too early",
            "The JWT token's exp was in ms; login lasts 14 days now.",
            ("auth/jwt.py",),
        ),
        Said(
            "refresh the login token silently",
            "The JWT token is refreshed a day before it lapses.",
            ("auth/jwt.py",),
        ),
    ]
    parser = [
        Said(
            "the lexer drops a token at end of file",
            "The lexer yields the last token of the file.",
            ("lang/lexer.py",),
        )
    ]
    found = corpus(*session("a1", auth), *session("a2", auth, day=1), *session("p", parser, day=2))
    theme = aggregate("login", ["token", "login", "JWT"], found)
    score = {p.key.session_id: p.score for p in theme.pointers}
    assert members(theme, "a1") == members(theme, "a2") == [0, 1]
    assert score.get("p", 0.0) < score["a1"]


def test_turns_that_did_nothing_are_left_out() -> None:
    said = [PORT[0], Said("[Request interrupted by user for tool use]", ""), PORT[1]]
    assert members(aggregate("t", ["EADDRINUSE", "port"], corpus(*session("s", said))), "s") == [0, 2]


@pytest.mark.parametrize(
    ("said", "agent", "candidate"),
    [
        (Said("port"), "main", True),
        (Said("port", status="cancelled"), "main", True),
        (Said("port", status="failed"), "main", True),
        (Said("port", status="blocked"), "main", False),
        (Said("port", status="running"), "main", False),
        (Said("port"), "agent-0", False),
        (Said("nightly check", "", origin="cron_job"), "main", False),
        (Said("nightly check", "Found a stale lock.", origin="cron"), "main", True),
        (Said("go on", "", origin="system_trigger/goal_continuation"), "main", False),
        (Said("task done", "", ("a.py",), origin="task"), "main", True),
        (Said("task done", "", origin="background_task"), "main", False),
        (Said("skill text", "", origin="skill"), "main", True),
    ],
)
def test_candidates(said: Said, agent: str, candidate: bool) -> None:
    assert is_candidate(session("s", [said], agent=agent)[0]) == candidate


def test_blocked_turns_stay_out_even_with_every_seed() -> None:
    said = [PORT[0], dataclasses.replace(PORT[1], status="blocked")]
    assert members(aggregate("t", ["port"], corpus(*session("s", said))), "s") == [0]


def test_corpus_statistics_weigh_seeds_of_a_small_candidate_set() -> None:
    found = session("s", PORT)
    common = Stats(8_000, {"port": 6_000, "eaddrinus": 3})
    theme = aggregate("t", ["port", "EADDRINUSE"], found, stats=common)
    assert 0 in members(theme, "s")


def test_no_seed_or_an_unknown_one_gives_an_empty_theme() -> None:
    for seeds in ([], ["zebra"], ["   "], ["!!"]):
        theme = aggregate("t", seeds, corpus())
        assert (theme.pointers, theme.clusters) == ((), ())
    assert aggregate("t", ["port"], []).pointers == ()


# --- clusters ----------------------------------------------------------------------------------------------


def test_clusters_are_runs_with_decisions_and_files() -> None:
    found = corpus(*session("s", [*PORT, *COLOURS, *PORT[:2]]))
    clusters = [c for c in aggregate("t", ["EADDRINUSE", "port"], found).clusters if c.session_id == "s"]
    assert [cluster.turn_ids for cluster in clusters] == [(0, 1, 2, 3), (7, 8)]
    assert clusters[0].decision and clusters[0].decisions == (
        (1, "Fall back to port 3001 and never kill the other process."),
    )
    assert clusters[0].files == ("src/mcp/server.ts",)
    assert clusters[0].start < clusters[0].end < clusters[1].start
    assert len({cluster.id for cluster in clusters}) == 2 and all(
        len(cluster.id) == 12 for cluster in clusters
    )


def test_a_cluster_keeps_its_id_when_it_grows() -> None:
    shorter = aggregate("t", ["EADDRINUSE", "port"], corpus(*session("s", PORT[:2])))
    longer = aggregate("t", ["EADDRINUSE", "port"], corpus(*session("s", PORT)))
    assert shorter.clusters[0].id == longer.clusters[0].id


def test_later_decisions_on_the_same_subject_only() -> None:
    later = [
        Said(
            "a random port would end EADDRINUSE",
            "The port of src/mcp/server.ts is random now.",
            decided="Use a random port instead of falling back to port 3001.",
        )
    ]
    unlike = [
        Said("EADDRINUSE of port 3001 in CI", "CI waits.", decided="Run the suite serially on Windows.")
    ]
    found = corpus(*session("s1", PORT), *session("s2", later, day=6), *session("s3", unlike, day=8))
    theme = aggregate("port-fight", ["EADDRINUSE", "port"], found)
    listed = later_decisions(theme)
    first = theme.clusters[0]
    assert [(each.session_id, each.turn_id) for each in listed[first.id, 0]] == [("s2", 0)]
    assert sum(len(each) for each in listed.values()) == 1


def test_sub_agents_text_never_makes_a_member_by_itself() -> None:
    found = [*corpus(), *session("s", PORT, agent="agent-1")]
    assert aggregate("t", ["EADDRINUSE"], found).pointers == ()


def test_entities_alone_can_bring_a_turn_in() -> None:
    silent = Said("have another look", "Looks fine now.", ("src/mcp/server.ts",), symbols=("listenPort",))
    found = corpus(*session("s1", PORT[:2]), *session("s2", PORT[:2], day=1), *session("s3", [silent], day=2))
    turn = next(each for each in found if each.key.session_id == "s3")
    assert turn.refined.entities == Entities(files_written=("src/mcp/server.ts",), symbols=("listenPort",))
    with_entities = aggregate("t", ["EADDRINUSE", "port"], found)
    via = {(p.key.session_id, p.key.turn_id): p.via for p in with_entities.pointers}
    assert via.get(("s3", 0)) in ("entity", "follow-up", None)
