"""Packages by name: from install commands, manifest edits and imports that an edit brought."""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Iterator

from stages.refining import arguments, shell

_INSTALLS = {
    ("npm", "install"), ("npm", "i"), ("npm", "add"), ("npm", "uninstall"), ("npm", "remove"),
    ("yarn", "add"), ("yarn", "remove"), ("pnpm", "add"), ("pnpm", "install"), ("pnpm", "i"),
    ("pnpm", "remove"), ("bun", "add"), ("bun", "install"), ("pip", "install"), ("pip3", "install"),
    ("pip", "uninstall"), ("uv", "add"), ("uv", "remove"), ("uv pip", "install"), ("poetry", "add"),
    ("poetry", "remove"), ("cargo", "add"), ("cargo", "install"), ("go", "get"), ("go", "install"),
    ("gem", "install"), ("brew", "install"), ("apt", "install"), ("apt-get", "install"),
    ("composer", "require"), ("pipx", "install"), ("conda", "install"), ("uv tool", "install"),
    ("apk", "add"), ("dnf", "install"), ("yum", "install"), ("dotnet add", "package"),
}  # fmt: skip
_ADDS = re.compile(r"install|add|remove|get|require| i\b|['\"\\\t]")
"""What every line holds that names packages; quotes and backslashes may hide it."""
_PYTHON = re.compile(r"python[\d.]*$")
_VALUE_FLAGS = {
    "-r",
    "--requirement",
    "-c",
    "--constraint",
    "-w",
    "--workspace",
    "--prefix",
    "--filter",
    "-F",
    "--index-url",
    "-i",
    "--extra-index-url",
    "-e",
    "--editable",
    "--group",
    "-C",
    "--features",
    "-t",
    "--target",
    "-n",
    "--extra",
    "--optional",
}
_REQUIREMENTS = re.compile(r"requirements[\w.-]*\.(?:txt|in)$")
_NAME = re.compile(r"(?:@[\w.-]+/)?[A-Za-z0-9][\w.-]*(?:/[\w.-]+)*")
_JSON_DEPENDENCY = re.compile(
    r"\"((?:@[\w.-]+/)?[a-z0-9][\w.-]*)\"\s*:\s*\"(?:[\^~>=<]*\d[^\"]*|workspace:[^\"]*|latest|\*"
    r"|file:[^\"]*|npm:[^\"]*)\""
)
_NOT_DEPENDENCIES = {
    "version",
    "node",
    "npm",
    "yarn",
    "pnpm",
    "engines",
    "port",
    "target",
    "lib",
    "name",
    "packageManager",
}
_REQUIREMENT = re.compile(
    r"^[ \t]*[\"']?([A-Za-z][\w.-]*[A-Za-z0-9])(?:\[[\w, -]+\])?\s*(?:[><=!~]=|[><])[ \d][^\n]*$",
    re.MULTILINE,
)
_TOML_DEPENDENCY = re.compile(
    r"^[ \t]*([A-Za-z][\w-]*)\s*=\s*(?:\"[\^~>=<]*\d[^\"]*\"|\{[^}\n]*(?:version|git|path"
    r"|features)\b[^\n]*)$",
    re.MULTILINE,
)
_GO_REQUIRE = re.compile(r"^[ \t]*(?:require )?([\w.-]+\.[\w.-]+/[\w./-]+) v\d", re.MULTILINE)
_PY_IMPORT = re.compile(
    r"^[ \t]*(?:import ([A-Za-z_]\w*(?:\.\w+)*(?:[ \t]*,[ \t]*[A-Za-z_]\w*)*)"
    r"|from ([A-Za-z_]\w*)(?:\.\w+)* import )",
    re.MULTILINE,
)
_JS_IMPORT = re.compile(
    r"(?:^|\s)(?:import|export)\b[^;\n'\"]{0,200}?from\s+['\"]([^'\"\n]{1,100})['\"]"
    r"|^[ \t]*import\s+['\"]([^'\"\n]{1,100})['\"]|\b(?:require|import)\(\s*['\"]([^'\"\n]{1,100})['\"]\s*\)",
    re.MULTILINE,
)
_NODE_BUILTINS = {
    "fs", "path", "http", "https", "url", "util", "os", "crypto", "events", "stream", "child_process",
    "assert", "buffer", "net", "tls", "zlib", "readline", "cluster", "dns", "querystring",
    "string_decoder", "timers", "tty", "vm", "worker_threads", "process", "perf_hooks", "module",
    "async_hooks",
}  # fmt: skip
_OWN = re.compile(r"^(?:\.|/|@/|~/|#|src/|app/|node:|bun:)|\.\w{1,4}$")


