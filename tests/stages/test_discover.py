"""Seeds for a theme that has none, and recurring subjects that nobody named."""

from __future__ import annotations

from stages.discover import discover, suggest_seeds
from stages.model import RefinedTurn
from stages.surface import Surfaces
from tests.stages.dialogues import Said, session
from tests.stages.test_aggregate import COLOURS, INVOICES, PORT, corpus


def project() -> list[RefinedTurn]:
    proxy = [
        Said(
            "the port of the proxy: EADDRINUSE in src/mcp/server.ts",
            "listenPort was not used by the proxy.",
            ("src/mcp/server.ts",),
            symbols=("listenPort",),
        ),
        Said(
            "use listenPort there too",
            "The proxy calls listenPort, so EADDRINUSE falls back.",
            ("src/mcp/server.ts", "src/proxy.ts"),
            symbols=("listenPort",),
        ),
    ]
    vat = [
        Said("VAT on invoices to Norway", "Invoices to Norway carry 25 % VAT.", ("billing/vat.py",)),
        Said("round VAT per line", "VAT of invoices is rounded per line.", ("billing/vat.py",)),
    ]
    return [
        *session("s1", [*PORT, *COLOURS]),
        *session("s2", [*INVOICES[1:], Said("rename the repository", "Renamed.")], day=2),
        *session("s3", proxy, day=4),
        *session("s4", vat, day=6),
        *session("s5", [Said("who invented the tootsie pop", "Luke Weisgram, in 1931.")], day=7),
    ]


def test_recurring_subjects_are_found_and_single_ones_are_not() -> None:
    found = discover(project())
    by_sessions = [{session_id for session_id, _, _ in each.turns} for each in found]
    assert {"s1", "s3"} in by_sessions
    assert any({"s2", "s4"} <= sessions and "s3" not in sessions for sessions in by_sessions)
    assert not any("s5" in sessions for sessions in by_sessions)
    assert all(each.sessions >= 2 and each.seeds and each.name for each in found)


def test_suggestions_speak_the_peoples_words() -> None:
    found = discover(project())
    port = next(each for each in found if ("s3", "main", 0) in each.turns)
    assert {"EADDRINUSE", "listenPort", "port"} & set(port.seeds)
    assert port.name == port.name.lower() and " " not in port.name
    assert port.start < port.end


def test_named_subjects_are_left_out() -> None:
    every = discover(project())
    named = [frozenset(each.turns) for each in every[:1]]
    assert [each.name for each in discover(project(), named=named)] == [each.name for each in every[1:]]


def test_discovery_is_deterministic_and_bounded() -> None:
    assert discover(project()) == discover(list(reversed(project())))
    assert len(discover(project(), limit=1)) == 1
    assert discover([]) == [] and discover(session("s", [Said("hello")])) == []


def test_seeds_for_a_name_are_its_words_and_their_company() -> None:
    seeds = suggest_seeds(project(), "port fight")
    assert seeds[0] == "port" and "fight" in seeds
    assert {"EADDRINUSE", "listenPort", "server.ts"} & set(seeds)
    assert len(seeds) == len(set(seeds)) <= 6


def test_seeds_for_a_chinese_name() -> None:
    said = [
        Said("端口 3000 被占用", "监听端口写死了。", ("src/server.ts",)),
        Said("端口被占用时换一个", "端口被占用时换到 3001。", ("src/server.ts",)),
    ]
    assert "端口" in suggest_seeds(corpus(*session("s", said)), "端口")


def test_no_seeds_for_what_never_occurs() -> None:
    assert suggest_seeds(project(), "zebra") == ()
    assert suggest_seeds([], "port") == ()


def test_words_come_back_as_they_were_typed() -> None:
    said = [
        Said("deploy with listenPort, 上下文丢失了", "x", ("src/mcp/server.ts",)),
        Said("deploy again, 保存上下文", "x"),
        Said("deploying? 这里的上下文太长", "x"),
    ]
    surfaces = Surfaces(session("s", said))
    terms = [
        "deploi",
        "listenport",
        "下文",
        "file:src/mcp/server.ts",
        "symbol:WireCache",
        "error:OSError: [98]",
        "zebra",
    ]
    assert surfaces.of(terms) == ["deploy", "listenPort", "上下文", "server.ts", "WireCache"]
