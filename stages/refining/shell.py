"""Shell command lines: which programs ran, and which files they surely changed.

A reader of what people and agents type, not a shell: unknown syntax yields less, never an exception.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field
from functools import lru_cache

MAX_LINE = 4_000
"""Characters of a command line that are read (a heredoc's body is skipped before)."""
MAX_COMMANDS = 40

_HEREDOC = re.compile(r"(?<!<)<<-?\s*(['\"]?)([A-Za-z_]\w*)\1")
_TOKEN = re.compile(
    r"(?P<op>&&|\|\||;;|\|&|[;|\n()]|&(?![>\d]))"
    r"|(?P<redirect>(?:\d|&)?>>?\|?|<<<|<)(?P<dup>&\d|&-)?"
    r"|(?P<word>(?:[^\s;|&<>()'\"\\`$]|\\.|'[^']*'?|\"(?:[^\"\\]|\\.)*\"?|\$\([^()]*\)|\$\{[^}]*\}|\$"
    r"|`[^`]*`?)+)"
    r"|(?P<comment>#[^\n]*)",
    re.DOTALL,
)
_SYNTAX = re.compile(r"[\n;|&<>()'\"\\`$]")
"""What makes a line more than words."""
_EXPANDS = re.compile(r"[$`*?{]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_QUOTED = re.compile(r"'([^']*)'?|\"((?:[^\"\\]|\\.)*)\"?|\\(.)", re.DOTALL)

_WRAPPERS = {
    "sudo", "env", "time", "nohup", "command", "exec", "nice", "doas", "builtin", "then", "do", "else",
    "if", "while", "until", "!", "{", "xvfb-run", "stdbuf", "caffeinate", "rtk",
}  # fmt: skip
_WRAPPERS_WITH_VALUE = {"timeout", "gtimeout"}
_VALUE_FLAGS = {
    "sudo": {"-u", "-g"}, "timeout": {"-s", "-k", "--signal"}, "nice": {"-n"}, "env": {"-u"}, "stdbuf": set(),
    "git": {"-C", "-c", "--git-dir", "--work-tree"}, "npm": {"-w", "--workspace", "--prefix", "-C"},
    "pnpm": {"-C", "--filter", "-F", "--dir"}, "yarn": {"--cwd"}, "docker": {"-H", "--context"},
    "compose": {"-f", "-p", "--file", "--env-file"}, "kubectl": {"-n", "--namespace", "--context"},
    "make": {"-C", "-f", "-j"}, "cargo": {"--manifest-path"}, "go": {"-C"},
    "uv": {"--project", "--directory", "--with", "-p", "--python"},
    "gh": {"-R", "--repo"}, "fly": {"-a", "--app", "-c"}, "node": {"-r", "--require", "--import", "--loader"},
}  # fmt: skip
_RUNNERS = {
    ("uv", "run"),
    ("poetry", "run"),
    ("pipenv", "run"),
    ("pdm", "run"),
    ("hatch", "run"),
    ("rye", "run"),
    ("bundle", "exec"),
}
_RUN = {program for program, _ in _RUNNERS}
_SUBCOMMANDS = {
    "git", "npm", "yarn", "pnpm", "bun", "cargo", "go", "docker", "kubectl", "pip", "pip3", "uv", "make",
    "gh", "brew", "apt", "apt-get", "systemctl", "poetry", "terraform", "fly", "flyctl", "vercel",
    "dotnet", "mvn", "gradle", "deno", "conda", "helm", "aws", "gcloud", "az", "heroku", "rails", "rake",
    "composer", "bundle", "gem", "rustup", "kimi", "claude", "turbo", "nx", "lerna", "alembic", "pipx",
    "pipenv", "pdm", "hatch", "rye", "just", "task", "openssl", "crontab", "service", "launchctl",
    "podman", "docker-compose", "supabase", "wrangler", "prisma", "manage.py", "swift", "xcodebuild",
    "flutter", "dart", "mix", "tox", "nox", "pre-commit", "ruff", "playwright", "git-lfs",
}  # fmt: skip
_NESTED = {
    ("npm", "run"), ("pnpm", "run"), ("yarn", "run"), ("bun", "run"), ("npm", "run-script"),
    ("docker", "compose"), ("gh", "pr"), ("gh", "issue"), ("gh", "run"), ("gh", "repo"), ("gh", "release"),
    ("uv", "pip"), ("uv", "tool"), ("deno", "task"), ("git", "stash"), ("git", "remote"),
    ("git", "worktree"), ("fly", "secrets"), ("fly", "volumes"), ("flyctl", "secrets"), ("go", "mod"),
    ("docker", "container"), ("docker", "volume"), ("aws", "s3"), ("npm", "pkg"), ("npm", "exec"),
    ("yarn", "workspace"), ("dotnet", "ef"), ("gcloud", "run"),
}  # fmt: skip
_INTERPRETERS = re.compile(
    r"(?:python(?:\d(?:\.\d+)?)?|node|tsx|ts-node|ruby|perl|php|deno|bash|sh|zsh|bun)$"
)
_NAMES_PROGRAM = re.compile(r"[\w./~@+-]")
_LETTER = re.compile(r"[A-Za-z]")
_SUBCOMMAND = re.compile(r"[A-Za-z][\w:.-]{0,40}")
_SHELLS = {"bash", "sh", "zsh", "dash"}
_PLUMBING = {
    "cd", "pushd", "popd", "echo", "true", "false", ":", "set", "export", "source", ".", "unset", "sleep",
    "wait", "exit", "read", "printf", "trap", "local", "return", "shopt", "fi", "done", "for", "case",
    "esac", "}", "in", "[", "[[", "test", "pwd", "umask", "shift", "break", "continue", "function",
}  # fmt: skip
_FILTERS = {
    "grep", "egrep", "rg", "head", "tail", "sort", "uniq", "wc", "awk", "sed", "cut", "tr", "tee", "less",
    "more", "cat", "jq", "xargs", "column", "rev", "fold", "nl", "tac", "sponge", "strings", "base64",
}  # fmt: skip


