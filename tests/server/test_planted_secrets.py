"""Planted secrets reach no answer, notification, log or file of the server: neither those of the sessions nor
those that a model passes as arguments."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from server.surface.everything import TOOLS
from tests.leaks import CWD, Leaks, home_with_secrets
from tests.lookalikes import lookalikes
from tests.pipeline.test_planted_secrets import files_with_leaks
from tests.secrets import Secret, secrets
from tests.server.cases import asked, env_of
from tests.server.processes import Process, clean_env
from tests.wires import Home, say

THEME = "quartermaster"
SAMPLE = 4
"""Each tool is called with so many of the secrets, the next tool with the next ones."""
SHORT = 60
"""Characters that no answer shortens."""
TURNS = 48
"""Turns of the session that is asked about."""
Arguments = dict[str, Any]


@dataclass
class World:
    """What the arguments of a call are made of."""

    session: str
    text: str = ""
    """A text with a secret."""
    short: str = ""
    """One that no answer has to shorten."""
    number: int = 0
    """Of the secret, and of the memory and the theme that go with it."""
    proposals: list[str] = field(default_factory=list)
    views: list[str] = field(default_factory=list)

    @property
    def line(self) -> str:
        """The secret, if a name or a tag may be as long; never a piece of it, which no rule could know."""
        return self.text if len(self.text) <= 180 else "too long for a name"

    @property
    def theme(self) -> str:
        return f"theme-{self.number}"

    @property
    def memory(self) -> Arguments:
        return {"key": f"note-{self.number}", "folder": "notes"}

    @property
    def turn(self) -> Arguments:
        return {"sessionId": self.session, "turnId": self.number % TURNS, "agentId": "main"}


def either(number: int, first: Arguments, second: Arguments) -> Arguments:
    """By turns: what is there, and what is not."""
    return second if number % 2 else first


ARGUMENTS: dict[str, Callable[[World], Arguments]] = {
    # writing
    "remember": lambda w: {
        **w.memory,
        "content": f"decided:\n\n{w.text}\n",
        "title": w.line,
        "tags": [w.line, "kept"],
        "themes": [w.theme, w.line, THEME],
        "source": {"sessionId": w.session, "turnId": 1},
    },
    "organize_memories": lambda w: {"content": f"- {w.text} (memory/notes/note-1)", "title": w.line},
    "sync_workspace_index": lambda w: {"folderComments": {"notes": w.line}},
    "run_theme": lambda w: {"theme": THEME, "keywords": [w.line, THEME]},
    "refine_session_turns": lambda w: {"sessionId": w.session, "limit": 50},
    "tag_theme": lambda w: {"theme": w.line, **w.turn},
    "propose_memories": lambda w: {"limit": 100},
    "resolve_proposal": lambda w: {
        "id": w.proposals.pop(),
        **either(w.number, {"action": "accept"}, {"action": "edit", "text": w.text, "title": w.line}),
    },
    "manage_theme": lambda w: {
        "action": "rename",
        "theme": w.theme,
        "to": f"again-{w.line}",
    },
    # reading
    "bootstrap_workspace": lambda w: {"detailed_rounds": 20, "max_chars": 45_000},
    "load_workspace_context": lambda w: {"summary_rounds": 50, "max_chars": 45_000, "session_id": w.session},
    "get_current_workspace": lambda w: {"session_id": either(w.number, {"": w.session}, {"": w.short})[""]},
    "search_context": lambda w: {
        "query": w.text[:2_000] if w.number % 2 else THEME,
        "detail": ("full", "compact")[w.number % 4 == 0],
        "limit": 50,
        "max_output_chars": 45_000,
        "format": ("text", "json")[w.number % 3 == 0],
        "save_view": True,
    },
    "list_search_views": lambda w: {"limit": 200},
    "load_turn_context": lambda w: {
        "references": [{**w.turn, "turnId": (w.number + turn) % TURNS} for turn in range(0, TURNS, 3)],
        "include": ["args", "results", "diffs"],
        "max_chars": 45_000,
    },
    "load_more_context": lambda w: {"session_id": w.session, "before_turn_id": TURNS, "limit": 50},
    "list_sessions": lambda w: {"limit": 200},
    "recall": lambda w: either(w.number, w.memory, {"key": w.short}),
    "recall_recent": lambda w: {"limit": 50},
    "search": lambda w: {"query": w.text[:2_000]},
    "list": lambda w: either(w.number, {"limit": 500}, {"tag": w.short}),
    "list_tags": lambda w: {},
    "list_themes": lambda w: {"limit": 200, "suggest": True},
    "trace_theme": lambda w: {
        "theme": w.short if w.number % 4 == 1 else THEME,
        "includeTurnContent": True,
        "max_chars": 45_000,
        "format": ("text", "json")[w.number % 3 == 0],
    },
    "pipeline_status": lambda w: either(w.number, {}, {"theme": w.short}),
    "open_memory_dashboard": lambda w: {},
    # moving and taking away
    "move": lambda w: {**w.memory, "toFolder": "reference", "newKey": w.line},
    "archive_memory": lambda w: either(w.number, w.memory, {"key": w.short}),
    "restore_memory": lambda w: either(
        w.number, {"key": f"note-{w.number - SAMPLE}", "folder": "archive/notes"}, {"key": w.short}
    ),
    "untag_theme": lambda w: {"theme": either(w.number, {"": w.theme}, {"": w.short})[""], **w.turn},
    "delete": lambda w: either(w.number, w.memory, {"key": w.short}),
    "delete_search_view": lambda w: {"key": w.short if w.number % 2 else w.views.pop()},
    "delete_theme": lambda w: {"theme": w.short if w.number % 2 else w.theme},
    "forget": lambda w: {"match": w.text[:2_000]} if w.number % 2 else {"theme": w.theme, "confirm": True},
}
"""Plausible arguments for every tool, in the order in which a session could call them."""


class Listening(Process):
    """A server process of which every message is kept as it came."""

    def __init__(self, env: Mapping[str, str], cwd: Path) -> None:
        super().__init__(env, cwd, "serve", "--workspace", CWD)
        self.heard: list[dict[str, Any]] = []

    def read(self) -> dict[str, Any]:
        self.heard.append(super().read())
        return self.heard[-1]

    def close(self) -> None:
        """End it, whatever happened."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(5)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None and not stream.closed:
                stream.close()

    def call(self, tool: str, arguments: Arguments) -> dict[str, Any]:
        """A tool's answer, or the protocol's error; progress is asked for."""
        meta = {"progressToken": len(self.heard)}
        return self.ask("tools/call", {"name": tool, "arguments": arguments, "_meta": meta})


