"""What a turn of a built wire says and does: steps, tool calls and sub-agents, as values.

The constructors give each tool the arguments, display and result text that CLI 2.1.0 gives it (WIRE §4.3).
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SubAgent:
    """What a sub-agent does when its call runs: its own wire gets one turn."""

    profile: str
    prompt: str
    says: tuple["Say", ...]
    item: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call and its result. No ``output``: never answered. ``wrote``: the path that it changed."""

    name: str
    args: Mapping[str, object]
    output: str | None
    error: bool = False
    display: Mapping[str, object] | None = None
    note: str = ""
    ms: int = 8
    wrote: str | None = None
    agents: tuple[SubAgent, ...] = ()


@dataclass(frozen=True, slots=True)
class Say:
    """One step: what the model thought, said and called."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    think: str = ""


def say(text: str, *calls: Call, think: str = "") -> Say:
    return Say(text, calls, think)


def read(path: str, content: str) -> Call:
    """Read of a whole file: numbered lines, and a note for the model alone."""
    lines = content.split("\n")
    numbered = "\n".join(f"{number}\t{line}" for number, line in enumerate(lines, 1))
    count = "1 line" if len(lines) == 1 else f"{len(lines)} lines"
    note = (
        f"<system>{count} read from file starting from line 1. Total lines in file: {len(lines)}. Requested "
        "range complete. Effective max_chars: 100000. End of file reached.</system>"
    )
    display = {"kind": "file_io", "operation": "read", "path": path}
    return Call("Read", {"path": path}, numbered, display=display, note=note)


def read_missing(path: str) -> Call:
    display = {"kind": "file_io", "operation": "read", "path": path}
    return Call("Read", {"path": path}, f'"{path}" does not exist.', error=True, display=display)


def edit(path: str, old: str, new: str) -> Call:
    display = {"kind": "file_io", "operation": "edit", "path": path, "before": old, "after": new}
    args = {"path": path, "old_string": old, "new_string": new}
    return Call("Edit", args, f"Replaced 1 occurrence in {path}", display=display, wrote=path)


def write(path: str, content: str) -> Call:
    display = {"kind": "file_io", "operation": "write", "path": path, "content": content}
    output = f"Wrote {len(content.encode('utf-8', 'replace'))} bytes to {path}"
    return Call("Write", {"path": path, "content": content}, output, display=display, wrote=path)


def bash(command: str, output: str | None = "", *, description: str = "Run a command", code: int = 0) -> Call:
    """A shell command; ``code`` other than 0 makes it an error with the closing line that the CLI adds."""
    args = {"command": command, "description": description}
    display = {
        "kind": "command",
        "command": command,
        "cwd": "",
        "description": description,
        "language": "bash",
    }
    if output is not None and code:
        output = (
            f"{output}\nCommand failed with exit code: {code}."
            if output
            else f"Command failed with exit code: {code}."
        )
    return Call(
        "Bash",
        args,
        output or ("Command executed successfully." if output == "" else None),
        error=bool(code),
        display=display,
        ms=41,
    )


def grep(pattern: str, path: str, output: str) -> Call:
    display = {"kind": "file_io", "operation": "grep", "path": path}
    return Call("Grep", {"pattern": pattern, "path": path}, output, display=display)


def glob(pattern: str, output: str) -> Call:
    return Call(
        "Glob", {"pattern": pattern}, output, display={"kind": "file_io", "operation": "glob", "path": "."}
    )


def fetch(url: str, output: str) -> Call:
    return Call("FetchURL", {"url": url}, output, display={"kind": "url_fetch", "url": url})


def todo(*items: tuple[str, str]) -> Call:
    """``items`` are (title, pending | in_progress | done)."""
    todos = [{"title": title, "status": status} for title, status in items]
    listed = "\n".join(f"  [{status}] {title}" for title, status in items)
    output = (
        f"Todo list updated.\nCurrent todo list:\n{listed}\n\nEnsure that you continue to use the todo list "
        "to track progress. Mark tasks done immediately after finishing them, and keep exactly one task "
        "in_progress when work is underway."
    )
    return Call("TodoList", {"todos": todos}, output, display={"kind": "todo_list", "items": todos}, ms=1)


def mcp(server: str, tool: str, args: Mapping[str, object], output: str) -> Call:
    return Call(f"mcp__{server}__{tool}", args, output, ms=4)


def agent(prompt: str, *says: Say, description: str, profile: str = "explore") -> Call:
    """A foreground sub-agent; the text of its last step is what the parent gets."""
    args = {"prompt": prompt, "description": description, "subagent_type": profile}
    display = {"kind": "agent_call", "agent_name": profile, "prompt": prompt}
    return Call("Agent", args, "", display=display, ms=60, agents=(SubAgent(profile, prompt, says),))
