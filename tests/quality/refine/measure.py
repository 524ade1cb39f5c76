"""How good refining is where it can be counted: decisions, files written, errors, cost (see README.md here).

python -m tests.quality.refine.measure [--sessions PATH] [--labels FILE] [--json]
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Sequence
from pathlib import Path

from stages.entities import extract
from stages.refine import refine
from stages.refining.shell import written
from tests.quality.refine.corpus import Case, cases, folder_of
from tests.quality.refine.raw import RawTurn, raw_turns

HERE = Path(__file__).parent
LABELS = HERE / "decisions_tnyoffice.json"
_WORD = re.compile(r"\berrors?\b|报错|错误", re.IGNORECASE)


def decisions(found: Sequence[Case], labels: Path) -> dict[str, int]:
    """Labelled decisions found and missed, and false flags, among the cases at hand."""
    by_key = {(case.session_id, case.agent_id, case.turn.turn_id): case for case in found}
    counts = {"found": 0, "missed": 0, "false flags": 0, "rightly none": 0}
    for label in json.loads(labels.read_text(encoding="utf-8"))["decisions"]:
        case = by_key.get((label["sessionId"], label.get("agentId", "main"), label["turnId"]))
        if case is None:
            continue
        flagged = refine(case.turn, case.before, cwd=case.cwd).decision
        name = (
            ("found" if flagged else "missed")
            if label["decision"]
            else ("false flags" if flagged else "rightly none")
        )
        counts[name] += 1
    return counts


def against_wires(found: Sequence[Case]) -> dict[str, float]:
    """Files written and errors against an independent reading of the same wires."""
    raw: dict[tuple[Path, int], RawTurn] = {}
    for wire, cwd in {(case.wire, case.cwd) for case in found}:
        raw |= {(wire, turn.number): turn for turn in raw_turns(wire, cwd)}
    files = {"right": 0, "wrong": 0, "missed": 0, "by shell": 0}
    errors = {"turns": 0, "named": 0, "unfounded": 0, "word only": 0, "word only, named": 0}
    for case in found:
        seen = raw.get((case.wire, case.turn.turn_id))
        if seen is None or seen.calls == 0:
            continue
        touched = extract(case.turn, cwd=case.cwd)
        _files(case, seen, set(touched.files_written), files)
        _errors(case, seen, touched.errors, errors)
    return {
        "files precision": _share(files["right"], files["wrong"]),
        "files recall": _share(files["right"], files["missed"]),
        "files by shell": files["by shell"],
        "files": files["right"] + files["missed"],
        "errors recall": _share(errors["named"], errors["turns"] - errors["named"]),
        "errors precision": _share(errors["named"], errors["unfounded"]),
        "turns with failed calls": errors["turns"],
        "word-only turns": errors["word only"],
        "word-only turns given an error": errors["word only, named"],
    }


def _share(right: int, wrong: int) -> float:
    return round(right / (right + wrong), 4) if right + wrong else 1.0


def _files(case: Case, seen: RawTurn, told: set[str], counts: dict[str, int]) -> None:
    shell = {path for call in case.turn.tools if call.result == "ok" for path in written(call.command)}
    counts["right"] += len(told & seen.written)
    counts["missed"] += len(seen.written - told)
    extra = told - seen.written
    counts["by shell"] += len(extra & shell)
    counts["wrong"] += len(extra - shell)


def _errors(case: Case, seen: RawTurn, told: tuple[str, ...], counts: dict[str, int]) -> None:
    founded = seen.failed > 0 or bool(case.turn.error)
    if founded:
        counts["turns"] += 1
        counts["named"] += bool(told)
        return
    if told and not any(name.split(":")[0].split(" ")[0] in (case.turn.user_text or "") for name in told):
        counts["unfounded"] += 1
    texts = " ".join([case.turn.opening_text, *(text for step in case.turn.steps for text in step.texts)])
    if _WORD.search(texts):
        counts["word only"] += 1
        counts["word only, named"] += bool(told)


def cost(found: Sequence[Case]) -> dict[str, int]:
    """µs of processor time a turn, best of three."""
    times = []
    for case in found:
        best = min(_once(case) for _ in range(3))
        times.append(best * 1e6)
    times.sort()
    at = {
        name: times[min(len(times) - 1, int(len(times) * share))]
        for name, share in (("p50", 0.5), ("p99", 0.99))
    }
    return {name: round(value) for name, value in at.items()} if times else {}


def _once(case: Case) -> float:
    started = time.process_time()
    refine(case.turn, case.before, cwd=case.cwd)
    return time.process_time() - started


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions")
    parser.add_argument("--labels", type=Path, default=LABELS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    found = list(cases(folder_of(options.sessions)))
    report = {
        "turns": len(found),
        "decisions": decisions(found, options.labels),
        "against wires": against_wires(found),
        "µs a turn": cost(found),
    }
    if options.json:
        print(json.dumps(report, ensure_ascii=False))
        return 0
    for name, value in report.items():
        shown = (
            ", ".join(f"{key} {count}" for key, count in value.items()) if isinstance(value, dict) else value
        )
        print(f"{name:14} {shown}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
