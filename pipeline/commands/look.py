"""`pipeline turns`, `show`, `sessions` and `status`: looking at what is there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from pipeline.background_status import background_lines, background_status
from pipeline.commands.scope import (
    NUMBER,
    Scope,
    echo_json,
    echo_lines,
    json_option,
    run_async,
    scope_options,
)
from pipeline.errors import BadInput
from pipeline.reading import Copies, Reading, json_lines, read_agent, turn_json, whole
from pipeline.sessions import Agent, Session, shown_title
from pipeline.store.database import open_database
from pipeline.store.layout import Layout, redaction_key
from pipeline.store.theme_record import iso
from pipeline.stored_turns import stored_turns
from pipeline.upkeep import dead_rows
from stages.redact import Redactor
from stages.snippet import clean
from stages.tail import SourceError

LAGS_SHOWN = 5
"""Sessions that are behind, shown one by one."""


def _agent_order(agent: Agent) -> tuple[bool, int, str]:
    number = agent.agent_id.rpartition("-")[2]
    return (agent.agent_id != "main", int(number) if number.isdigit() else 0, agent.agent_id)


@click.command()
@scope_options
@click.option("--session", "session_id", metavar="ID", help="One session only, in whatever workspace.")
@click.option("--agent", "agent_id", metavar="ID", help="One agent only (main, agent-0 …).")
@click.option("--include-copies", is_flag=True, help="Also turns that a fork or an import copied.")
@json_option
def turns(
    workspace: str | None,
    all_workspaces: bool,
    session_id: str | None,
    agent_id: str | None,
    include_copies: bool,
    as_json: bool,
) -> None:
    """List the exact turns of your sessions, read from the wires; writes nothing."""
    scope = Scope(workspace, all_workspaces)
    redact = Redactor(redaction_key(scope.settings.store_root, create=False))
    if session_id is not None:
        chosen: tuple[Session, ...] = (scope.session(session_id),)
        around = tuple(s for s in scope.inventory.sessions if s.workspace_id == chosen[0].workspace_id)
    else:
        chosen = around = tuple(session for space in scope.workspaces() for session in space.sessions)
    copies = Copies(around, redact)
    now_ms = time.time_ns() // 1_000_000
    found = False
    for session in chosen:
        for agent in sorted(session.agents, key=_agent_order):
            if agent_id is not None and agent.agent_id != agent_id:
                continue
            found = True
            try:
                reading = read_agent(session, agent, redact)
            except SourceError as error:
                click.echo(f"skipped: {error}", err=True)
                continue
            records = _records(reading, copies, include_copies, now_ms)
            if as_json:
                echo_lines(json_lines(records))
            else:
                _print_turns(reading, list(records))
    if agent_id is not None and not found:
        raise BadInput(
            f"no agent {agent_id} in {session_id or 'these sessions'}", hint="Leave --agent out to see all."
        )


def _records(reading: Reading, copies: Copies, include_copies: bool, now_ms: int) -> Iterator[dict[str, Any]]:
    for turn in reading.turns:
        original = copies.original(reading.session, reading.agent, turn)
        if original is None or include_copies:
            yield turn_json(reading, turn, original, now_ms=now_ms)


def _print_turns(reading: Reading, records: list[dict[str, Any]]) -> None:
    if not records:
        return
    click.echo(f"{reading.session.session_id}  {reading.agent.agent_id}")
    for record in records:
        when = _local(record["startedAt"])
        text = _one_line(record["userText"] or f"({record['origin']})", 90)
        mark = " undone" if record["undone"] else ""
        click.echo(f"  {record['turnId']:>4}  {when}  {record['status']}{mark}  {text}")
        if record["assistantText"]:
            click.echo(f"        → {_one_line(record['assistantText'], 100)}")


def _one_line(text: str, limit: int) -> str:
    return " ".join(clean(text).split())[:limit]


def _local(ms: int | None) -> str:
    return "                " if ms is None else datetime.fromtimestamp(ms / 1000).strftime("%Y-%m-%d %H:%M")


@click.command()
@click.argument("session_id", metavar="SESSION")
@click.argument("turn_id", metavar="TURN", type=NUMBER)
@click.option("--agent", "agent_id", metavar="ID", default="main", show_default=True)
@click.option("--position", type=NUMBER, help="The turn's place in the file, where two turns share a number.")
@json_option
def show(session_id: str, turn_id: int, agent_id: str, position: int | None, as_json: bool) -> None:
    """Show one turn whole, from the wire: every step's text, tool arguments and results."""
    scope = Scope(None, False)
    try:
        records = _from_wire(scope, session_id, turn_id, agent_id, position)
    except (BadInput, SourceError):
        # The wire may be gone while the store remembers; `records` then say so.
        stores = sorted(scope.settings.store_root.glob("*/refined/refined.sqlite"))
        records = run_async(_from_store, stores, session_id, turn_id, agent_id, position)
        if not records:
            raise
    for record in records:
        if as_json:
            echo_json(record)
        else:
            for line in _whole_text(record):
                click.echo(line)


