"""A model that says what it is told, on loopback: Anthropic's Messages and OpenAI's Responses API, as much of them as real agents need."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

MESSAGES = "/v1/messages"
RESPONSES = "/v1/responses"
USAGE = {"input_tokens": 1, "output_tokens": 1}


class ModelServer(ThreadingHTTPServer):
    """Answers every request with one text, and remembers what it was sent."""

    daemon_threads = True

    def __init__(self, says: str) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.says = says
        self.asked: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def model_server(says: str) -> Iterator[ModelServer]:
    """A server that runs as long as it is looked at."""
    with ModelServer(says) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()


class Answering(BaseHTTPRequestHandler):
    """One request."""

    server: ModelServer

    def do_POST(self) -> None:
        """Remember what was asked; say the text."""
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        path = self.path.partition("?")[0]
        if path not in (MESSAGES, RESPONSES):
            self.send_error(404)
            return
        self.server.asked.append(asked)
        events = _message(self.server.says) if path == MESSAGES else _response(self.server.says)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in events:
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads it."""


def _message(text: str) -> list[dict[str, Any]]:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None, "usage": USAGE}
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": USAGE},
        {"type": "message_stop"},
    ]


def _response(text: str) -> list[dict[str, Any]]:
    item = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]}
    response = {"id": "resp_1", "object": "response", "status": "completed", "output": [item], "usage": USAGE | {"total_tokens": 2}}
    return [
        {"type": "response.created", "response": {"id": "resp_1", "object": "response", "status": "in_progress", "output": []}},
        {"type": "response.output_item.done", "output_index": 0, "item": item | {"status": "completed"}},
        {"type": "response.completed", "response": response},
    ]
