"""`make bench`: every benchmark, against floors measured in the same run.

``python -m tests.bench [backfill] [search] [server] [background] [--megabytes 300] [--large]``; corpora are generated
once into ``.cache/bench`` (seeded).
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from tests.bench.bench_backfill import report as backfill
from tests.bench.corpus import generate

CACHE = Path(".cache/bench")
SEED = 1


def corpus(megabytes: int) -> Path:
    """The generated home of that size, made once."""
    home = CACHE / f"corpus-{megabytes}"
    if not (home / "manifest.json").exists():
        print(f"generating {megabytes} MB into {home} …", flush=True)
        generate(home, seed=SEED, sessions=max(200, 200 * megabytes // 300), megabytes=megabytes)
    return home


def main() -> None:
    """Run the chosen benchmarks, all by default."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument(
        "which", nargs="*", default=[], help="backfill, search, server, background (default: all)"
    )
    parser.add_argument("--megabytes", type=int, default=300)
    parser.add_argument("--large", action="store_true", help="also the same times four")
    options = parser.parse_args()
    which = options.which or ["backfill", "search", "server", "background"]
    sizes = (
        [options.megabytes, options.megabytes * 4]
        if options.large or not options.which
        else [options.megabytes]
    )
    if "backfill" in which:
        for number, megabytes in enumerate(sizes):
            backfill(corpus(megabytes), rounds=1 if number else 3)
    for name in ("search", "server", "background"):
        if name in which:
            module = importlib.import_module(f"tests.bench.bench_{name}")
            module.report([corpus(megabytes) for megabytes in sizes])


if __name__ == "__main__":
    main()
