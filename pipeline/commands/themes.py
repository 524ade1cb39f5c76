"""`pipeline trace`, `themes`, `discover` and what a person does to a theme: tag, untag, pin, exclude, rename …"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import click

from pipeline.commands.scope import NUMBER, Scope, echo_json, json_option, run_async
from pipeline.errors import BadInput
from pipeline.store.database import open_database
from pipeline.store.files import read_text
from pipeline.store.layout import Layout
from pipeline.store.refined import refined_turns
from pipeline.store.theme_record import Ref, ThemeRecord, encode, iso
from pipeline.store.themes import ThemeStore
from pipeline.store.turns import Occurrence, find
from stages.aggregate import place
from stages.clusters import Place
from stages.discover import Suggestion
from stages.discover import discover as discover_subjects
from stages.model import RefinedTurn
from stages.snippet import clean


def _store(workspace: str | None) -> tuple[Layout, ThemeStore]:
    scope = Scope(workspace, False)
    target = scope.one()
    layout = Layout(scope.settings_of(target).store(target.id))
    return layout, ThemeStore(layout.root)


workspace_option = click.option(
    "--workspace", metavar="PATH", help="The directory that the sessions recorded. Default: the current one."
)


@click.command()
@click.argument("theme")
@workspace_option
@click.option(
    "--format", "form", type=click.Choice(["text", "md", "json"]), default="text", show_default=True
)
def trace(theme: str, workspace: str | None, form: str) -> None:
    """Tell a theme's story: its timeline, decisions and files."""
    _, store = _store(workspace)
    record = store.require(theme)
    if form == "json":
        echo_json(encode(record))
        return
    page = read_text(store.path(theme).with_suffix(".md"))
    generated = read_text(store.path(theme).with_name(f"{store.path(theme).stem}.generated.md"))
    text = generated or page
    if form == "md" and text is not None:
        click.echo(text, nl=False)
        return
    for line in timeline(record):
        click.echo(clean(line))


def timeline(record: ThemeRecord) -> list[str]:
    """A theme in plain lines: what a terminal shows."""
    turns = [turn for turn in record.turns if turn.timestamp is not None]
    sessions = {turn.ref.session_id for turn in record.turns}
    lines = [f"{record.display_name}  ({len(record.turns)} turns in {len(sessions)} sessions)"]
    if turns:
        lines[0] += f"  {_day(turns[0].timestamp)} to {_day(turns[-1].timestamp)}"
    if record.seeds:
        lines.append(f"seeds: {', '.join(record.seeds)}")
    for cluster in record.clusters:
        lines += ["", *_cluster_lines(cluster)]
    files: dict[str, int] = {}
    for cluster in record.clusters:
        for path in cluster.get("files", []):
            files[path] = files.get(path, 0) + 1
    if files:
        top = sorted(files, key=lambda path: (-files[path], path))[:8]
        lines += ["", "files: " + ", ".join(top)]
    if record.memories:
        lines.append("memories: " + ", ".join(f"{memory.folder}/{memory.key}" for memory in record.memories))
    gone = sum(turn.gone for turn in record.turns)
    unresolved = sum(turn.unresolved for turn in record.turns)
    if gone or unresolved:
        lines.append(f"{gone} turns are gone from the wires, {unresolved} could not be resolved")
    return lines


def _cluster_lines(cluster: Any) -> list[str]:
    numbers = cluster.get("turnIds", [])
    turns = (
        f"turn {numbers[0]}"
        if len(numbers) == 1
        else f"turns {numbers[0]} to {numbers[-1]}"
        if numbers
        else "no turn"
    )
    start = str(cluster.get("start") or "")[:16].replace("T", " ")
    lines = [f"{start}  {cluster.get('sessionId')}  {turns}", f"    {cluster.get('summary', '')}"]
    lines += [f"    decided ({row.get('turnId')}): {row.get('text')}" for row in cluster.get("decisions", [])]
    return lines


def _day(ms: int | None) -> str:
    return (iso(ms) or "")[:10]


@click.command()
@workspace_option
@json_option
def themes(workspace: str | None, as_json: bool) -> None:
    """List the themes of a workspace."""
    _, store = _store(workspace)
    good, bad = store.all()
    if as_json:
        echo_json(
            [
                {"theme": r.theme, "displayName": r.display_name, "seeds": list(r.seeds), "turns": len(r.turns),
                 "updatedAt": iso(r.updated_at), "path": str(store.path(r.theme))}
                for r in good
            ]
        )  # fmt: skip
    else:
        for record in good:
            click.echo(
                clean(
                    f"{record.display_name}  {len(record.turns)} turns  {_day(record.updated_at)}  {', '.join(record.seeds)}"
                )
            )
        if not good:
            click.echo("no themes yet: `pipeline run --theme NAME --keywords a,b,c` builds one", err=True)
    for error in bad:
        click.echo(f"skipped: {error}", err=True)


@click.command()
@workspace_option
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True)
@json_option
def discover(workspace: str | None, limit: int, as_json: bool) -> None:
    """Suggest recurring subjects that nobody has named, from what is refined (`pipeline run --all` refines
    all).
    """
    layout, _ = _store(workspace)

    async def turns() -> list[RefinedTurn]:
        async with open_database(layout.database, write=True) as database:
            return await refined_turns(database)

    refined = run_async(turns)
    found = discover_subjects(refined)[:limit]
    if as_json:
        numbers = {place(turn.key): turn.key.turn_id for turn in refined}
        echo_json([_suggestion(each, numbers) for each in found])
        return
    for each in found:
        click.echo(clean(f"{each.name}: {len(each.turns)} turns in {each.sessions} sessions"))
        click.echo(clean(f"    pipeline run --theme '{each.name}' --keywords '{','.join(each.seeds)}'"))


