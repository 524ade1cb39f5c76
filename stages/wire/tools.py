"""What is kept of a tool call: arguments, command, files, decisive lines; which are our own (WIRE §4.3)."""

from __future__ import annotations

import ntpath
import posixpath
import re
from functools import lru_cache
from typing import Any

import orjson

from stages.model import Op
from stages.wire import caps
from stages.wire.caps import Room
from stages.wire.contract import Redact
from stages.wire.parts import Json, obj, string, word

COMMANDS = frozenset({"Bash", "Shell", "PowerShell", "CMD"})
AGENTS = frozenset({"Agent", "Task", "AgentSwarm", "CreateSubagent"})
ANSWERS = frozenset({"AskUserQuestion"})
"""Tools whose output is what a person said."""
TELLING_OUTPUT = COMMANDS | AGENTS | ANSWERS
"""Tools whose good output is looked at."""
_OPS: dict[str, Op] = {
    "Read": "read",
    "ReadFile": "read",
    "ReadMediaFile": "read",
    "Write": "write",
    "WriteFile": "write",
    "Edit": "edit",
    "StrReplaceFile": "edit",
    "MultiEdit": "edit",
}
_OPERATIONS: dict[str, Op] = {"read": "read", "write": "write", "edit": "edit"}


# --- arguments -----------------------------------------------------------------------------------------

_PLAIN_COMMAND = frozenset(
    {"command", "description", "timeout", "run_in_background", "cwd", "disable_timeout"}
)
_SPLIT = "\x1e\n\x1e"


def command_of(name: str, args: Json) -> str:
    return string(args.get("command")) if name in COMMANDS else ""


def compact(name: str, args: Any, *, room: Room, redact: Redact) -> tuple[str, str]:
    """``(arguments as compact JSON, command line)``, redacted and capped."""
    command = command_of(name, args) if type(args) is dict else ""
    if room == "none":
        return "{}", caps.clip(command, *caps.COMMAND_BARE, redact) if command else ""
    if command and args.keys() <= _PLAIN_COMMAND and len(command) <= sum(caps.COMMAND_SHORT):
        return _plain_command(args, command, redact)
    command_caps = caps.COMMAND_SHORT if room == "short" else caps.COMMAND
    return compact_text(_dump(args), room=room, redact=redact), (
        caps.clip(command, *command_caps, redact) if command else ""
    )


def compact_text(args: str, *, room: Room, redact: Redact) -> str:
    """Compact JSON redacted and capped. Its escapes are opened for the redactor: a secret that begins a line also
    begins a word, and what a backslash at a line's end continues is seen as it was written."""

    def without_escapes(text: str) -> str:
        if "\\" not in text:
            return redact(text)
        opened = open_escapes(text)
        redacted = redact(opened)
        return text if redacted is opened else close_escapes(redacted)

    if room == "none":
        return "{}"
    return caps.clip(args, *(caps.ARGS_SHORT if room == "short" else caps.ARGS), without_escapes)


def _plain_command(args: Json, command: str, redact: Redact) -> tuple[str, str]:
    description = string(args.get("description"))[: caps.ID]
    command, _, description = redact(command + _SPLIT + description).partition(_SPLIT)
    kept = {"command": command, "description": description} if description else {"command": command}
    rest = {key: args[key] for key in args if key not in kept and type(args[key]) in (int, bool)}
    return _dump({**kept, **rest}), command


