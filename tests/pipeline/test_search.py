"""Search finds any turn by what was said or done in it, and ranks the right one first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.errors import BadInput, StoreError
from pipeline.search import Freshness
from pipeline.search_request import SearchRequest
from tests.pipeline.search_cases import AT, MINUTE, Store
from tests.wires import Call, agent, bash, edit, mcp, read, say, write


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path)
    yield made
    made.searcher.close()


def filler(store: Store, count: int, *, at: int = AT) -> None:
    """Turns about nothing in particular."""
    session = store.session(at=at)
    for number in range(count):
        session.main.turn(
            f"please tidy part {number} of the shop", say(f"Part {number} of the shop is tidy.")
        )


NEEDLES = {
    "user text": ("zirconium", "zirconium"),
    "agent text": ("the palladium answer", "palladium"),
    "steer": ("also mind osmium", "osmium"),
    "argument": ("rhodium_content = 1", "rhodium"),
    "path": ("src/iridium/loader_main.ts", "iridium/loader_main.ts"),
    "command": ("ruthenium --only-cloud-sync", "ruthenium"),
    "error line": ("TantalumError: E4711 hafnium", "E4711"),
    "two Chinese characters": ("请修一下饕餮的显示", "饕餮"),
    "traditional Chinese": ("連接埠被佔用了", "连接埠"),
    "flag": ("ruthenium --only-cloud-sync", "--only-cloud-sync"),
    "flag in parts": ("ruthenium --only-cloud-sync", "only cloud sync"),
    "identifier in parts": ("call flushWriteAheadLog() first", "flush write ahead"),
    "phrase": ("the seventh lantern burns low", '"seventh lantern burns"'),
}


@pytest.mark.parametrize("refine", [False, True])
def test_planted_needles_are_found_first_whatever_is_refined(store: Store, refine: bool) -> None:
    filler(store, 30)
    session = store.session(at=AT + MINUTE)
    main = session.main
    kinds = {
        "user text": main.turn("what of zirconium?", say("Nothing.")),
        "agent text": main.turn("and then?", say("This is the palladium answer.")),
        "steer": main.turn("go", say("Going."), say("Done."), steers={1: "also mind osmium"}),
        "argument": main.turn("write it", say("", write("a.py", "rhodium_content = 1")), say("Written.")),
        "path": main.turn("look", say("", read("src/iridium/loader_main.ts", "x")), say("Seen.")),
        "command": main.turn("run", say("", bash("ruthenium --only-cloud-sync", "fine")), say("Ran.")),
        "error line": main.turn(
            "again", say("", bash("make", "TantalumError: E4711 hafnium", code=2)), say("It failed.")
        ),
        "two Chinese characters": main.turn("请修一下饕餮的显示", say("好。")),
        "traditional Chinese": main.turn("連接埠被佔用了", say("好。")),
        "identifier in parts": main.turn("how", say("call flushWriteAheadLog() first")),
        "phrase": main.turn("read", say("the seventh lantern burns low")),
    }
    kinds |= {"flag": kinds["command"], "flag in parts": kinds["command"]}
    filler(store, 30, at=AT + 2 * MINUTE)
    store.fold(refine=refine)
    for kind, (_, query) in NEEDLES.items():
        hits = store.ask(query).hits
        assert hits, kind
        assert (hits[0].session_id, hits[0].turn_id) == (session.session_id, kinds[kind]), kind
        assert hits[0].snippet, kind


def test_what_was_undone_is_not_found(store: Store) -> None:
    session = store.session()
    session.main.turn("keep this", say("kept"))
    session.main.turn("what of zirconium?", say("gone soon"))
    session.main.undo(1)
    store.fold()
    assert store.ask("zirconium").total == 0


def test_a_forks_copy_is_shown_once_at_its_original(store: Store) -> None:
    session = store.session()
    session.main.turn("what of zirconium?", say("this"))
    session.fork(AT + MINUTE).main.turn("go on", say("on"))
    store.fold()
    answer = store.ask("zirconium")
    assert (answer.total, [hit.session_id for hit in answer.hits]) == (1, [session.session_id])


def test_thinking_injections_and_bulk_output_are_not_found(store: Store) -> None:
    session = store.session()
    session.main.turn(
        "look",
        say("Seen.", read("a.txt", "zirconium everywhere"), think="palladium might be it"),
        say("Done."),
    )
    store.fold()
    assert store.ask("zirconium").total == 0
    assert store.ask("palladium").total == 0


def test_a_sub_agents_words_count_for_the_turn_that_called_it(store: Store) -> None:
    filler(store, 5)
    session = store.session(at=AT + MINUTE)
    session.main.turn("first", say("yes"))
    turn = session.main.turn(
        "investigate the queue",
        say("", agent("look at the queue", say("The zirconium valve leaks."), description="look")),
        say("I looked."),
    )
    store.fold()
    answer = store.ask("zirconium valve")
    assert (answer.total, len(answer.hits)) == (1, 1)
    (hit,) = answer.hits
    assert (hit.agent_id, hit.turn_id, hit.from_agent) == ("main", turn, "agent-0")
    assert "zirconium" in hit.snippet
    own = store.ask("agent:agent-0 zirconium").hits
    assert [(hit.agent_id, hit.turn_id) for hit in own] == [("agent-0", 0)]


def test_an_answer_two_turns_below_its_question_is_found(store: Store) -> None:
    filler(store, 20)
    session = store.session(at=AT + MINUTE)
    session.main.turn("why does the zirconium importer drop rows?", say("I will look."))
    session.main.turn("well?", say("Still looking."))
    answer = session.main.turn("and?", say("The rows were duplicates, so they were merged."))
    for number in range(12):
        other = store.session(at=AT + (10 + number) * MINUTE)
        other.main.turn("print it", say("All rows were printed in two columns."))
    store.fold()
    found = store.ask("zirconium importer rows").hits
    places = [(hit.session_id, hit.turn_id) for hit in found]
    assert places[0] == (session.session_id, 0)
    assert places.index((session.session_id, answer)) <= 2
    cluster = store.ask("zirconium importer rows").clusters[0]
    assert answer in cluster.turn_ids


def test_rare_words_win_whatever_common_words_stand_beside_them(store: Store) -> None:
    filler(store, 120)
    session = store.session(at=AT + MINUTE)
    turn = session.main.turn("zirconium please", say("Yes."))
    store.fold()
    for query in ("zirconium", "the shop zirconium", "tidy part of the shop zirconium please tidy"):
        hit = store.ask(query).hits[0]
        assert (hit.session_id, hit.turn_id) == (session.session_id, turn)


def test_totals_are_true_and_pages_go_on(store: Store) -> None:
    session = store.session()
    for number in range(37):
        session.main.turn(f"zirconium {number}", say("noted"))
    for number in range(5):
        session.main.turn(f"palladium {number}", say("noted"))
    store.fold()
    first = store.ask("zirconium", limit=10)
    assert (first.total, first.mode, len(first.hits)) == (37, "all", 10)
    seen, cursor = [hit.turn_id for hit in first.hits], first.next_cursor
    while cursor:
        page = store.ask("zirconium", limit=10, cursor=cursor)
        seen += [hit.turn_id for hit in page.hits]
        cursor = page.next_cursor
    assert sorted(seen) == list(range(37))
    either = store.ask("zirconium palladium")
    assert (either.total, either.mode) == (42, "any")
    with pytest.raises(BadInput, match="cursor"):
        store.ask("palladium", cursor=first.next_cursor)


def test_operators(store: Store) -> None:
    main = store.session().main
    main.turn("about zirconium on windows", say("ok", read("src/a.ts", "x")), say("ok"))
    main.turn("about zirconium on linux", say("", bash("ls", "No such file", code=2)), say("ok"))
    main.turn("zirconium alone", say("ok", edit("docs/b.md", "x", "y")), say("ok"), gap=40 * 24 * 60 * MINUTE)
    store.fold()
    assert set(store.turns("zirconium NOT windows")) == {1, 2}
    assert store.turns("zirconium file:a.ts") == [0]
    assert store.turns("zirconium file:src/a.ts") == [0]
    assert store.turns("zirconium tool:Edit") == [2]
    assert store.turns("zirconium tool:bash") == [1]
    assert store.turns('zirconium error:"No such file"') == [1]
    assert store.turns('"zirconium on linux"') == [1]
    assert store.turns("file:b.md") == [2]
    assert set(store.turns("zirconium until:2026-12-15")) == {0, 1}
    assert store.turns("zirconium since:2026-12-15") == [2]
    assert store.turns("zirconium", since=AT + 24 * 60 * MINUTE) == [2]
    session_id = store.home.sessions[0].session_id
    assert set(store.turns(f"zirconium session:{session_id[8:16]}")) == {0, 1, 2}


def test_a_filtered_query_without_hits_is_asked_again_as_text_and_says_so(store: Store) -> None:
    store.session().main.turn("about zirconium", say("ok"))
    store.fold()
    answer = store.ask("zirconium file:nowhere.ts")
    assert [hit.turn_id for hit in answer.hits] == [0]
    assert "file:nowhere.ts" in answer.note


def test_decisions_can_be_asked_for(store: Store) -> None:
    main = store.session().main
    main.turn("zirconium?", say("I read about it."))
    main.turn("zirconium or not?", say("Decision: we use zirconium because it does not melt."))
    store.fold(refine=True)
    assert store.turns("zirconium decision:true") == [1]


def test_stop_words_alone_still_answer(store: Store) -> None:
    store.session().main.turn("what is this", say("It is that."))
    store.fold()
    answer = store.ask("what is this")
    assert answer.hits and "common words" in answer.note


@pytest.mark.parametrize(
    "call",
    [
        mcp("memory", "search_context", {"query": "zirconium melts"}, ""),
        bash('pipeline search "zirconium melts"', None),
    ],
)
def test_the_turn_that_is_asking_does_not_find_itself(store: Store, call: Call) -> None:
    session = store.session()
    session.main.turn("what of zirconium?", say("It melts."))
    session.main.turn(
        "what did we say of how zirconium melts?", say("", replace(call, output=None)), outcome="killed"
    )
    store.fold()
    answer = store.ask("zirconium melts")
    assert [hit.turn_id for hit in answer.hits] == [0]
    assert answer.total == 1
    assert store.ask("zirconium", exclude=frozenset({(session.session_id, "main", 0)})).total == 0


def test_new_turns_are_seen_by_the_same_searcher(store: Store) -> None:
    session = store.session()
    session.main.turn("first", say("one"))
    store.fold()
    assert store.ask("zirconium").total == 0
    session.main.turn("zirconium", say("two"))
    store.fold()
    assert store.turns("zirconium") == [1]
    session.main.undo(1)
    store.fold()
    assert store.ask("zirconium").total == 0


def test_without_the_wire_the_index_answers_and_says_so(store: Store) -> None:
    session = store.session()
    session.main.turn("zirconium", say("It melts at 1855."))
    store.fold()
    assert not store.ask("zirconium").hits[0].wire_gone
    next(store.home.root.rglob("wire.jsonl")).unlink()
    answer = store.ask("zirconium")
    assert answer.hits[0].wire_gone and "melts" in store.ask("melts").hits[0].snippet
    assert "wire is gone" in answer.text(2000)


def test_a_missing_store_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="pipeline index"):
        Store(tmp_path).ask("anything")


def test_freshness_is_passed_on(store: Store) -> None:
    store.session().main.turn("zirconium", say("ok"))
    store.fold()
    behind = Freshness(incomplete=True, reason="half is read")
    answer = store.searcher.answer(SearchRequest("zirconium"), behind)
    assert answer.incomplete and "incomplete: half is read" in answer.text(2000)


def test_a_common_words_turns_are_read_once_and_then_only_what_is_new(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.store.postings.OCCURRENCES", 20)
    filler(store, 60)
    session = store.session(at=AT + MINUTE)
    turn = session.main.turn("the zirconium shop", say("yes"))
    store.fold()
    assert store.ask("shop").total == 61
    assert store.ask("shop zirconium").hits[0].turn_id == turn
    session.main.turn("another shop", say("yes"))
    store.fold()
    assert store.ask("shop").total == 62
    assert store.ask("tidy shop").total == 60
    assert store.ask("tidy shop").mode == "all"
