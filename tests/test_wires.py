"""The builders of wires: they write what the CLI writes, and it splits into the turns that were meant."""

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline import demo
from stages.document import document
from stages.model import Chunk, Copied, Spawned, Turn, Undo, Upsert
from stages.split import Origin, open_splitter
from tests import garbage, leaks, lookalikes, make_demo, wires
from tests import secrets as planting
from tests.bench import corpus
from tests.bench.turns import KINDS
from tests.quality.bilingual import make as bilingual
from tests.wires import Home, Session, bash, edit, read, say, todo, write

AT = 1_796_033_702_000
SAMPLES = Path(__file__).parent / "samples"


def _fold(data: bytes, agent: str = "main", cwd: str = "/home/dev/shop") -> tuple[list[Turn], list[object]]:
    """All turns of a wire, undone ones marked, and the changes that were no turns."""
    splitter = open_splitter(data[:4096], Origin("session_x", agent, cwd, False, False, False), str)
    turns: dict[int, Turn] = {}
    rest: list[object] = []
    undone: set[int] = set()
    for change in [*splitter.feed(Chunk(data, 0, len(data))), *splitter.provisional()]:
        if isinstance(change, Upsert):
            turns[change.turn.position] = change.turn
        elif isinstance(change, Undo):
            undone.update(change.positions)
        rest.append(change)
    return [_marked(turns[position], position in undone) for position in sorted(turns)], rest


def _marked(turn: Turn, undone: bool) -> Turn:
    return replace(turn, undone=turn.undone or undone)


def _session(root: Path) -> Session:
    return Home(root, seed=5).session("/home/dev/shop", at=AT)


def test_a_turn_splits_into_its_steps_tools_and_answer(tmp_path: Path) -> None:
    main = _session(tmp_path).main
    main.turn(
        "why is the port busy?",
        say("I look.", read("server.py", "PORT = 3000"), think="maybe the port"),
        say("", edit("server.py", "3000", "3001"), bash("python server.py", "OSError: in use", code=1)),
        say("", write("test_server.py", "assert True\n"), todo(("test", "done"))),
        say("Fixed."),
    )
    (turn,), _ = _fold(main.data())
    assert (turn.turn_id, turn.user_text, turn.assistant_text) == (0, "why is the port busy?", "Fixed.")
    assert turn.status == "completed" and turn.origin == "user" and turn.prompt_id is not None
    assert [(call.name, call.result) for call in turn.tools] == [
        ("Read", "ok"),
        ("Edit", "ok"),
        ("Bash", "error"),
        ("Write", "ok"),
        ("TodoList", "ok"),
    ]
    assert [(touch.path, touch.op) for call in turn.tools for touch in call.files] == [
        ("server.py", "read"),
        ("server.py", "edit"),
        ("test_server.py", "write"),
    ]


def test_every_outcome_is_told_by_the_wire(tmp_path: Path) -> None:
    main = _session(tmp_path).main
    main.turn("one", say("done"))
    main.turn("two", say("part of an ans"), outcome="cancelled")
    main.turn("three", outcome="failed", error="429 slow down")
    main.turn("four", say("On it.", bash("sleep 99", None)), outcome="killed")
    main.restart()
    main.turn("five", say("", bash("make", "ok")), say("done"), steers={1: "and the docs"})
    turns, _ = _fold(main.data())
    statuses = [turn.status for turn in turns]
    assert statuses == ["completed", "cancelled", "failed", "unfinished", "completed"]
    assert turns[1].assistant_text == "part of an ans"
    assert turns[2].error == "429 slow down"
    assert [call.result for call in turns[3].tools] == [None]
    assert [(steer.text, steer.human) for steer in turns[4].steers] == [("and the docs", True)]


def test_undo_removes_what_it_says_it_removes(tmp_path: Path) -> None:
    main = _session(tmp_path).main
    for text in ("one", "two", "three"):
        main.turn(text, say(f"answer {text}"))
    assert main.undo(2) == (1, 2)
    main.turn("four", say("answer four"))
    turns, _ = _fold(main.data())
    assert [(turn.turn_id, turn.undone) for turn in turns] == [(0, False), (1, True), (2, True), (3, False)]


def test_shell_lines_and_compaction_open_no_turn(tmp_path: Path) -> None:
    main = _session(tmp_path).main
    main.turn("one", say("answer"))
    main.shell("ls", "a b")
    main.compact("# Handoff\nOne was answered.", "keep it")
    main.turn("two", say("answer"))
    turns, _ = _fold(main.data())
    assert [turn.user_text for turn in turns] == ["one", "two"]


