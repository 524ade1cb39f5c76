"""The `pipeline` command. Errors end with one clear message on stderr and the exit code of the table.

Under ``--json`` stdout is JSON alone. Modules that only one command needs are imported by that command.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from importlib import import_module
from io import TextIOWrapper
from typing import Any

import click

from pipeline.errors import ExitCode, exit_code

_HOMES = {
    "run": "run index rebuild",
    "search": "search",
    "look": "turns show sessions status",
    "settings": "config",
    "watch": "watch",
    "themes": "trace themes discover tag untag pin unpin exclude include rename merge rm undo",
    "upkeep": "forget doctor",
}
COMMANDS = {name: f"pipeline.commands.{home}" for home, names in _HOMES.items() for name in names.split()}
"""Each command and the module that has it, imported when the command is asked for."""


class _ReaderLeft(Exception):
    """A closed pipe, in a shape that Click lets through."""


class _Commands(click.Group):
    """Loads a command when it is asked for; a worker process imports this module and needs none.

    Click ends a command whose reader left with code 1, which means a miss here: it gets another error.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        home = COMMANDS.get(name)
        if home is None:
            return None
        command: click.Command = getattr(import_module(home), name)
        return command

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        try:
            return super().make_context(*args, **extra)
        except BrokenPipeError as error:
            raise _ReaderLeft from error

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _ReaderLeft from error


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="kimi-memory-pipeline", prog_name="pipeline")
@click.option("-v", "--verbose", is_flag=True, help="Say on stderr what is being done.")
def cli(verbose: bool) -> None:
    """The memory of your Kimi Code sessions: exact turns, search, and themes across sessions.

    Reads the wire.jsonl files that Kimi writes, never changes them, and keeps what it derives under
    MEMORY_STORE_ROOT (~/.kimi-code-memory). Works offline.

    \b
    Exit codes: 0 done, 1 verified miss (search), 2 usage or bad input,
    3 absence could not be verified, 4 failed, 130 interrupted.
    """
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO if verbose else logging.CRITICAL,
        format="%(levelname)s %(message)s",
    )


def main(arguments: list[str] | None = None) -> None:
    """The console script: runs the command and exits with a code of the table."""
    _open_streams()
    if hasattr(signal, "SIGTERM"):
        signal.signal(
            signal.SIGTERM, _terminate
        )  # a service manager's stop ends like Ctrl-C: work is committed
    sys.exit(invoke(sys.argv[1:] if arguments is None else arguments))


def _open_streams() -> None:
    """Closed streams (``>&-``) swallow what is written; what a terminal's encoding lacks is shown as ``?``."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
        elif isinstance(stream, TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="replace")


def invoke(arguments: list[str]) -> int:
    """Run the command; returns the exit code."""
    try:
        result = cli.main(arguments, standalone_mode=False, prog_name="pipeline")
        sys.stdout.flush()
        return int(result) if isinstance(result, int) else ExitCode.DONE
    except (BrokenPipeError, _ReaderLeft):
        # `pipeline turns | head`: nothing more to say, and no traceback when Python flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.DONE
    except BaseException as error:
        return _report(error)


def _terminate(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _report(error: BaseException) -> int:
    code = exit_code(error)
    cause = _first(error)
    if isinstance(cause, click.exceptions.Exit):
        return code
    if isinstance(cause, click.ClickException):
        cause.show(sys.stderr)
    elif code == ExitCode.INTERRUPTED:
        click.echo("interrupted: what was committed is kept, run again to go on", err=True)
    else:
        click.echo(f"error: {cause}" if str(cause) else f"error: {type(cause).__name__}", err=True)
        logging.getLogger(__name__).info("traceback", exc_info=error)
    return code


def _first(error: BaseException) -> BaseException:
    """The most telling member of an exception group."""
    while isinstance(error, BaseExceptionGroup):
        error = max(error.exceptions, key=exit_code)
    return error


if __name__ == "__main__":
    main()