def packages_of_command(command: str) -> Iterator[str]:
    """What an install, add or remove command names."""
    if _ADDS.search(command) is None:
        return
    for simple in shell.simple_commands(command):
        words = shell.program_words(simple.words)
        if len(words) < 2:
            continue
        program = words[0].rpartition("/")[2]
        if _PYTHON.match(program) and words[1:3] == ["-m", "pip"]:
            words, program = words[2:], "pip"
        rest = shell.after_flags(words, program)
        if len(rest) > 1 and (f"{program} {rest[0]}", rest[1]) in _INSTALLS:
            yield from _named(rest[2:])
        elif rest and (program, rest[0]) in _INSTALLS:
            yield from _named(rest[1:])


def _named(words: list[str]) -> Iterator[str]:
    skip = False
    for word in words:
        if skip or word.startswith("-"):
            skip = word in _VALUE_FLAGS and not skip
            continue
        if word.startswith((".", "/", "~", "git+", "http:", "https:", "$")) or "=" in word[:1]:
            continue
        match = _NAME.match(word)
        if match and not word.endswith((".txt", ".whl", ".tgz", ".toml", ".deb", "/")):
            name = match[0]
            yield (
                re.sub(r"(?:[=<>!~].*|@[\w.^~*-]+$)", "", name)
                if "/" not in name or name.startswith("@")
                else name
            )


def packages_of_edit(path: str, args: str) -> Iterator[str]:
    """What an edit or write of this file brought: manifest entries, or imports of other people's packages."""
    kind = _kind(path)
    if not kind:
        return
    pairs = [(edit.old, edit.new) for edit in arguments.edits(args)] or [("", arguments.content(args))]
    for old, new in pairs:
        had = set(_found(kind, old[:8_000]))
        yield from (name for name in _found(kind, new[:8_000]) if name not in had)


def _kind(path: str) -> str:
    name = posixpath.basename(path)
    if name == "package.json":
        return "json"
    if name == "pyproject.toml" or (name.startswith("requirements") and _REQUIREMENTS.match(name)):
        return "requirements"
    if name == "Cargo.toml":
        return "toml"
    if name == "go.mod":
        return "go"
    suffix = posixpath.splitext(name)[1]
    return {
        ".py": "python",
        ".js": "js",
        ".ts": "js",
        ".tsx": "js",
        ".jsx": "js",
        ".mjs": "js",
        ".cjs": "js",
        ".vue": "js",
    }.get(suffix, "")


def _found(kind: str, text: str) -> Iterator[str]:
    if kind == "json":
        yield from (name for name in _JSON_DEPENDENCY.findall(text) if name not in _NOT_DEPENDENCIES)
    elif kind == "requirements":
        yield from (name for name in _REQUIREMENT.findall(text) if name not in ("python", "requires-python"))
    elif kind == "toml":
        yield from (
            name
            for name in _TOML_DEPENDENCY.findall(text)
            if name not in ("version", "edition", "rust-version", "name")
        )
    elif kind == "go":
        yield from _GO_REQUIRE.findall(text)
    elif kind == "python" and "import" in text:
        for match in _PY_IMPORT.finditer(text):
            for name in (match[1] or match[2]).split(","):
                top = name.strip().split(".", 1)[0]
                if top not in sys.stdlib_module_names:
                    yield top
    elif kind == "js" and ("import" in text or "require" in text or ("export" in text and "from" in text)):
        for groups in _JS_IMPORT.findall(text):
            name = next(group for group in groups if group)
            if not _OWN.search(name) or (name.startswith("@") and not name.startswith("@/")):
                top = "/".join(name.split("/")[: 2 if name.startswith("@") else 1])
                if top not in _NODE_BUILTINS:
                    yield top
