"""Turn → what it touched: files, symbols, commands, errors, tools, URLs, packages, issue numbers. Pure.

Evidence is what tools were called with and what came back, then code spans and names in texts. Files count
as written only for a good result; errors come from failed calls, exit codes, the turn's own error and
pasted output, by their decisive line, never from the word "error". All values are normalised, unique, in
order of first mention, and bounded by the caps below. Our own tools' calls leave no trace.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator

from stages.model import Entities, ToolCall, Turn
from stages.refining import arguments, failures, mentions, pasted, shell
from stages.refining.packages import packages_of_command, packages_of_edit
from stages.refining.reading import Reading, read

MAX_FILES = 80
MAX_SYMBOLS = 32
MAX_COMMANDS = 32
MAX_ERRORS = 16
MAX_TOOLS = 32
MAX_URLS = 16
MAX_PACKAGES = 24
MAX_ISSUES = 16
MAX_VALUE = 240
"""Characters of one value; longer ones are left out (paths) or were cut when normalised (errors)."""

_TEXT_READ = 6_000
"""Characters of one text that are searched for names, at its head and at its tail."""
_PATCH_TOOLS = ("apply_patch", "patch", "ApplyPatch")


def extract(turn: Turn, *, cwd: str | None) -> Entities:
    """What this turn touched. Undone ends of the turn do not count."""
    return extract_reading(read(turn, cwd))


def extract_reading(reading: Reading) -> Entities:
    """As ``extract``, of a turn already taken apart."""
    calls = [action.call for action in reading.actions]
    written = _unique(_written(calls, reading.cwd), MAX_FILES)
    texts = list(_texts(reading))
    symbols = [*(name for call in calls for name in _edited_symbols(call))]
    symbols += [name for text in texts for name in mentions.symbols(text)]
    return Entities(
        files_read=_unique((path for path in _read(calls, reading.cwd) if path not in written), MAX_FILES),
        files_written=written,
        symbols=_unique(symbols, MAX_SYMBOLS),
        commands=_unique(
            (name for call in calls if call.command for name in shell.programs(call.command)), MAX_COMMANDS
        ),
        errors=_unique(_errors(reading, calls), MAX_ERRORS),
        tools=_unique((call.name for call in calls), MAX_TOOLS),
        urls=_unique(_urls(calls, texts), MAX_URLS),
        packages=_unique(_packages(calls), MAX_PACKAGES),
        issues=_unique(_issues(calls, texts), MAX_ISSUES),
    )


def _unique(values: Iterable[str], limit: int) -> tuple[str, ...]:
    kept: dict[str, None] = {}
    for value in values:
        if value and len(value) <= MAX_VALUE:
            kept.setdefault(value)
            if len(kept) >= limit:
                break
    return tuple(kept)


def _texts(reading: Reading) -> Iterator[str]:
    """The texts that are searched for names: what was asked, then what was said, latest first matter
    as much.
    """
    yield _ends(reading.asked)
    for said in reading.said:
        yield _ends(said.text)


def _ends(text: str) -> str:
    return text if len(text) <= 2 * _TEXT_READ else f"{text[:_TEXT_READ]}\n{text[-_TEXT_READ:]}"


# --- files --------------------------------------------------------------------------------------------------


def _written(calls: list[ToolCall], cwd: str | None) -> Iterator[str]:
    for call in calls:
        if call.result != "ok":
            continue
        touched = [touch.path for touch in call.files if touch.op != "read"]
        yield from touched
        if call.name in _PATCH_TOOLS:
            patch = arguments.first_text(arguments.parse(call.args), *arguments.PATCH_KEYS)
            yield from (pasted.relative(path, cwd) for path in arguments.patched_paths(patch))
        if call.command:
            yield from _inside(shell.written(call.command), cwd)


def _inside(paths: list[str], cwd: str | None) -> Iterator[str]:
    for path in paths:
        named = pasted.relative(path, cwd)
        if not named.startswith(("..", "/tmp/", "/dev/", "/var/tmp/")):
            yield named


def _read(calls: list[ToolCall], cwd: str | None) -> Iterator[str]:
    for call in calls:
        yield from (touch.path for touch in call.files if touch.op == "read" or call.result != "ok")
        if not call.files and "diff --git" in call.outcome:
            yield from (pasted.relative(path, cwd) for path in arguments.patched_paths(call.outcome))


# --- errors -------------------------------------------------------------------------------------------------


def _errors(reading: Reading, calls: list[ToolCall]) -> Iterator[str]:
    for call in calls:
        if call.result == "error":
            yield from failures.names(call.error) or ([f"{call.name} failed"])
    turn = reading.turn
    if turn.status in ("failed", "blocked") and turn.error:
        yield from failures.names(turn.error)
    if turn.origin.startswith(("task", "background_task")):
        code = failures.exit_code(turn.opening_text)
        if code is not None:
            yield f"exit code {code}"
    if turn.user_text:
        yield from _pasted_errors(reading)


def _pasted_errors(reading: Reading) -> Iterator[str]:
    """What pasted output names in a tool's own way: codes and exception lines."""
    text = _ends(reading.asked)
    yield from failures.codes(text)
    yield from failures.exceptions(text)


# --- names --------------------------------------------------------------------------------------------------


def _edited_symbols(call: ToolCall) -> Iterator[str]:
    if call.result != "ok" or not any(touch.op != "read" for touch in call.files):
        return
    if any(touch.path.endswith((".md", ".txt", ".rst")) for touch in call.files):
        return
    if any(touch.op == "write" for touch in call.files):
        yield from mentions.defined_names(arguments.content(call.args)[:8_000])
        return
    for edit in arguments.edits(call.args):
        yield from mentions.changed_names(edit.old[:8_000], edit.new[:8_000])


def _urls(calls: list[ToolCall], texts: list[str]) -> Iterator[str]:
    for text in texts:
        yield from mentions.urls(text)
    for call in calls:
        if call.name in ("FetchURL", "WebFetch", "Fetch") or (call.command and "://" in call.command):
            yield from mentions.urls(call.command or call.args)


def _packages(calls: list[ToolCall]) -> Iterator[str]:
    local = {
        posixpath.splitext(posixpath.basename(touch.path))[0].removeprefix("test_")
        for call in calls
        for touch in call.files
    }
    for call in calls:
        if call.result != "ok":
            continue
        if call.command:
            yield from packages_of_command(call.command)
        for touch in call.files:
            if touch.op != "read":
                yield from (name for name in packages_of_edit(touch.path, call.args) if name not in local)


def _issues(calls: list[ToolCall], texts: list[str]) -> Iterator[str]:
    if mentions.may_name_issues("\n".join(texts)):  # in most turns no text does
        for text in filter(mentions.may_name_issues, texts):
            yield from mentions.issues(text)
    for call in calls:
        if call.command:
            yield from mentions.issues_of_command(call.command)