@dataclass(slots=True)
class Simple:
    """One simple command: its words without quotes, how it follows the one before, and its output
    redirects.
    """

    words: list[str] = field(default_factory=list)
    joined_by: str = ""
    outputs: list[str] = field(default_factory=list)
    literal: bool = True
    """No expansion in any word: what it names is certain."""


@lru_cache(maxsize=256)
def simple_commands(line: str) -> tuple[Simple, ...]:
    """The simple commands of a line in order; heredoc bodies are dropped. Not to be altered."""
    if _SYNTAX.search(line) is None:
        words = line[:MAX_LINE].split()
        return (Simple(words, literal=_EXPANDS.search(line, 0, MAX_LINE) is None),) if words else ()
    line = line.replace("\\\n", " ")
    if "<<" in line:
        line = _without_heredocs(line[: 2 * MAX_LINE])
    commands = [Simple()]
    expects = ""
    for match in _TOKEN.finditer(line[:MAX_LINE]):
        kind = match.lastgroup
        if kind == "op":
            if commands[-1].words or commands[-1].outputs:
                commands.append(Simple(joined_by=match["op"]))
                if len(commands) > MAX_COMMANDS:
                    break
            expects = ""
        elif match["redirect"]:
            expects = "" if match["dup"] else match["redirect"]
        elif match["word"]:
            _word(commands[-1], match["word"], expects)
            expects = ""
    return tuple(command for command in commands if command.words or command.outputs)


def _without_heredocs(text: str) -> str:
    kept: list[str] = []
    open_words: list[str] = []
    for line in text.split("\n"):
        if open_words:
            if line.strip() == open_words[0]:
                open_words.pop(0)
            continue
        open_words = [match[2] for match in _HEREDOC.finditer(line)]
        kept.append(_HEREDOC.sub("", line))
    return "\n".join(kept)


