"""Kimi's full-screen interface in a tmux of its own: what a person types, what is on the screen."""

from __future__ import annotations

import shlex
import subprocess
import time
from types import TracebackType

from tests.e2e.kimi import Kimi, wait_until
from tests.e2e.model_server import DEADLINE_S

PRESS_AGAIN_S = 1.0
"""Enter right after text counts as part of a paste: it is pressed again when it had no effect for this long."""


class Terminal:
    """``with Terminal(kimi) as screen``: the interface with the folder trusted, ready for a prompt."""

    def __init__(self, kimi: Kimi) -> None:
        self._socket = str(kimi.root / "tmux")
        variables = [f"{key}={value}" for key, value in kimi.env.items()]
        self._command = shlex.join(["env", "-i", *variables, *kimi.cli.words])
        self._folder = str(kimi.project)

    def __enter__(self) -> Terminal:
        size = ("-x", "120", "-y", "60")
        self._tmux(
            "-f", "/dev/null", "new-session", "-d", "-s", "kimi", *size, "-c", self._folder, self._command
        )
        self.see("Trust this folder", "Welcome to Kimi Code")
        if "Trust this folder" in self.text():
            self.press("Enter")
        self.see("context: 0%")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            error.add_note(f"The screen:\n{self.text()}")
        self._tmux("kill-server")

    def text(self) -> str:
        """What is on the screen."""
        return self._tmux("capture-pane", "-p", "-t", "kimi").rstrip()

    def see(self, *texts: str) -> None:
        """Wait until one of the texts is on the screen."""
        wait_until(lambda: any(text in self.text() for text in texts), f"{texts} on the screen")

    def press(self, *keys: str) -> None:
        """Press keys by their tmux names."""
        self._tmux("send-keys", "-t", "kimi", *keys)

    def enter(self, text: str) -> None:
        """Type a line and send it: it has left the input box afterwards."""
        self._tmux("send-keys", "-t", "kimi", "-l", text)
        wait_until(lambda: text in self._box(), f"{text!r} in the input box")
        end = time.monotonic() + DEADLINE_S
        while text in self._box():
            self.press("Enter")
            pressed = time.monotonic()
            while text in self._box() and time.monotonic() - pressed < PRESS_AGAIN_S:
                time.sleep(0.02)
            if time.monotonic() > end:
                raise TimeoutError(f"{text!r} does not leave the input box")

    def leave(self) -> None:
        """Quit as a person does, and wait for the end."""
        self.enter("/exit")
        wait_until(lambda: not self._alive(), "the interface's end")

    def _alive(self) -> bool:
        return bool(self._tmux("list-sessions"))

    def _box(self) -> str:
        """The lines of the input box: from the last prompt sign to the frame below it."""
        lines = self.text().splitlines()
        starts = [
            at
            for at, line in enumerate(lines)
            if line.lstrip(" │").startswith("> ") or line.strip(" │") == ">"
        ]
        return "\n".join(lines[starts[-1] :]).partition("╰")[0] if starts else ""

    def _tmux(self, *words: str) -> str:
        return subprocess.run(
            ["tmux", "-S", self._socket, *words], capture_output=True, text=True, check=False
        ).stdout
