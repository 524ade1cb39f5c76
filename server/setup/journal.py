"""Makes a plan's changes, all or none.

The whole plan is first written to ``<home>/.kimi-memory-setup/journal.json``. The rename that puts it there is
the commit point: a kill before it has changed nothing, a kill after it is finished by the next `kimi-memory`,
be it a command or the server that Kimi starts (``recover``). Setup writes ``mcp.json`` first: as long as that is
not done Kimi sees what was before, and afterwards it starts the server that finishes the rest. An error (no
space, no permission) puts back what was there.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pipeline.errors import BadInput, StoreError
from pipeline.store.files import refusal
from server.setup import disk
from server.setup.model import Change, Plan
from server.setup.record import FOLDER

PATH = f"{FOLDER}/journal.json"


def apply(home: Path, plan: Plan) -> None:
    """Make the plan's changes. Raises BadInput when a file is no longer what was planned on, StoreError when
    a file cannot be written; in both cases everything is as it was.
    """
    if not plan.changes:
        return
    for change in plan.changes:
        if disk.read(home, change.path) != change.before:
            raise BadInput(
                f"{home / change.path}: changed a moment ago", hint="Nothing was changed. Try again."
            )
    with _undisturbed():
        try:
            disk.put(home, PATH, _dump(plan))
        except OSError as error:
            disk.prune(home, _made(plan))
            raise refusal(error, home / PATH, "write") from error
        # Commit point: from here on the changes are made, now or by recover().
        _carry_out(home, plan)


def recover(home: Path) -> tuple[str, ...] | None:
    """Finish what a killed setup or undo had begun; ``None`` when there is nothing to finish.

    Returns the files left alone because somebody changed them in between. Raises BadInput for a damaged
    journal, StoreError when a file cannot be written.
    """
    data = disk.read(home, PATH)
    disk.sweep(home, PATH)
    if data is None:
        disk.prune(home, (FOLDER,))
        return None
    plan = _load(data)
    left = []
    with _undisturbed():
        for change in plan.changes:
            disk.sweep(home, change.path)
            now = disk.read(home, change.path)
            if now == change.before:
                _make_change(home, change)
            elif now != change.after:
                left.append(change.path)
        _finish(home, plan)
    return tuple(left)


def pending(home: Path) -> bool:
    """Whether a killed setup left something to finish."""
    return (home / PATH).exists()


def _carry_out(home: Path, plan: Plan) -> None:
    done: list[Change] = []
    try:
        for change in plan.changes:
            done.append(change)
            disk.sweep(home, change.path)
            _make_change(home, change)
    except OSError as error:
        failed = done[-1].path
        _put_back(home, plan, done)
        raise refusal(error, home / failed, "write") from error
    _finish(home, plan)


def _make_change(home: Path, change: Change) -> None:
    if change.after is None:
        disk.take(home, change.path)
    else:
        disk.put(home, change.path, change.after)


def _put_back(home: Path, plan: Plan, done: Sequence[Change]) -> None:
    """Undo the changes made so far. If that fails too, the journal stays, and recover() goes forward instead."""
    try:
        for change in reversed(done):
            if disk.read(home, change.path) != change.before:
                _make_change(home, Change(change.path, change.after, change.before))
        disk.take(home, PATH)
    except (OSError, StoreError):
        return
    disk.prune(home, _made(plan))


def _finish(home: Path, plan: Plan) -> None:
    """Folders first: they are found again as long as the journal names them. One that stays does no harm."""
    disk.prune(home, tuple(folder for folder in plan.prune if folder not in (FOLDER, ".")))
    with suppress(OSError):
        disk.take(home, PATH)
    if plan.prune:
        disk.prune(home, (FOLDER, *(folder for folder in plan.prune if folder == ".")))


def _made(plan: Plan) -> tuple[str, ...]:
    """The folders that making the plan's changes may have made."""
    return (
        *(folder for folder in plan.made if folder != "."),
        FOLDER,
        *(each for each in plan.made if each == "."),
    )


def _dump(plan: Plan) -> bytes:
    rows = [[change.path, _encode(change.before), _encode(change.after)] for change in plan.changes]
    return json.dumps({"version": 1, "changes": rows, "made": plan.made, "prune": plan.prune}).encode("ascii")


def _load(data: bytes) -> Plan:
    try:
        value: Any = json.loads(data)
        changes = tuple(Change(str(path), _decode(a), _decode(b)) for path, a, b in value["changes"])
        made, prune = (tuple(str(folder) for folder in value[name]) for name in ("made", "prune"))
        return Plan(changes, made=made, prune=prune)
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(
            f"{PATH}: is damaged: {error}", hint="Remove it, then run `kimi-memory setup`."
        ) from error


def _encode(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode("ascii")


def _decode(text: object) -> bytes | None:
    return None if text is None else base64.b64decode(str(text), validate=True)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Signals wait for the milliseconds that the changes take; only SIGKILL does not."""
    if os.name == "nt" or threading.current_thread() is not threading.main_thread():
        yield
        return
    held = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
