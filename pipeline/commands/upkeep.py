"""`pipeline forget` and `pipeline doctor`: what is to go for good, and whether all is well."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.commands.scope import NUMBER, Scope, day, echo_json, json_option, run_async, scope_options
from pipeline.errors import BadInput, ExitCode, StoreError, UnknownWorkspace
from pipeline.sessions import Workspace
from pipeline.store.layout import Layout, redaction_key
from pipeline.workspaces import spellings, workspace_id
from stages.snippet import clean

if TYPE_CHECKING:
    from pipeline.doctor_report import Finding
    from pipeline.forgetting import Request

FILES_SHOWN = 20


# --- forget --------------------------------------------------------------------------------------------------


@click.command()
@click.option("--session", metavar="ID", help="A whole session; what is said in it later stays out too.")
@click.option(
    "--turn", nargs=2, metavar="SESSION TURN", help="One turn, with its sub-agents' and all its copies."
)
@click.option("--agent", metavar="ID", default="main", show_default=True, help="The agent of --turn.")
@click.option("--position", type=NUMBER, help="The place of --turn, where two turns share a number.")
@click.option("--since", metavar="DATE", help="Turns from this local day (or ISO time) on.")
@click.option("--until", metavar="DATE", help="Turns up to the end of this local day (or ISO time).")
@click.option("--everything", is_flag=True, help="All turns of the workspace up to now.")
@click.option("--theme", metavar="NAME", help="A theme and all turns it points to.")
@click.option("--match", metavar="TEXT", help="Turns that hold this text, in any case.")
@click.option("--memories", is_flag=True, help="Also the Markdown memories written from these turns.")
@scope_options
@click.option("--yes", is_flag=True, help="Do it. Without it nothing is changed and the plan is shown.")
@json_option
def forget(
    session: str | None,
    turn: tuple[str, str] | None,
    agent: str,
    position: int | None,
    since: str | None,
    until: str | None,
    everything: bool,
    theme: str | None,
    match: str | None,
    memories: bool,
    workspace: str | None,
    all_workspaces: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Forget turns for good: in the index, themes, searches, proposals and reports, and on the disk.

    Shows what would go; --yes does it. No rescan, rebuild, fork or import brings it back. Kimi's own files are never
    touched.
    """
    from pipeline.forgetting import Request

    if session is not None and turn is not None:
        raise click.UsageError("--session and --turn exclude each other.")
    number = None
    if turn is not None:
        session, number = turn[0], _number(turn[1])
    scope = Scope(workspace, all_workspaces)
    targets = _targets(scope, workspace, session)
    if session is not None:
        session = _session_id(scope, session)
    request = Request(
        session=session,
        turn=number,
        agent=agent,
        position=position,
        since=day(since, "--since"),
        until=day(until, "--until", end=True),
        everything=everything,
        theme=theme,
        match=match,
        memories=memories,
    )
    results = [run_async(_forget, scope, target, request, yes) for target in targets]
    if as_json:
        echo_json({"done": yes, "workspaces": results})
        return
    for target, result in zip(targets, results, strict=True):
        for line in _told(target, result, yes):
            click.echo(clean(line))
    if not yes:
        click.echo("dry run: nothing was forgotten; --yes does it")


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 16):  # as in a wire
        raise BadInput(
            f"--turn: {text!r} is no turn number", hint="`pipeline turns --session ID` lists them."
        )
    return int(text)


def _session_id(scope: Scope, named: str) -> str:
    """The id of a session that Kimi still has, by its beginning too; any other is taken as it is."""
    try:
        return scope.session(named).session_id
    except BadInput as error:
        if "could be any" in error.message:
            raise
        return named


def _targets(scope: Scope, workspace: str | None, session: str | None = None) -> tuple[Workspace, ...]:
    """The workspaces to work on; a session that is named tells its own. A store may outlive its sessions."""
    if session is not None and workspace is None:
        found = next(
            (s for s in scope.inventory.sessions if s.session_id == _session_id(scope, session)), None
        )
        if found is not None:
            return tuple(space for space in scope.inventory.workspaces if space.id == found.workspace_id)
    try:
        return scope.workspaces()
    except UnknownWorkspace:
        here = workspace or str(Path.cwd())
        for path in (here, *spellings(here)):
            for name in (path, workspace_id(path, scope.settings.home)):
                if "/" not in name and Layout(scope.settings.store(name)).database.is_file():
                    return (Workspace(name, path if path != name else None, ()),)
        raise


async def _forget(scope: Scope, target: Workspace, request: Request, yes: bool) -> dict[str, Any]:
    from pipeline.catchup import catch_up
    from pipeline.forgetting import forget as carry_out
    from pipeline.forgetting import plan
    from pipeline.report import Report
    from pipeline.store.database import open_database
    from pipeline.upkeep import note_versions
    from pipeline.workers import Workers

    settings = scope.settings_of(target)
    layout = Layout(settings.store(target.id))
    workers = Workers(settings.jobs if yes else 1)
    try:
        async with open_database(layout.database) as database:
            async with database.transaction():
                await note_versions(database)
            if target.sessions:  # only what the store knows is found by turn, theme and text
                key = redaction_key(settings.store_root, create=True)
                report = Report(skipped=Counter())
                await catch_up(database, target.sessions, key=key, workers=workers, report=report)
            wanted = await plan(database, layout, request, now=_now())
            result = {
                "workspace": target.label,
                "workspaceId": target.id,
                **wanted.as_json(),
                "forgotten": False,
            }
            if yes and not wanted.empty:
                done = await carry_out(database, layout, wanted, workers=workers)
                result |= {"forgotten": True, "emptied": done.emptied, "untold": list(done.untold)}
            return result
    except StoreError:
        if yes or not layout.database.is_file():
            raise
        async with open_database(layout.database, write=False) as database:  # a read-only store still tells
            wanted = await plan(database, layout, request, now=_now())
            return {
                "workspace": target.label,
                "workspaceId": target.id,
                **wanted.as_json(),
                "forgotten": False,
            }