def _word(command: Simple, raw: str, redirect: str) -> None:
    word = _unquote(raw)
    expands = not raw.startswith("'") and _EXPANDS.search(raw) is not None
    if redirect:
        if ">" in redirect:
            command.outputs.append("" if expands else word)
        return
    if expands:
        command.literal = False
    command.words.append(word)


def _unquote(word: str) -> str:
    if "'" not in word and '"' not in word and "\\" not in word:
        return word
    return _QUOTED.sub(lambda match: match[1] or match[2] or match[3] or "", word)


def program_words(words: list[str]) -> list[str]:
    """The words from the program on: without assignments, wrappers and runners."""
    words = list(words)
    for _ in range(8):
        while words and "=" in words[0] and _ASSIGNMENT.match(words[0]):
            words.pop(0)
        if not words:
            return words
        name = words[0].rpartition("/")[2]
        if name in _WRAPPERS or name in _WRAPPERS_WITH_VALUE:
            words = after_flags(words, name)
            if name in _WRAPPERS_WITH_VALUE and words:
                words = words[1:]
            continue
        rest = after_flags(words, name) if name in _RUN else []
        if rest and (name, rest[0]) in _RUNNERS:
            words = after_flags(rest, name)
            continue
        break
    return words


def after_flags(words: list[str], name: str) -> list[str]:
    """What follows ``words[0]`` and its flags."""
    takes_value = _VALUE_FLAGS.get(name, set())
    index = 1
    while index < len(words) and words[index].startswith("-") and len(words[index]) > 1:
        index += 2 if words[index] in takes_value else 1
    return words[index:]


def name_of(words: list[str]) -> str:
    """Program and subcommand of a simple command ("npm run test", "python3 server.py"), or ``""``."""
    words = program_words(words)
    if not words or not _NAMES_PROGRAM.match(words[0]):
        return ""
    program = words[0] if words[0].startswith("./") else words[0].rpartition("/")[2]
    if len(program) > 60 or not _LETTER.search(program):
        return ""
    if program in _SHELLS and "-c" in words:
        inner = words[words.index("-c") + 1 : words.index("-c") + 2]
        return next(iter(programs(inner[0])), program) if inner else program
    rest = after_flags(words, program)
    if _INTERPRETERS.match(program):
        return _interpreter(program, words, rest)
    if program in ("npx", "bunx", "uvx", "pipx") and rest:
        return f"{program} {_package_less(rest[0])}"
    if program in _SUBCOMMANDS and rest and _is_subcommand(rest[0]):
        return _with_subcommand(program, rest)
    return program


def _package_less(word: str) -> str:
    return re.sub(r"(?<=.)@[\w.^~-]+$", "", word)[:60]


def _is_subcommand(word: str) -> bool:
    return _SUBCOMMAND.fullmatch(word) is not None


def _with_subcommand(program: str, rest: list[str]) -> str:
    second = rest[0]
    if (program, second) in _NESTED and len(rest) > 1:
        deeper = after_flags(rest, second if second == "compose" else program)
        if deeper and re.fullmatch(r"[A-Za-z][\w:./-]{0,60}", deeper[0]):
            return f"{program} {second} {deeper[0]}"
    return f"{program} {second}"


def _interpreter(program: str, words: list[str], rest: list[str]) -> str:
    if "-m" in words[1:]:
        module = words[words.index("-m") + 1 : words.index("-m") + 2]
        return f"{program} -m {module[0]}" if module else program
    if any(flag in words[1:3] for flag in ("-c", "-e", "-")) or not rest:
        return program
    script = rest[0]
    if program == "bun" or program == "deno":
        return _with_subcommand(program, rest) if _is_subcommand(script) else f"{program} {script[:80]}"
    return f"{program} {script[:80]}" if re.fullmatch(r"[\w./@~+\u3400-\u9fff-]+", script) else program