def _from_wire(
    scope: Scope, session_id: str, turn_id: int, agent_id: str, position: int | None
) -> list[dict[str, Any]]:
    session = scope.session(session_id)
    redact = Redactor(redaction_key(scope.settings.store_root, create=False))
    agent = next((agent for agent in session.agents if agent.agent_id == agent_id), None)
    if agent is None:
        raise BadInput(
            f"{session.session_id} has no agent {agent_id}",
            hint=f"It has {', '.join(a.agent_id for a in session.agents)}.",
        )
    reading = read_agent(session, agent, redact)
    wanted = [t for t in reading.turns if t.turn_id == turn_id and position in (None, t.position)]
    if not wanted:
        ids = sorted({t.turn_id for t in reading.turns})
        known = f"{ids[0]} to {ids[-1]}" if ids else "none"
        raise BadInput(f"{session.session_id} has no turn {turn_id}", hint=f"Its turns are {known}.")
    return [whole(reading, turn, redact) for turn in wanted]


async def _from_store(
    stores: list[Path], session_id: str, turn_id: int, agent_id: str, position: int | None
) -> list[dict[str, Any]]:
    return await stored_turns(stores, session_id, turn_id, agent_id=agent_id, position=position)


def _whole_text(record: dict[str, Any]) -> Iterator[str]:
    yield f"# {record['sessionId']} · {record['agentId']} · turn {record['turnId']} · {record['status']}"
    if record.get("stored"):
        yield "(its wire is gone: from the store, which keeps arguments and outputs only in part)"
    yield ""
    for part in record["records"]:
        label = part.get("name") or part.get("kind")
        yield f"## {label}" + (f" {part['id']}" if part.get("id") else "")
        for name in ("text", "args"):
            if part.get(name):
                yield clean(part[name] if isinstance(part[name], str) else str(part[name]))
        yield ""


@click.command()
@scope_options
@json_option
def sessions(workspace: str | None, all_workspaces: bool, as_json: bool) -> None:
    """List the sessions of a workspace (or all), with titles."""
    scope = Scope(workspace, all_workspaces)
    redact = Redactor(redaction_key(scope.settings.store_root, create=False))
    rows = [_session_json(session, redact) for space in scope.workspaces() for session in space.sessions]
    if as_json:
        echo_json(rows)
        return
    for row in rows:
        mark = " (archived)" if row["archived"] else ""
        click.echo(
            f"{clean(row['sessionId'])}  {_local(row['createdAt'] or row['updatedAt'])}  "
            f"{_one_line(row['title'], 100)}{mark}"
        )
    for reason, count in sorted(scope.inventory.skipped.items()):
        if count:
            click.echo(f"skipped: {reason} {count}", err=True)


