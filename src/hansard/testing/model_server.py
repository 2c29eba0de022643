"""A model on loopback: a server that speaks the APIs of `hansard.testing.model_api`, for real agents to ask."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

from hansard.testing.model_api import DIALECTS, Dialect, ServerEvent, Step, error_body

PACE_SECONDS = 0.002
"""How long the server waits between two pieces of an answer."""
STILL_THERE_SECONDS = 0.05
"""How often a hanging answer finds out whether the agent is still there."""


class ModelServer(ThreadingHTTPServer):
    """A subclass says what to answer. The server listens on loopback alone, at a free port."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Exchange)
        self.hanging = threading.Event()
        """Whether it has stopped in the middle of an answer."""
        self.over = threading.Event()
        """Whether it is closed. Answers no longer hang then."""

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_port}"

    def step(self, request: dict[str, Any]) -> Step:
        """Returns what to answer to a request."""
        raise NotImplementedError

    def note_key(self, key: str | None) -> None:
        """Called with the key of each request."""

    def note_event(self, event: str) -> None:
        """Called with each server-sent event."""


Server = TypeVar("Server", bound=ModelServer)


@contextmanager
def serving(server: Server) -> Generator[Server]:
    """Runs a server until the block ends, also if it fails: a thread that serves a closed socket never rests."""
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.over.set()
            server.shutdown()


def pieces(dialect: Dialect, step: Step) -> list[ServerEvent]:
    """Returns the events of an answer, as far as it goes."""
    events = list(dialect.stream(step))
    if step.hang:
        return events[: len(events) // 2]
    if step.unfinished:
        return events[: -dialect.closing] if step.items else events[: len(events) > 1]
    return events


class _Exchange(BaseHTTPRequestHandler):
    """One connection."""

    server: ModelServer  # pyright: ignore[reportIncompatibleVariableOverride] (it is made by one)
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._whole(200, {"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
        self.server.note_key(self.headers["authorization"])
        path = self.path.partition("?")[0]
        dialect = next((dialect for pattern, dialect in DIALECTS.items() if re.search(pattern, path)), None)
        if dialect is None:
            self._whole(200 if path.endswith(("count_tokens", "countTokens")) else 404, {"input_tokens": 1, "totalTokens": 1})
            return
        step = self.server.step(request)
        if step.status != 200:
            self._whole(step.status, error_body(step), step.headers)
        elif request.get("stream") or path.endswith(":streamGenerateContent"):
            self._stream(pieces(dialect, step), step.hang or step.unfinished)
        else:
            self._whole(200, dialect.whole(step))

    def _stream(self, events: list[ServerEvent], hang: bool) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        try:
            for name, piece in events:
                data = piece if isinstance(piece, str) else json.dumps(piece)
                self._send((f"event: {name}\n" if name else "") + f"data: {data}\n\n")
                time.sleep(PACE_SECONDS)
            if hang:
                self._hang()
        except OSError:
            pass  # the agent hung up
        self.close_connection = True

    def _hang(self) -> None:
        """Stays silent, but for signs of life, until the agent hangs up."""
        self.server.hanging.set()
        while not self.server.over.wait(STILL_THERE_SECONDS):
            self.wfile.write(b": still here\n\n")
            self.wfile.flush()

    def _send(self, event: str) -> None:
        self.server.note_event(event)
        self.wfile.write(event.encode())
        self.wfile.flush()

    def _whole(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Prints nothing."""
