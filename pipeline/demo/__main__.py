"""`make demo`: one theme over the bundled sample sessions, in a store that is thrown away; prints its page."""

from __future__ import annotations

import os
import sys
import tempfile

from pipeline import demo
from pipeline.cli import invoke


def main() -> int:
    """Run the demonstration; returns the exit code of the first command that fails."""
    with tempfile.TemporaryDirectory(prefix="kimi-memory-demo-") as store:
        os.environ |= {
            "KIMI_CODE_HOME": str(demo.home()),
            "KIMI_SHARE_DIR": str(demo.home() / "no-legacy"),
            "MEMORY_STORE_ROOT": store,
        }
        os.environ.pop("MEMORY_SESSIONS_ROOT", None)
        keywords = ",".join(demo.KEYWORDS)
        for arguments in (
            ["run", "--theme", demo.THEME, "--keywords", keywords, "--workspace", demo.WORKSPACE],
            ["trace", demo.THEME, "--workspace", demo.WORKSPACE, "--format", "md"],
        ):
            shown = " ".join(f"'{word}'" if " " in word else word for word in arguments)
            print(f"$ pipeline {shown}", flush=True)
            if code := invoke(arguments):
                return code
            print(flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
