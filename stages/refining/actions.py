"""Facts from what the tools really did: edits said in a few words, failures, test counts, approvals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from stages.model import Fact, FactType
from stages.refining import arguments, failures, shell
from stages.refining.arguments import Edit
from stages.refining.phrases import Phrases
from stages.refining.prose import clip
from stages.refining.reading import Action

WORD_LENGTH = 48
LINE_LENGTH = 120
MAX_NAMES = 4
PATH_LENGTH = 60
FACT_LENGTH = 280

_TOKENS = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'|#?[\w.%$-]*\w[\w.%$-]*|[^\s\w]|\s+")
_JOINS = re.compile(r"[&|;]")
_NAME = re.compile(r"[A-Za-z_\u4e00-\u9fff][\w.-]*$")
DEFINITION = re.compile(
    r"^[ \t]*(?:export\s+(?:default\s+)?|pub(?:\(\w+\))?\s+|public\s+|private\s+|protected\s+|static\s+"
    r"|async\s+|abstract\s+|@\w+\s+)*"
    r"(?:(?P<function>def|fn|func|function\*?)\s+(?:\([^)\n]{0,60}\)\s*)?(?P<fname>[A-Za-z_$][\w$]*)"
    r"|(?P<class>class|interface|struct|enum|trait|type)\s+(?P<cname>[A-Z][\w$]*)"
    r"|(?:const|let"
    r"|var)\s+(?P<vname>[A-Za-z_$][\w$]*)\s*(?::[^=\n]{1,80})?=\s*(?P<arrow>(?:async\s*)?(?:\([^\n]{0,120}\)"
    r"|\w+)\s*(?::[^=\n]{0,60})?=>|function|use(?:State|Ref|Callback|Memo)\b)?"
    r"|(?P<constant>[A-Z][A-Z0-9_]{2,})\s*(?::[^=\n]{1,40})?=(?!=))",
    re.MULTILINE,
)
_MD_TITLE = re.compile(r"^#\s+(.{2,100})$", re.MULTILINE)
_COMMIT = re.compile(
    r"\[(?<=^\[)[^\]\s]{1,100}(?: \(root-commit\))? ([0-9a-f]{7,40})\] (.{1,160})$", re.MULTILINE
)
_TESTS = re.compile(
    r"((?:\d+ (?:failed|passed|skipped|errors?|warnings?|deselected"
    r"|xfailed)(?:, )?)+)(?: in [\d.]+s?)?|^[ \t]*Tests:?[ \t]+((?:\d+ (?:failed|passed|skipped"
    r"|todo)[,| ]*)*\d+ (?:passed|total|failed)\b[^\n]{0,30})"
    r"|test result: (?:ok|FAILED)\. (\d+ passed; \d+ failed)|^(Ran \d+ tests? in [\d.]+s)"
    r"|^[ \t]*(\d+ passing\b(?: \([^)\n]{1,12}\))?(?:\s+\d+ failing)?)|^(# pass \d+)"
    r"|^(OK \(\d+ tests?[^)\n]{0,40}\))",
    re.MULTILINE,
)
_COUNTS = re.compile(r" (?:failed|passed|skipped|error|warning|deselected|xfailed|total|passing|pass |test)")
"""What stands in each count of tests."""
_TEST_PROGRAM = re.compile(
    r"\b(?:pytest|test|vitest|jest|mocha|unittest|tox|nox|ctest|rspec|phpunit|playwright|check)\b|测试"
)
_CHECK_PROGRAM = re.compile(
    r"\b(?:build|lint|tsc|mypy|ruff|eslint|check|typecheck|compile|clippy|vet|test|pytest|vitest|jest)\b"
)


def facts(actions: tuple[Action, ...], words: Phrases) -> list[Fact]:
    """Everything worth saying about the actions, in their order; failures that were later repaired
    stay in.
    """
    found: list[tuple[int, Fact]] = []
    edited: dict[str, tuple[int, Action]] = {}
    seen: set[str] = set()
    failed: set[str] = set()
    last_command = next((i for i in range(len(actions) - 1, -1, -1) if actions[i].call.command), -1)
    for index, action in enumerate(actions):
        for fact in _of_action(action, words, edited, index, failed, index == last_command):
            if fact.text not in seen:
                seen.add(fact.text)
                found.append((index, fact))
    for wrote, template in ((True, words.wrote), (False, words.edited)):
        paths = [path for path, (_, action) in edited.items() if _wrote(action) is wrote]
        if paths:
            index, action = edited[paths[0]]
            found.append((index, _fact("changed", template.format(files=_listed(paths, words)), action)))
    return [fact for _, fact in sorted(found, key=lambda pair: pair[0])]


def is_plan(action: Action) -> bool:
    """Whether a call asks for approval of a plan."""
    return action.call.name in ("ExitPlanMode", "exit_plan_mode")


def _wrote(action: Action) -> bool:
    return any(touch.op == "write" for touch in action.call.files)


def shown(path: str) -> str:
    """A path as a sentence can carry it: one far outside the workspace by its end."""
    return (
        path
        if len(path) <= PATH_LENGTH or not path.startswith("/")
        else "…/" + "/".join(path.split("/")[-2:])
    )


def _listed(paths: list[str], words: Phrases) -> str:
    listed = ", ".join(shown(path) for path in paths[:6])
    return words.and_more.format(files=listed, count=len(paths) - 6) if len(paths) > 6 else listed


def _fact(kind: FactType, text: str, action: Action, span: tuple[int, int] | None = None) -> Fact:
    return Fact(kind, clip(text, FACT_LENGTH), action.source, span or action.span)


def _of_action(
    action: Action,
    words: Phrases,
    edited: dict[str, tuple[int, Action]],
    index: int,
    failed: set[str],
    last: bool,
) -> Iterator[Fact]:
    call = action.call
    if call.result == "error":
        yield from _failure(action, words, failed)
    elif is_plan(action) and call.result == "ok":
        title = _MD_TITLE.search(arguments.first_text(arguments.parse(call.args), "plan"))
        yield _fact("decision", words.plan_approved.format(what=f": {title[1]}" if title else ""), action)
    elif call.name == "AskUserQuestion" and call.outcome:
        yield from _answer(action, words)
    elif call.command and call.result == "ok":
        yield from _success(action, words, failed, last)
    elif call.result == "ok" and any(touch.op != "read" for touch in call.files):
        described = _changes(action, words)
        yield from described
        if not described:
            edited.setdefault(next(touch.path for touch in call.files if touch.op != "read"), (index, action))


def command_name(command: str) -> str:
    """A command line in a few words: the line itself when short, else the last program that matters."""
    line = command.strip()
    named = shell.programs(line)
    if "\n" not in line and len(line) <= WORD_LENGTH and not _JOINS.search(line):
        return line
    return ", ".join(named[-2:]) if named else clip(line.split("\n", 1)[0], WORD_LENGTH)


def what(action: Action) -> str:
    """How a fact names the call: its command, or the tool and its file."""
    if action.call.command:
        return command_name(action.call.command)
    path = shown(action.call.files[0].path) if action.call.files else ""
    if not path and action.call.name in ("Agent", "Task", "AgentSwarm"):
        path = clip(arguments.first_text(arguments.parse(action.call.args), "description"), WORD_LENGTH)
    return f"{action.call.name} {path}".strip()


def _failure(action: Action, words: Phrases, failed: set[str]) -> Iterator[Fact]:
    call = action.call
    if failures.was_rejected(call.error):
        if is_plan(action):
            yield _fact("result", words.plan_rejected, action)
        else:
            yield _fact("result", words.rejected.format(what=what(action)), action)
        return
    failed.add(what(action))
    line = failures.decisive(call.error)
    if not line:
        code = failures.exit_code(call.error)
        line = f"exit code {code}" if code is not None else ""
    if line and call.command:
        yield _fact(
            "error",
            words.failed.format(what=what(action), line=_unended(line)),
            action,
            _span(call.error, line, action),
        )
    elif line and not _is_tool_slip(line):
        yield _fact(
            "error", words.failed.format(what=what(action), line=_unended(clip(line, LINE_LENGTH))), action
        )


def _unended(line: str) -> str:
    """Without the full stop that the phrase brings."""
    return line.rstrip(".。:： ")


def _is_tool_slip(line: str) -> bool:
    """A mistake in using a tool (text not found, file not read yet), not a fact about the work."""
    return (
        re.match(
            r"(?:String to replace not found|No changes to make|File has not been read|Found \d+ matches"
            r"|old_string|.{0,40}has been modified since read)",
            line,
        )
        is not None
    )


def _span(source: str, line: str, action: Action) -> tuple[int, int] | None:
    if action.span is not None or not action.first:
        return action.span
    at = source.find(line)
    return (at, at + len(line)) if at >= 0 else None


def _success(action: Action, words: Phrases, failed: set[str], last: bool) -> Iterator[Fact]:
    call = action.call
    name = what(action)
    if commit := _COMMIT.search(call.outcome):
        yield _fact(
            "result",
            words.committed.format(hash=commit[1], line=commit[2].strip()),
            action,
            commit.span() if action.first else None,
        )
    tests = None
    if _COUNTS.search(call.outcome, max(0, len(call.outcome) - 2_000)) and _TEST_PROGRAM.search(call.command):
        for match in _TESTS.finditer(call.outcome[-2_000:]):
            tests = match
    if tests is not None:
        line = next(group for group in tests.groups() if group).strip(" ,=")
        yield _fact(
            "result", words.passed.format(what=name, line=line), action, _span(call.outcome, line, action)
        )
    elif name in failed and not _one_line(call.outcome):
        yield _fact("result", words.succeeded_again.format(what=name), action)
    elif name in failed or (last and _worth_quoting(call.command)):
        line = _one_line(call.outcome)
        if line:
            yield _fact(
                "result", words.prints.format(what=name, line=line), action, _span(call.outcome, line, action)
            )
    failed.discard(name)


def _one_line(outcome: str) -> str:
    line = outcome.strip()
    return (
        line
        if line and "\n" not in line and len(line) <= LINE_LENGTH and not line.startswith(("{", "[", "<"))
        else ""
    )


def _worth_quoting(command: str) -> bool:
    named = shell.programs(command)
    return bool(named) and named[-1].split(" ")[0] not in (
        "ls", "cat", "grep", "rg", "find", "head", "tail", "sed", "git", "echo", "mkdir", "cd", "wc",
        "which", "pwd", "kill", "pkill", "curl", "sleep", "printf", "lsof",
    )  # fmt: skip


def _answer(action: Action, words: Phrases) -> Iterator[Fact]:
    question = arguments.first_text(arguments.parse(action.call.args), "question", "header")
    answer = action.call.outcome.strip()
    if question and len(answer) <= 160 and "\n" not in answer:
        yield _fact("decision", words.answered.format(question=clip(question, 100), answer=answer), action)


# --- what an edit changed -----------------------------------------------------------------------------------


def _changes(action: Action, words: Phrases) -> list[Fact]:
    call = action.call
    path = shown(next(touch.path for touch in call.files if touch.op != "read"))
    if any(touch.op == "write" for touch in call.files):
        about = _about_content(arguments.content(call.args), path)
        return [_fact("changed", words.created.format(path=path, what=about), action)] if about else []
    texts = [text for edit in arguments.edits(call.args) if (text := describe_edit(edit, words))]
    return [_fact("changed", f"{path}: {text}{words.stop}", action) for text in texts[:3]]


def _about_content(content: str, path: str) -> str:
    if path.endswith((".md", ".rst", ".txt")) or content.startswith("# "):
        title = _MD_TITLE.search(content[:2_000])
        return f"“{title[1].strip()}”" if title else ""
    names = defined(content[:8_000])
    return ", ".join(names[: MAX_NAMES + 2])


def describe_edit(edit: Edit, words: Phrases) -> str:
    """An edit in a few words: ``PORT 3000 → 3001``, the line that replaced a line, or the names added
    and removed.
    """
    old, new = edit.old.strip("\n"), edit.new.strip("\n")
    if old.split() == new.split():
        return ""  # white space only
    if edit.whole and "\n" not in old and "\n" not in new and old and new:
        short = _token_change(old.strip(), new.strip())
        if short:
            return short
        if len(old) <= LINE_LENGTH and len(new) <= LINE_LENGTH:
            return f"{clip(old.strip(), 90)} → {clip(new.strip(), 90)}"
    if edit.whole and old and new:
        line = _line_change(old, new)
        if line:
            return line
    return _name_change(old, new, words)


def _token_change(old: str, new: str) -> str:
    before, after = _TOKENS.findall(old[:400]), _TOKENS.findall(new[:400])
    head = _common(before, after)
    tail = _common(before[head:][::-1], after[head:][::-1])
    removed = "".join(before[head : len(before) - tail]).strip()
    added = "".join(after[head : len(after) - tail]).strip()
    if not removed or not added or len(removed) > WORD_LENGTH or len(added) > WORD_LENGTH or not head:
        return ""
    if not _is_balanced(removed) or not _is_balanced(added):
        return ""  # a piece of a call or a list says less than its line
    key = next(
        (token.strip("\"'") for token in reversed(before[:head]) if _NAME.search(token.strip("\"'"))), ""
    )
    return f"{key} {removed} → {added}" if key else f"{removed} → {added}"


def _is_balanced(text: str) -> bool:
    return all(text.count(left) == text.count(right) for left, right in ("()", "[]", "{}"))


def _common(left: list[str], right: list[str]) -> int:
    count = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        count += 1
    return count


def _line_change(old: str, new: str) -> str:
    """The one line that differs, when only one does."""
    before, after = old.split("\n"), new.split("\n")
    if len(before) != len(after) or len(before) > 60:
        return ""
    stripped = ((a.strip(), b.strip()) for a, b in zip(before, after, strict=True))
    differing = [pair for pair in stripped if pair[0] != pair[1]]
    if len(differing) != 1 or not all(differing[0]):
        return ""
    short = _token_change(*differing[0])
    if short:
        return short
    a, b = differing[0]
    return f"{a} → {b}" if len(a) <= 90 and len(b) <= 90 else ""


@lru_cache(maxsize=64)
def defined(text: str) -> tuple[str, ...]:
    """Names that a piece of code defines, functions with ``()``, each once."""
    seen: dict[str, None] = {}
    for match in at_lines(DEFINITION, text):
        name = match["fname"] or match["cname"] or match["vname"] or match["constant"]
        if match["vname"] and not match["arrow"] and not (match["vname"].isupper() or "export" in match[0]):
            continue  # a variable, of no interest outside
        name = f"{name}()" if match["fname"] or (match["arrow"] and "=>" in match["arrow"]) else name
        seen.setdefault(name)
    return tuple(seen)


def at_lines(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """As ``finditer`` of a pattern that matches where lines begin only, which are quick to find."""
    start = 0
    while start >= 0:
        match = pattern.match(text, start)
        if match is not None:
            yield match
        line_end = text.find("\n", match.end() - 1 if match is not None else start)
        start = line_end + 1 if line_end >= 0 else -1


def _name_change(old: str, new: str, words: Phrases) -> str:
    before, after = defined(old[:8_000]), defined(new[:8_000])
    added = [name for name in after if name not in before]
    removed = [name for name in before if name not in after]
    parts = []
    if added:
        parts.append(words.added.format(what=", ".join(added[:MAX_NAMES])))
    if removed:
        parts.append(words.removed.format(what=", ".join(removed[:MAX_NAMES])))
    if not parts and (kept := [name for name in after if name in before and name.endswith("()")]):
        parts.append(words.changed.format(what=", ".join(kept[:MAX_NAMES])))
    return words.join.join(parts)
