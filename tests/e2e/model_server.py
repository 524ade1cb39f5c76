"""A scripted model on loopback that speaks the part of the OpenAI chat protocol Kimi Code uses.

It runs in the test's own process: a test hands it replies, looks at the requests it got, and can hold a reply back
until something else has happened. So no test waits for a time, only for events.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

DEADLINE_S = 60.0


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of the model."""

    name: str
    args: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model says. ``hold``: the reply's end is sent when the event is set; ``status``: an HTTP error instead."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    think: str = ""
    hold: threading.Event | None = None
    status: int = 200


@dataclass(frozen=True, slots=True)
class Request:
    """What Kimi sent to the model."""

    body: dict[str, Any]

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools offered."""
        return tuple(tool["function"]["name"] for tool in self.body.get("tools") or ())

    @property
    def kind(self) -> str:
        """``main``, ``sub`` (an agent that may start none) or ``side`` (a title, a summary: no tools)."""
        return "side" if not self.tools else "main" if "Agent" in self.tools else "sub"

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.body.get("messages") or ())

    @property
    def system(self) -> str:
        return "\n".join(text_of(message) for message in self.messages if message["role"] == "system")

    @property
    def last(self) -> str:
        """The text of the last message."""
        return text_of(self.messages[-1]) if self.messages else ""

    @property
    def results(self) -> list[str]:
        """The texts of all tool results, in order."""
        return [text_of(message) for message in self.messages if message["role"] == "tool"]


Step: TypeAlias = "Reply | Callable[[Request], Reply]"


def text_of(message: dict[str, Any]) -> str:
    """A message's text parts, joined."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content if part.get("type") == "text")


class ModelServer:
    """The server; ``with ModelServer() as model``. Replies are given per kind of request, in order; a request with
    nothing left to say gets a plain "Done.".
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.called: list[str] = []
        self._steps: dict[str, list[Step]] = {"main": [], "sub": [], "side": []}
        self._changed = threading.Condition()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def say(self, *steps: Step, kind: str = "main") -> None:
        """Append replies."""
        with self._changed:
            self._steps[kind] += steps

    def answered(self, kind: str = "main") -> list[Request]:
        """The requests of one kind so far."""
        with self._changed:
            return [request for request in self.requests if request.kind == kind]

    def wait_for(self, count: int, kind: str = "main") -> Request:
        """The ``count``-th request of a kind (from 1), waited for. Raises TimeoutError."""

        def there() -> bool:
            return sum(request.kind == kind for request in self.requests) >= count

        with self._changed:
            if not self._changed.wait_for(there, DEADLINE_S):
                raise TimeoutError(f"no {kind} request number {count}; got {len(self.requests)} in all")
        return self.answered(kind)[count - 1]

    def left(self) -> int:
        """Replies that nobody asked for yet."""
        return sum(len(steps) for steps in self._steps.values())

    def next_reply(self, request: Request) -> Reply:
        with self._changed:
            self.requests.append(request)
            steps = self._steps[request.kind]
            step = steps.pop(0) if steps else Reply("Done.")
            self._changed.notify_all()
        reply = step if isinstance(step, Reply) else step(request)
        self.called += [call.name for call in reply.calls]
        return reply

    def __enter__(self) -> ModelServer:
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()


def _handler(model: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: a test's output is for its failures."""

        def do_GET(self) -> None:
            self._json(200, {"data": [{"id": "mock", "context_length": 262_144}]})

        def do_POST(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            request = Request(json.loads(self.rfile.read(length) or b"{}"))
            try:
                reply = model.next_reply(request)
                number = len(model.requests)
                if reply.status != 200:
                    self._json(reply.status, {"error": {"message": "scripted failure", "type": "mock"}})
                elif request.body.get("stream"):
                    self._stream(reply, number)
                else:
                    self._json(200, _whole(reply, number))
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # Kimi was killed, or gave up: that is what is tested

        def _json(self, status: int, value: object) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _stream(self, reply: Reply, number: int) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            for delta in _deltas(reply, number):
                self._event(number, delta)
            if reply.hold is not None:
                reply.hold.wait(DEADLINE_S)
            self._event(number, {}, "tool_calls" if reply.calls else "stop")
            self.wfile.write(b"data: [DONE]\n\n")
            self.wfile.flush()
            self.close_connection = True

        def _event(self, number: int, delta: dict[str, Any], finish: str | None = None) -> None:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            chunk: dict[str, Any] = {
                "id": f"chat-{number}",
                "object": "chat.completion.chunk",
                "model": "mock",
                "choices": [choice],
            }
            if finish:
                chunk["usage"] = _usage(number)
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
            self.wfile.flush()

    return Handler


def _calls(calls: Sequence[Call], number: int) -> list[dict[str, Any]]:
    return [
        {
            "index": index,
            "id": f"call_{number}_{index}",
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.args, ensure_ascii=False)},
        }
        for index, call in enumerate(calls)
    ]


def _deltas(reply: Reply, number: int) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    if reply.think:
        yield {"reasoning_content": reply.think}
    for start in range(0, len(reply.text), 40):
        yield {"content": reply.text[start : start + 40]}
    for call in _calls(reply.calls, number):
        yield {"tool_calls": [call]}


def _whole(reply: Reply, number: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text}
    if reply.calls:
        message["tool_calls"] = _calls(reply.calls, number)
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if reply.calls else "stop"}
    return {
        "id": f"chat-{number}",
        "object": "chat.completion",
        "model": "mock",
        "choices": [choice],
        "usage": _usage(number),
    }


def _usage(number: int) -> dict[str, int]:
    return {
        "prompt_tokens": 1000 + 100 * number,
        "completion_tokens": 20,
        "total_tokens": 1020 + 100 * number,
    }
