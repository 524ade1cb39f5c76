"""Proves that a home is wired: every piece as setup writes it, the server started once, the hook run once.

Nothing of the person's store is touched: the server gets a store and a directory of its own that are thrown away.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import anyio

from server.setup import hooks_toml, mcp_json
from server.setup.model import InvalidFile
from server.setup.plan import Files, Options, parts, settled
from server.setup.wiring import NAME, STARTUP_TIMEOUT_MS, is_our_hook

HOOK_LIMIT_MS, HOOK_RUNS = 150, 3
CLIENT = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "kimi-code", "version": "0.0.0"},
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    ok: bool
    text: str


def check(files: Files, options: Options, env: Mapping[str, str]) -> Iterator[Finding]:
    """Look at every piece, then start what they start."""
    for part in parts(settled(files, options)):
        try:
            problem = part.wired(files.get(part.path))
        except InvalidFile as error:
            problem = error.message.partition(": ")[2]
        yield Finding(not problem, f"{part.path} {problem or 'is set up'}")
    yield _server(files, env)
    if options.hooks:
        yield _hook(files, env)


def _server(files: Files, env: Mapping[str, str]) -> Finding:
    try:
        entry = mcp_json.entry_of(files.get(mcp_json.PATH))
    except InvalidFile:
        entry = None
    if not isinstance(entry, dict):
        return Finding(False, "the server was not started: there is no entry that says how")
    started = perf_counter()
    try:
        tools = anyio.run(_tools_of, entry, env)
    except (OSError, ValueError, KeyError, TypeError, TimeoutError, anyio.EndOfStream) as error:
        return Finding(False, f"the server does not start: {error or type(error).__name__}")
    broken = [str(tool.get("name")) for tool in tools if tool.get("inputSchema", {}).get("type") != "object"]
    if broken:
        return Finding(False, f"Kimi would drop the server: the schema of {', '.join(broken)} is no object")
    names = {str(tool.get("name")) for tool in tools}
    if "bootstrap_workspace" not in names:
        return Finding(False, f'"{NAME}" starts a server without the tool bootstrap_workspace')
    took = (perf_counter() - started) * 1000
    return Finding(True, f"the server starts: {len(tools)} tools after {took:.0f} ms")


async def _tools_of(entry: Mapping[str, Any], env: Mapping[str, str]) -> list[dict[str, Any]]:
    """Start the entry's command as Kimi does, and ask for its tools."""
    with tempfile.TemporaryDirectory(prefix="kimi-memory-check-") as folder:
        own = {"MEMORY_STORE_ROOT": folder, "KIMI_MEMORY_BACKGROUND": "0"}
        variables = {
            **env,
            **{str(key): str(value) for key, value in (entry.get("env") or {}).items()},
            **own,
        }
        words = [str(entry["command"]), *(str(word) for word in entry.get("args") or [])]
        with anyio.fail_after(STARTUP_TIMEOUT_MS / 1000):
            async with await anyio.open_process(
                words, cwd=folder, env=variables, stderr=subprocess.DEVNULL, start_new_session=True
            ) as process:
                try:
                    return await _handshake(process)
                finally:
                    process.terminate()


async def _handshake(process: anyio.abc.Process) -> list[dict[str, Any]]:
    assert process.stdin is not None and process.stdout is not None
    messages: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": CLIENT},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
    ]
    await process.stdin.send("".join(json.dumps(message) + "\n" for message in messages).encode("utf-8"))
    buffer = b""
    while True:
        buffer += await process.stdout.receive()
        *lines, buffer = buffer.split(b"\n")
        for line in lines:
            message = json.loads(line)
            if message.get("id") == 1:
                return list(message["result"]["tools"])


def _hook(files: Files, env: Mapping[str, str]) -> Finding:
    """Run our hook's command with an event that it has no use for."""
    try:
        text = (files.get(hooks_toml.PATH) or b"").decode("utf-8")
        hooks = [hook for hook in tomllib.loads(text).get("hooks", []) if is_our_hook(hook)]
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, AttributeError, TypeError):
        hooks = []
    if not hooks:
        return Finding(False, "the hook was not run: config.toml has none of ours")
    event = json.dumps({"hook_event_name": "SetupCheck", "session_id": "check", "cwd": str(Path.cwd())})
    took = float("inf")
    for _ in range(HOOK_RUNS):  # the fastest counts: what else this machine does now is not the hook's fault
        started = perf_counter()
        try:
            done = subprocess.run(
                hooks[0]["command"],
                shell=True,
                input=event.encode(),
                capture_output=True,
                env=dict(env),
                timeout=30,
            )
        except subprocess.TimeoutExpired:
            return Finding(False, "the hook does not end")
        took = min(took, (perf_counter() - started) * 1000)
        if done.returncode or done.stdout or done.stderr:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            return Finding(
                False, f"the hook complains: {said[-1] if said else f'exit code {done.returncode}'}"
            )
    return Finding(took < HOOK_LIMIT_MS, f"the hook answers in {took:.0f} ms")