@dataclass(frozen=True)
class Said:
    """All that came out of a server, by where it came from, and where it kept things."""

    planted: Leaks
    """Of the secrets in the sessions."""
    given: Leaks
    """Of those in arguments."""
    tools: frozenset[str]
    answers: dict[str, list[dict[str, Any]]]
    heard: list[dict[str, Any]]
    stderr: str
    store: Path

    def leaks(self, data: str) -> list[str]:
        return self.planted(data) + self.given(data)


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Said:
    root = tmp_path_factory.mktemp("planted")
    planted, given = home_with_secrets(root / "home", 21, shifts=(3, 11)), secrets(22)
    session = sorted((root / "home" / "sessions").glob("*/*"))[0].name
    env = clean_env(env_of(root / "home", root / "store", KIMI_MEMORY_BACKGROUND="0"))
    answers: dict[str, list[dict[str, Any]]] = defaultdict(list)
    with closing(Listening(env, root)) as process:
        process.initialize()
        listed = process.ask("tools/list")["result"]["tools"]
        for conversation in (_calls(process, session, given), _reads(process, given)):
            for asked, answer in conversation:
                answers[asked].append(answer)
        assert process.end() == 0
        stderr = process.stderr()
    return Said(
        Leaks(planted),
        Leaks(given),
        frozenset(tool["name"] for tool in listed),
        dict(answers),
        process.heard,
        stderr,
        root / "store",
    )