def _dump(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except (TypeError, ValueError):
        return "{}"


_LONE = re.compile(r'\x01(?<!\x01\x01)(?![\x01\\"/bfu])')
_LONE_BACK = re.compile(r'\\(?<!\\\\)(?![\\"/bfu])')


def open_escapes(text: str) -> str:
    """JSON with the escapes of its strings opened as far as ``close_escapes`` can tell them again.

    Line ends, tabs and the ESC of terminals are real ones. A backslash (in JSON two) is one where it stands alone;
    several in a row, and one before an escape that stays as it is (``\\"``), stay doubled.
    """
    doubled = "\\\\" in text
    if doubled:
        text = text.replace("\\\\", "\x01")
    text = text.replace("\\n", "\n").replace("\\t", "\t")
    if "\\r" in text:
        text = text.replace("\\r", "\r")
    if "\\u001b" in text:
        text = text.replace("\\u001b", "\x1b")
    return _LONE.sub(r"\\", text).replace("\x01", "\\\\") if doubled else text


def close_escapes(text: str) -> str:
    """JSON again of what ``open_escapes`` gave, whatever has been replaced in it."""
    if "\\" in text:
        text = _LONE_BACK.sub(r"\\\\", text)
    text = text.replace("\n", "\\n").replace("\t", "\\t")
    text = text.replace("\r", "\\r") if "\r" in text else text
    return text.replace("\x1b", "\\u001b") if "\x1b" in text else text


# --- files ---------------------------------------------------------------------------------------------


def touch_of(name: str, args: Json, display: Json, cwd: str | None) -> tuple[str, Op] | None:
    """The file a call names: ``display.path`` (absolute) before ``args.path``; ``None`` for other tools."""
    if display.get("kind") == "file_io" and string(display.get("path")):
        return displayed_touch(word(display.get("operation")), display["path"], cwd)
    op = _OPS.get(name)
    path = string(args.get("path")) or string(args.get("file_path"))
    return (relative(path, cwd), op) if op is not None and 0 < len(path) <= caps.PATH else None


def displayed_touch(operation: str, path: str, cwd: str | None) -> tuple[str, Op] | None:
    """The same from ``display.operation`` and ``display.path``; a search touches no file."""
    op = _OPERATIONS.get(operation)
    return (relative(path, cwd), op) if op is not None and 0 < len(path) <= caps.PATH else None


def _windows(path: str) -> bool:
    return path.startswith("\\\\") or (
        len(path) > 2 and path[1] == ":" and path[0].isalpha() and path[2] in "\\/"
    )


@lru_cache(maxsize=4096)
def relative(path: str, cwd: str | None) -> str:
    """``path`` relative to ``cwd`` when below it, else absolute; without a known ``cwd`` as it is."""
    if _windows(path) or (cwd is not None and _windows(cwd)):
        return _relative_windows(path, cwd)
    if cwd is None:
        return posixpath.normpath(path)
    whole = posixpath.normpath(posixpath.join(cwd, path))
    base = posixpath.normpath(cwd).rstrip("/") + "/"
    return whole[len(base) :] if whole.startswith(base) and len(whole) > len(base) else whole


def _relative_windows(path: str, cwd: str | None) -> str:
    if cwd is None:
        return ntpath.normpath(path).replace("\\", "/")
    whole = ntpath.normpath(ntpath.join(cwd, path)).replace("\\", "/")
    base = ntpath.normpath(cwd).replace("\\", "/").rstrip("/") + "/"
    return whole[len(base) :] if whole.casefold().startswith(base.casefold()) else whole


# --- results -------------------------------------------------------------------------------------------

_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
_DECISIVE = re.compile(
    r"error|exception|traceback|fail|fatal|panic|denied|refused|not found|no such|cannot|can't|unable|invalid"
    r"|undefined|unexpected|exit code|expected|错误|失败|异常",
    re.IGNORECASE,
)
_WINDOW = (4_000, 6_000)


def decisive(output: str, redact: Redact, cap: int) -> str:
    """The lines of a failed call's output that say why: all of a short one, else those that name a failure
    and the last ones, in order, at most ``cap`` characters."""
    text = caps.clip(_ANSI.sub("", output) if "\x1b" in output else output, *_WINDOW, redact)
    if caps.weight(text) <= cap:
        return text
    lines = text.split("\n")
    room = cap if text.isascii() else cap // 2
    kept: set[int] = set()
    candidates = list(range(len(lines) - 1, len(lines) - 6, -1))
    candidates += [i for i, line in enumerate(lines) if _DECISIVE.search(line)]
    for i in candidates:
        if i < 0 or i in kept:
            continue
        room -= min(len(lines[i]), 300) + 1
        if room < 0:
            break
        kept.add(i)
    return (
        "\n".join(lines[i] if len(lines[i]) <= 300 else lines[i][:299] + "…" for i in sorted(kept))
        or text[:cap]
    )


def last_lines(output: str, redact: Redact) -> str:
    """The last lines of a good command's output, at most ``caps.OUTCOME`` characters."""
    if "\x1b" in output:
        output = _ANSI.sub("", output[-4 * caps.MARGIN :])
    cap = caps.OUTCOME if output.isascii() else caps.OUTCOME // 2
    size = len(output)
    text = output if size <= cap + caps.MARGIN else output[-(cap + caps.MARGIN) :]
    if any(mark in output for mark in ("PRIVATE KEY", "<private")):
        text = output
    cut = len(text) < size
    text = redact(text)
    text = (text[caps.MARGIN :] if cut else text).rstrip()
    if len(text) <= cap and not cut:
        return text
    text = text[-cap:]
    return text[text.index("\n") + 1 :] if "\n" in text[:-1] else text


_AGENT_ID = re.compile(r"^agent_id: ([A-Za-z0-9_.-]{1,64})$", re.MULTILINE)
_SWARM_ID = re.compile(r'^<subagent agent_id="([A-Za-z0-9_.-]{1,64})"', re.MULTILINE)


def agents_in(output: str) -> list[str]:
    """The sub-agents that an Agent or AgentSwarm result names, not what their reports quote (WIRE §7)."""
    if output.startswith("<agent_swarm_result>"):
        return list(dict.fromkeys(_SWARM_ID.findall(output)))
    return _AGENT_ID.findall(output[: output.find("\n\n")] if "\n\n" in output else output)[:1]


# --- our own calls -------------------------------------------------------------------------------------

_TELLING = frozenset(
    [
        "bootstrap_workspace",
        "load_turn_context",
        "search_context",
        "load_more_context",
        "trace_theme",
        "tag_theme",
        "list_themes",
        "delete_theme",
        "refine_session_turns",
        "open_memory_dashboard",
        "list_search_views",
        "delete_search_view",
        "sync_workspace_index",
        "organize_memories",
        "get_current_workspace",
        "load_workspace_context",
        "recall_recent",
    ]
)
"""Tool names that no other server has: a call of one tells that its server is ours."""
_GENERAL = frozenset(["remember", "recall", "search", "list", "list_tags", "delete", "move"])
_MCP = re.compile(r"mcp__(.+?)__(.+)")


class Own:
    """Which MCP servers are ours: those that offer ``bootstrap_workspace`` (design: Identity)."""

    __slots__ = ("servers",)

    def __init__(self, servers: list[str] | None = None) -> None:
        self.servers = set(servers or ())

    def learn(self, record: Json) -> None:
        """From ``mcp.tools_discovered`` (WIRE §8 lets others skip it)."""
        tools = record.get("tools")
        names = (
            {obj(tool).get("name") for tool in tools if type(obj(tool).get("name")) is str}
            if type(tools) is list
            else ()
        )
        server = word(record.get("serverName"))
        if server and "bootstrap_workspace" in names:
            self.servers.add(server)

    def owns(self, name: str) -> bool:
        """Whether a call of this name is ours; kimi-cli names MCP tools without their server (WIRE §11)."""
        if not name.startswith("mcp__"):
            telling = name in _TELLING
            if telling:
                self.servers.add("")
            return telling or (name in _GENERAL and "" in self.servers)
        match = _MCP.fullmatch(name)
        if match is None:
            return False
        server, tool = match.groups()
        if tool in _TELLING:
            self.servers.add(server)
        return server in self.servers
