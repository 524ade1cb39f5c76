"""pipeline/errors.py: what each error ends a command with, and what it says."""

from __future__ import annotations

import pickle
from pathlib import Path

import click
import pytest

from pipeline import errors
from pipeline.errors import ExitCode


def test_the_table() -> None:
    assert {code.name: int(code) for code in ExitCode} == {
        "DONE": 0,
        "MISS": 1,
        "USAGE": 2,
        "UNVERIFIED": 3,
        "FAILED": 4,
        "INTERRUPTED": 130,
    }
    assert len({code.meaning for code in ExitCode}) == len(ExitCode)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.PipelineError("x"), ExitCode.FAILED),
        (errors.PipelineError("x", ExitCode.MISS), ExitCode.MISS),
        (errors.BadInput("x"), ExitCode.USAGE),
        (errors.ConfigError("a.toml: key", "wrong"), ExitCode.USAGE),
        (errors.UnknownWorkspace("/x", (), "x"), ExitCode.USAGE),
        (errors.VerifiedMiss("x"), ExitCode.MISS),
        (errors.Unverified("x"), ExitCode.UNVERIFIED),
        (errors.StoreTooNew(Path("a"), 9, 3), ExitCode.FAILED),
        (errors.Interrupted("x"), ExitCode.INTERRUPTED),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED),
        (click.Abort(), ExitCode.INTERRUPTED),
        (click.UsageError("x"), ExitCode.USAGE),
        (click.BadParameter("x"), ExitCode.USAGE),
        (click.FileError("x"), ExitCode.USAGE),
        (click.exceptions.Exit(0), ExitCode.DONE),
        (click.exceptions.Exit(1), ExitCode.MISS),
        (SystemExit(), ExitCode.DONE),
        (SystemExit("text"), ExitCode.FAILED),
        (SystemExit(77), ExitCode.FAILED),
        (BrokenPipeError(), ExitCode.DONE),
        (OSError("x"), ExitCode.FAILED),
        (ValueError("x"), ExitCode.FAILED),
        (ExceptionGroup("x", [errors.BadInput("x"), ValueError("x")]), ExitCode.FAILED),
        (ExceptionGroup("x", [ExceptionGroup("y", [errors.BadInput("x")])]), ExitCode.USAGE),
        (BaseExceptionGroup("x", [KeyboardInterrupt(), ValueError("x")]), ExitCode.INTERRUPTED),
    ],
    ids=repr,
)
def test_exit_code(error: BaseException, code: ExitCode) -> None:
    assert errors.exit_code(error) is code


def test_message_says_where_and_what_to_do() -> None:
    assert str(errors.ConfigError("config.toml: run.jobs", "0 is too few", hint="Write 1.")) == (
        "config.toml: run.jobs: 0 is too few\nWrite 1."
    )
    newer = str(errors.StoreTooNew(Path("store"), 9, 3))
    assert newer.startswith("store: written by a later version (schema 9; this one knows 3)")
    assert "MEMORY_STORE_ROOT" in newer


def test_errors_travel_from_worker_processes() -> None:
    for error in (
        errors.ConfigError("config.toml: run.jobs", "0 is too few", hint="Write 1."),
        errors.UnknownWorkspace("/x", ("/y",), "m"),
        errors.StoreTooNew(Path("store"), 9, 3),
        errors.PipelineError("x", ExitCode.MISS),
    ):
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
