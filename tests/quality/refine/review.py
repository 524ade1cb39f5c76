"""Prints sampled facts and summaries beside what they came from, for a person to judge (see README.md here).

python -m tests.quality.refine.review [--sessions PATH] [--facts 100] [--summaries 50] [--seed 1]
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

from stages.model import Fact, final_text
from stages.refine import refine
from stages.refining.reading import source_text
from tests.quality.refine.corpus import Case, corpora

SHOWN = 700


def review(found: Sequence[Case], facts: int, summaries: int, seed: int) -> list[str]:
    """The printed lines: ``facts`` facts with their source, then ``summaries`` summaries with their turn."""
    chance = random.Random(seed)
    results = [(case, refine(case.turn, case.before, cwd=case.cwd)) for case in found]
    every = [(case, fact) for case, result in results for fact in result.facts]
    lines = ["# Facts: true to the turn? understandable alone?"]
    for number, (case, fact) in enumerate(chance.sample(every, min(facts, len(every))), 1):
        lines += [
            f"\n{number}. [{fact.type}] {fact.text}",
            f"   {_place(case)} · {fact.source}",
            f"   {_source(case, fact)}",
        ]
    lines.append("\n# Summaries: filler? raw paste? wrong outcome?")
    for number, (case, result) in enumerate(chance.sample(results, min(summaries, len(results))), 1):
        answer = final_text(case.turn.live_steps) or "(no words)"
        lines += [f"\n{number}. {result.summary}", f"   {_place(case)} · {case.turn.status}"]
        lines += [f"   asked: {_short(case.turn.opening_text)}", f"   answer: {_short(answer)}"]
    return lines


def _place(case: Case) -> str:
    return f"{case.session_id[:16]} turn {case.turn.turn_id} {case.agent_id}"


def _source(case: Case, fact: Fact) -> str:
    text = source_text(case.turn, fact.source)
    if fact.span is None:
        call = next((call for call in case.turn.tools if f"tool {call.id}" == fact.source), None)
        return _short(f"{call.name} {call.args}" if call else text)
    start, end = fact.span
    return _short(text[max(0, start - 40) : end + 40])


def _short(text: str) -> str:
    line = " ⏎ ".join(part.strip() for part in text.split("\n") if part.strip())
    return line if len(line) <= SHOWN else f"{line[: SHOWN // 2]} … {line[-SHOWN // 2 :]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a sample."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=Path)
    parser.add_argument("--facts", type=int, default=100)
    parser.add_argument("--summaries", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    found = [case for group in corpora(options.sessions).values() for case in group]
    print("\n".join(review(found, options.facts, options.summaries, options.seed)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
