"""What one session decided, the next one is told: through the real client, once, unduplicated, within bounds."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.e2e.kimi import Kimi
from tests.e2e.model_server import Call, ModelServer, Reply, Request, Step

DECIDED = "Decided: the refresh token goes into an httpOnly cookie, never into localStorage, because any script reads it."
PORT = "启动时 3000 被占用就退到 3001；不再杀旧进程，因为那可能是另一个窗口的服务。"
CALLS_LIMIT = 12_000 + 200
"""Characters of an answer by default, and the client's line about the time it took."""


def tool(name: str, **args: object) -> Reply:
    return Reply(calls=(Call(f"mcp__kimi-memory__{name}", args),))


def first_session(kimi: Kimi, model: ModelServer) -> str:
    """A session that decides two things and edits a file."""
    write = Call("Write", {"path": "auth/token.py", "content": "COOKIE = 'refresh'\n"})
    test = Call("Bash", {"command": "python3 -c 'raise SystemExit(3)'", "description": "run the test"})
    model.say(Reply("Let me write it.", (write, test)), Reply(DECIDED), Reply(PORT))
    kimi.prompt("Where do we keep the refresh token? Please put it into auth/token.py.")
    kimi.prompt("端口 3000 被占用怎么办？", "-c")
    (session,) = kimi.sessions()
    return session


def results_of(kimi: Kimi, model: ModelServer, prompt: str, steps: Sequence[Step]) -> list[str]:
    """Run a fresh session in which the model makes these calls; the tool results as it got them."""
    before = len(model.answered())
    model.say(*steps, Reply("That is all."))
    kimi.prompt(prompt)
    requests: list[Request] = model.answered()[before:]
    assert len(requests) == len(steps) + 1
    results = requests[-1].results
    assert len(results) == len(steps)
    assert not any("mcp-result-extras" in result or "ERROR" in result for result in results), results
    assert all(len(result) <= CALLS_LIMIT for result in results)
    return results


def test_the_next_session_gets_what_the_first_one_decided(kimi: Kimi, model: ModelServer) -> None:
    first = first_session(kimi, model)
    memory = {
        "key": "refresh-token-cookie",
        "folder": "decisions",
        "content": "httpOnly cookie. Why: scripts.",
    }
    calls = [
        tool("bootstrap_workspace"),
        tool("search_context", query="where does the refresh token go", detail="normal"),
        tool("search_context", query="端口被占用", detail="normal"),
        tool("load_turn_context", references=[{"sessionId": first, "turnId": 0}], include=["args"]),
        tool("remember", **memory, title="Refresh token in a cookie", tags=["auth", "token", "cookie"]),
        tool("remember", **memory, title="Refresh token in a cookie", tags=["auth", "token", "cookie"]),
        tool("recall", key="refresh-token-cookie"),
        tool("run_theme", theme="auth-token"),
        tool("run_theme", theme="auth-token", keywords=["refresh token"]),
        tool("trace_theme", theme="auth-token"),
    ]
    begun, found, chinese, whole, saved, again, recalled, asked, ran, traced = results_of(
        kimi, model, "What do we know here?", calls
    )
    assert f"Workspace {kimi.project}" in begun and "session map" in begun
    assert first in begun and begun.count("httpOnly cookie") == 1 and begun.count("不再杀旧进程") == 1
    assert first in found and found.count(DECIDED) == 1, found
    assert first in chinese and "退到 3001" in chinese and chinese.count("不再杀旧进程") <= 1
    assert whole.count(DECIDED) == 1 and "auth/token.py" in whole and "COOKIE = 'refresh'" in whole
    assert "refresh-token-cookie" in saved and "refresh-token-cookie" in again
    assert recalled.count("httpOnly cookie. Why: scripts.") == 1
    assert "seed" in asked.lower() or "keyword" in asked.lower()
    assert "auth-token" in ran and "saved" in ran, ran
    assert traced.count(DECIDED.removeprefix("Decided: ")) == 1 and first in traced, traced
    assert [path.name for path in (kimi.store / "memory").rglob("*.md")] == ["refresh-token-cookie.md"]
    assert len(list((kimi.store / "themes").glob("*.json"))) == 1


