"""What went wrong, by its decisive line: exception types, codes, HTTP statuses. Never by the word "error"
alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from stages.refining.cues import fold

NAME_LENGTH = 160
"""Characters of one normalised error."""
_MAX_TEXT = 8_000
MAX_LINES = 60

_EXCEPTION_KINDS = (
    "Error", "Exception", "Interrupt", "Warning", "Exit", "Panic", "NotFound", "Timeout", "Denied",
)  # fmt: skip
_EXCEPTION = re.compile(
    r"^(?:\[\w+\] |Uncaught |Unhandled |E +|[ \t]*Caused by: |Exception in thread \"[^\"\n]{0,80}\" "
    r"|\S{0,80}: (?=[A-Z]))?"
    rf"((?:[A-Za-z_]\w*\.){{0,6}}[A-Z]\w*(?:{'|'.join(_EXCEPTION_KINDS)}))"
    r"(?: \[(\w+)\])?(?:: ?(.{0,300}))?$",
    re.MULTILINE,
)
_CODE = re.compile(
    r"[A-Z](?<![\w.-][A-Z])(?:[A-Z]{0,2}\d{3,5}|(?<=E)(?:[A-Z_]{3,14}|RR_[A-Z0-9_]{2,60})"
    r"|(?<=M)ODULE_NOT_FOUND|(?<=O)RA-\d{5})(?!\w)"  # first a class: a search skips all else
)
_ERRNO = {
    "EADDRINUSE", "EACCES", "ECONNREFUSED", "ECONNRESET", "ENOENT", "EEXIST", "EPERM", "EPIPE",
    "ETIMEDOUT", "EISDIR", "ENOTDIR", "EMFILE", "ENOTFOUND", "ERESOLVE", "ELIFECYCLE", "ENETUNREACH",
    "EHOSTUNREACH", "EBADF", "EINVAL", "ENOSPC", "EBUSY", "EAI_AGAIN", "EINTEGRITY", "ENOTEMPTY",
    "EBADENGINE", "ETARGET", "EUSAGE", "EADDRNOTAVAIL", "ENOMEM", "EROFS", "ELOOP", "EXDEV", "ENOSYS",
    "EPROTO", "MODULE_NOT_FOUND",
}  # fmt: skip
_NUMBERED_BEFORE = re.compile(r"(?:\berror[ \[:]{1,2}|:\d+:\d+:? |\bwarning |^[ \t]*|\()$", re.MULTILINE)
_HTTP = re.compile(
    r"\bHTTP(?:/\d(?:\.\d)?)?[ :]+(?:status[ :]+)?([45]\d\d)\b|\bstatus(?:[ _-]?code)?[ :=]+([45]\d\d)\b"
    r"|\b([45]\d\d) (?:Not Found|Unauthorized|Forbidden|Bad Request|Internal Server Error|Bad Gateway"
    r"|Service Unavailable"
    r"|Too Many Requests|Method Not Allowed|Conflict|Gone|Gateway Time-?out|Unprocessable Entity"
    r"|Request Time-?out)\b"
    r"|^(?:Error:? )?([45]\d\d) (?:invalid|bad|error)\b",
    re.IGNORECASE | re.MULTILINE,
)
_CODED = re.compile(
    r"^.{0,200}\berror (?:TS\d{3,5}): .{1,300}$|^.{0,40}error\[E\d{4}\]: .{1,300}$", re.MULTILINE
)
_LINT = re.compile(r"^[ \t]*\d+:\d+[ \t]+error[ \t]+.{1,200}?[ \t]{2,}(\S{2,80})[ \t]*$", re.MULTILINE)
_EXIT = re.compile(
    r"(?:exit(?:ed)?(?: with)?(?: non-zero)?(?: status| code)?|exitcode|returned)[:= ]+(\d{1,3})\b"
)
_FAILED_TEST = re.compile(
    r"^(?:FAILED|ERROR) (\S{3,140})(?: - (.{1,160}))?$|^--- FAIL: (\S{2,100})|^[ \t]*● (.{3,120})$",
    re.MULTILINE,
)
_SAYS = re.compile(
    r"^(?:[\w./@-]{1,60}: )?(?:fatal|error|panic|failed|failure|abort(?:ed)?|cannot|can't|could not"
    r"|unable to|no such|permission denied|not found|invalid"
    r"|unknown|unexpected|missing|undefined|refused|timed? ?out|denied)\b|(?:command not found"
    r"|no such file or directory|permission denied|does not exist|not found"
    r"|already exists|already in use|connection refused|no space left|timed out|cannot access"
    r"|is not recognized|must be|not allowed|is required)",
)
_NOISE = re.compile(
    r"^(?:\s*$|\s*[➜$❯»] |Command failed with exit code|npm (?:ERR!|error) (?:A complete log|path|workspace"
    r"|location|command|code|Lifecycle|errno)|\s+at |\s*File \"|Traceback|\s*\^|Process exited"
    r"|npm (?:warn|notice)|> |\s*~+\^?|\[?\d+/\d+\]|(?:Exit|exit) code|node:internal|Node\.js v|\s*$"
    r"|<[a-z_]+>$|(?:npm (?:ERR!|error) )?file:///|error Command failed|Error:\s*$|ELIFECYCLE)"
)
_REJECTED = (
    "was not run because the user rejected",
    "user doesn't want to proceed with this tool use",
    "rejected by the user",
    "rejected the approval",
    "request interrupted by user",
)
_ANSI = re.compile(r"\x1b?\[\d{1,3}(?:;\d{1,3})*m")
_WHERE = re.compile(r"(?:(?<=\s)|^)(?:/[\w.@+-]+){2,}/(?=[\w.@+-])")
_NPM = re.compile(r"^npm (?:ERR!|error)\s+(?:notarget |code (?=E))?")
_SPACE = re.compile(r"\s+")

_SAY_WORDS = (
    "fatal", "error", "panic", "fail", "abort", "cannot", "can't", "could not", "unable", "no such",
    "denied", "not found", "invalid", "unknown", "unexpected", "missing", "undefined", "refused", "time",
    "not exist", "already", "no space", "not recognized", "must be", "not allowed", "required",
)  # fmt: skip

REJECTED = "rejected by the user"
"""How a call that the user did not approve is named."""


def _uncoloured(text: str) -> str:
    return _ANSI.sub("", text) if "\x1b" in text or "[3" in text or "[0m" in text or "[1m" in text else text


def was_rejected(text: str) -> bool:
    """Whether a failed call failed because the user said no."""
    head = fold(text[:600])
    return any(said in head for said in _REJECTED)


def exit_code(text: str) -> int | None:
    """The last non-zero exit code that a text tells of."""
    codes = [int(match[1]) for match in _EXIT.finditer(fold(text[-_MAX_TEXT:]))]
    return next((code for code in reversed(codes) if code), None)


def decisive(text: str, *, strict: bool = False) -> str:
    """The one line of a failure's output that says what was wrong, tidied; ``""`` if it names a code only.

    ``strict``: only a line that says so itself (of output that may not be a failure), never just the first
    one.
    """
    text = _uncoloured(text[-_MAX_TEXT:])
    coded = _CODED.search(text) if "error TS" in text or "error[E" in text else None
    if coded:
        return _tidy(re.sub(r"^.*?\berror (TS\d+|\[E\d+\])", r"\1", coded[0]))
    exceptions = list(_exceptions(text))
    if exceptions:
        return _named(
            exceptions[-1] if text.lstrip().startswith("Traceback") or "Traceback" in text else exceptions[0]
        )
    lint = _LINT.search(text)
    if lint:
        return _tidy(lint[0].split("error", 1)[1])
    test = _FAILED_TEST.search(text)
    if test:
        return _tidy(test[0])
    lines = [line for line in text.split("\n")[:MAX_LINES] if not _NOISE.match(line)]
    said = next((line for line in lines if _says(line)), "")
    return _tidy(said or (lines[0] if lines and not strict else ""))


def _says(line: str) -> bool:
    lower = line.lower()
    return any(word in lower for word in _SAY_WORDS) and _SAYS.search(fold(line)) is not None


def _named(match: re.Match[str]) -> str:
    code = f" [{match[2]}]" if match[2] else ""
    return _tidy(f"{match[1]}{code}: {match[3]}" if match[3] else f"{match[1]}{code}")


def _tidy(line: str) -> str:
    line = line.strip()
    line = _NPM.sub("", line) if line.startswith("npm ") else line
    line = _WHERE.sub("", _SPACE.sub(" ", line)).rstrip(" .")
    return line if len(line) <= NAME_LENGTH else line[: NAME_LENGTH - 1].rstrip() + "…"


def names(text: str) -> list[str]:
    """Normalised errors of a failed call's output, the most telling first; empty only for an empty text."""
    if was_rejected(text):
        return [REJECTED]
    text = _uncoloured(text[-_MAX_TEXT:])
    found = [*codes(text), *exceptions(text)]
    lint = [match[1] for match in _LINT.finditer(text) if "/" in match[1] or "-" in match[1]]
    found += lint[:4]
    if not found:
        line = decisive(text)
        status = _HTTP.search(text)
        if status:
            found.append("HTTP " + next(group for group in status.groups() if group))
        elif line:
            found.append(line)
    if not found:
        code = exit_code(text)
        if code is not None:
            found.append(f"exit code {code}")
        elif text.strip():
            found.append(_tidy(text.strip().split("\n", 1)[0]))
    return list(dict.fromkeys(found))


