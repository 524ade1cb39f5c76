"""The tools that follow a subject: cold start, joining runs, tracing in pages, what a person changes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest

from pipeline import demo as samples
from pipeline.store.files import write_json
from stages.discover import Suggestion
from stages.model import RefinedTurn
from tests.server.cases import (
    PAYMENT,
    REFRESH,
    REVIEW,
    Asked,
    asked,
    demo_env,
    env_of,
    fenced_part,
    files_of,
    golden,
)
from tests.wires import Home, edit, say

pytestmark = pytest.mark.anyio
KEYWORDS = list(samples.KEYWORDS)
NOW = 1_796_033_702_000


def cluster(
    name: str, session: str, turns: list[int], start: str, summary: str, decided: str = ""
) -> dict[str, object]:
    decisions = [{"turnId": turns[-1], "text": decided}] if decided else []
    return {
        "id": name, "sessionId": session, "agentId": "main", "turnIds": turns, "positions": turns, "start": start,
        "end": start, "summary": summary, "decision": bool(decided), "decisions": decisions, "files": ["auth.py"],
    }  # fmt: skip


def kept_theme(store: Path) -> None:
    """A theme file with three clusters, a memory and a turn that was tagged."""
    write_json(
        store / "themes" / "tokens.json",
        {
            "theme": "tokens", "displayName": "Login tokens", "createdAt": "2026-11-20T08:00:00.000Z",
            "updatedAt": "2026-11-20T08:00:00.000Z", "producer": "kimi-memory-pipeline", "seeds": ["login token"],
            "removedSeeds": [], "pins": [], "exclusions": [],
            "turns": [
                {"sessionId": PAYMENT, "agentId": "main", "turnId": 4, "position": 4, "via": "tagged",
                 "timestamp": "2026-11-18T16:51:00.000Z"},
            ],
            "clusters": [
                cluster("b", REFRESH, [2], "2026-11-13T09:50:00.000Z", "Where refresh tokens are kept.",
                        "Keep the refresh token hashed in the Postgres table."),
                cluster("a", REVIEW, [0, 1], "2026-11-11T14:20:00.000Z", "How the login token is kept.",
                        "Keep the login token in an HttpOnly cookie, the refresh token hashed in a table."),
            ],
            "memories": [{"key": "auth", "folder": "memory/decisions", "title": "Auth", "timestamp": None}],
        },
    )  # fmt: skip


# --- run_theme ---------------------------------------------------------------------------------------------


async def test_a_new_theme_without_keywords_suggests_and_builds_nothing(demo: Asked) -> None:
    text = await demo.ask("run_theme", theme="login tokens")
    assert "is new: nothing was run" in text and "Suggested keywords" in text
    assert not (demo.shop / "themes").exists()
    assert "none since this server started" in await demo.ask("pipeline_status")


async def test_a_run_builds_and_a_second_one_changes_nothing(demo: Asked) -> None:
    first = await demo.ask("run_theme", theme="login-tokens", keywords=KEYWORDS)
    assert "saved in" in first and "Next: trace_theme" in first
    before = files_of(demo.shop)
    assert "unchanged in" in await demo.ask("run_theme", theme="login-tokens")
    assert files_of(demo.shop) == before
    assert "login-tokens” " in (await demo.ask("pipeline_status")).replace("”:", "” ")
    assert "\ndecided (turn " in (await demo.ask("trace_theme", theme="LOGIN-tokens")).replace("\n   ", "\n")


async def test_concurrent_calls_for_one_theme_join_one_run(demo: Asked) -> None:
    texts: list[str] = []

    async def ask() -> None:
        texts.append(await demo.ask("run_theme", theme="login-tokens", keywords=KEYWORDS))

    async with anyio.create_task_group() as group:
        for _ in range(6):
            group.start_soon(ask)
    assert len(set(texts)) == 1, "all got the result of the same run"
    assert len((await demo.space()).runs.all()) == 1


async def test_a_run_with_other_keywords_follows_and_adds_them(demo: Asked) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: demo.ask("run_theme", theme="t", keywords=["cookie"]))
        group.start_soon(lambda: demo.ask("run_theme", theme="t", keywords=["refresh token"]))
    assert orjson.loads((demo.shop / "themes" / "t.json").read_bytes())["seeds"] in (
        ["cookie", "refresh token"],
        ["refresh token", "cookie"],
    )
    await demo.ask("run_theme", theme="t", keywords=["login token"], replace_keywords=True)
    assert orjson.loads((demo.shop / "themes" / "t.json").read_bytes())["seeds"] == ["login token"]


async def test_a_run_outlives_the_call_that_began_it(demo: Asked) -> None:
    text = await demo.ask("run_theme", theme="login-tokens", keywords=KEYWORDS, wait_seconds=0)
    assert "goes on in the background" in text
    run = (await demo.space()).runs.of("login-tokens")
    assert run is not None
    with anyio.fail_after(20):
        await run.done.wait()
    assert "saved in" in await demo.ask("pipeline_status", theme="login-tokens")


async def test_progress_is_reported_to_a_client_that_asks(demo: Asked) -> None:
    seen: list[str | None] = []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append(message)

    arguments = {"theme": "login-tokens", "keywords": KEYWORDS}
    await demo.client.call_tool("run_theme", arguments, progress_callback=progress)
    assert seen and set(seen) <= {"waiting", "reading new turns", "searching and refining"}


async def test_a_failed_run_tells_why_and_the_server_goes_on(
    demo: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise RuntimeError("boom")

    with monkeypatch.context() as patched:
        patched.setattr("server.runs.build_theme_apart", broken)
        assert "the run failed: RuntimeError" in await demo.fails("run_theme", theme="x", keywords=["cookie"])
        assert "failed after" in await demo.ask("pipeline_status", theme="x")
    with monkeypatch.context() as patched:
        patched.setattr("sys.executable", "/bin/false")
        found = await demo.fails("run_theme", theme="x", keywords=["cookie"])
        assert "the process of the run ended" in found
    assert "saved in" in await demo.ask("run_theme", theme="x", keywords=["cookie"])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "theme: missing"),
        ({"theme": ""}, "theme: is empty"),
        ({"theme": "../x", "keywords": ["a"]}, "climbs"),
        ({"theme": "x", "keywords": ["a"], "since": "soon"}, "since 'soon' is no date"),
        ({"theme": "x", "replace_keywords": True}, "replace_keywords: needs keywords"),
        ({"theme": "x", "keywords": ["a"], "wait_seconds": 51}, "from 0 to 50"),
    ],
)
async def test_run_says_what_is_wrong(demo: Asked, arguments: dict[str, object], says: str) -> None:
    assert says in await demo.fails("run_theme", **arguments)


async def test_there_is_nothing_to_build_from_without_sessions(tmp_path: Path) -> None:
    async with asked(env_of(tmp_path / "none", tmp_path / "store"), str(tmp_path)) as server:
        assert "no session was recorded" in await server.fails("run_theme", theme="x", keywords=["a"])
        assert "no session was recorded" in await server.ask("run_theme", theme="x")


# --- trace_theme -------------------------------------------------------------------------------------------


async def test_a_trace_tells_the_story_by_turn_time(demo: Asked) -> None:
    kept_theme(demo.shop)
    text = await demo.ask("trace_theme", theme="tokens")
    golden("trace_theme", text, demo.store_root)
    assert text.index(REVIEW) < text.index(f"2026-11-13 09:50  {REFRESH}")
    assert "later on the same subject: 2026-11-13" in text


@pytest.mark.parametrize("chinese", [False, True])
async def test_a_trace_quotes_a_decision_once(tmp_path: Path, chinese: bool) -> None:
    asks = ["Where do we keep the refresh token?", "Which table holds the refresh token?", "Does it rotate?"]
    said = [
        "Decided: the refresh token goes into an httpOnly cookie, never into localStorage.",
        "Decided: the refresh token is hashed in the Postgres table, not in Redis.",
        "Decided: the refresh token rotates at every use, an old one ends the session.",
    ]
    if chinese:
        asks = ["刷新令牌放在哪里？", "刷新令牌存在哪张表？", "刷新令牌要轮换吗？"]
        said = [
            "决定：刷新令牌放进 httpOnly cookie，不放 localStorage。",
            "决定：刷新令牌的哈希存进 Postgres 表，不放 Redis。",
            "决定：刷新令牌每次使用都轮换，旧的令牌会结束会话。",
        ]
    home = Home(tmp_path / "home")
    for day, (asked_for, decided) in enumerate(zip(asks, said, strict=True)):
        session = home.session("/home/dev/app", at=1_796_033_702_000 + day * 86_400_000)
        session.main.turn(
            asked_for, say("I look.", edit("auth.py", f"A = {day}", f"A = {day + 1}")), say(decided)
        )
        home.write()
        async with asked(env_of(home.root, tmp_path / "store"), "/home/dev/app") as server:
            await server.ask(
                "run_theme", theme="tokens", keywords=["刷新令牌" if chinese else "refresh token"]
            )
            text = await server.ask("trace_theme", theme="tokens")
        for each in said[: day + 1]:
            assert text.count(each.partition("：" if chinese else ": ")[2].rstrip(".。")) == 1, text
        assert text.count(session.session_id) >= 1 and text.count("decided (turn 0)") == day + 1


async def test_a_trace_shows_what_was_said_though_nothing_is_refined(demo: Asked) -> None:
    kept_theme(demo.shop)
    await demo.ask("search_context", query="cookie")
    text = await demo.ask("trace_theme", theme="tokens", includeTurnContent=True)
    assert "turn 1 asked: 那就改成 HttpOnly cookie，SameSite 用 Lax" in text
    assert "turn 4 asked: ship it, and note what is still open" in text
    async with (await demo.space()).reading() as database:
        assert (await database.row("SELECT count(*) FROM refined"))[0] == 0, "tracing only reads"


async def test_a_trace_in_pages_adds_up(demo: Asked) -> None:
    kept_theme(demo.shop)
    whole = fenced_part(await demo.ask("trace_theme", theme="tokens", includeTurnContent=True))
    parts: list[str] = []
    cursor: str | None = None
    while True:
        more: dict[str, Any] = {"cursor": cursor} if cursor else {}
        text = await demo.ask("trace_theme", theme="tokens", includeTurnContent=True, max_chars=1_000, **more)
        assert len(text) <= 1_000
        parts.append(fenced_part(text))
        if "more: cursor " not in text:
            break
        cursor = text.rpartition("more: cursor ")[2].split()[0]
    assert len(parts) >= 2
    assert "".join("".join(parts).split()) == "".join(whole.split())
    assert "cursor: " in await demo.fails("trace_theme", theme="tokens", cursor=cursor)


async def test_a_trace_as_json_in_pages(demo: Asked) -> None:
    kept_theme(demo.shop)
    rows: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        more: dict[str, Any] = {"cursor": cursor} if cursor else {}
        text = await demo.ask("trace_theme", theme="tokens", format="json", max_chars=1_200, **more)
        page = orjson.loads(text)
        assert len(text) <= 1_200 and page["clusterCount"] == 2
        rows += page["timeline"]
        cursor = page["nextCursor"]
        if cursor is None:
            break
    assert [row.get("id") for row in rows] == ["a", "b", None]
    assert rows[0]["decisions"][0]["later"][0]["sessionId"] == REFRESH
    assert rows[2]["turns"][0]["turnId"] == 4


async def test_a_trace_of_no_theme_names_the_nearest(demo: Asked) -> None:
    kept_theme(demo.shop)
    assert "did you mean tokens?" in await demo.fails("trace_theme", theme="token")
    assert "text, json" in await demo.fails("trace_theme", theme="tokens", format="md")
    assert "from 1000 to 45000" in await demo.fails("trace_theme", theme="tokens", max_chars=10)


async def test_themes_are_listed_with_subjects_that_have_none(
    demo: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await demo.ask("list_themes") == "No theme yet: run_theme builds one."
    await demo.ask("refine_session_turns", sessionId=REVIEW)

    def one(turns: Sequence[RefinedTurn], **_: object) -> list[Suggestion]:
        places = tuple((turn.key.session_id, turn.key.agent_id, turn.key.position) for turn in turns)
        return [Suggestion("csrf", ("CSRF", "token"), places, 1, 0, 1, 1.0)]

    monkeypatch.setattr("server.tools.theme.discover_subjects", one)
    text = await demo.ask("list_themes")
    assert "Subjects without a theme" in text and "csrf: 5 turns in 1 session · keywords: CSRF, token" in text
    kept_theme(demo.shop)
    (demo.shop / "themes" / "bad.json").write_text("{torn", encoding="utf-8")
    text = await demo.ask("list_themes", suggest=False)
    assert "Login tokens · 1 turn in" in text and "bad.json is not a theme" in text
    assert "Subjects" not in text


# --- what a person does ------------------------------------------------------------------------------------


async def test_a_tagged_turn_stays_and_an_untagged_one_stays_out(demo: Asked) -> None:
    turn = {"theme": "login-tokens", "sessionId": PAYMENT, "turnId": 1}
    first = await demo.ask("tag_theme", **turn)
    before = files_of(demo.shop)
    assert "added to “login-tokens” (1 turn" in first and "already added" in await demo.ask(
        "tag_theme", **turn
    )
    assert files_of(demo.shop) == before
    await demo.ask("run_theme", theme="login-tokens", keywords=["localStorage"])
    assert f"{PAYMENT}  turn 1" in await demo.ask("trace_theme", theme="login-tokens")
    first = await demo.ask("untag_theme", **turn)
    assert "taken out of" in first and "already taken out" in await demo.ask("untag_theme", **turn)
    await demo.ask("run_theme", theme="login-tokens", keywords=["SameSite"])
    record = orjson.loads((demo.shop / "themes" / "login-tokens.json").read_bytes())
    assert (PAYMENT, 1) not in {(row["sessionId"], row["turnId"]) for row in record["turns"]}


async def test_a_memory_is_linked_and_unlinked(demo: Asked) -> None:
    await demo.ask("remember", key="auth", folder="decisions", content="x", title="Auth")
    assert "1 memories" in await demo.ask("tag_theme", theme="t", memoryKey="auth")
    assert "already added" in await demo.ask(
        "tag_theme", theme="t", memoryKey="auth", memoryFolder="decisions"
    )
    assert "0 memories" in await demo.ask("untag_theme", theme="t", memoryKey="auth")
    assert "nothing to change" in await demo.ask("untag_theme", theme="t", memoryKey="auth")
    assert "memoryKey: no memory 'none'" in await demo.fails("tag_theme", theme="t", memoryKey="none")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"theme": "t"}, "sessionId, turnId: name a turn with both"),
        ({"theme": "t", "sessionId": REVIEW}, "sessionId, turnId: name a turn with both"),
        (
            {"theme": "t", "sessionId": REVIEW, "turnId": 77},
            f"turnId: the store knows no turn 77 of {REVIEW}",
        ),
        ({"theme": "t", "sessionId": REVIEW, "turnId": -1}, "from 0"),
        ({"sessionId": REVIEW, "turnId": 0}, "theme: missing"),
    ],
)
async def test_tagging_says_what_is_wrong(demo: Asked, arguments: dict[str, object], says: str) -> None:
    assert says in await demo.fails("tag_theme", **arguments)
    assert not (demo.shop / "themes").exists()
    if "theme" in arguments:
        assert "there is no theme “t”" in await demo.fails(
            "untag_theme", theme="t", sessionId=REVIEW, turnId=0
        )


async def test_themes_are_renamed_merged_deleted_and_brought_back(demo: Asked) -> None:
    kept_theme(demo.shop)
    await demo.ask("tag_theme", theme="other", sessionId=REVIEW, turnId=0)
    assert (
        await demo.ask("manage_theme", action="rename", theme="other", to="review")
        == "“other” is now “review”"
    )
    assert (
        await demo.ask("manage_theme", action="rename", theme="other", to="review")
        == "“other” is now “review”"
    )
    first = await demo.ask("manage_theme", action="merge", theme="review", to="tokens")
    assert (
        "2 turns" in first
        and await demo.ask("manage_theme", action="merge", theme="review", to="tokens") == first
    )
    assert "deleted theme" in await demo.ask("delete_theme", theme="tokens")
    assert "(any more)" in await demo.ask("delete_theme", theme="tokens")
    assert "took back the last change" in await demo.ask("manage_theme", action="undo", theme="tokens")
    assert "Login tokens" in await demo.ask("list_themes", suggest=False)
    assert "to: missing" in await demo.fails("manage_theme", action="rename", theme="tokens")
    assert "there is no theme “none”" in await demo.fails(
        "manage_theme", action="merge", theme="none", to="nil"
    )
    assert "nothing is kept" in await demo.fails("manage_theme", action="undo", theme="none")


# --- refine, status ----------------------------------------------------------------------------------------


async def test_turns_are_refined_once(demo: Asked) -> None:
    text = await demo.ask("refine_session_turns", sessionId=REVIEW, turnIds=[1, 99])
    assert (
        "1 turn of" in text
        and "refined 1 now; it has no turn 99" in text
        and "wrote: shop/auth/login.py" in text
    )
    assert "refined 0 now" in await demo.ask("refine_session_turns", sessionId=REVIEW, turnIds=[1])
    assert (await demo.ask("refine_session_turns", sessionId=REVIEW, limit=2)).startswith("2 turns")
    assert "sessionId: the store knows no session nope" in await demo.fails(
        "refine_session_turns", sessionId="nope"
    )
    assert "turnIds[0]" in await demo.fails("refine_session_turns", sessionId=REVIEW, turnIds=["x"])


async def test_the_status_is_true(demo: Asked) -> None:
    assert "nothing indexed yet" in await demo.ask("pipeline_status")
    await demo.ask("search_context", query="cookie")
    text = await demo.ask("pipeline_status")
    assert "6 sessions, 8 logs" in text and "index: up to date" in text
    assert "no run of theme “x” since" in await demo.ask("pipeline_status", theme="x")


async def test_a_person_is_told_where_the_files_are(demo: Asked) -> None:
    assert f"{demo.shop}/essence/essence.md: standing rules and facts (not there yet)" in await demo.ask(
        "open_memory_dashboard"
    )


async def test_two_workspaces_keep_their_themes_apart(tmp_path: Path) -> None:
    async with asked(demo_env(tmp_path / "store"), str(tmp_path)) as server:
        await server.ask("tag_theme", theme="t", sessionId=REVIEW, turnId=0, workspace="/home/dev/shop")
        assert "t · 1 turn in" in await server.ask("list_themes", workspace="/home/dev/shop", suggest=False)
        assert "No theme yet" in await server.ask("list_themes")