def _session_json(session: Session, redact: Redactor) -> dict[str, Any]:
    return {
        "sessionId": session.session_id,
        "kind": session.kind,
        "workspace": session.cwd,
        "workspaceId": session.workspace_id,
        "title": shown_title(session, redact),
        "createdAt": session.created_at,
        "updatedAt": session.updated_at,
        "archived": session.archived,
        "forkedFrom": session.forked_from,
        "importedFrom": session.imported_from,
        "agents": [agent.agent_id for agent in sorted(session.agents, key=_agent_order)],
    }


@click.command()
@scope_options
@json_option
def status(workspace: str | None, all_workspaces: bool, as_json: bool) -> None:
    """Say how far the store is behind the wires, and what is in it; writes nothing."""
    scope = Scope(workspace, all_workspaces)
    rows = [run_async(_status, scope, space) for space in scope.workspaces()]
    if as_json:
        echo_json(rows)
        return
    for row in rows:
        click.echo(f"{row['workspace']}  ({row['store']})")
        click.echo(
            f"  {row['sessions']} sessions, {row['wires']} wires, {row['bytes'] / 1e6:.1f} MB; "
            f"{row['turns']} turns indexed, {row['refined']} refined, {row['themes']} themes"
        )
        behind = (
            "up to date"
            if not row["lagBytes"]
            else f"{row['lagBytes'] / 1e6:.2f} MB behind in {row['lagWires']} wires"
        )
        share = "" if row["complete"] is None else f" ({row['complete']:.1%} of the bytes)"
        click.echo(f"  index {behind}{share}; last change {row['lastChange'] or 'never'}")
        for lag in row["lag"][:LAGS_SHOWN]:
            click.echo(f"    {lag['sessionId']}: {lag['bytes']} bytes, for {lag['seconds']:.0f} s")
        for line in background_lines(row["background"]):
            click.echo(f"  {line}")
        for reason, count in row["skipped"].items():
            click.echo(f"  skipped: {reason} {count}")


async def _status(scope: Scope, space: Any) -> dict[str, Any]:
    from pipeline.lag import standing
    from pipeline.news import unrefined_count
    from pipeline.store.sources import sources

    layout = Layout(scope.settings_of(space).store(space.id))
    known: dict[tuple[str, str], Any] = {}
    row: dict[str, Any] = {
        "workspace": space.label, "workspaceId": space.id, "store": str(layout.root), "sessions": len(space.sessions),
        "wires": 0, "bytes": 0, "turns": 0, "refined": 0, "themes": 0, "deadIndexRows": 0, "lagBytes": 0, "lagWires": 0,
        "complete": None, "lag": [], "unrefined": 0, "lastChange": None, "skipped": {},
    }  # fmt: skip
    if layout.database.exists():
        async with open_database(layout.database, write=False) as database:
            known = await sources(database)
            row["turns"] = (await database.row("SELECT count(*) FROM content WHERE shown IS NOT NULL"))[0]
            row["refined"] = (await database.row("SELECT count(*) FROM refined"))[0]
            row["unrefined"] = await unrefined_count(database)
            row["deadIndexRows"] = (await dead_rows(database))[0]
            row["lastChange"] = iso((await database.row("SELECT max(seen_at) FROM source"))[0])
    skipped: dict[str, int] = {name: n for name, n in scope.inventory.skipped.items() if n}
    for source in known.values():
        for reason, count in source.counts.items():
            if reason != "noise":
                skipped[reason] = skipped.get(reason, 0) + count
    found = standing(space.sessions, known, time.time_ns() // 1_000_000)
    row |= {"wires": found.wires, "bytes": found.bytes, "lagBytes": found.unread}
    row["lagWires"] = sum(lag.wires for lag in found.behind)
    row["lag"] = [lag.as_json() for lag in found.behind]
    row["complete"] = 1 - found.unread / found.bytes if found.bytes else None
    row["background"] = background_status(layout.root)
    if layout.themes.is_dir():
        row["themes"] = sum(1 for path in layout.themes.glob("*.json") if not path.name.startswith("."))
    row["skipped"] = dict(sorted(skipped.items()))
    return row
