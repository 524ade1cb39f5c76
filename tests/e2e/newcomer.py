"""Times a newcomer's path: `python -m tests.e2e.newcomer [REQUIREMENT]` (default: this checkout).

A machine with Python, Kimi Code and past sessions; from `pip install` to the first answer inside Kimi that draws on
them. Needs the package index; not part of the tests.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from tests.e2e.install import install
from tests.e2e.kimi import REPOSITORY, Kimi
from tests.e2e.model_server import Call, ModelServer, Reply

DECIDED = "Decided: SQLite for the queue, because one file is enough and there is one writer."


def main(requirement: str = str(REPOSITORY)) -> int:
    """Print each command with its seconds, then the sum; the exit code."""
    with tempfile.TemporaryDirectory(prefix="kimi-newcomer-") as folder, ModelServer() as model:
        kimi = Kimi(install(), Path(folder), model.url)
        model.say(Reply(DECIDED))
        kimi.prompt("Which store for the queue?")  # a past session, from before we were there
        venv = Path(folder) / "venv"
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        times = [
            timed(
                "pip install kimi-memory-pipeline",
                lambda: run([venv / "bin/pip", "install", "-q", requirement], kimi),
            ),
            timed("kimi-memory setup", lambda: run([venv / "bin/kimi-memory", "setup"], kimi)),
        ]
        model.say(Reply(calls=(Call("mcp__kimi-memory__bootstrap_workspace"),)), Reply("SQLite, as decided."))
        times.append(
            timed('kimi -p "What did we decide about the queue?"', lambda: kimi.prompt("What did we decide?"))
        )
        (result,) = model.answered()[-1].results
        assert DECIDED in result, result
        print(f"{len(times)} commands, {sum(times):.1f} s; the model was told: {DECIDED}")
    return 0


def timed(shown: str, action: Callable[[], object]) -> float:
    """Do it, print how long it took, return the seconds."""
    began = perf_counter()
    action()
    took = perf_counter() - began
    print(f"$ {shown}   {took:.1f} s", flush=True)
    return took


def run(words: list[str | Path], kimi: Kimi) -> None:
    """One command of the newcomer."""
    proxied = ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
    env = {key: value for key, value in kimi.env.items() if key not in proxied}
    subprocess.run(
        [str(word) for word in words], env=env, cwd=kimi.project, check=True, stdout=subprocess.DEVNULL
    )


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
