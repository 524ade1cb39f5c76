"""Names in texts and code: symbols, URLs, issue and pull request numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stages.refining.actions import at_lines, defined

_SPAN = re.compile(r"`(?<!``)([^`\n]{2,80})`(?!`)")  # first a letter: a search skips all else
_CALLED = re.compile(r"(?<![\w./])[A-Za-z_]\w{1,60}(?:\.[A-Za-z_]\w{1,60}){0,2}\Z")
_CALLED_LENGTH = 185
_FENCE = re.compile(r"^(```|~~~)[^\n]*\n.*?(?:^\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_SYMBOL = re.compile(
    r"(?:--[a-z][\w-]{1,40}"
    r"|[A-Za-z_$][\w$]*(?:(?:\.|::|#)[A-Za-z_$][\w$]*){0,3}(?:\(\))?)$"
)
_TELLING = re.compile(r"_|\(\)|--|[a-z][A-Z]|::|^[A-Z][A-Z0-9_]{2,}$|^[A-Z][a-z]+[A-Z]|\w\.\w|\d")
_FILE = re.compile(
    r"\.(?:py|js|ts|tsx|jsx|mjs|cjs|json|md|toml|ya?ml|txt|go|rs|rb|java|c|h|cpp|cs|php|sh|css|html|sql"
    r"|lock|env|cfg|ini|xml|vue|svelte|swift|kt|png|jpg|svg|log|db|sqlite|jsonl|csv|conf|example|local)$",
    re.IGNORECASE,
)
_HOST = re.compile(
    r"^(?:www\.|[\w-]+\.(?:com|org|net|io|dev|app|cn|ai|sh)$)|^(?:Node|Next|Vue|React|Three|D3|Nuxt|Express"
    r"|Socket)\.(?:js|io)$|^fly\.io$",
    re.IGNORECASE,
)
_ASSIGNED = re.compile(
    r"^[ \t]*(?:(?:const|let|var|export|static|self\.|this\.|public|private|readonly"
    r"|final) ?)*[\"']?([A-Za-z_$][\w$-]{2,60})[\"']?\s*(?::[^=\n:]{1,60})?(?:=(?![=>])|:(?=\s|$))",
    re.MULTILINE,
)
_KEYWORDS = {
    "if", "else", "for", "while", "return", "try", "except", "finally", "with", "case", "default",
    "switch", "break", "continue", "import", "from", "class", "def", "function", "const", "let", "var",
    "type", "interface", "true", "false", "null", "none", "undefined", "http", "https", "this", "self",
    "name", "value", "data", "result", "results", "error", "err", "res", "req", "key", "url", "path",
    "file", "text", "content", "description", "title", "version", "id", "index", "items", "item", "list",
    "message", "status", "options", "config", "props", "state", "public", "private", "static", "async",
    "await", "export", "style", "color", "width", "height", "margin", "padding", "display", "background",
    "border", "position", "overflow", "font-size", "cursor", "opacity", "transition", "flex", "gap", "top",
    "left", "right", "bottom", "lambda",
}  # fmt: skip
_URL = re.compile(
    r"[hw](?<![\w@][hw])(?:(?<=h)ttps?|(?<=w)ss?)://(?:[^\s/@<>\"'`]{1,200}@)?([A-Za-z0-9\[][\w.:%\]-]{1,200})((?:/[^\s?#<>\"'`\u3000-\u303f\uff00-\uffef\u4e00-\u9fff]{0,400})?)"
)
_REPO_ISSUE = re.compile(
    r"https?://(?:www\.)?(?:github|gitlab|gitee)\.com/([\w.-]{1,60}/[\w.-]{1,80})/(?:-/)?(?:issues|pull"
    r"|pulls|merge_requests)/(\d{1,6})\b"
)
_HASH = re.compile(r"#(\d{1,6})(?![\w-]|\.\w)")
_BEFORE_HASH = re.compile(
    r"(?:(?<![\w/.-])([A-Za-z0-9][\w.-]{0,60}/[\w.-]{1,60})|(?:^|[\s(,;:]|PR |PR|issue)|[\u3000-\u9fff])$",
    re.IGNORECASE,
)
_NO_ISSUE = re.compile(
    r"(?:image|step|option|item|point|line|test|case|priority|phase|section|figure|fig|table|task|rule"
    r"|approach|version|chapter|color|colour|background|fill|\[) ?$|[:=] ?[\"']?$",
    re.IGNORECASE,
)
_NUMBERED = re.compile(
    r"[GPMpIi议问工合](?:(?<=\bG)H-(\d{1,6})\b"
    r"|(?:(?<=\b[PM])R|(?<=\bp)ull request|(?<=\b[Ii])ssue)s?(?: number| no\.?)? ?!?(\d{1,6})\b(?!\s*(?:issues"
    r"|bugs|prs|errors|%|x\b|times|files|\.\d))"
    r"|(?:(?<=议)题|(?<=问)题单|(?<=工)单|(?<=合)并请求)\s*(\d{1,6}))"  # first a class: a search skips all else
)
_ISSUE_WORDS = (
    "GH-", "PR ", "PR!", "MR", "ssue", "ull request", "/pull", "/merge_requests/", "议题", "问题单", "工单", "合并请求",
)  # fmt: skip
_GH = re.compile(
    r"\bgh (?:pr|issue) (?:view|checkout|merge|comment|close|diff|edit|review|reopen|ready|checks"
    r"|develop)\s+(?:--?[\w-]+[= ]?\S*\s+){0,3}(\d{1,6})\b"
)


def symbols(text: str) -> Iterator[str]:
    """Functions, classes, flags and keys that a text names in code spans or as calls; fenced code does
    not count.
    """
    if "```" in text or "~~~" in text:
        text = _FENCE.sub("", text)
    if "`" in text:
        for match in _SPAN.finditer(text):
            name = match[1].strip()
            if _SYMBOL.match(name) and _is_symbol(name):
                yield name.removesuffix("()")
    at = text.find("()")
    while at >= 0:
        called = _CALLED.search(text, max(0, at - _CALLED_LENGTH), at)
        if called is not None and not _FILE.search(called[0]):
            yield called[0]
        at = text.find("()", at + 2)


def _is_symbol(name: str) -> bool:
    if name.lower() in _KEYWORDS or _FILE.search(name) or _HOST.search(name):
        return False
    return _TELLING.search(name) is not None


def defined_names(code: str) -> Iterator[str]:
    """What a new file defines."""
    return (name.removesuffix("()") for name in defined(code))


def changed_names(old: str, new: str) -> Iterator[str]:
    """Names defined or set on the lines that an edit took away or brought."""
    before, after = set(old.split("\n")), set(new.split("\n"))
    lines = [line for line in old.split("\n") if line not in after] + [
        line for line in new.split("\n") if line not in before
    ]
    changed = "\n".join(lines)
    names = list(defined_names(changed))
    yield from names
    for match in at_lines(_ASSIGNED, changed):
        name = match[1]
        if (
            name.lower() not in _KEYWORDS
            and name not in names
            and (_TELLING.search(name) or match[0].lstrip()[:1] in "\"'" or len(lines) <= 4)
        ):
            yield name


def urls(text: str) -> Iterator[str]:
    """Addresses without credentials, query and fragment."""
    if "://" not in text:
        return
    for match in _URL.finditer(text):
        path = match[2].rstrip(".,;:!?)]}*_\\")
        host = match[1].rstrip(".:")
        if "." in host or host.startswith(("localhost", "[")) or ":" in host:
            scheme = match[0].partition(":")[0]
            yield f"{scheme}://{host.lower()}{path}"


def issues(text: str) -> Iterator[str]:
    """``#12``, or ``owner/repo#12`` where the repository is named, in a text that ``may_name_issues``."""
    if "```" in text:
        text = _FENCE.sub("", text)
    for match in _REPO_ISSUE.finditer(text):
        yield f"{match[1]}#{int(match[2])}"
    for match in _HASH.finditer(text):
        window = text[max(0, match.start() - 124) : match.start()]
        before = _BEFORE_HASH.search(window)
        if before is not None and int(match[1]) and not _NO_ISSUE.search(window):
            yield f"{before[1] or ''}#{int(match[1])}"
    for match in _NUMBERED.finditer(text):
        number = int(next(group for group in match.groups() if group))
        if number:
            yield f"#{number}"


def may_name_issues(text: str) -> bool:
    """Whether a text holds a word by which issues are named; most hold none."""
    return "#" in text or any(word in text for word in _ISSUE_WORDS)


def issues_of_command(command: str) -> Iterator[str]:
    """Numbers that the GitHub command line was called with."""
    if "gh " in command:
        yield from (f"#{int(match[1])}" for match in _GH.finditer(command[:4_000]))
