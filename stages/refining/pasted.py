"""Transcripts pasted into texts: tool calls as Markdown in imported sessions, terminal output in messages.

An imported assistant text such as ``Tool use: **Edit** … Result: ```…``` `` is what a tool did, not what
the agent said: it becomes a call like any other, with the text as its source.
"""

from __future__ import annotations

import itertools
import posixpath
import re
import string

import orjson

from stages.model import FileTouch, Op, ToolCall

_HEADER = re.compile(r"\s*Tool use: \*\*([A-Za-z_][\w.-]{0,60})\*\*[ \t]*([^\n]{0,400})")
_TASK_LIST = re.compile(r"\s*\*\*(?:Agent task list|Todo list|Todos?):?\*\*")
_COMMAND = re.compile(r"^`([^`\n]{1,2000})`\s*$", re.MULTILINE)
_PATH = re.compile(r"`([^`\n]{1,400})`")
_EDITED = re.compile(
    r"(?:The file (\S[^\n]{0,400}?) has been (?:updated|edited|created)"
    r"|File created successfully at: (\S[^\n]{0,400})"
    r"|Applied \d+ edits? to (\S[^\n]{0,400}?):?$)",
    re.MULTILINE,
)
_FENCES = re.compile(r"```(?<=^```)[^\n]*$", re.MULTILINE)
_SCAN = 4_000
_OPS: dict[str, Op] = {
    "Read": "read", "Write": "write", "Edit": "edit", "MultiEdit": "edit", "NotebookEdit": "edit",
    "ReadFile": "read", "WriteFile": "write", "StrReplaceFile": "edit",
}  # fmt: skip


_PIECE = re.compile(r"^(?=Tool use: \*\*)|^---[ \t]*$", re.MULTILINE)


def pieces(text: str) -> list[tuple[int, str]]:
    """``(offset, piece)``: a text cut before each pasted call and at rules, as some exports write
    whole turns.
    """
    if text.count("Tool use: **") == 1 and "\n---" not in text:
        return [(0, text)]
    cuts = [0, *(match.end() for match in _PIECE.finditer(text)), len(text)]
    return [(start, text[start:end]) for start, end in itertools.pairwise(cuts) if end > start]


def is_task_list(text: str) -> bool:
    """Whether a text is a printed to-do list."""
    return (text.startswith("**") or text[:1].isspace()) and _TASK_LIST.match(text) is not None


def tool_call(text: str, cwd: str | None) -> ToolCall | None:
    """The call that a pasted block tells of, or ``None`` if the text is not one. Its id is empty."""
    header = _HEADER.match(text)
    if header is None:
        return None
    name = header[1]
    result = _last_result(text, header.end())
    failed = result is not None and result[0] == "Error"
    body = text[result[1] :] if result else ""
    body = _FENCES.sub("", body[-_SCAN:] if name in ("Bash", "Shell") and not failed else body[:_SCAN]).strip(
        "\n"
    )
    command = _COMMAND.search(text, header.end(), header.end() + _SCAN) if name in ("Bash", "Shell") else None
    return ToolCall(
        id="",
        name=name,
        args=orjson.dumps({"description": header[2][:200]}).decode() if header[2] else "{}",
        result="error" if failed else "ok",
        error=body[:_SCAN] if failed else "",
        outcome=body[-_SCAN:] if command and not failed else "",
        command=command[1] if command else "",
        files=_touches(name, header[2], "" if failed else body[:600], cwd),
    )