def test_what_was_recalled_does_not_become_a_memory(kimi: Kimi, model: ModelServer) -> None:
    first = first_session(kimi, model)
    results_of(kimi, model, "Look it up.", [tool("search_context", query="refresh token httpOnly cookie")])
    second = kimi.sessions()[-1]
    again, begun = results_of(
        kimi,
        model,
        "And once more.",
        [tool("search_context", query="refresh token httpOnly cookie"), tool("bootstrap_workspace")],
    )
    assert first in again and second not in again and again.count(DECIDED) == 1, again
    third = kimi.sessions()[-1]
    assert f"This session: {third}" in begun and second in begun


def test_every_default_tool_can_be_called_and_answers_within_bounds(kimi: Kimi, model: ModelServer) -> None:
    """Kimi checks arguments against our schemas before it calls, so a wrong schema would show here."""
    first = first_session(kimi, model)
    turn = {"sessionId": first, "turnId": 0}
    settled: list[str] = []

    def resolve(request: Request) -> Reply:
        settled.extend(re.findall(r"^([0-9a-f]{8,64}|p[-_\w]+)\b", request.last, re.MULTILINE))
        return tool("resolve_proposal", id=settled[0], action="accept")

    calls: list[Step] = [
        tool("bootstrap_workspace", detailed_rounds=1, summary_rounds=1),
        tool("load_more_context", before_turn_id=1, session_id=first, limit=1),
        tool("search_context", query="refresh token", date_from="2020-01-01", limit=3, detail="full"),
        tool("load_turn_context", references=[turn], include=["args", "results", "diffs"]),
        tool("refine_session_turns", sessionId=first, turnIds=[0, 1]),
        tool("propose_memories", limit=5),
        resolve,
        tool(
            "remember", key="端口", folder="knowledge", title="端口", content=PORT, tags=["port"], source=turn
        ),
        tool("remember", key="端口", folder="knowledge", content="Agreed twice.", mode="append"),
        tool("recall", key="端口"),
        tool("search", query="端口 3001"),
        tool("list", folder="memory", limit=5),
        tool("move", key="端口", toFolder="decisions", newKey="port-fallback"),
        tool("organize_memories"),
        tool(
            "organize_memories",
            content="# Essence\n- 3000 → 3001 (decisions/port-fallback)\n",
            title="Essence",
        ),
        tool("run_theme", theme="ports", keywords=["端口"], wait_seconds=20),
        tool("list_themes"),
        tool("tag_theme", theme="ports", **turn),
        tool("untag_theme", theme="ports", **turn),
        tool("trace_theme", theme="ports", includeTurnContent=True),
        tool("pipeline_status"),
        tool("delete", key="port-fallback", folder="decisions"),
    ]
    results = results_of(kimi, model, "Do everything.", calls)
    offered = {name.rpartition("__")[2] for name in model.answered()[-1].tools if "kimi-memory" in name}
    assert offered == {name.rpartition("__")[2] for name in model.called if "kimi-memory" in name}
    assert len(offered) == 20 and len(results) == 22
    assert "Agreed twice." in results[9] and PORT in results[9] and "port-fallback" in results[12]
    assert "退到 3001" in results[19] and list((kimi.store / "memory").rglob("port-fallback.md")) == []


def test_the_rules_and_the_skill_are_in_the_models_instructions(kimi: Kimi, model: ModelServer) -> None:
    kimi.prompt("Hello")
    (request,) = model.answered()
    assert request.system.count("KIMI-MEMORY-INJECTED-START") == 1
    assert "mcp__kimi-memory__bootstrap_workspace" in request.system
    assert "memory-manage" in request.system
    assert len([name for name in request.tools if name.startswith("mcp__kimi-memory__")]) == 20
