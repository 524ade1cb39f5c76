"""`make quality`: recall, ranking, refining and themes on labelled sessions, beside baselines in the same run.

The recorded project that most labels belong to is named by KIMI_MEMORY_CORPUS (a KIMI_CODE_HOME-shaped folder); what needs
it is skipped with a reason when it is not set. Bundled corpora are always measured.
"""

from __future__ import annotations

import importlib
import sys

PARTS = ("search.run", "refine.measure", "themes.measure")


def main() -> int:
    """Run every part (or those named on the command line)."""
    for part in sys.argv[1:] or PARTS:
        print(f"\n== {part} ==", flush=True)
        importlib.import_module(f"tests.quality.{part}").report()
    return 0


if __name__ == "__main__":
    sys.exit(main())
