"""`kimi-memory setup`."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from pipeline.config import settings_for
from pipeline.errors import ExitCode
from pipeline.store.files import locked
from server.setup import disk, journal, record
from server.setup.check import check
from server.setup.model import Change, Plan
from server.setup.plan import PATHS, Files, Options, plan_setup, plan_undo
from server.setup.plugin import write_plugin
from server.setup.skill import language_of
from server.setup.wiring import this_installation

FOLDERS = (".", "skills", "skills/memory-manage")


@click.command()
@click.option("--dry-run", is_flag=True, help="Show what would change; write nothing.")
@click.option("--undo", is_flag=True, help="Give back every file as it was, but for what you changed since.")
@click.option(
    "--check",
    "only_check",
    is_flag=True,
    help="Tell whether all is wired; start the server once to prove it.",
)
@click.option(
    "--kimi-code-home",
    "home",
    type=click.Path(path_type=Path),
    help="Default: KIMI_CODE_HOME or ~/.kimi-code.",
)
@click.option("--no-hooks", is_flag=True, help="Leave config.toml alone.")
@click.option(
    "--lang", type=click.Choice(["en", "zh"]), help="Language of rules and skill. Default: your locale's."
)
@click.option(
    "--plugin",
    type=click.Path(path_type=Path),
    help="Write a plugin folder instead; the home stays as it is.",
)
def setup(
    dry_run: bool,
    undo: bool,
    only_check: bool,
    home: Path | None,
    no_hooks: bool,
    lang: str | None,
    plugin: Path | None,
) -> None:
    """Wire this server into Kimi Code: mcp.json, AGENTS.md, the skill memory-manage, and hooks in config.toml.

    Everything is planned first and shown; then all of it is written, or nothing.
    """
    if sum((undo, only_check, plugin is not None)) > 1 or (dry_run and (only_check or plugin is not None)):
        raise click.UsageError(
            "--undo, --check and --plugin exclude each other; --dry-run goes with --undo only."
        )
    env = os.environ
    options = Options(
        this_installation(env), "zh" if (lang or language_of(env)) == "zh" else "en", not no_hooks
    )
    settings = settings_for(env)
    root = (home or settings.kimi_home).expanduser().absolute()
    if plugin is not None:
        _write_plugin(plugin.expanduser().absolute(), options)
    elif only_check:
        _check(root, options, env)
    elif dry_run:
        _show(root, _planned(root, options, undo))
        click.echo("Nothing was written.")
    else:
        with locked(settings.store_root, "setup"):
            _recover(root)
            plan = _planned(root, options, undo)
            _show(root, plan)
            journal.apply(root, plan)
        _say_done(root, plan, undo)


def _planned(home: Path, options: Options, undo: bool) -> Plan:
    files = _read(home)
    if undo:
        return plan_undo(files, options)
    return plan_setup(files, [folder for folder in FOLDERS if (home / folder).is_dir()], options)


def _read(home: Path) -> Files:
    return {name: disk.read(home, name) for name in PATHS}


def _recover(home: Path) -> None:
    left = journal.recover(home)
    if left is not None:
        click.echo("An interrupted setup was finished first.")
        for name in left:
            click.echo(f"  {name} was changed in between and is left as it is.")


def _show(home: Path, plan: Plan) -> None:
    for note in plan.notes:
        click.echo(f"note: {note}")
    for warning in plan.warnings:
        click.secho(f"warning: {warning}", fg="yellow")
    for change in plan.changes:
        if change.path != record.PATH:
            _show_change(home, change)


def _show_change(home: Path, change: Change) -> None:
    name = str(home / change.path)
    before, after = _lines(change.before), _lines(change.after)
    old = "/dev/null" if change.before is None else name
    new = "/dev/null" if change.after is None else name
    colors = {"+": "green", "-": "red", "@": "cyan"}
    for line in difflib.unified_diff(before, after, old, new, lineterm=""):
        click.secho(line.rstrip("\r\n"), fg=colors.get(line[:1]))


def _lines(data: bytes | None) -> list[str]:
    return (data or b"").decode("utf-8", "replace").splitlines()


def _say_done(home: Path, plan: Plan, undo: bool) -> None:
    names = [change.path for change in plan.changes if change.path != record.PATH]
    if undo:
        click.echo(f"Undone in {home}: {', '.join(names)}." if names else "Nothing had to be undone.")
    elif not names:
        click.echo(f"Everything is set up in {home} already.")
    else:
        click.echo(f"Set up in {home}: {', '.join(names)}.")
        click.echo(
            "Start kimi in a project (a running one must be started again). Proof: kimi-memory setup --check"
        )


def _check(home: Path, options: Options, env: Mapping[str, str]) -> None:
    if journal.pending(home):
        click.echo("✗ a setup was interrupted; the next `kimi-memory setup` finishes it")
    findings = []
    for finding in check(_read(home), options, env):
        findings.append(finding)
        click.echo(f"{'✓' if finding.ok else '✗'} {finding.text}")
    if not all(finding.ok for finding in findings) or journal.pending(home):
        sys.exit(ExitCode.FAILED)


def _write_plugin(folder: Path, options: Options) -> None:
    changed = write_plugin(folder, options.wiring, options.language)
    click.echo(f"Written to {folder}: {', '.join(changed)}." if changed else f"{folder} is up to date.")
    click.echo(f"Install it inside Kimi Code with: /plugins install {folder}")
