"""Sample sessions that ship with the package: two weeks of work on an invented web shop.

They are a whole KIMI_CODE_HOME, six sessions of ``WORKSPACE``, as Kimi Code CLI 2.1.0 writes them. Nothing
here writes to them.
"""

from pathlib import Path

WORKSPACE = "/home/dev/shop"
"""The directory that the sessions recorded; it need not exist."""

THEME = "login-tokens"
KEYWORDS = ("login token", "登录令牌", "cookie", "refresh token")


def home() -> Path:
    """The folder to use as KIMI_CODE_HOME; its ``sessions/`` holds the wires."""
    return Path(__file__).with_name("home")
