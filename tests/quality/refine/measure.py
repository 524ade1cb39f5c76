"""How good refining is where it can be counted: decisions, files written, errors, cost (see README.md here).

python -m tests.quality.refine.measure [--sessions PATH] [--json]

Without ``--sessions``: the corpora of the repository, and the recorded project when the environment names it.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from stages.entities import extract
from stages.refine import refine
from stages.refining.shell import written
from tests.quality.refine.corpus import HOME_VARIABLE, VARIABLE, Case, corpora, external
from tests.quality.refine.raw import RawTurn, raw_turns

HERE = Path(__file__).parent
LABELS = tuple(sorted(HERE.glob("decisions_*.json")))
_WORD = re.compile(r"\berrors?\b|报错|错误", re.IGNORECASE)


def decisions(found: Iterable[Case], labels: Path) -> Counter[str]:
    """Labelled decisions found and missed, and false flags, among the cases at hand; "absent": not at hand."""
    by_key = {(case.session_id, case.agent_id, case.turn.turn_id): case for case in found}
    counts: Counter[str] = Counter()
    for label in json.loads(labels.read_text(encoding="utf-8"))["decisions"]:
        case = by_key.get((label["sessionId"], label.get("agentId", "main"), label["turnId"]))
        if case is None:
            counts["absent"] += 1
            continue
        flagged = refine(case.turn, case.before, cwd=case.cwd).decision
        names = ("found", "missed") if label["decision"] else ("false flags", "rightly none")
        counts[names[0] if flagged else names[1]] += 1
    return counts


def against_wires(found: Iterable[Case]) -> Counter[str]:
    """Files written and errors, counted against an independent reading of the same wires.

    Only turns with calls of their own on the wire count: the calls of imported sessions are pasted text.
    """
    read: dict[Path, dict[int, RawTurn]] = {}
    counts: Counter[str] = Counter()
    for case in found:
        if case.wire not in read:
            read[case.wire] = {turn.number: turn for turn in raw_turns(case.wire, case.cwd)}
        seen = read[case.wire].get(case.turn.turn_id)
        if seen is None or seen.calls == 0:
            continue
        touched = extract(case.turn, cwd=case.cwd)
        counts["turns with calls"] += 1
        counts += _files(case, seen, set(touched.files_written))
        counts += _errors(case, seen, touched.errors)
    return counts


def _files(case: Case, seen: RawTurn, told: set[str]) -> Counter[str]:
    shell = {path for call in case.turn.tools if call.result == "ok" for path in written(call.command)}
    extra = told - seen.written
    return Counter(
        {
            "files right": len(told & seen.written),
            "files missed": len(seen.written - told),
            "files by shell": len(extra & shell),
            "files wrong": len(extra - shell),
        }
    )


def _errors(case: Case, seen: RawTurn, told: tuple[str, ...]) -> Counter[str]:
    counts: Counter[str] = Counter()
    if seen.failed > 0 or case.turn.error:
        counts["turns with failures"] += 1
        counts["failures named"] += bool(told)
        return counts
    if told and not any(name.split(":")[0].split(" ")[0] in (case.turn.user_text or "") for name in told):
        counts["errors unfounded"] += 1
    texts = " ".join([case.turn.opening_text, *(text for step in case.turn.steps for text in step.texts)])
    if _WORD.search(texts):
        counts["word only"] += 1
        counts["word only, named"] += bool(told)
    return counts


def _share(right: int, wrong: int) -> str:
    return f"{right / (right + wrong):.3f}" if right + wrong else "nothing to count"


def cost(found: Iterable[Case]) -> dict[str, int]:
    """µs of processor time a turn, best of three."""
    times = sorted(min(_once(case) for _ in range(3)) * 1e6 for case in found)
    if not times:
        return {}
    return {
        name: round(times[min(len(times) - 1, int(len(times) * share))])
        for name, share in (("p50", 0.5), ("p99", 0.99))
    }


def _once(case: Case) -> float:
    started = time.process_time()
    refine(case.turn, case.before, cwd=case.cwd)
    return time.process_time() - started


def lines_of(found: Mapping[str, Sequence[Case]]) -> list[str]:
    """What is printed: decisions by label file, then files, errors and cost by corpus."""
    every = [case for group in found.values() for case in group]
    lines = []
    for labels in LABELS:
        counts = decisions(every, labels)
        true, false = counts["found"] + counts["missed"], counts["false flags"] + counts["rightly none"]
        absent = f", {counts['absent']} labels of turns not at hand" if counts["absent"] else ""
        lines.append(
            f"decisions  {labels.stem.removeprefix('decisions_'):<17} {counts['found']}/{true} found, "
            f"{counts['false flags']}/{false} false{absent}"
        )
    for name, group in found.items():
        lines += _corpus_lines(name, group)
    return lines


def _corpus_lines(name: str, group: Sequence[Case]) -> list[str]:
    counts = against_wires(group)
    right, failures = counts["files right"], counts["turns with failures"]
    lines = [f"{name}: {len(group)} turns, {counts['turns with calls']} with tool calls on their wire"]
    if counts["turns with calls"]:
        lines += [
            f"  files written: precision {_share(right, counts['files wrong'])}, recall "
            f"{_share(right, counts['files missed'])} of {right + counts['files missed']}"
            f" ({counts['files by shell']} more by shell commands)",
            f"  errors: recall {_share(counts['failures named'], failures - counts['failures named'])} of {failures} "
            f"turns with failures, {counts['errors unfounded']} unfounded, "
            f"{counts['word only, named']} of {counts['word only']} turns that only hold the word",
        ]
    took = cost(group)
    return [*lines, f"  refining: p50 {took['p50']} µs, p99 {took['p99']} µs a turn"] if took else lines


def report() -> None:
    """Print every measurement over the corpora at hand; the recorded project is skipped when not named."""
    print("\n".join(lines_of(corpora(None))))
    if external() is None:
        print(f"recorded project: skipped, neither {HOME_VARIABLE} nor {VARIABLE} names a folder")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    if not options.json:
        print("\n".join(lines_of(corpora(options.sessions)))) if options.sessions else report()
        return 0
    found = corpora(options.sessions)
    every = [case for group in found.values() for case in group]
    measured = {
        "decisions": {labels.stem: decisions(every, labels) for labels in LABELS},
        "against wires": {name: against_wires(group) for name, group in found.items()},
        "µs a turn": {name: cost(group) for name, group in found.items()},
    }
    print(json.dumps(measured, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
