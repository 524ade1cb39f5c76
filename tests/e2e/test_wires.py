"""The wires that this very CLI writes fold into the right turns: while it runs, after a kill, undo, fork, compaction."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest

from tests.e2e.kimi import Kimi, wait_until
from tests.e2e.model_server import Call, ModelServer, Reply
from tests.e2e.terminal import Terminal


def said(turns: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(turn["userText"], turn["assistantText"], turn["status"]) for turn in turns]


def test_a_turn_is_seen_while_it_runs_and_whole_afterwards(bare: Kimi, model: ModelServer) -> None:
    hold = threading.Event()
    write = Call("Write", {"path": "port.py", "content": "PORT = 3001\n"})
    model.say(Reply("First the port.", (write,)), Reply("The port is 3001 now.", hold=hold))
    with bare.started("-p", "Why is the port busy?") as process:
        model.wait_for(2)
        (running,) = wait_until(bare.turns, "the running turn")
        assert (running["userText"], running["status"]) == ("Why is the port busy?", "running")
        assert running["files"] == [{"path": "port.py", "op": "write"}]
        assert [tool["name"] for tool in running["tools"]] == ["Write"]
        hold.set()
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
    assert "The port is 3001 now." in out
    (turn,) = bare.turns()
    assert said([turn]) == [("Why is the port busy?", "The port is 3001 now.", "completed")]
    assert turn["startedAt"] == running["startedAt"] < turn["endedAt"]
    assert turn["position"] == 0 and turn["turnId"] == 0 and not turn["errors"]


def test_a_killed_turn_keeps_what_was_written_and_the_next_one_follows(
    kimi: Kimi, model: ModelServer
) -> None:
    bash = Call("Bash", {"command": "echo half done", "description": "say it"})
    model.say(Reply("Half of it.", (bash,)), Reply("never seen", hold=threading.Event()))
    with kimi.started("-p", "Do a long thing") as process:
        model.wait_for(2)
        wait_until(lambda: [turn for turn in kimi.turns() if turn["tools"]], "the call in the wire")
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=10)
    kimi.wait_for_no_server()
    model.say(Reply("Going on."))
    kimi.prompt("Go on", "-c")
    turns = kimi.turns()
    assert said(turns) == [
        ("Do a long thing", "Half of it.", "unfinished"),
        ("Go on", "Going on.", "completed"),
    ]
    assert [turn["turnId"] for turn in turns] == [0, 1]
    assert len(kimi.sessions()) == 1


def test_a_fork_is_no_second_memory_of_the_same_turns(bare: Kimi, model: ModelServer) -> None:
    model.say(
        Reply("We take SQLite."), Reply("In the fork: Postgres."), Reply("In the original: still SQLite.")
    )
    bare.prompt("Which database?")
    (original,) = bare.sessions()
    forked = bare.run("fork", original, "-y").checked()
    fork = next(word for word in forked.out.split() if word.startswith("session_"))
    bare.prompt("And for the cluster?", "-S", fork)
    bare.prompt("And for one user?", "-S", original)
    assert sorted(said(bare.turns())) == [
        ("And for one user?", "In the original: still SQLite.", "completed"),
        ("And for the cluster?", "In the fork: Postgres.", "completed"),
        ("Which database?", "We take SQLite.", "completed"),
    ]
    every = bare.turns("--include-copies")
    copies = [turn for turn in every if turn["copyOf"]]
    assert len(every) == 4 and [turn["sessionId"] for turn in copies] == [fork]
    assert copies[0]["userText"] == "Which database?"


def test_a_sub_agents_turns_are_its_own(bare: Kimi, model: ModelServer) -> None:
    start = Call("Agent", {"description": "look", "prompt": "Count the files.", "subagent_type": "coder"})
    model.say(Reply("I ask someone.", (start,)), Reply("There are three files."))
    model.say(
        Reply("3 files. " + "I looked into every folder of the project and counted them twice. " * 5),
        kind="sub",
    )
    bare.prompt("How many files?")
    (main,) = bare.turns("--agent", "main")
    assert said([main]) == [("How many files?", "There are three files.", "completed")]
    assert [tool["name"] for tool in main["tools"]] == ["Agent"]
    (sub,) = [turn for turn in bare.turns() if turn["agentId"] != "main"]
    assert sub["assistantText"].startswith("3 files.") and sub["origin"] == "system_trigger:subagent"
    assert "Count the files." in sub["openingText"]


@pytest.mark.usefixtures("tmux")
def test_undo_compaction_and_fork_in_the_interface(kimi: Kimi, model: ModelServer) -> None:
    model.say(
        Reply("Cats purr."),
        Reply("Dogs bark."),
        Reply("Birds sing."),
        Reply("SUMMARY: cats, birds."),
        Reply("Fish swim."),
    )
    kimi.env["KIMI_MEMORY_BACKGROUND"] = "0"  # nobody takes the nudges away
    with Terminal(kimi) as screen:
        screen.enter("Tell me about cats")
        screen.see("Cats purr.")
        screen.enter("Tell me about dogs")
        screen.see("Dogs bark.")
        screen.enter("/undo 1")
        wait_until(lambda: "Dogs bark." not in screen.text(), "the undo")
        screen.enter("Tell me about birds")
        screen.see("Birds sing.")
        screen.enter("/compact")
        screen.see("Compaction complete")
        screen.enter("Tell me about fish")
        screen.see("Fish swim.")
        alive = kimi.turns()  # the interface still runs
        (session,) = kimi.sessions()
        model.say(Reply("Snakes hiss."))
        screen.enter("/fork")
        wait_until(lambda: len(kimi.sessions()) == 2, "the fork")
        (fork,) = {*kimi.sessions()} - {session}
        nudge = kimi.store_root / "nudges" / session
        wait_until(nudge.exists, "the nudge of the fish's turn")
        nudge.unlink()
        screen.enter("Tell me about snakes")
        screen.see("Snakes hiss.")
        wait_until(nudge.exists, "the nudge of the turn's end")
        nudge.unlink()
        screen.leave()  # Kimi waits for the hook of the session's end
        assert nudge.exists()
    after = kimi.turns("--session", session)
    assert said(after[4:]) == [
        ("Tell me about snakes", "Snakes hiss.", "completed")
    ]  # /fork stays in the original
    for turns in (alive, after[:4]):
        assert [(turn["userText"], turn["assistantText"], turn["undone"]) for turn in turns] == [
            ("Tell me about cats", "Cats purr.", False),
            ("Tell me about dogs", "Dogs bark.", True),
            ("Tell me about birds", "Birds sing.", False),
            ("Tell me about fish", "Fish swim.", False),
        ]
    assert kimi.turns("--session", fork) == []
    copies = kimi.turns("--session", fork, "--include-copies")
    assert [turn["undone"] for turn in copies] == [False, True, False, False] and all(
        turn["copyOf"] for turn in copies
    )
    assert session in (kimi.store_root / "sessions-map.json").read_text("utf-8")
