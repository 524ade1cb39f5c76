import itertools
import json
from pathlib import Path

import pytest

from pipeline.errors import BadInput
from pipeline.store.memories import Memories
from pipeline.store.proposals import OPEN_LIMIT, Draft, Proposals, digest

SOURCE: dict[str, str | int] = {"sessionId": "session_1", "agentId": "main", "turnId": 7}
DRAFT = Draft("Use SQLite in WAL mode.", "SQLite: WAL mode", tags=("db",), source=SOURCE, why="a decision")


@pytest.fixture
def memories(tmp_path: Path) -> Memories:
    return Memories(tmp_path, now=lambda: 1_780_000_000_000, redact=str)


@pytest.fixture
def proposals(memories: Memories) -> Proposals:
    ticks = itertools.count(1_780_000_000_000, 1000)
    return Proposals(memories, now=lambda: next(ticks), redact=lambda text: text.replace("hunter2", "[x]"))


def test_a_proposal_waits_and_enters_no_memory(
    proposals: Proposals, memories: Memories, tmp_path: Path
) -> None:
    made = proposals.propose(DRAFT)
    assert made["created"] and made["status"] == "open"
    assert (made["key"], made["folder"], made["source"]) == ("sqlite-wal-mode", "memory/decisions", SOURCE)
    assert memories.all() == ()
    assert [item["id"] for item in proposals.list()["items"]] == [made["id"]]
    assert (tmp_path / "proposals" / f"{made['id']}.json").is_file()


def test_the_same_words_are_proposed_once(proposals: Proposals) -> None:
    first = proposals.propose(DRAFT)
    again = proposals.propose(Draft("  use sqlite in WAL\nmode", "Other title"))
    assert again["id"] == first["id"] and not again["created"] and again["title"] == first["title"]
    assert proposals.list()["total"] == 1
    assert digest("前端 令牌。") == digest("前端  令牌")


def test_an_accepted_proposal_becomes_a_memory_with_its_source(
    proposals: Proposals, memories: Memories
) -> None:
    made = proposals.propose(DRAFT)
    done = proposals.resolve(made["id"], "accept", by="ada")
    assert done == {
        "id": made["id"],
        "status": "accepted",
        "changed": True,
        "memory": {"folder": "memory/decisions", "key": "sqlite-wal-mode"},
    }
    found = memories.recall("sqlite-wal-mode")
    assert found["content"] == DRAFT.text and found["tags"] == ["db"]
    assert found["source"] == {
        "session": "session_1",
        "agent": "main",
        "turn": "7",
        "tool": "resolve_proposal",
        "proposal": made["id"],
        "confirmedBy": "ada",
    }
    assert proposals.resolve(made["id"], "accept") == done | {"changed": False}
    assert proposals.list()["total"] == 0 and proposals.list("accepted")["total"] == 1


def test_an_edited_proposal_is_written_as_edited(proposals: Proposals, memories: Memories) -> None:
    made = proposals.propose(DRAFT)
    with pytest.raises(BadInput, match="edit needs"):
        proposals.resolve(made["id"], "edit")
    proposals.resolve(made["id"], "edit", text="Use WAL.", key="wal", folder="rules", title="WAL", tags=["x"])
    found = memories.recall("wal", "rules")
    assert (found["content"], found["title"], found["tags"]) == ("Use WAL.", "WAL", ["x"])


def test_a_rejected_proposal_does_not_come_back(proposals: Proposals, memories: Memories) -> None:
    made = proposals.propose(DRAFT)
    assert proposals.resolve(made["id"], "reject")["changed"]
    assert not proposals.resolve(made["id"], "reject")["changed"]
    again = proposals.propose(Draft(DRAFT.text, "from another turn", source={"turnId": 99}))
    assert not again["created"] and again["status"] == "rejected"
    assert proposals.list()["total"] == 0 and memories.all() == ()
    with pytest.raises(BadInput, match="is rejected already"):
        proposals.resolve(made["id"], "accept")


def test_accepting_never_overwrites_another_memory(proposals: Proposals, memories: Memories) -> None:
    memories.remember("sqlite-wal-mode", "written by hand", folder="decisions")
    made = proposals.propose(DRAFT)
    key = proposals.resolve(made["id"], "accept")["memory"]["key"]
    assert key == f"sqlite-wal-mode-{made['id'][:6]}"
    assert memories.recall("sqlite-wal-mode", "decisions")["content"] == "written by hand"


def test_an_acceptance_that_died_half_way_is_finished(proposals: Proposals, memories: Memories) -> None:
    made = proposals.propose(DRAFT)
    memories.remember(
        made["key"], made["text"], folder=made["folder"], title=made["title"], tags=made["tags"]
    )
    assert proposals.resolve(made["id"], "accept")["memory"]["key"] == made["key"]
    assert len(memories.all()) == 1


def test_secrets_and_recalled_text_stay_out_of_the_queue(proposals: Proposals, tmp_path: Path) -> None:
    proposals.propose(Draft("pw hunter2 <recalled-memory>old</recalled-memory>", "hunter2", why="hunter2"))
    assert "hunter2" not in "".join(path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.json"))
    with pytest.raises(BadInput, match="text is empty"):
        proposals.propose(Draft("<recalled-memory>old</recalled-memory>", "t"))


@pytest.mark.parametrize("identity", ["nope", "../x", "", "a/b"])
def test_unknown_ids_and_actions_are_refused(proposals: Proposals, identity: str) -> None:
    with pytest.raises(BadInput, match="no proposal"):
        proposals.resolve(identity, "accept")
    with pytest.raises(BadInput, match="accept, edit, reject"):
        proposals.resolve(identity, "keep")  # type: ignore[arg-type]


def test_torn_and_foreign_files_do_not_stop_the_queue(proposals: Proposals, tmp_path: Path) -> None:
    made = proposals.propose(DRAFT)
    (tmp_path / "proposals/torn.json").write_text('{"id": "torn"', encoding="utf-8")
    (tmp_path / "proposals/foreign.json").write_text(json.dumps({"status": "open"}), encoding="utf-8")
    assert [item["id"] for item in proposals.list()["items"]] == [made["id"]]


def test_the_queue_is_bounded_and_the_oldest_give_way(proposals: Proposals) -> None:
    for number in range(OPEN_LIMIT + 3):
        proposals.propose(Draft(f"Fact number {number}", f"Fact {number}"))
    found = proposals.list(limit=1000)
    assert found["total"] == OPEN_LIMIT
    assert found["items"][-1]["title"] == "Fact 3"