def codes(text: str) -> list[str]:
    """Error codes that a text names in the way tools print them (TS2345, EADDRINUSE, ERR_…)."""
    text = text[:_MAX_TEXT]
    return list(dict.fromkeys(match[0] for match in _CODE.finditer(text) if _is_code(text, match)))


def _is_code(text: str, match: re.Match[str]) -> bool:
    """A known errno name, ``ERR_…``, or a numbered code where tools print one ("error TS2345:", "x.py:1:1:
    F401").
    """
    name = match[0]
    if name in _ERRNO or name.startswith(("ERR_", "ORA-")):
        return True
    if not name[-1].isdigit():
        return False
    before = text[max(0, match.start() - 24) : match.start()]
    return _NUMBERED_BEFORE.search(before) is not None and text[match.end() : match.end() + 1] in (
        ":",
        "]",
        " ",
    )


def exceptions(text: str) -> list[str]:
    """Exception lines (``OSError: [Errno 98] Address already in use``) that begin a line of a text."""
    return list(dict.fromkeys(map(_named, _exceptions(text[:_MAX_TEXT]))))


def _exceptions(text: str) -> Iterable[re.Match[str]]:
    return _EXCEPTION.finditer(text) if any(kind in text for kind in _EXCEPTION_KINDS) else ()