def _calls(process: Listening, session: str, given: Sequence[Secret]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every secret is remembered and searched for; then each tool is called with some of them; what reads is
    called again at the end.
    """
    world = World(session)
    texts = [secret.text for secret in given] * 2

    def call(tool: str, number: int) -> tuple[str, dict[str, Any]]:
        world.number = number % len(given)
        world.text = given[world.number].text
        world.short = next(text for text in texts[world.number :] if len(text) <= SHORT and "\n" not in text)
        return tool, process.call(tool, ARGUMENTS[tool](world))

    for number in range(len(given)):
        yield call("remember", number)
        yield call("search", number)
    for index, tool in enumerate(ARGUMENTS):
        for number in range(index * SAMPLE, (index + 1) * SAMPLE):
            name, answer = call(tool, number)
            yield name, answer
        if tool == "propose_memories":
            world.proposals = re.findall(r"^([0-9a-f]{16})  ", text_of(answer), re.MULTILINE)
        if tool == "list_search_views":
            world.views = re.findall(r"^(search-\S+)  ", text_of(answer), re.MULTILINE)
    for tool in ("recall_recent", "list", "list_tags", "list_themes", "bootstrap_workspace", "trace_theme"):
        yield call(tool, 0)


def _reads(process: Listening, given: Sequence[Secret]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every prompt, every resource and some completions."""
    for prompt in process.ask("prompts/list")["result"]["prompts"]:
        filled = {argument["name"]: THEME for argument in prompt.get("arguments", ())}
        yield "prompts/get", process.ask("prompts/get", {"name": prompt["name"], "arguments": filled})
    listed = process.ask("resources/list")
    yield "resources/list", listed
    for row in listed["result"]["resources"]:
        yield "resources/read", process.ask("resources/read", {"uri": row["uri"]})
    for argument in ("folder", "key"):
        about = {"type": "ref/resource", "uri": "memory://{+folder}/{key}"}
        asked = {"ref": about, "argument": {"name": argument, "value": ""}}
        yield "completion/complete", process.ask("completion/complete", asked)


def text_of(answer: dict[str, Any]) -> str:
    return "\n".join(block["text"] for block in answer["result"]["content"])


def told(answers: Sequence[dict[str, Any]]) -> str:
    return json.dumps(answers, ensure_ascii=False)


def test_the_table_has_every_tool_of_the_server(said: Said) -> None:
    assert said.tools == set(ARGUMENTS) == set(TOOLS)


@pytest.mark.parametrize("tool", ARGUMENTS)
def test_no_tool_answers_with_a_secret(said: Said, tool: str) -> None:
    answers = said.answers[tool]
    assert len(answers) >= SAMPLE
    assert any(not answer["result"].get("isError") for answer in answers), answers[0]
    assert said.planted(told(answers)) == []
    assert said.given(told(answers)) == []


@pytest.mark.parametrize("method", ["prompts/get", "resources/list", "resources/read", "completion/complete"])
def test_nothing_else_that_is_read_holds_a_secret(said: Said, method: str) -> None:
    assert any("result" in answer for answer in said.answers[method])
    assert said.leaks(told(said.answers[method])) == []


def test_no_notification_or_log_line_holds_a_secret(said: Said) -> None:
    notes = [message for message in said.heard if "id" not in message]
    assert {"notifications/progress", "notifications/resources/list_changed"} <= {
        note["method"] for note in notes
    }
    assert said.leaks(told(notes) + said.stderr) == []


def test_no_file_below_the_store_holds_a_secret(said: Said) -> None:
    kept = [path for path in said.store.rglob("*") if path.is_file()]
    assert {".md", ".json", ".sqlite"} <= {path.suffix for path in kept}
    assert len([path for path in kept if path.suffix == ".md"]) >= 60
    assert files_with_leaks(said.planted, said.store) == files_with_leaks(said.given, said.store) == {}


@pytest.mark.anyio
@pytest.mark.parametrize(
    "argument",
    [
        "remember themes",
        "tag_theme theme",
        "manage_theme to",
        "run_theme keywords",
        "sync_workspace_index folderComments",
    ],
)
async def test_a_name_is_kept_without_its_secret(tmp_path: Path, argument: str) -> None:
    tool, _, name = argument.partition(" ")
    secret = next(secret for secret in secrets(23) if secret.kind == "prose")
    session = Home(tmp_path / "home", seed=1).session(CWD, at=1_796_033_702_000, title="one")
    session.main.turn(f"the {THEME} asks", say(f"Decided: {THEME} it is."))
    session.home.write()
    given: dict[str, Any] = {
        "themes": {"key": "k", "content": "text", "themes": [secret.text]},
        "theme": {"theme": secret.text, "sessionId": session.session_id, "turnId": 0},
        "to": {"action": "rename", "theme": THEME, "to": secret.text},
        "keywords": {"theme": THEME, "keywords": [secret.text, THEME]},
        "folderComments": {"folderComments": {"notes": secret.text}},
    }
    async with asked(env_of(tmp_path / "home", tmp_path / "store"), CWD) as server:
        await server.ask("remember", key="other", folder="notes", content="text")
        await server.ask("run_theme", theme=THEME, keywords=[THEME])
        await server.call(tool, given[name])
    assert files_with_leaks(Leaks([secret]), tmp_path / "store") == {}


@pytest.mark.anyio
async def test_look_alikes_in_a_memory_are_kept_whole(tmp_path: Path) -> None:
    planted = lookalikes(24)
    content = "\n".join(f"- {text}" for text in planted)
    async with asked(env_of(tmp_path / "no-home", tmp_path / "store"), CWD) as server:
        await server.ask("remember", key="kept", folder="notes", content=content)
        recalled = await server.ask("recall", key="kept", folder="notes")
        stored = ((await server.space()).layout.root / "notes" / "kept.md").read_text(encoding="utf-8")
    assert [text for text in planted if text not in recalled] == []
    assert [text for text in planted if text not in stored] == []