def programs(line: str) -> list[str]:
    """What a command line ran, in order, normalised; plumbing (cd, echo) and filters behind a pipe are
    left out.
    """
    return list(_programs(line))


@lru_cache(maxsize=256)
def _programs(line: str) -> tuple[str, ...]:
    kept: list[str] = []
    plumbing: list[str] = []
    for command in simple_commands(line):
        name = name_of(command.words)
        if not name:
            continue
        first = name.split(" ", 1)[0]
        if first in _PLUMBING:
            plumbing.append(first)
        elif not (command.joined_by.startswith("|") and command.joined_by != "||" and first in _FILTERS):
            kept.append(name)
    if not kept:
        kept = [
            name
            for name in plumbing
            if name.isalpha() and name in ("echo", "cd", "sleep", "pwd", "printf", "export")
        ][:1]
    return tuple(dict.fromkeys(kept))


_WRITES = re.compile(r">|rm|touch|tee|mv|cp|sed|['\"\\]")
"""What every line holds that changes files; quotes and backslashes may hide it."""


def written(line: str) -> list[str]:
    """Paths that a successful run of this line surely created, changed, moved or removed, as written in it.

    Nothing after ``||`` counts, nor anything with an expansion, nor a target that may be a directory.
    """
    paths: list[str] = []
    if _WRITES.search(line) is None:
        return paths
    directory = ""
    certain = True
    for command in simple_commands(line):
        if command.joined_by == "||":
            certain = False
        elif command.joined_by in (";", "\n"):
            certain = True
        if command.joined_by == "(" or not certain:
            continue
        words = program_words(command.words)
        if words and words[0] in ("for", "if", "while", "case", "function"):
            break
        if words and words[0] == "cd":
            directory = posixpath.join(directory, words[1]) if len(words) == 2 and command.literal else "\0"
            continue
        found = [path for path in command.outputs if path and _is_file(path)]
        if command.literal and words:
            found += _changed_by(words)
        if "\0" in directory:
            found = [path for path in found if path.startswith("/")]
        paths += [posixpath.normpath(posixpath.join(directory, path)) for path in found]
    return list(dict.fromkeys(paths))


def _is_file(path: str) -> bool:
    return (
        not path.startswith(("/dev/", "/proc/", "&", "~", "-")) and not path.endswith("/") and len(path) < 400
    )


def _changed_by(words: list[str]) -> list[str]:
    program = posixpath.basename(words[0])
    if program == "git" and len(words) > 2 and words[1] in ("mv", "rm"):
        program, words = words[1], words[1:]
        if "--cached" in words:
            return []
    arguments = [word for word in words[1:] if not word.startswith("-")]
    recursive = any(word.startswith("-") and re.search(r"[rR]|--recursive", word) for word in words[1:])
    if program == "rm" and not recursive:
        return [path for path in arguments if _is_file(path)]
    if program == "touch":
        return [path for path in arguments if _is_file(path) and "-t" not in words and "-d" not in words]
    if program == "tee":
        return [path for path in arguments if _is_file(path)]
    if program in ("mv", "cp") and len(arguments) == 2 and not recursive:
        return _moved(program, arguments[0], arguments[1])
    if program == "sed" and any(re.match(r"-[a-zA-Z]*i|--in-place", word) for word in words[1:]):
        has_script = any(word in ("-e", "-f", "--expression") for word in words)
        files = arguments[0 if has_script else 1 :]
        return [path for path in files if _is_file(path) and path and ("." in path or "/" in path)]
    return []


def _moved(program: str, source: str, target: str) -> list[str]:
    suffix = posixpath.splitext(source)[1]
    if not suffix:
        return []
    if target.endswith("/") or target in (".", ".."):
        target = posixpath.join(target, posixpath.basename(source))
    elif not posixpath.splitext(target)[1]:
        return []
    return [source, target] if program == "mv" else [target]