def _now() -> int:
    import time

    return time.time_ns() // 1_000_000


def _told(target: Workspace, result: dict[str, Any], yes: bool) -> list[str]:
    lines = [target.label]
    if not (result["turns"] or result["files"] or result["themes"]):
        lines.append(
            "  nothing is stored of it" + ("; it stays out from now on" if result["forgotten"] else "")
        )
    else:
        copies = result["occurrences"] - result["turns"]
        also = f" and {copies} copies of them" if copies else ""
        verb = "forgot" if result["forgotten"] else "would forget"
        lines.append(f"  {verb} {result['turns']} turns{also} in {len(result['sessions'])} sessions")
    for row in result["sessions"]:
        numbers = [
            f"{t['turnId']}" + (f" ({t['agentId']})" if t["agentId"] != "main" else "") for t in row["turns"]
        ]
        shown = (
            "all of it"
            if row["whole"]
            else f"turns {', '.join(numbers[:12])}{' …' if len(numbers) > 12 else ''}"
        )
        lines.append(f"    {row['sessionId']}: {shown}")
    if result["themes"]:
        lines.append(f"  themes told anew: {', '.join(result['themes'])}")
    lines += [f"  file: {entry['path']}" for entry in result["files"][:FILES_SHOWN]]
    if len(result["files"]) > FILES_SHOWN:
        lines.append(f"  … and {len(result['files']) - FILES_SHOWN} more files")
    lines += [
        f"  kept: {path} (a memory written from it; --memories takes it too)"
        for path in result["memoriesKept"]
    ]
    if result["forgotten"] and not result["emptied"]:
        lines.append(
            "  another process is reading the store: its log is emptied once that is done (see doctor)"
        )
    lines += [
        f"  theme {name} could not be told anew: `pipeline run --theme '{name}'` does it"
        for name in result.get("untold", ())
    ]
    return lines


# --- doctor ----------------------------------------------------------------------------------------------------

_SIGNS = {"ok": "ok", "note": "note", "warning": "warning", "problem": "PROBLEM"}


@click.command()
@scope_options
@click.option(
    "--fix", is_flag=True, help="Mend what is safe to mend: nothing a person wrote, no damaged file deleted."
)
@click.option("--deep", is_flag=True, help="Also look at every stored text for secrets that slipped through.")
@json_option
def doctor(workspace: str | None, all_workspaces: bool, fix: bool, deep: bool, as_json: bool) -> int:
    """Check homes, modes, the database, the index against the wires, themes, memories, locks and the disk.

    Exit code 0: nothing is wrong (warnings and notes do not count); 4: problems remain.
    """
    from pipeline.doctor import examine
    from pipeline.doctor_report import healthy

    scope = Scope(workspace, all_workspaces)
    reports = []
    for target in _examined(scope, workspace, all_workspaces):
        layout = Layout(scope.settings.store(target.id))
        settings = scope.settings_of(target)
        found = run_async(
            partial(examine, settings, scope.inventory, layout, target.sessions, fix=fix, deep=deep)
        )
        reports.append((target, layout, found))
    well = all(healthy(found) for _, _, found in reports)
    if as_json:
        echo_json(
            {
                "ok": well,
                "workspaces": [
                    {
                        "workspace": target.label,
                        "workspaceId": target.id,
                        "store": str(layout.root),
                        "ok": healthy(found),
                        "findings": [finding.as_json() for finding in found],
                    }
                    for target, layout, found in reports
                ],
            }
        )
        return ExitCode.DONE if well else ExitCode.FAILED
    for target, layout, found in reports:
        click.echo(f"{clean(target.label)}  ({layout.root})")
        for finding in found:
            for line in _shown(finding, fix):
                click.echo(clean(line))
    click.echo(
        "all is well"
        if well
        else "there are problems" + ("" if fix else "; --fix mends what is safe to mend")
    )
    return ExitCode.DONE if well else ExitCode.FAILED


def _examined(scope: Scope, workspace: str | None, all_workspaces: bool) -> tuple[Workspace, ...]:
    """What the doctor looks at: with --all-workspaces also stores whose sessions are gone; a home without any
    sessions is no reason not to look."""
    if not all_workspaces:
        try:
            return _targets(scope, workspace)
        except UnknownWorkspace:
            if workspace is not None:
                raise
            here = str(Path.cwd())
            return (Workspace(workspace_id(here, scope.settings.home), here, ()),)
    known = {space.id for space in scope.inventory.workspaces}
    stores = (
        path.parents[1].name
        for path in sorted(scope.settings.store_root.glob("workspace-*/refined/*.sqlite"))
    )
    left = tuple(Workspace(name, None, ()) for name in dict.fromkeys(stores) if name not in known)
    return (*scope.inventory.workspaces, *left)


def _shown(finding: Finding, fix: bool) -> list[str]:
    sign = "fixed" if finding.fixed else _SIGNS[finding.level]
    lines = [f"  {sign:8} {finding.check}: {finding.text}"]
    if finding.level in ("warning", "problem") and not finding.fixed:
        if finding.hint:
            lines.append(f"           {finding.hint}")
        if finding.fix and not fix:
            lines.append(f"           --fix: {finding.fix}")
    elif finding.hint and not finding.fixed:
        lines.append(f"           {finding.hint}")
    return lines