def _last_result(text: str, start: int) -> tuple[str, int] | None:
    """Whether a result or an error follows, and where its text begins: at the first marker before a fence."""
    found: tuple[str, int] | None = None
    for label in ("Result", "Error"):
        at = text.find(f"\n{label}:\n\n```", start)
        if at < 0:
            at = text.find(f"\n{label}:\n", start)
        if at >= 0 and (found is None or at < found[1]):
            found = (label, at + len(label) + 3)
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
    r"<(system-reminder|git-context|bash-stdout|bash-stderr|hook_result|local-command-stdout"
    r"|command-message|command-args"
    r"|skill|system|environment_details|image|notification)\b[^>]{0,400}>(?:.{0,20000}?</\1>)?",
    re.DOTALL,
)
_IMAGE = re.compile(r"\[Image[^\]\n]{0,120}\]|User provided an image \([^)\n]{0,40}\)\.?")
_LOG_LINE = re.compile(
    r"\s*(?:at [\w.<>$\[\] ]+ ?\(|at (?:async )?[\w./<>$]+:\d+|File \"[^\"]+\", line \d+"
    r"|Traceback \(most recent"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d|\[(?:INFO|WARN|WARNING|ERROR|DEBUG|nodemon|vite"
    r"|HMR)\]|[\w.:-]{2,24}\] \S|(?:INFO|WARN|WARNING|ERROR|DEBUG)[: ]"
    r"|npm (?:ERR!|error|warn|WARN|notice)\b|> \S+@\d|> [\w@/.-]+(?: [\w-]+)?$"
    r"|[\w./~-]{1,60} git:\([\w/.-]+\)|[➜$❯»]\s|\$ "
    r"|[\w.@-]+[:~][^ ]* ?[$#] |\d+ ?[|│→]|[|│╭╰├└⨯✓✗×▲•] ?\S|\^+\s*$|~+\^*$"
    r"|(?:GET|POST|PUT|DELETE|PATCH|OPTIONS) /\S* |[\w./\\@-]+[:(]\d+[:,]\d+|[\w./\\@-]+\.\w{1,4}:\d+ "
    r"|[\w@/.-]+:(?:lint|build|dev|test|start):|(?:Error|TypeError|SyntaxError|ReferenceError|\w+Error"
    r"|\w+Exception): "
    r"|[{}\[\]()<>;,'\"`+*=_-]{1,6}\s*$|-{3,}|={3,}|\d+ (?:errors?|warnings?|passing|failing)\b|(?:import"
    r"|export|const|let|var|return|def|class|function) .{0,200}[;{(:]\s*$"
    r"|\w+: (?:undefined|null|true|false|\d+|'[^']*'|\"[^\"]*\"|\{.*|\[.*),?$"
    r"|Found \d+ (?:errors?|warnings?|problems?)"
    r"|Failed to compile|Did you mean |All exports of |The export \w+ |Import trace|The types of "
    r"|Types? '[^']|Argument of type '|Property '\w"
    r"|Creating an optimized|Caused by:|error(?:\[E\d+\]"
    r"|\s+TS\d+)?: |error:|warning: |fatal: |✖ )"
)
_LETTERS = string.ascii_letters.encode() + b" "
_PROMPT = re.compile(
    r"^[ \t]*(?:[➜❯»]\s+(?:\S+\s+)?(?:git:\(\S+\)\s*)?(?:[✗✘]\s*)?|[\w./~-]{1,60} git:\(\S+\)\s*(?:[✗✘]\s*)?"
    r"|(?:[\w.-]+@[\w.-]+:?[^\n$#]{0,80})?[$#]\s+|PS [^>\n]{1,120}>\s*)([A-Za-z./~][^\n]{1,300})$",
    re.MULTILINE,
)


def without_tags(text: str) -> str:
    """The text with injected elements blanked out by spaces, so that offsets stay true (WIRE §10)."""
    if "mage" in text:
        text = _IMAGE.sub(_blank, text)
    return _TAGGED.sub(_blank, text) if "<" in text else text


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def is_log_line(line: str) -> bool:
    """Whether a line of a message looks like terminal output, a stack trace or code, not like
    something said.
    """
    if _LOG_LINE.match(line):
        return True
    line = line[:600]
    if len(line) <= 20 or not line.isascii():
        return False
    signs = len(line.encode().translate(None, _LETTERS))
    return len(line) - signs < 0.55 * len(line)


_SAID_LINE = re.compile(r"\s*[\"'“「(]?[A-Za-z\u4e00-\u9fff@`]")
_OPENS = re.compile(
    r"(?!(?:npm|npx|yarn|pnpm|bun|git|node|python3?|pip|uv|cargo|go|make|docker|curl|cd|ls|cat|sudo) )"
    r"[A-Za-z][a-z']{1,12}(?:,? [a-z']{1,14}){1,11}[.!,:]?\s*"
)
"""Words alone, no program's name in front: how a message begins that pastes output."""
_CODE_LINE = re.compile(
    r"[;{}]\s*$|=>|\)\s*\{|^\s*(?:[\w.]+\(.*\)|[\w.]+ = .*|<\/?\w+.*>)\s*;?$|^\s{2,}[\w.]+\(|://\S+:\d+:\d+"
)


def without_logs(text: str) -> tuple[str, list[str]]:
    """The text with lines of pasted output and code blanked out (offsets stay true), and those lines.

    A line between two pasted ones is pasted too, and so is one that follows a pasted line and is not
    clearly said.
    """
    lines = text.split("\n")
    if len(lines) == 1:
        return (text, []) if not is_log_line(text) or len(text) > 600 else (" " * len(text), [text])
    marks = [bool(line.strip()) and is_log_line(line) for line in lines]
    if not any(marks):
        return text, []
    _spread(lines, marks)
    kept = [" " * len(line) if mark else line for line, mark in zip(lines, marks, strict=True)]
    return "\n".join(kept), [line for line, mark in zip(lines, marks, strict=True) if mark]


def _spread(lines: list[str], marks: list[bool]) -> None:
    filled = [index for index, line in enumerate(lines) if line.strip()]
    for at, index in enumerate(filled):
        if marks[index]:
            continue
        before = at > 0 and marks[filled[at - 1]]
        after = at + 1 < len(filled) and marks[filled[at + 1]]
        if lines[index].rstrip().endswith(("?", "？")) and _is_said(lines[index]):
            continue
        if at == 0 and _OPENS.fullmatch(lines[index]):
            continue
        if (before and after) or ((before or after) and not _is_said(lines[index])):
            marks[index] = True


def _is_said(line: str) -> bool:
    """Whether a line reads like something a person wrote."""
    if not _SAID_LINE.match(line) or _CODE_LINE.search(line):
        return False
    return not line.isascii() or line.count(" ") >= 3 or line.rstrip().endswith((".", "?", "!", ":"))


def typed_command(text: str) -> str:
    """The command after the first shell prompt of pasted terminal output, or ``""``."""
    match = _PROMPT.search(text[:6_000])
    return match[1].strip() if match else ""
