"""What turns touched, on real wire shapes: files, commands, errors, packages, symbols, URLs, issues."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from stages.entities import MAX_COMMANDS, MAX_FILES, MAX_SYMBOLS, extract
from stages.model import Cut, Entities, FileTouch, ToolCall, Turn
from stages.refining import failures, mentions, shell
from stages.refining.packages import packages_of_command, packages_of_edit
from tests.stages.refine_turns import CWD, bash, edit, read, step, tool, turn, write
from tests.stages.wire_feed import ORIGIN, fold

SAMPLES = Path(__file__).parent.parent / "samples"


def touched(this: Turn) -> Entities:
    return extract(this, cwd=CWD)


# --- commands -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("cd x && FOO=1 npm run test -- --watch", ["npm run test"]),
        ("python3 server.py", ["python3 server.py"]),
        ("uv run pytest -q tests/a.py", ["pytest"]),
        ("poetry run python -m app.main --port 1", ["python -m app.main"]),
        ("sudo -u root systemctl restart nginx", ["systemctl restart"]),
        ("cat a.log | grep error | wc -l", ["cat"]),
        ("git -C sub commit -m 'a && b; c'", ["git commit"]),
        ('git add -A && git commit -m "fix: x" && git push', ["git add", "git commit", "git push"]),
        ("npx tsc --noEmit", ["npx tsc"]),
        ("npx shadcn@latest init", ["npx shadcn"]),
        ("docker compose -f a.yml up -d", ["docker compose up"]),
        ("gh pr create --title x", ["gh pr create"]),
        ("npm -w api run build", ["npm run build"]),
        ("timeout 30 make -C src test 2>&1 | tail -5", ["make test"]),
        ("bash -c 'cargo test'", ["cargo test"]),
        ("cat <<'EOF' > a.py\nimport os; rm -rf /\nEOF\npython a.py", ["cat", "python a.py"]),
        ("env A=1 B=2 ./scripts/run.sh prod", ["./scripts/run.sh"]),
        ("(cd api && npm test) || echo failed", ["npm test"]),
        ("for f in *.py; do ruff check $f; done", ["ruff check"]),
        ("ls -la", ["ls"]),
        ("echo hello", ["echo"]),
        ("/usr/local/bin/node dist/index.js", ["node dist/index.js"]),
        ("go test ./...", ["go test"]),
        ("uv pip install -r requirements.txt", ["uv pip install"]),
        ("", []),
        ("'unclosed", ["unclosed"]),
        ("&& ||;;", []),
    ],
)
def test_programs(line: str, names: list[str]) -> None:
    assert shell.programs(line) == names


@pytest.mark.parametrize(
    ("line", "paths"),
    [
        ("echo hi > out.txt", ["out.txt"]),
        ("printf x >> logs/a.log 2>&1", ["logs/a.log"]),
        ("cd api && sed -i 's/a/b/' src/x.ts", ["api/src/x.ts"]),
        ("git mv a.py b.py", ["a.py", "b.py"]),
        ("mv old.md docs/", ["old.md", "docs/old.md"]),
        ("cp a.json b.json", ["b.json"]),
        ("rm -f app.py", ["app.py"]),
        ("git rm --cached secret.env", []),
        ("rm -rf build", []),
        ("cp -r a.d b.d", []),
        ("mv a b", []),
        ("ls > /dev/null", []),
        ("test -f a || echo x > b.txt", []),
        ("echo x > $OUT", []),
        ("rm *.pyc", []),
        ('cd "$DIR" && echo x > a.txt', []),
        ("npm test 2>err.log", ["err.log"]),
        ("cat > conf.yaml <<EOF\nx: > y.txt\nEOF", ["conf.yaml"]),
        ("grep -c '>' a.txt", []),
        ("for f in a b; do echo $f > $f.txt; done", []),
    ],
)
def test_files_written_by_commands(line: str, paths: list[str]) -> None:
    assert shell.written(line) == paths


# --- files --------------------------------------------------------------------------------------------------


def test_read_and_written_are_told_apart() -> None:
    result = touched(
        turn(
            "x",
            step(read("a.py"), edit("b.py", "x = 1", "x = 2"), write("c.py", "y = 1"), read("b.py")),
            step(
                edit("d.py", "q", "r", error="old_string not found"),
                bash("echo 1 > e.txt", error="No space left on device"),
            ),
        )
    )
    assert result.files_written == ("b.py", "c.py")
    assert result.files_read == ("a.py", "d.py")


def test_undone_steps_do_not_count() -> None:
    this = replace(turn("x", step(write("a.py", "1")), step(write("b.py", "2"))), cut=Cut(1, 0, None))
    assert touched(this).files_written == ("a.py",)


def test_patches_name_their_files() -> None:
    patch = (
        "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** Add File: src/b.py\n+z\n*** End Patch"
    )
    assert touched(turn("x", step(tool("apply_patch", input=patch)))).files_written == (
        "src/a.py",
        "src/b.py",
    )
    diff = "diff --git a/m.py b/m.py\n--- a/m.py\n+++ b/m.py\n@@ -1 +1 @@\n-a\n+b\n"
    assert touched(turn("x", step(bash("git diff", output=diff)))).files_read == ("m.py",)


def test_paths_are_relative_to_the_workspace() -> None:
    assert touched(turn("x", step(bash(f"rm {CWD}/old.py")))).files_written == ("old.py",)
    assert touched(turn("x", step(bash("rm /etc/old.conf")))).files_written == ("/etc/old.conf",)
    assert touched(turn("x", step(bash("rm ../other/old.py")))).files_written == ()


@pytest.mark.parametrize(
    "name", sorted(path.name for path in SAMPLES.iterdir() if (path / "EXPECTED.json").exists())
)
def test_files_and_errors_of_the_recorded_samples(name: str) -> None:
    expected = json.loads((SAMPLES / name / "EXPECTED.json").read_text(encoding="utf-8"))
    for session in expected["sessions"]:
        for agent in session["agents"]:
            wire = SAMPLES / name / agent["wire"]
            origin = replace(ORIGIN, cwd=session.get("cwd"))
            turns = fold(wire.read_bytes(), origin).list if wire.exists() else []
            for told, this in zip(agent["turns"], turns, strict=False):
                result = extract(this, cwd=session.get("cwd"))
                ok = {call["id"] for call in told["tools"] if call["result"] == "ok"}
                written = {file["path"] for file in told.get("files", []) if file["op"] != "read"}
                if ok:
                    assert written <= set(result.files_written), (name, told["index"])
                failed = told.get("errors", [])
                assert bool(failed) == bool(result.errors), (name, told["index"], result.errors)


# --- errors -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "names"),
    [
        (
            'Traceback (most recent call last):\n  File "/home/dev/a.py", line 9, in <module>\n'
            "OSError: [Errno 98] Address already in use\nCommand failed with exit code: 1.",
            ["OSError: [Errno 98] Address already in use"],
        ),
        ("src/a.ts:1:1 - error TS2345: Argument of type 'x'.\nFound 1 error.", ["TS2345"]),
        ("error[E0382]: borrow of moved value: `x`\n --> src/main.rs:2:5", ["E0382"]),
        ("Error: listen EADDRINUSE: address already in use :::3000", ["EADDRINUSE"]),
        ("npm ERR! code ERESOLVE\nnpm ERR! ERESOLVE unable to resolve", ["ERESOLVE"]),
        ("TypeError: x is not a function\n    at main (a.js:1:1)", ["TypeError: x is not a function"]),
        ("curl: (22) The requested URL returned error: 404 Not Found", ["HTTP 404"]),
        ("429 Too Many Requests: rate limit", ["HTTP 429"]),
        ("a.py:1:1: F401 `os` imported but unused\nFound 1 error.", ["F401"]),
        ("fatal: not a git repository", ["fatal: not a git repository"]),
        (
            "bash: foo: command not found\nCommand failed with exit code: 127.",
            ["bash: foo: command not found"],
        ),
        ("Command failed with exit code: 3.", ["exit code 3"]),
        ('"missing.txt" does not exist.', ['"missing.txt" does not exist']),
        ('Tool "Bash" was not run because the user rejected the approval request.', [failures.REJECTED]),
        ("sqlite3.OperationalError: database is locked", ["sqlite3.OperationalError: database is locked"]),
        (
            "FAILED tests/test_a.py::test_b - AssertionError: assert 1 == 2\n1 failed in 0.1s",
            ["FAILED tests/test_a.py::test_b - AssertionError: assert 1 == 2"],
        ),
        ("", []),
    ],
)
def test_errors_are_named_by_their_decisive_line(output: str, names: list[str]) -> None:
    assert failures.names(output) == names


def test_each_failed_call_gives_an_error() -> None:
    silent = ToolCall("c1", "Glob", result="error")
    assert touched(turn("x", step(silent))).errors == ("Glob failed",)
    assert touched(turn("x", step(), status="failed", error="400 invalid request")).errors == ("HTTP 400",)


@pytest.mark.parametrize(
    "said",
    [
        "there is an error somewhere, please look at the error handling",
        "show error messages nicely; the Error class; errors: none; 0 errors",
        "错误处理这块要改，报错信息太长",
        "log.error('x') and an ErrorBoundary for every page",
        "it should raise a ValueError when the port is taken",
        "status 404 should redirect",
    ],
)
def test_the_word_error_alone_is_no_error(said: str) -> None:
    good = bash("cat log.txt", output="ERROR in the log\nTypeError: old news\nexit code 1")
    result = touched(turn(said, step("The error handling catches `TypeError` and every Error.", good)))
    assert result.errors == ()


def test_pasted_errors_count_when_a_tool_printed_them() -> None:
    said = (
        "还是报错\nTypeError: Cannot read properties of undefined (reading 'isReady')\n"
        "    at a (b.js:1:2)\nEADDRINUSE"
    )
    assert touched(turn(said)).errors == (
        "EADDRINUSE",
        "TypeError: Cannot read properties of undefined (reading 'isReady')",
    )


def test_background_exit_codes() -> None:
    this = turn("<notification>exit code: 3</notification>", origin="task")
    assert touched(this).errors == ("exit code 3",)
    assert touched(turn("<notification>exit code: 0</notification>", origin="task")).errors == ()


# --- names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("`pickPort()` and `Foo.bar` and `--watch`", ["pickPort", "Foo.bar", "--watch"]),
        ("listen() raises; `NEXT_PUBLIC_WS_URL` unset", ["NEXT_PUBLIC_WS_URL", "listen"]),
        ("`server.py` `the word` `run` `true` `Node.js`", []),
        ("```\nfoo()\n`bar_baz`\n```\n", []),
        ("`std::vec::Vec` `camelCase` `snake_case`", ["std::vec::Vec", "camelCase", "snake_case"]),
        ("调用 `parse_args()` 时", ["parse_args"]),
    ],
)
def test_symbols(text: str, names: list[str]) -> None:
    assert list(dict.fromkeys(mentions.symbols(text))) == names


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("PORT = 3000", "PORT = 3001", ["PORT"]),
        ("x", "def pick_port(a: int) -> int:\n    return a", ["pick_port"]),
        ("", "export const useComments = () => {\n", ["useComments"]),
        ('"port": 3000', '"port": 3001', ["port"]),
        ("class A:\n    pass\n\nkeep = 1", "class A:\n    x = 1\n\nkeep = 1", []),
        ("fn old()", "fn new_name()", ["old", "new_name"]),
    ],
)
def test_changed_names(old: str, new: str, names: list[str]) -> None:
    found = list(dict.fromkeys(mentions.changed_names(old, new)))
    assert [name for name in found if name in names] == names
    assert "keep" not in found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see https://github.com/o/r/issues/12 and #34", ["o/r#12", "#34"]),
        ("fixes #7, GH-8, PR 45 and owner/repo#9", ["#7", "owner/repo#9", "#8", "#45"]),
        ("colour #333; &#39; [Image #1] a#b #12a step #2", []),
        ("修复 #21；见 https://gitlab.com/g/p/-/merge_requests/5", ["g/p#5", "#21"]),
        ("```\n#99\n```", []),
        ("3 PRs and 12 issues", []),
    ],
)
def test_issues(text: str, found: list[str]) -> None:
    assert list(mentions.issues(text)) == found


def test_issue_numbers_of_commands() -> None:
    assert touched(turn("x", step(bash("gh pr view 45 --json state")))).issues == ("#45",)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("https://user:pw@host.example/a?token=1#x", ["https://host.example/a"]),
        ("看 https://docs.example.org/页面，然后", ["https://docs.example.org/"]),
        ("(http://localhost:3001/api/v1/files).", ["http://localhost:3001/api/v1/files"]),
        ("ws://localhost:3001 and ftp://x.y", ["ws://localhost:3001"]),
        ("http://nohost", []),
    ],
)
def test_urls(text: str, found: list[str]) -> None:
    assert list(mentions.urls(text)) == found


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("npm install --save-dev vitest@^1.0 @types/node", ["vitest", "@types/node"]),
        ("cd api && pnpm add zod", ["zod"]),
        ("pip install 'fastapi[all]>=0.100' uvicorn -r requirements.txt", ["fastapi", "uvicorn"]),
        ("python -m pip install httpx", ["httpx"]),
        ("uv add --dev pytest", ["pytest"]),
        ("cargo add serde --features derive", ["serde"]),
        ("go get github.com/gin-gonic/gin@v1.9.1", ["github.com/gin-gonic/gin"]),
        ("sudo apt-get install -y ripgrep", ["ripgrep"]),
        ("npm install", []),
        ("npm ci", []),
        ("npm run add", []),
        ("pip install -e . ./local", []),
    ],
)
def test_packages_of_commands(command: str, names: list[str]) -> None:
    assert list(packages_of_command(command)) == names


@pytest.mark.parametrize(
    ("path", "old", "new", "names"),
    [
        ("package.json", '"zod": "^3.0.0"', '"zod": "^3.0.0",\n"vitest": "^1.2.0"', ["vitest"]),
        ("pyproject.toml", "", 'dependencies = [\n  "anyio>=4.6,<5",\n]', ["anyio"]),
        ("requirements.txt", "", "flask==3.0\nrequests>=2", ["flask", "requests"]),
        ("Cargo.toml", "", 'serde = { version = "1", features = ["derive"] }', ["serde"]),
        (
            "a.py",
            "import os",
            "import os\nimport httpx\nfrom . import local\nfrom numpy.linalg import norm",
            ["httpx", "numpy"],
        ),
        (
            "a.ts",
            "",
            "import x from '@scope/pkg/sub';\nimport fs from 'fs';\nimport y from './local';",
            ["@scope/pkg"],
        ),
        ("a.md", "", "import httpx", []),
    ],
)
def test_packages_of_edits(path: str, old: str, new: str, names: list[str]) -> None:
    assert list(packages_of_edit(path, edit(path, old, new).args)) == names


# --- bounds and shape ---------------------------------------------------------------------------------------


def test_own_calls_are_left_out_and_values_are_unique() -> None:
    own = tool("mcp__kimi-memory__remember", own=True, content="`a_b`")
    result = touched(turn("x", step(own, read("a.py"), read("a.py"), bash("ls"), bash("ls"))))
    assert result.tools == ("Read", "Bash")
    assert result.files_read == ("a.py",)
    assert result.commands == ("ls",)


def test_caps() -> None:
    calls = [write(f"f{n}.py", f"NAME_{n} = 1", call_id=f"c{n}") for n in range(500)]
    runs = [bash(f"tool{n} run", call_id=f"b{n}") for n in range(500)]
    result = touched(turn("x", step(*calls[:200]), step(*runs[:150])))
    assert len(result.files_written) == MAX_FILES
    assert len(result.symbols) == MAX_SYMBOLS
    assert len(result.commands) == MAX_COMMANDS


def test_cut_arguments_are_read_as_far_as_they_go() -> None:
    args = '{"path":"a.py","old_string":"PORT = 3000","new_string":"PORT = 3001\\nHOST = \\"x'
    call = ToolCall("c", "Edit", args, "ok", files=(FileTouch("a.py", "edit", "c"),))
    result = touched(turn("x", step(call)))
    assert result.files_written == ("a.py",)
    assert "PORT" in result.symbols


def test_pairs_name_every_kind() -> None:
    result = touched(turn("see #5", step(edit("a.py", "A = 1", "A_B = 2"), bash("npm i zod"))))
    assert {kind for kind, _ in result.pairs()} >= {"file", "symbol", "command", "tool", "package", "issue"}