def test_a_sub_agent_has_a_wire_of_its_own(tmp_path: Path) -> None:
    session = _session(tmp_path)
    look = wires.agent("Find it", say("", read("a.py", "x")), say("It is in a.py."), description="Look")
    session.main.turn("where is it?", say("A sub-agent looks.", look), say("In a.py."))
    _, changes = _fold(session.main.data())
    assert [change.agent_id for change in changes if isinstance(change, Spawned)] == ["agent-0"]
    assert "It is in a.py." in session.main.data().decode()
    (sub,), _ = _fold(session.wires["agent-0"].data(), "agent-0")
    assert (sub.origin, sub.assistant_text) == ("system_trigger:subagent", "It is in a.py.")
    assert session.state()["agents"] == json.loads(json.dumps(session.agents))


def test_a_fork_goes_on_behind_its_copy(tmp_path: Path) -> None:
    session = _session(tmp_path)
    session.main.turn("one", say("answer"))
    twin = session.fork(AT + 9_000_000)
    twin.main.turn("two", say("answer"))
    assert twin.main.data().startswith(session.main.data())
    turns, changes = _fold(twin.main.data())
    assert [turn.turn_id for turn in turns] == [0, 1]
    assert [change.before for change in changes if isinstance(change, Copied)] == [1]
    assert twin.state()["forkedFrom"] == session.session_id


def _shape(value: object) -> object:
    if isinstance(value, dict):
        return {key: _shape(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_shape(one) for one in value[:1]]
    return type(value).__name__


def _shapes(line: str) -> str:
    """A record's keys in order, types for values; names of tools and files do not matter."""
    record = json.loads(line)
    if record["type"] == "file_history.checkpoint":
        record["entries"] = list(record["entries"].values())
    event = record.get("event", {})
    kept = {key: event[key] for key in ("type", "name") if key in event}
    return json.dumps([record["type"], kept, _shape(record)])


def test_every_record_has_the_shape_of_a_recorded_one(tmp_path: Path) -> None:
    recorded = set()
    for path in SAMPLES.glob("*/home/sessions/*/*/agents/*/wire.jsonl"):
        recorded |= {_shapes(line) for line in path.read_text(encoding="utf-8").split("\n") if line}
    if not recorded:
        pytest.fail("tests/samples holds no recorded wires")
    session = _session(tmp_path)
    main = session.main
    main.turn("one", say("a", read("a.py", "x"), think="t"), say("", edit("a.py", "x", "y")), say("done"))
    main.turn(
        "two", say("w", write("b.py", "x")), say("b", bash("false", "no", code=1)), say("c"), steers={1: "s"}
    )
    main.turn("three", say("d", wires.agent("p", say("found"), description="d")), say("e"))
    main.turn("four", say("part"), outcome="cancelled")
    main.turn("five", outcome="failed")
    main.turn("six", say("t", todo(("a", "pending"))), say("u"))
    main.undo(2)
    main.shell("ls", "a")
    main.compact("# S", "keep")
    twin = session.fork(AT + 9_000_000)
    odd = {
        _shapes(line)
        for wire in (*session.wires.values(), twin.main)
        for line in wire.lines
        if not line.startswith(('{"type":"llm.tools_snapshot"', '{"type":"profile.bind"'))
    }
    assert not odd - recorded


def _files(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()
    }


def test_the_demo_is_what_its_script_writes(tmp_path: Path) -> None:
    make_demo.make(tmp_path)
    assert _files(demo.home()) == _files(tmp_path)
    assert sum(map(len, _files(tmp_path).values())) <= 250_000


def test_the_bilingual_corpus_is_what_its_script_writes(tmp_path: Path) -> None:
    labelled = bilingual.make(tmp_path)
    assert _files(bilingual.HERE / "home") == _files(tmp_path)
    assert (bilingual.HERE / "labels.json").read_text(encoding="utf-8") == bilingual.text_of(labelled)
    turns = 0
    for path in tmp_path.glob("sessions/*/*/agents/main/wire.jsonl"):
        found, _ = _fold(path.read_bytes())
        assert all(turn.status == "completed" and turn.user_text for turn in found)
        turns += len(found)
    assert turns >= 60


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, corpus.Manifest]:
    root = tmp_path_factory.mktemp("corpus")
    return root, corpus.generate(root, seed=3, sessions=21, megabytes=4)


