"""`forget`: a dry run shows and changes nothing, `confirm` makes it go for good, sent again it changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from server.surface.everything import TOOLS, listed
from tests.server.cases import Asked, asked, env_of, fenced_part, files_of
from tests.wires import Home, agent, read, say

pytestmark = pytest.mark.anyio
CWD = "/home/dev/vault"
START = 1_796_000_000_000
DAY = 86_400_000
MARK = "falconryx"
"""A word of one turn, its sub-agent, and a summary of it."""


@pytest.fixture
async def vault(tmp_path: Path) -> AsyncIterator[tuple[Asked, list[str]]]:
    """A server over a session about a vault, whose second turn says MARK, a fork of it, and another session."""
    home = Home(tmp_path / "home", seed=5)
    session = home.session(CWD, at=START, title="vault")
    main = session.main
    main.turn("where is the vault opened?", say("In vault.py.", read("vault.py", "open()\n")), gap=60_000)
    main.turn(
        f"what does the {MARK} list say?",
        say("", agent(f"look at {MARK}", say(f"{MARK} found"), description="look")),
        say(f"Decided: the {MARK} list limits the vault to 9000."),
        gap=60_000,
    )
    main.compact(f"The person asked about {MARK}.")
    main.turn("close the vault", say("The vault is closed: decided to lock it daily."), gap=60_000)
    fork = session.fork(START + 2 * DAY)
    fork.main.turn("and in the fork?", say("The vault is the same."), gap=60_000)
    other = home.session(CWD, at=START + 3 * DAY, title="door")
    other.main.turn("which door leads to the vault?", say("The steel door."), gap=60_000)
    home.write()
    async with asked(env_of(home.root, tmp_path / "store"), CWD) as server:
        yield server, [session.session_id, fork.session_id, other.session_id]


async def store_of(server: Asked) -> Path:
    return (await server.space()).layout.root


async def test_it_is_listed_only_on_request_and_says_that_it_destroys(vault: tuple[Asked, list[str]]) -> None:
    assert "forget" not in {tool.name for tool in listed("default")}
    assert "forget" in {tool.name for tool in listed("all")}
    assert TOOLS["forget"].annotations["destructiveHint"] is True


async def test_a_dry_run_shows_what_goes_and_changes_nothing(vault: tuple[Asked, list[str]]) -> None:
    server, (first, fork, _) = vault
    await server.ask("run_theme", theme="vault-limits", keywords=["vault"])
    await server.ask("remember", key="limit", content="9000", source={"sessionId": first, "turnId": 1})
    root = await store_of(server)
    before, found = files_of(root), await server.ask("search_context", query=MARK)
    text = await server.ask("forget", sessionId=first.removeprefix("session_"), turnId=1)
    assert text.startswith(
        "dry run, nothing is changed. It would forget 2 turns and 2 copied turns in 2 sessions."
    )
    goes = fenced_part(text)
    assert f"{first}  turn 1  «what does the {MARK} list say?»" in goes and f"{first} agent-0  turn 0" in goes
    assert f"{fork}: turns 0 (agent-0), 1" in goes and "themes told anew without it: vault-limits" in goes
    assert "Kimi's own session files" in text and "memory/limit.md" in text.partition("stays: ")[2]
    assert "confirm: true" in text
    assert files_of(root) == before and await server.ask("search_context", query=MARK) == found


async def test_a_turn_that_is_forgotten_is_gone_and_stays_gone(vault: tuple[Asked, list[str]]) -> None:
    server, (first, fork, _) = vault
    await server.ask("run_theme", theme="vault-limits", keywords=["vault"])
    assert MARK in await server.ask("trace_theme", theme="vault-limits", includeTurnContent=True)
    text = await server.ask("forget", sessionId=first, turnId=1, confirm=True)
    assert text.startswith("forgot 2 turns and 2 copied turns in 2 sessions, for good.") and MARK not in text
    references = [{"sessionId": session, "turnId": turn} for session in (first, fork) for turn in (0, 1, 2)]
    whole = await server.ask("load_turn_context", references=references)
    assert "close the vault" in whole and f"{first} has no turn 1" in whole
    seen = [
        whole,
        await server.ask("trace_theme", theme="vault-limits", includeTurnContent=True),
        await server.ask("bootstrap_workspace", force=True),
        await server.ask("load_more_context", session_id=first, limit=50),
        await server.ask("search_context", query="what does the list say about the vault", detail="full"),
    ]
    assert not any(MARK in text for text in seen)
    assert fenced_part(await server.ask("search_context", query=MARK)) == ""
    root = await store_of(server)
    assert not [path for path in root.rglob("*") if path.is_file() and MARK.encode() in path.read_bytes()]


@pytest.mark.parametrize("what", ["session", "turn", "theme", "match", "period", "everything"])
async def test_sent_again_it_changes_nothing(vault: tuple[Asked, list[str]], what: str) -> None:
    server, (first, _, other) = vault
    await server.ask("run_theme", theme="vault-limits", keywords=["list"])
    requests: dict[str, dict[str, object]] = {
        "session": {"sessionId": other},
        "turn": {"sessionId": first, "turnId": 1},
        "theme": {"theme": "vault-limits"},
        "match": {"match": MARK.upper()},
        "period": {"since": "2026-11-29"},
        "everything": {"everything": True},
    }
    arguments = requests[what]
    done = await server.ask("forget", **arguments, confirm=True)
    assert done.startswith("forgot "), done
    root = await store_of(server)
    before = files_of(root)
    assert "tombstones.json" in before
    again = await server.ask("forget", **arguments, confirm=True)
    assert again == "Nothing is stored of it (any more): nothing was changed."
    assert files_of(root) == before
    if what != "theme":
        assert "nothing to forget" in await server.ask("forget", **arguments)


async def test_a_session_and_a_period_go_alone(vault: tuple[Asked, list[str]]) -> None:
    server, (first, _, other) = vault
    text = await server.ask("forget", sessionId=other, confirm=True)
    assert f"{other}: all of it, also what is said in it later" in fenced_part(text)
    assert other not in await server.ask("search_context", query="steel door vault")
    assert first in await server.ask("search_context", query="where is the vault opened")
    text = await server.ask("forget", since="2020-01-01", until="2021-12-31")
    assert "every turn begun 2020-01-01 00:00 to 2021-12-31 23:59" in fenced_part(text)


async def test_memories_go_only_when_asked_for(vault: tuple[Asked, list[str]]) -> None:
    server, (first, *_) = vault
    for turn in (0, 1):
        source = {"sessionId": first, "turnId": turn}
        await server.ask("remember", key=f"limit-{turn}", content=f"900{turn}", source=source)
    shown = await server.ask("forget", sessionId=first, turnId=1)
    assert "(memories: true takes them too)" in shown and "memory/limit-1.md" in shown
    await server.ask("forget", sessionId=first, turnId=1, confirm=True)
    assert "9001" in await server.ask("recall", key="limit-1")
    text = await server.ask("forget", sessionId=first, turnId=0, memories=True, confirm=True)
    assert "memory: memory/limit-0.md" in fenced_part(text)
    assert "no memory" in await server.fails("recall", key="limit-0")


async def test_a_request_that_was_interrupted_is_finished(
    vault: tuple[Asked, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, (first, *_) = vault
    await server.ask("search_context", query=MARK, save_view=True)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("pipeline.forgetting.clean", full)
        assert "No space left" in await server.fails("forget", sessionId=first, turnId=1, confirm=True)
    again = await server.ask("forget", sessionId=first, turnId=1, confirm=True)
    assert again == "Nothing is stored of it (any more): nothing was changed."
    root = await store_of(server)
    assert not [path for path in root.rglob("*") if path.is_file() and MARK.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "sessionId: missing"),
        ({"theme": "a", "match": "abc"}, "theme, match: name one thing to forget"),
        ({"everything": True, "until": "2026-01-01"}, "everything, until: name one thing to forget"),
        ({"turnId": 1}, "turnId: needs sessionId"),
        ({"theme": "a", "position": 0}, "position: needs sessionId"),
        ({"sessionId": "x", "agentId": "agent-0"}, "agentId: needs turnId"),
        ({"match": "ab"}, "match: 'ab' is too short"),
        ({"since": "soon"}, "since 'soon' is no date"),
        ({"since": "2026-02-01", "until": "2026-01-01"}, "until: lies before since"),
        ({"sessionId": "session_none"}, "sessionId: no session session_none"),
        ({"sessionId": "session_none", "turnId": 1, "confirm": True}, "turnId: the store knows no turn 1"),
        ({"theme": "nowhere"}, "theme: there is no theme “nowhere”"),
        ({"match": "abc", "confirm": "perhaps"}, "confirm: 'perhaps' is not taken"),
    ],
)
async def test_a_wrong_argument_is_named(
    vault: tuple[Asked, list[str]], arguments: dict[str, object], says: str
) -> None:
    server, _ = vault
    assert says in await server.fails("forget", **arguments)
    assert not (await store_of(server) / "tombstones.json").exists()


async def test_where_nothing_is_stored_there_is_nothing_to_forget(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    async with asked(env_of(tmp_path / "no-home", tmp_path / "store"), str(project)) as server:
        assert "there is nothing to forget" in await server.ask("forget", everything=True, confirm=True)
        assert not (tmp_path / "store").exists()