def _suggestion(each: Suggestion, numbers: Mapping[Place, int]) -> dict[str, Any]:
    return {
        "name": each.name,
        "seeds": list(each.seeds),
        "sessions": each.sessions,
        "turns": [
            {"sessionId": at[0], "agentId": at[1], "position": at[2], "turnId": numbers[at]}
            for at in each.turns
        ],
    }


def _turn_arguments(command: Callable[..., None]) -> Callable[..., None]:
    command = click.option(
        "--position", type=NUMBER, help="The turn's place, where two turns share a number."
    )(command)
    command = click.option("--agent", "agent_id", metavar="ID", default="main", show_default=True)(command)
    command = workspace_option(command)
    command = click.argument("turn_id", metavar="TURN", type=NUMBER)(command)
    command = click.argument("session_id", metavar="SESSION")(command)
    return click.argument("theme")(command)


def _refs(
    layout: Layout, session_id: str, turn_id: int, agent_id: str, position: int | None
) -> list[tuple[Ref, int | None]]:
    async def lookup() -> list[Occurrence]:
        if not layout.database.exists():
            return []
        async with open_database(layout.database, write=False) as database:
            return await find(database, session_id, agent_id=agent_id, turn_id=turn_id, position=position)

    found = run_async(lookup)
    if not found:
        raise BadInput(
            f"the store knows no turn {turn_id} of {session_id} ({agent_id})",
            hint="`pipeline index` reads new bytes; `pipeline turns --session ID` lists a session's turns.",
        )
    return [
        (Ref(o.session_id, o.turn_id, o.agent_id, o.position, o.opener_digest), o.started_at) for o in found
    ]


def _curate(
    op: str,
    theme: str,
    refs: list[tuple[Ref, int | None]],
    store: ThemeStore,
    change: Callable[..., ThemeRecord],
    create: bool,
) -> None:
    def apply(record: ThemeRecord) -> ThemeRecord:
        for ref, at in refs:
            record = change(record, ref, at)
        return record

    written = store.update(theme, apply, time.time_ns() // 1_000_000, op=op, create=create)
    state = "done" if written.changed else "nothing to change"
    click.echo(f"{op} {written.record.display_name}: {state}")


def _turn_command(
    op: str, text: str, change: Callable[[ThemeRecord, Ref, int | None], ThemeRecord], create: bool = False
) -> click.Command:
    @click.command(name=op, help=text)
    @_turn_arguments
    def command(
        theme: str, session_id: str, turn_id: int, workspace: str | None, agent_id: str, position: int | None
    ) -> None:
        layout, store = _store(workspace)
        refs = _refs(layout, session_id, turn_id, agent_id, position)
        _curate(op, theme, refs, store, change, create)

    return command


tag = _turn_command(
    "tag", "Put a turn into a theme; no run takes it out.", lambda r, ref, at: r.tag(ref, at), create=True
)
untag = _turn_command(
    "untag", "Take a turn out of a theme and keep it out.", lambda r, ref, _at: r.untag(ref)
)
pin = _turn_command(
    "pin", "Pin a turn: a member for good, marked as important.", lambda r, ref, at: r.pin(ref, at)
)
unpin = _turn_command("unpin", "Take a pin off.", lambda r, ref, _at: r.unpin(ref))
exclude = _turn_command(
    "exclude", "Keep a turn out of a theme, whatever a run finds.", lambda r, ref, _at: r.exclude(ref)
)
include = _turn_command(
    "include", "Lift an exclusion; the next run judges the turn.", lambda r, ref, _at: r.include(ref)
)


@click.command()
@click.argument("theme")
@click.argument("new_name")
@workspace_option
def rename(theme: str, new_name: str, workspace: str | None) -> None:
    """Give a theme another name."""
    written = _store(workspace)[1].rename(theme, new_name, time.time_ns() // 1_000_000)
    click.echo(f"{theme} is now {written.record.display_name}: {written.path}")


@click.command()
@click.argument("theme")
@click.argument("into")
@workspace_option
def merge(theme: str, into: str, workspace: str | None) -> None:
    """Put everything of THEME into INTO and drop THEME."""
    written = _store(workspace)[1].merge(theme, into, time.time_ns() // 1_000_000)
    click.echo(f"merged into {written.record.display_name}: {len(written.record.turns)} turns")


@click.command()
@click.argument("theme")
@workspace_option
def rm(theme: str, workspace: str | None) -> None:
    """Delete a theme. No turn and no memory goes; `pipeline undo THEME` brings it back."""
    record = _store(workspace)[1].remove(theme, time.time_ns() // 1_000_000)
    click.echo(f"removed {record.display_name}; `pipeline undo {record.theme}` brings it back")


@click.command()
@click.argument("theme")
@workspace_option
def undo(theme: str, workspace: str | None) -> None:
    """Take back the last change of a theme (a run, a tag, a rename, a removal …)."""
    op = _store(workspace)[1].undo(theme)
    click.echo(f"took back: {op}")
