"""Theme files: merging on re-run, what a person did, the other server's files, damage, and undo."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import PipelineError
from pipeline.store.theme_record import Ref, ThemeMemory, ThemeRecord, decode, encode, fresh, ref_of
from pipeline.store.themes import CorruptTheme, NoSuchTheme, ThemeStore
from stages.aggregate import Place, aggregate, place
from stages.model import RefinedTurn, Theme, TurnKey
from tests.stages.dialogues import START, Said, session

NOW = START + 1_000_000


def turns() -> list[RefinedTurn]:
    return [
        *session(
            "s1",
            [
                Said(
                    "two windows fight for the port: EADDRINUSE", "server.ts binds 3000.", ("src/server.ts",)
                ),
                Said(
                    "fall back to 3001", "EADDRINUSE now falls back to 3001.", ("src/server.ts",), "Use 3001."
                ),
                Said("commit it", "Committed."),
                Said("export invoices as PDF with pdfkit", "Invoices are exported.", ("billing/pdf.py",)),
            ],
        ),
        *session(
            "s2",
            [Said("EADDRINUSE again on the port of the proxy", "The proxy waits.", ("src/proxy.ts",))],
            day=3,
        ),
    ]


def openers(found: Sequence[RefinedTurn]) -> dict[Place, str]:
    return {place(turn.key): turn.key.opener_digest for turn in found}


def run(
    store: ThemeStore, found: Sequence[RefinedTurn], *seeds: str, now: int = NOW, gone: bool = False
) -> ThemeRecord:
    """What a run does with the store."""
    judged = openers(found)

    def change(record: ThemeRecord) -> ThemeRecord:
        record = record.add_seeds(seeds)
        theme = aggregate(record.theme, record.seeds, found, curation=record.curation(judged))
        return record.rebuilt(theme, judged, lambda ref: not gone and ref.place in judged)

    return store.update("port-fight", change, now, op="run").record


def held(record: ThemeRecord) -> list[tuple[str, int]]:
    return [(turn.ref.session_id, turn.ref.turn_id) for turn in record.turns]


def ref(session_id: str, position: int) -> Ref:
    return Ref(session_id, position, "main", position, f"{session_id}-{position}")


@pytest.fixture
def store(tmp_path: Path) -> ThemeStore:
    return ThemeStore(tmp_path)


def test_same_evidence_writes_no_byte(store: ThemeStore) -> None:
    run(store, turns(), "EADDRINUSE", "port")
    path = store.path("port-fight")
    before = path.stat().st_mtime_ns, path.read_bytes()
    written = run(store, list(reversed(turns())), "EADDRINUSE", now=NOW + 999)
    assert (path.stat().st_mtime_ns, path.read_bytes()) == before
    assert written.updated_at == NOW


def test_file_is_what_the_other_server_reads(store: ThemeStore) -> None:
    run(store, turns(), "EADDRINUSE", "port")
    value = orjson.loads(store.path("port-fight").read_bytes())
    assert list(value)[:4] == ["theme", "displayName", "createdAt", "updatedAt"]
    first = value["turns"][0]
    assert (first["sessionId"], first["turnId"], first["timestamp"]) == ("s1", 0, "2026-01-01T00:00:00.000Z")
    assert first["via"] == "seed" and 0 < first["score"] <= 1 and first["opener"] == "s1-0"
    assert stat.S_IMODE(store.path("port-fight").stat().st_mode) == 0o600
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700


def test_run_adds_new_turns_and_keeps_what_lies_outside(store: ThemeStore) -> None:
    first = [turn for turn in turns() if turn.key.session_id == "s1"]
    run(store, first, "EADDRINUSE", "port")
    second = [turn for turn in turns() if turn.key.session_id == "s2"]
    judged = openers(second)

    def change(record: ThemeRecord) -> ThemeRecord:
        theme = aggregate(record.theme, record.seeds, second, curation=record.curation(judged))
        return record.rebuilt(theme, judged, lambda each: True)

    record = store.update("port-fight", change, NOW, op="run").record
    assert held(record) == [("s1", 0), ("s1", 1), ("s1", 2), ("s2", 0)]
    assert {cluster["sessionId"] for cluster in record.clusters} == {"s1", "s2"}


def test_turn_that_vanished_is_marked_gone_and_comes_back(store: ThemeStore) -> None:
    run(store, turns(), "EADDRINUSE", "port")
    rest = [turn for turn in turns() if turn.key.session_id == "s2"]
    gone = run(store, rest)
    assert [turn.gone for turn in gone.turns] == [True, True, True, False]
    back = run(store, turns())
    assert not any(turn.gone for turn in back.turns)


def test_reused_number_is_gone_not_another_turn(store: ThemeStore) -> None:
    store.update("t", lambda record: record.tag(ref("s1", 3), START), NOW, op="tag")
    record = store.require("t")
    assert record.curation({("s1", "main", 3): "s1-3"}).tagged == {("s1", "main", 3)}
    assert record.curation({("s1", "main", 3): "another"}).tagged == frozenset()
    again = record.rebuilt(Theme("t", (), (), ()), {("s1", "main", 3): "another"}, lambda each: True)
    assert [turn.gone for turn in again.turns] == [True]


def test_no_run_undoes_what_a_person_did(store: ThemeStore) -> None:
    run(store, turns(), "EADDRINUSE", "port")

    def curate(record: ThemeRecord) -> ThemeRecord:
        record = record.exclude(ref("s1", 1)).pin(ref("s1", 3), START).tag(ref("s2", 0), START)
        return record.remove_seed("port")

    store.update("port-fight", curate, NOW, op="exclude")
    record = run(store, turns(), now=NOW + 5)
    assert ("s1", 1) not in held(record) and ("s1", 3) in held(record) and ("s2", 0) in held(record)
    assert record.seeds == ("EADDRINUSE",)
    assert "port" in run(store, turns(), "port").seeds  # a person named it again


def test_untag_takes_out_for_good_and_tag_brings_back(store: ThemeStore) -> None:
    run(store, turns(), "EADDRINUSE", "port")
    store.update("port-fight", lambda record: record.untag(ref("s1", 0)), NOW, op="untag")
    assert ("s1", 0) not in held(run(store, turns()))
    store.update("port-fight", lambda record: record.tag(ref("s1", 0), START), NOW, op="tag")
    record = run(store, turns())
    assert ("s1", 0) in held(record) and not record.exclusions


def test_replacing_keywords_forgets_the_old_ones() -> None:
    record = fresh("t", NOW).add_seeds(["a", "b"]).remove_seed("b").add_seeds(["c", " "], replacing=True)
    assert (record.seeds, record.removed_seeds) == (("c",), ("b",))


def test_unknown_fields_survive_a_run(store: ThemeStore) -> None:
    run(store, turns(), "EADDRINUSE", "port")
    path = store.path("port-fight")
    value = orjson.loads(path.read_bytes())
    value["colour"] = "green"
    value["turns"][0]["note"] = "look here"
    path.write_bytes(orjson.dumps(value))
    run(store, turns(), "socket")
    value = orjson.loads(path.read_bytes())
    assert value["colour"] == "green" and value["turns"][0]["note"] == "look here"


def test_other_servers_theme_is_mapped_by_time_then_ordinal_else_unresolved() -> None:
    keys = [
        (TurnKey("s1", "main", position, position + 10, f"d{position}"), START + position * 600_000)
        for position in range(4)
    ]
    peer = decode(
        {
            "theme": "t",
            "displayName": "T",
            "createdAt": "2026-06-22T14:00:00Z",
            "updatedAt": "2026-06-22T14:00:00Z",
            "turns": [
                {
                    "sessionId": "s1",
                    "turnId": 0,
                    "timestamp": "2026-01-01T00:20:00.000Z",
                },  # the moment of turn 2
                {
                    "sessionId": "s1",
                    "turnId": 1,
                    "timestamp": "2026-01-02T00:00:00.000Z",
                },  # tagged a day later
                {
                    "sessionId": "s1",
                    "turnId": 3,
                    "timestamp": "2026-01-01T00:05:00.000Z",
                },  # before turn 3 began
                {"sessionId": "elsewhere", "turnId": 0, "timestamp": "2026-01-01T00:00:00.000Z"},
            ],
            "memories": [{"key": "k", "folder": "memory", "title": "K", "timestamp": "2026-06-22T14:00:00Z"}],
        },
        "t",
    )
    record = peer.resolve(lambda session_id: keys if session_id == "s1" else [])
    assert sorted(
        (turn.ref.position, turn.unresolved) for turn in record.turns if turn.ref.position is not None
    ) == [
        (1, False),
        (2, False),
    ]
    assert [(turn.ref.session_id, turn.unresolved) for turn in record.turns if turn.ref.position is None] == [
        ("elsewhere", True),
        ("s1", True),
    ]
    assert record.resolve(lambda session_id: []) == record
    kept = decode(encode(record), "t")
    assert [turn.unresolved for turn in kept.turns] == [turn.unresolved for turn in record.turns]


def test_corrupt_file_is_named_and_moved_aside_never_overwritten(store: ThemeStore) -> None:
    run(store, turns(), "EADDRINUSE", "port")
    path = store.path("port-fight")
    path.write_text('{"theme": "port-fight", "turns": [{"sessionId": 7}]}', encoding="utf-8")
    with pytest.raises(CorruptTheme, match=r"port-fight\.json is not a theme: an entry of “turns”"):
        store.read("port-fight")
    assert path.exists()
    with pytest.raises(CorruptTheme, match="moved to"):
        run(store, turns())
    aside = list(store.folder.glob(".corrupt-port-fight-*.json"))
    assert len(aside) == 1 and "7" in aside[0].read_text(encoding="utf-8") and not path.exists()
    good, bad = store.all()
    assert (good, bad) == ([], [])


def test_undo_walks_back_one_change_at_a_time(store: ThemeStore) -> None:
    run(store, turns(), "EADDRINUSE", "port")
    first = store.path("port-fight").read_bytes()
    store.update("port-fight", lambda record: record.exclude(ref("s1", 0)), NOW + 1, op="exclude")
    store.remove("port-fight", NOW + 2)
    assert store.read("port-fight") is None
    assert store.undo("port-fight") == "rm"
    assert store.undo("port-fight") == "exclude"
    assert store.path("port-fight").read_bytes() == first
    assert store.undo("port-fight") == "run"
    assert store.read("port-fight") is None
    with pytest.raises(PipelineError, match="nothing is kept"):
        store.undo("port-fight")


def test_merge_keeps_everything_curated_and_is_undone_in_one_piece(store: ThemeStore) -> None:
    store.update(
        "a", lambda r: r.tag(ref("s1", 0), START).exclude(ref("s1", 1)).add_seeds(["x"]), NOW, op="tag"
    )
    store.update(
        "b",
        lambda r: (
            r.tag(ref("s1", 1), START).pin(ref("s2", 0), START).remember(ThemeMemory("k", "memory", "K", NOW))
        ),
        NOW,
        op="tag",
    )
    merged = store.merge("a", "b", NOW).record
    assert held(merged) == [("s1", 0), ("s1", 1), ("s2", 0)] and merged.exclusions == ()
    assert merged.seeds == ("x",) and [memory.key for memory in merged.memories] == ["k"]
    assert store.read("a") is None
    store.undo("a")
    assert held(store.require("a")) == [("s1", 0)] and held(store.require("b")) == [("s1", 1), ("s2", 0)]


def test_undo_of_a_merge_refuses_when_the_other_theme_went_on(store: ThemeStore) -> None:
    store.update("a", lambda r: r.add_seeds(["x"]), NOW, op="tag")
    store.update("b", lambda r: r.add_seeds(["y"]), NOW, op="tag")
    store.merge("a", "b", NOW)
    store.update("b", lambda r: r.add_seeds(["z"]), NOW, op="tag")
    with pytest.raises(PipelineError, match="changed after this merge"):
        store.undo("a")


def test_rename_moves_file_and_page_and_refuses_a_taken_name(store: ThemeStore) -> None:
    store.update("端口冲突", lambda r: r.add_seeds(["端口"]), NOW, op="run")
    store.write_page("端口冲突", "# 端口冲突\n")
    written = store.rename("端口冲突", "Port: fight?", NOW)
    assert written.path.name == "Port__fight_.json" and written.record.display_name == "Port: fight?"
    assert written.path.with_suffix(".md").exists() and store.read("端口冲突") is None
    store.update("other", lambda r: r, NOW, op="run")
    with pytest.raises(PipelineError, match="exists already"):
        store.rename("other", "port: FIGHT?", NOW)
    assert store.rename("Port: fight?", "port: fight?", NOW).path.name == "port__fight_.json"
    assert len(store.paths()) == 2


def test_names_differ_only_by_case_are_one_theme(store: ThemeStore) -> None:
    store.update("Git", lambda r: r.add_seeds(["git"]), NOW, op="run")
    store.update("git", lambda r: r.add_seeds(["rebase"]), NOW, op="run")
    assert [path.name for path in store.paths()] == ["Git.json"]
    assert store.require("GIT").seeds == ("git", "rebase")


def test_missing_theme_names_the_nearest(store: ThemeStore) -> None:
    store.update("port-fight", lambda r: r, NOW, op="run")
    with pytest.raises(NoSuchTheme, match="did you mean port-fight"):
        store.require("port-figth")


def test_edited_page_stays_and_the_new_one_goes_beside(store: ThemeStore) -> None:
    store.update("t", lambda r: r, NOW, op="run")
    page, changed = store.write_page("t", "# t\n\nOne.\n")
    assert changed and store.write_page("t", "# t\n\nOne.\n") == (page, False)
    assert store.write_page("t", "# t\n\nTwo.\n") == (page, True)
    page.write_text(page.read_text(encoding="utf-8").replace("Two", "My two"), encoding="utf-8")
    beside, _ = store.write_page("t", "# t\n\nThree.\n")
    assert beside.name == "t.generated.md" and "My two" in page.read_text(encoding="utf-8")
    store.remove("t", NOW)
    assert page.exists() and not beside.exists()


def test_writers_at_the_same_time_lose_nothing(store: ThemeStore) -> None:
    def tag(number: int) -> None:
        store.update("t", lambda record: record.tag(ref("s1", number), START), NOW + number, op="tag")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(tag, range(16)))
    assert held(store.require("t")) == [("s1", number) for number in range(16)]


def test_forgetting_leaves_no_trace_of_a_theme(store: ThemeStore) -> None:
    store.update("secret plan", lambda r: r.add_seeds(["zebra"]), NOW, op="run")
    store.update("other", lambda r: r.add_seeds(["x"]), NOW, op="run")
    store.write_page("secret plan", "# zebra\n")
    store.rename("secret plan", "plan", NOW)
    store.merge("plan", "other", NOW)
    store.undo("plan")
    store.update("plan", lambda r: r.add_seeds(["zebra two"]), NOW, op="run")
    assert store.forget("plan") and store.forget("secret plan")
    texts = [path.read_text(encoding="utf-8") for path in store.folder.rglob("*") if path.is_file()]
    assert not any("zebra" in text for text in texts)
    assert not store.forget("plan")


def test_a_new_theme_has_a_safe_name_and_keeps_what_it_was_called(store: ThemeStore) -> None:
    record = store.update("端口: 冲突?", lambda r: r.add_seeds(["端口"]), NOW, op="run").record
    assert (record.theme, record.display_name) == ("端口__冲突_", "端口: 冲突?")
    assert store.require("端口: 冲突?") == record


refs = st.builds(ref, st.sampled_from(["s1", "s2"]), st.integers(0, 3))
deeds = st.lists(st.tuples(st.sampled_from(["tag", "pin", "exclude", "untag"]), refs), max_size=6)


@given(deeds)
def test_the_last_word_of_a_person_holds_after_any_run(done: list[tuple[str, Ref]]) -> None:
    record = fresh("port-fight", NOW).add_seeds(["EADDRINUSE", "port"])
    for deed, each in done:
        if deed in ("tag", "pin"):
            record = getattr(record, deed)(each, START)
        else:
            record = getattr(record, deed)(each)
    found = turns()
    theme = aggregate("port-fight", record.seeds, found, curation=record.curation(openers(found)))
    after = record.rebuilt(theme, openers(found), lambda ref: ref.place in openers(found))
    last = {each: deed for deed, each in done}
    known = {place(turn.key) for turn in found}
    for each, deed in last.items():
        if each.place in known:
            inside = any(turn.ref.is_same(each) for turn in after.turns)
            assert inside == (deed in ("tag", "pin"))
    assert decode(encode(after), "port-fight") == after
    assert ref_of(found[0].key) == ref("s1", 0)