def test_the_corpus_holds_the_turns_that_its_manifest_counts(small: tuple[Path, corpus.Manifest]) -> None:
    root, manifest = small
    copied = 0
    for expected in manifest.sessions:
        folder = root / "sessions" / wires.work_dir_key(expected.cwd) / expected.session_id / "agents"
        counts = {}
        for path in folder.glob("*/wire.jsonl"):
            agent = path.parent.name
            turns, changes = _fold(path.read_bytes(), agent, expected.cwd)
            counts[agent] = len(turns)
            copied += sum(change.before for change in changes if isinstance(change, Copied))
            if agent == "main":
                assert tuple(turn.turn_id for turn in turns if turn.undone) == expected.undone
        assert counts == expected.turns
    assert copied == sum(sum(expected.copies.values()) for expected in manifest.sessions) > 0


def test_needles_are_where_the_manifest_says(small: tuple[Path, corpus.Manifest]) -> None:
    root, manifest = small
    places = {one.session_id: one.cwd for one in manifest.sessions}
    assert Counter(needle.kind for needle in manifest.needles) == dict.fromkeys(KINDS, corpus.EACH)
    for needle in manifest.needles:
        bucket = wires.work_dir_key(places[needle.session_id])
        path = root / "sessions" / bucket / needle.session_id / "agents" / needle.agent_id / "wire.jsonl"
        turns, _ = _fold(path.read_bytes(), needle.agent_id, places[needle.session_id])
        (turn,) = [one for one in turns if one.turn_id == needle.turn_id]
        found = document(turn)
        text = re.sub(r"\W+", " ", " ".join((found.user, found.agent, found.actions, found.errors))).lower()
        word = max(re.findall(r"\w+", needle.queries[0].lower()), key=len)
        assert word in text, needle


def test_a_manifest_survives_its_file_and_gives_the_mix_of_queries(
    small: tuple[Path, corpus.Manifest],
) -> None:
    root, manifest = small
    assert corpus.Manifest.load(root / "manifest.json") == manifest
    asked = corpus.queries(manifest, 1, 2_000)
    shares = Counter[str](query.kind for query in asked)
    expected = {"rare": 700, "question": 500, "identifier": 300, "chinese": 300, "miss": 200}
    assert all(abs(shares[kind] - count) < 90 for kind, count in expected.items())
    assert all(query.text for query in asked)
    wires_text = b"".join(
        path.read_bytes() for path in root.glob("sessions/*/*/agents/*/wire.jsonl")
    ).decode()
    for query in asked[:200]:
        if query.kind != "question":
            assert (query.text in wires_text) == (query.kind != "miss"), query


def test_the_same_seed_gives_the_same_corpus(tmp_path: Path) -> None:
    for name in ("one", "other"):
        corpus.generate(tmp_path / name, seed=8, sessions=2, megabytes=1)
    assert _files(tmp_path / "one") == _files(tmp_path / "other")


def test_damage_leaves_the_healthy_sessions_whole(tmp_path: Path) -> None:
    sizes = garbage.Sizes(line=100_000, turn=200_000)
    made = garbage.write(tmp_path, sizes)
    for path in tmp_path.glob("sessions/*/*/agents/main/wire.jsonl"):
        name = path.parts[-4]
        if not path.is_file():
            assert name in made.hopeless
            continue
        data = path.read_bytes()
        turns, _ = _fold(data[: data.rfind(b"\n") + 1], cwd=garbage.CWD)
        good = [turn for turn in turns if turn.status == "completed" and turn.assistant_text]
        if name in made.healthy:
            assert len(good) == 3
        elif name in made.damaged:
            assert good
        else:
            assert not good


def test_planted_secrets_are_many_distinct_and_in_the_wires(tmp_path: Path) -> None:
    planted = leaks.home_with_secrets(tmp_path, 4)
    values = [value for secret in planted for value in secret.values]
    assert len(planted) >= 60 and len({secret.kind for secret in planted}) >= 20
    assert len(set(lookalikes.lookalikes(4))) >= 60
    assert len(set(values)) == len(values)
    data = b"".join(path.read_bytes() for path in tmp_path.rglob("wire.jsonl")).decode()
    assert [secret.kind for secret in planted if not any(value in data for value in secret.values)] == []
    assert not set(values) & {value for secret in planting.secrets(5) for value in secret.values}
