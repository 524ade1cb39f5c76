"""Transcripts pasted into texts: imported sessions carry tool calls as Markdown, user messages carry terminal output.

An imported assistant text such as ``Tool use: **Edit** … Result: ```…``` `` is what a tool did, not what the agent
said: it becomes a call like any other, with the text as its source.
"""

from __future__ import annotations

import posixpath
import re

from stages.model import FileTouch, Op, ToolCall

_HEADER = re.compile(r"\s*Tool use: \*\*([A-Za-z_][\w.-]{0,60})\*\*[ \t]*([^\n]{0,400})")
_TASK_LIST = re.compile(r"\s*\*\*(?:Agent task list|Todo list|Todos?):?\*\*")
_COMMAND = re.compile(r"^`([^`\n]{1,2000})`\s*$", re.MULTILINE)
_RESULT = re.compile(r"^(Result|Error):\s*$", re.MULTILINE)
_PATH = re.compile(r"`([^`\n]{1,400})`")
_EDITED = re.compile(
    r"(?:The file (\S[^\n]{0,400}?) has been (?:updated|edited|created)|File created successfully at: (\S[^\n]{0,400})"
    r"|Applied \d+ edits? to (\S[^\n]{0,400}?):?$)",
    re.MULTILINE,
)
_FENCES = re.compile(r"^```[^\n]*$", re.MULTILINE)
_SCAN = 4_000
_OPS: dict[str, Op] = {
    "Read": "read", "Write": "write", "Edit": "edit", "MultiEdit": "edit", "NotebookEdit": "edit", "ReadFile": "read",
    "WriteFile": "write", "StrReplaceFile": "edit",
}  # fmt: skip


def is_task_list(text: str) -> bool:
    """Whether a text is a printed to-do list."""
    return _TASK_LIST.match(text) is not None


def tool_call(text: str, cwd: str | None) -> ToolCall | None:
    """The call that a pasted block tells of, or ``None`` if the text is not one. Its id is empty."""
    header = _HEADER.match(text)
    if header is None:
        return None
    name = header[1]
    result = _last_result(text, header.end())
    failed = result is not None and result[0] == "Error"
    body = _FENCES.sub("", text[result[1] :]).strip("\n") if result else ""
    command = _COMMAND.search(text, header.end(), header.end() + _SCAN) if name in ("Bash", "Shell") else None
    return ToolCall(
        id="",
        name=name,
        result="error" if failed else "ok",
        error=body[:_SCAN] if failed else "",
        outcome=body[-_SCAN:] if command and not failed else "",
        command=command[1] if command else "",
        files=_touches(name, header[2], "" if failed else body[:600], cwd),
    )


def _last_result(text: str, start: int) -> tuple[str, int] | None:
    found = None
    for match in _RESULT.finditer(text, start):
        found = (match[1], match.end())
        if text.startswith("\n\n```", match.end()):
            break
    return found


def _touches(name: str, header: str, body: str, cwd: str | None) -> tuple[FileTouch, ...]:
    op = _OPS.get(name)
    if op is None:
        return ()
    edited = _EDITED.search(body)
    if edited:
        path = next(group for group in edited.groups() if group)
        return (FileTouch(relative(path, cwd), op, ""),)
    named = _PATH.search(header)
    if named and op == "read":
        return (FileTouch(relative(named[1], cwd), op, ""),)
    return ()


def relative(path: str, cwd: str | None) -> str:
    """Relative to the workspace; also for a path of another machine where the workspace had the same name."""
    path = path.strip().replace("\\", "/")
    if path.startswith("./"):
        return posixpath.normpath(path)
    if cwd and path.startswith("/"):
        root = cwd.rstrip("/")
        if path.startswith(root + "/"):
            return path[len(root) + 1 :]
        name = "/" + posixpath.basename(root) + "/"
        if len(name) > 4 and name in path:
            return path.split(name, 1)[1]
    return path


_TAGGED = re.compile(
    r"<(system-reminder|git-context|bash-stdout|bash-stderr|hook_result|local-command-stdout|command-message|command-args"
    r"|skill|system|environment_details|image|notification)\b[^>]{0,400}>(?:.{0,20000}?</\1>)?",
    re.DOTALL,
)
_LOG_LINE = re.compile(
    r"\s*(?:at [\w.<>$\[\] ]+ ?\(|at (?:async )?[\w./<>$]+:\d+|File \"[^\"]+\", line \d+|Traceback \(most recent"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d|\[(?:INFO|WARN|WARNING|ERROR|DEBUG|nodemon|vite|HMR)\]|(?:INFO|WARN|WARNING|ERROR|DEBUG)[: ]"
    r"|npm (?:ERR!|error|warn|WARN|notice)\b|> \S+@\d|> [\w@/.-]+ [\w-]+$|[➜$❯»]\s|\$ |[\w.@-]+[:~][^ ]* ?[$#] |\d+ ?[|│→]|[|│╭╰├└⨯✓✗×▲•] ?\S|\^+\s*$|~+\^*$"
    r"|(?:GET|POST|PUT|DELETE|PATCH|OPTIONS) /\S* |[\w./\\@-]+[:(]\d+[:,]\d+|[\w@/.-]+:(?:lint|build|dev|test|start):|(?:Error|TypeError|SyntaxError|ReferenceError|\w+Error|\w+Exception): "
    r"|[{}\[\]()<>;,'\"`+*=_-]{1,6}\s*$|-{3,}|={3,}|\d+ (?:errors?|warnings?|passing|failing)\b|(?:import|export|const|let|var|return|def|class|function) .{0,200}[;{(:]\s*$"
    r"|\w+: (?:undefined|null|true|false|\d+|'[^']*'|\"[^\"]*\"|\{.*|\[.*),?$|Caused by:|error(?:\[E\d+\]|\s+TS\d+)?: |error:|warning: |fatal: |✖ )"
)
_PROMPT = re.compile(
    r"^[ \t]*(?:[➜❯»]\s+(?:\S+\s+)?(?:git:\(\S+\)\s*)?(?:[✗✘]\s*)?|(?:[\w.-]+@[\w.-]+:?[^\n$#]{0,80})?[$#]\s+|PS [^>\n]{1,120}>\s*)([A-Za-z./~][^\n]{1,300})$",
    re.MULTILINE,
)


def without_tags(text: str) -> str:
    """The text with injected elements blanked out by spaces, so that offsets stay true (WIRE §10)."""
    if "<" not in text:
        return text
    return _TAGGED.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def is_log_line(line: str) -> bool:
    """Whether a line of a message looks like terminal output, a stack trace or code, not like something said."""
    if len(line) > 600:
        return True
    if _LOG_LINE.match(line):
        return True
    letters = sum(char.isalpha() or char == " " for char in line)
    return len(line) > 20 and letters < 0.55 * len(line) and line.isascii()


def typed_command(text: str) -> str:
    """The command after the first shell prompt of pasted terminal output, or ``""``."""
    match = _PROMPT.search(text[:6_000])
    return match[1].strip() if match else ""
