"""A server that crashes, a store that does not answer, a client that is killed, a hook that is broken: the client
goes on, nothing is lost or doubled, and no process is left.
"""

from __future__ import annotations

import signal
import sqlite3
import threading

from pipeline.store.files import locked
from tests.e2e.kimi import Kimi, wait_until
from tests.e2e.model_server import Call, ModelServer, Reply

SERVER = "mcp__kimi-memory__"
MEMORY = {
    "key": "queue",
    "folder": "decisions",
    "title": "Queue in SQLite",
    "content": "Because it is small.",
}


def test_a_crash_in_the_middle_of_a_call_is_survived_and_the_memory_is_written_once(
    kimi: Kimi, model: ModelServer
) -> None:
    """Kimi starts the server anew and sends the same call again."""
    hold = threading.Event()
    model.say(
        Reply(calls=(Call(f"{SERVER}bootstrap_workspace"),)),
        Reply("Saving.", (Call(f"{SERVER}remember", MEMORY),), hold=hold),
        Reply("Saved."),
    )
    with kimi.started("-p", "Remember the queue") as process:
        model.wait_for(2)
        (victim,) = kimi.servers()
        with _kept_from_writing(kimi):
            hold.set()
            wire = kimi.wire(kimi.sessions()[0])
            wait_until(
                lambda: b'"remember' in wire.read_bytes() or b"__remember" in wire.read_bytes(), "the call"
            )
            victim.kill()
            victim.wait(10)
            wait_until(lambda: [one for one in kimi.servers() if one.pid != victim.pid], "the new server")
        out, err = process.communicate(timeout=90)
    assert process.returncode == 0 and "Saved." in out, err
    (result,) = model.answered()[-1].results[1:]
    assert "ERROR" not in result and "queue" in result
    (written,) = (kimi.store / "memory").rglob("*.md")
    assert written.read_text("utf-8").count("Because it is small.") == 1


class _kept_from_writing:
    """The lock of the memory files, held by somebody else: a call that writes waits for it."""

    def __init__(self, kimi: Kimi) -> None:
        self._lock = locked(kimi.store, "memory/decisions/queue.md", "memory", "index.json")

    def __enter__(self) -> None:
        self._lock.__enter__()

    def __exit__(self, *_: object) -> None:
        self._lock.__exit__(None, None, None)


def test_a_store_that_does_not_answer_does_not_stop_the_client(kimi: Kimi, model: ModelServer) -> None:
    model.say(Reply("We take SQLite for the queue."))
    kimi.prompt("Which store for the queue?")
    kimi.ours("pipeline.cli", "index").checked()
    database = sqlite3.connect(kimi.store / "refined" / "refined.sqlite", isolation_level=None)
    try:
        database.execute("BEGIN IMMEDIATE")  # the disk is busy with somebody else's transaction
        model.say(
            Reply(calls=(Call(f"{SERVER}search_context", {"query": "queue", "detail": "normal"}),)),
            Reply("Found."),
        )
        assert "Found." in kimi.prompt("What about the queue?").out
    finally:
        database.close()
    (result,) = model.answered()[-1].results
    assert "SQLite for the queue" in result, result


def test_the_server_ends_with_the_client_however_that_ends(kimi: Kimi, model: ModelServer) -> None:
    for number, how in enumerate((signal.SIGTERM, signal.SIGINT, signal.SIGKILL), start=1):
        model.say(Reply("Thinking", hold=threading.Event()))
        with kimi.started("-p", "Think about it") as process:
            model.wait_for(number)
            assert len(kimi.servers()) == 1
            process.send_signal(how)
            process.wait(timeout=15)
            kimi.wait_for_no_server()
    leftover = [
        path.name
        for path in kimi.store_root.rglob("*")
        if path.suffix == ".tmp" or path.name.startswith(".tmp")
    ]
    assert leftover == []


def test_broken_hooks_and_a_broken_server_never_disturb_the_client(kimi: Kimi, model: ModelServer) -> None:
    script = kimi.root / "hook.py"
    script.write_text("this is no Python", encoding="utf-8")
    config = kimi.home / "config.toml"
    command = next(line for line in config.read_text("utf-8").splitlines() if line.startswith("command"))
    interpreter, path = command.partition('"')[2].split()[0], str(kimi.store_root)
    hook = next(word for word in command.split() if word.endswith("/hook.py"))
    broken = {
        "SessionStart": command.replace(path, "/proc/nowhere"),
        "UserPromptSubmit": command.replace(hook, str(script)),
        "TurnStarted": command.replace(interpreter, "/nowhere/python"),
        "Stop": command.replace(hook, str(kimi.root / "server" / "gone.py")),
    }
    assert len({*broken.values(), command}) == 5
    config.write_text(
        "".join(f'[[hooks]]\nevent = "{name}"\n{line}\n' for name, line in broken.items()), encoding="utf-8"
    )
    said = kimi.prompt("Hello")
    assert said.out.count("Done.") == 1 and "hook" not in (said.out + said.err).lower()
    servers = kimi.home / "mcp.json"
    servers.write_text(servers.read_text("utf-8").replace("cli.py", "gone.py"), encoding="utf-8")
    assert kimi.prompt("Hello").out.count("Done.") == 1
    assert len(model.answered()) == 2  # no hook made the model go round once more


def test_hooks_fire_in_print_mode(kimi: Kimi, model: ModelServer) -> None:
    kimi.env["KIMI_MEMORY_BACKGROUND"] = "0"  # nobody takes the nudge away
    model.say(Reply("Hi."))
    with kimi.started("-p", "Hello") as process:
        process.communicate(timeout=60)
    (session,) = kimi.sessions()
    entry = (kimi.store_root / "sessions-map.json").read_text("utf-8")
    assert f'"{session}": {{"cwd": "{kimi.project}", "kimiPid": {process.pid}, ' in entry
    assert (kimi.store_root / "nudges" / session).exists()
