"""How the service is doing, and where a person finds everything."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from anyio import to_thread

from pipeline.answers import local_time
from pipeline.background_status import background_lines, background_status
from pipeline.errors import PipelineError
from pipeline.store.sources import Source, sources
from server.call import Call
from server.runs import Run
from server.space import Space
from server.tools.theme import run_text

RUNS_SHOWN = 8


async def pipeline_status(call: Call) -> str:
    """Runs, and how far the index is behind the logs. Reads only."""
    space = await call.space()
    if call["theme"]:
        run = space.runs.of(call["theme"])
        if run is None:
            record = await to_thread.run_sync(space.themes.read, call["theme"])
            known = f"; it was built {local_time(record.updated_at)}" if record else ""
            return f"no run of theme “{call['theme']}” since this server started{known}"
        return _run(run)
    lines = [f"workspace {space.label}, store {space.layout.root}"]
    lines += [line async for line in _index(space)]
    lines += background_lines(await to_thread.run_sync(background_status, space.layout.root))
    if space.last_error:
        lines.append(f"last error: {space.last_error}")
    runs = space.runs.all()
    lines += ["runs:" if runs else "runs: none since this server started"]
    lines += [_run(run) for run in runs[:RUNS_SHOWN]]
    return "\n".join(lines)


def _run(run: Run) -> str:
    if run.error is not None:
        return f"theme “{run.request.name}”: failed after {run.seconds:.1f} s: {run.error}"
    return run_text(run)


async def _index(space: Space) -> AsyncIterator[str]:
    known: dict[tuple[str, str], Source] = {}
    counts = ""
    if await _indexed(space):
        try:
            async with space.reading() as database:
                known = await sources(database)
                turns = (await database.row("SELECT count(*) FROM content WHERE shown IS NOT NULL"))[0]
                refined = (await database.row("SELECT count(*) FROM refined"))[0]
            counts = f"{turns} turns indexed, {refined} refined"
        except PipelineError as error:
            yield f"the index cannot be read: {error}"
    wires, size, behind, lag = await to_thread.run_sync(_lag, space, known)
    yield f"{len(space.sessions)} sessions, {wires} logs, {size / 1e6:.1f} MB; {counts or 'nothing indexed yet'}"
    if space.catching_up is not None:
        yield f"reading: {space.lag()}"
    yield f"index: {lag / 1e6:.2f} MB behind in {behind} logs" if lag else "index: up to date"
    skipped: dict[str, int] = {}
    for source in known.values():
        for reason, count in source.counts.items():
            if reason != "noise" and not reason.startswith("unknown:"):
                skipped[reason] = skipped.get(reason, 0) + count
    if skipped:
        yield "left out: " + ", ".join(f"{reason} {count}" for reason, count in sorted(skipped.items()))


async def _indexed(space: Space) -> bool:
    """Whether there is an index; one that cannot be read is asked again where its error is told."""
    try:
        return await space.has_index()
    except PipelineError:
        return True


def _lag(space: Space, known: dict[tuple[str, str], Source]) -> tuple[int, int, int, int]:
    """Logs, their bytes, logs with news, bytes not read yet."""
    wires = size = behind = lag = 0
    for session in space.sessions:
        for agent in session.agents:
            try:
                length = agent.wire.stat().st_size
            except OSError:
                continue
            source = known.get((session.session_id, agent.agent_id))
            done = source.checkpoint.offset if source is not None and source.checkpoint is not None else 0
            wires, size = wires + 1, size + length
            behind, lag = behind + (length > done), lag + max(0, length - done)
    return wires, size, behind, lag


async def open_memory_dashboard(call: Call) -> str:
    """Where everything lies as files; nothing is opened, and nothing listens."""
    space = await call.space()
    return "\n".join(
        [
            "Everything is in files that any editor opens (changes show at the next call):",
            *_places(space.layout.root),
        ]
    )


def _places(root: Path) -> Iterator[str]:
    for name, about in (
        ("essence/essence.md", "standing rules and facts"),
        ("memory", "memories, one Markdown file each"),
        ("notes", "notes"),
        ("themes", "themes: .json, and a page to read as .md"),
        ("proposals", "proposals that wait for an answer"),
        ("archive", "archived memories"),
        (".history", "earlier versions"),
        (".trash", "deleted memories"),
    ):
        path = root / name
        yield f"{path}: {about}{'' if path.exists() else ' (not there yet)'}"
