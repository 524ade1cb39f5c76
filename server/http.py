"""Serving streamable HTTP on the loopback interface, for clients that cannot start a process.

Every request needs the token; the SDK also checks Host and Origin, so that no web page reaches us by rebinding a
name. The token is the variable KIMI_MEMORY_TOKEN, else one made once and kept beside the stores, mode 0600.
"""

from __future__ import annotations

import hmac
import secrets
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import click
import uvicorn
from mcp.server.lowlevel import Server

from pipeline.config import load
from pipeline.errors import BadInput, PipelineError
from pipeline.store import files
from server.app import App
from server.cli import HOST
from server.stdio import EXIT_S, end_soon

TOKEN_VARIABLE, TOKEN_FILE = "KIMI_MEMORY_TOKEN", "http-token"
TOKEN_CHARS = 16
PATH = "/mcp"

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Asgi: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class TokenRequired:
    """Passes on requests that carry ``Authorization: Bearer <token>``; answers 401 to all others."""

    def __init__(self, app: Asgi, token: str) -> None:
        self._app = app
        self._wanted = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        if hmac.compare_digest(given, self._wanted):
            await self._app(scope, receive, send)
            return
        headers = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer")]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send(
            {"type": "http.response.body", "body": b"a token is required: Authorization: Bearer <token>\n"}
        )


def token_of(env: MutableMapping[str, str] | Any, store_root: Path) -> tuple[str, str]:
    """The token and where it stands. Raises BadInput for one that is too short to keep anybody out."""
    given = env.get(TOKEN_VARIABLE, "").strip()
    if given:
        if len(given) < TOKEN_CHARS:
            raise BadInput(f"{TOKEN_VARIABLE}: shorter than {TOKEN_CHARS} characters")
        return given, f"the variable {TOKEN_VARIABLE}"
    path = store_root / TOKEN_FILE
    kept = (files.read_text(path) or "").strip()
    if len(kept) < TOKEN_CHARS:
        kept = secrets.token_urlsafe(32)
        files.write_text(path, f"{kept}\n")
    return kept, str(path)


def application(server: Server[App], token: str) -> Asgi:
    """The ASGI application: the SDK's, behind the token."""
    return TokenRequired(server.streamable_http_app(streamable_http_path=PATH, host=HOST), token)


def run(server: Server[App], app: App, port: int) -> None:
    """Serve until a signal. The address goes to stderr, the token does not. Raises PipelineError."""
    token, place = token_of(app.env, load(app.env).store_root)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except OSError as error:
        raise PipelineError(
            f"port {port}: {error.strerror}", hint="Choose another --port (0: any free one)."
        ) from error
    config = uvicorn.Config(
        application(server, token),
        log_level="warning",
        log_config=None,
        lifespan="on",
        timeout_graceful_shutdown=1,
    )
    click.echo(f"serving http://{HOST}:{listener.getsockname()[1]}{PATH}; the token is in {place}", err=True)
    try:
        anyio.run(_Server(config).serve, [listener])
    finally:
        listener.close()


class _Server(uvicorn.Server):
    """Ends within a second of the first signal, whatever streams are open, and with exit code 0."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn's own raises the signal again when all is closed: the process would seem killed."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.handle_exit)
        yield

    def handle_exit(self, sig: int, frame: Any) -> None:
        end_soon(EXIT_S)
        super().handle_exit(sig, frame)
