"""A scripted model on loopback, for real agents to talk to: it says what the script says, in whichever API, and keeps what it was sent.

A request with tools is a step of the conversation and takes the next step of the script; what agents ask beside it (titles, summaries)
gets a filler. Each API is one function in `DIALECTS`: the pieces of the answer to a step, as server-sent events.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from msgspec import Struct, field

FILLER = "A filler"
SOON = {"retry-after": "1", "retry-after-ms": "100"}
"""Headers of an error that let an agent ask again soon: some do it a few times before they give up, and then not after minutes."""


BESIDE = ("Reply with ONLY the suggestion", "managed memory index")
"""What agents ask their model with all their tools and yet beside the conversation."""


def conversation(request: dict[str, Any]) -> list[Any]:
    """Returns what the model was shown of the conversation; each API has its own word for it."""
    return request.get("messages") or request.get("contents") or request.get("input") or []


def request_text(request: dict[str, Any]) -> str:
    """The same as text."""
    return json.dumps(conversation(request), ensure_ascii=False)


def is_conversation(request: dict[str, Any]) -> bool:
    """Whether a request is about the conversation; agents ask for titles and the like beside it."""
    asked = request.get("tools") or request.get("model") == "scripted" or request.get("response_format") or request.get("contents")
    return bool(asked) and not any(words in json.dumps(conversation(request)[-1:]) for words in BESIDE)


class Text(Struct):
    """The model says this."""

    text: str


class Thinking(Struct):
    """The model thinks this."""

    text: str


class Call(Struct):
    """The model calls a tool."""

    name: str
    args: dict[str, Any]
    id: str = ""
    namespace: str | None = None
    """Where the tool is from, for the one API that says so apart from its name."""
    free: str | None = None
    """The input of a tool that takes text instead of arguments, which one API has."""


class Step(Struct):
    """One answer of the model, or its refusal to give one."""

    items: list[Text | Thinking | Call] = field(default_factory=list[Any])
    status: int = 200
    """Anything but 200 is an error of the API."""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    """More headers of an error."""
    hang: bool = False
    """Stop after half of the answer and say nothing more until the agent hangs up."""
    tokens: tuple[int, int] = (10, 5)
    """What it reports that it read and wrote."""
    stop: Literal["max_tokens", "refusal"] | None = None
    """Why the answer ends, said in each API's own word, if it does not just end or call a tool."""


def says(text: str) -> Step:
    """A step that is only text."""
    return Step([Text(text)])


def calls(name: str, args: dict[str, Any], id: str = "") -> Step:
    """A step that is only a tool call."""
    return Step([Call(name, args, id)])


class Model(ThreadingHTTPServer):
    """Runs the script."""

    daemon_threads = True

    def __init__(self, script: list[Step], is_step: Callable[[dict[str, Any]], bool] | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.script = script
        self.taken = 0
        self.asked: list[dict[str, Any]] = []
        """The requests that were steps of the conversation, as they were sent."""
        self.beside: list[dict[str, Any]] = []
        self.fillers: list[Step] = []
        """What was answered to those beside. A step that is kept has an address, and thereby a response id, of its own."""
        self.keys: list[str | None] = []
        """The keys that came with all requests."""
        self.said: list[str] = []
        """The streams, piece by piece, as they were sent."""
        self.is_step = is_step or (lambda request: bool(request.get("tools")))
        self.lock = threading.Lock()
        self.hanging = threading.Event()
        """Whether it has stopped in the middle of an answer."""
        self.over = threading.Event()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_port}"

    def step(self, request: dict[str, Any]) -> Step:
        """What to answer to a request."""
        with self.lock:
            if not self.is_step(request):
                self.beside.append(request)
                self.fillers.append(says(FILLER))
                return self.fillers[-1]
            self.asked.append(request)
            self.taken += 1
            assert self.taken <= len(self.script), "the agent asks more often than the script expects"
            step = self.script[self.taken - 1]
            for index, item in enumerate(step.items):
                if isinstance(item, Call) and not item.id:
                    item.id = f"call_{self.taken}_{index}"
            return step


@contextmanager
def model(*script: Step, is_step: Callable[[dict[str, Any]], bool] | None = None) -> Iterator[Model]:
    """A model that is there as long as it is looked at."""
    with Model(list(script), is_step) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:  # also when the test is skipped: a thread that serves a closed socket never rests
            server.over.set()
            server.shutdown()


class _Answering(BaseHTTPRequestHandler):
    server: Model
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._whole(200, {"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
        self.server.keys.append(self.headers["authorization"])
        path = self.path.partition("?")[0]
        dialect = next((speak for pattern, speak in DIALECTS.items() if re.search(pattern, path)), None)
        if dialect is None:
            self._whole(200 if path.endswith(("count_tokens", "countTokens")) else 404, {"input_tokens": 1, "totalTokens": 1})
            return
        step = self.server.step(request)
        if step.status != 200:
            self._whole(
                step.status,
                {"type": "error", "error": {"type": "scripted_error", "message": f"scripted {step.status}", "code": step.status}},
                step.headers,
            )
            return
        if dialect is messages and not request.get("stream"):
            self._whole(200, whole_message(step))
        elif path.endswith(":generateContent"):
            self._whole(200, next(gemini(step))[1])
        else:
            self._stream(list(dialect(step)), step.hang)

    def _stream(self, pieces: list[tuple[str, Any]], hang: bool) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        try:
            for name, piece in pieces[: len(pieces) // 2] if hang else pieces:
                data = piece if isinstance(piece, str) else json.dumps(piece)
                event = (f"event: {name}\n" if name else "") + f"data: {data}\n\n"
                self.server.said.append(event)
                self.wfile.write(event.encode())
                self.wfile.flush()
                time.sleep(0.002)
            if hang:
                self.server.hanging.set()
            while hang and not self.server.over.wait(0.05):
                self.wfile.write(b": still here\n\n")
                self.wfile.flush()
        except OSError:
            pass  # the agent hung up
        self.close_connection = True

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
        """Nobody reads it."""


# --------------------------------------------------------------------------------------------------------------------
# The APIs


def halves(text: str) -> list[str]:
    """A text in a few pieces, so that there is something to stream."""
    size = max(1, len(text) // 4)
    return [text[start : start + size] for start in range(0, len(text), size)]


def messages(step: Step) -> Iterator[tuple[str, Any]]:
    """Anthropic's Messages API."""
    sent, answered = step.tokens
    usage = {"input_tokens": sent, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    name = f"msg_{id(step):x}"
    start = {
        "id": name,
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
    for index, item in enumerate(step.items):
        match item:
            case Text(text=text):
                block, deltas = {"type": "text", "text": ""}, [{"type": "text_delta", "text": part} for part in halves(text)]
            case Thinking(text=text):
                block = {"type": "thinking", "thinking": "", "signature": ""}
                deltas = [{"type": "thinking_delta", "thinking": part} for part in halves(text)] + [
                    {"type": "signature_delta", "signature": "c2lnbmVk"}
                ]
            case Call():
                block = {"type": "tool_use", "id": item.id, "name": item.name, "input": {}}
                deltas = [{"type": "input_json_delta", "partial_json": part} for part in halves(json.dumps(item.args))]
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    stop = step.stop or ("tool_use" if any(isinstance(item, Call) for item in step.items) else "end_turn")
    events.append(
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage | {"output_tokens": answered}}
    )
    events.append({"type": "message_stop"})
    for event in events:
        yield event["type"], event


def whole_message(step: Step) -> dict[str, Any]:
    """The same API without streaming; only text is ever asked for so."""
    start = next(messages(step))[1]["message"]
    content = [{"type": "text", "text": item.text} for item in step.items if isinstance(item, Text)]
    return start | {"content": content, "stop_reason": step.stop or "end_turn"}


def responses(step: Step) -> Iterator[tuple[str, Any]]:
    """OpenAI's Responses API."""
    name, output, number = f"resp_{id(step):x}", list[dict[str, Any]](), 0

    def event(kind: str, **fields: Any) -> tuple[str, Any]:
        nonlocal number
        number += 1
        return kind, {"type": kind, "sequence_number": number, **fields}

    yield event("response.created", response={"id": name, "object": "response", "status": "in_progress", "output": []})
    for index, item in enumerate(step.items):
        match item:
            case Text(text=text):
                made: dict[str, Any] = {"type": "message", "id": f"msg_{name}_{index}", "role": "assistant", "status": "completed"}
                yield event("response.output_item.added", output_index=index, item=made | {"status": "in_progress", "content": []})
                yield event(
                    "response.content_part.added",
                    item_id=made["id"],
                    output_index=index,
                    content_index=0,
                    part={"type": "output_text", "text": "", "annotations": []},
                )
                for part in halves(text):
                    yield event("response.output_text.delta", item_id=made["id"], output_index=index, content_index=0, delta=part)
                yield event("response.output_text.done", item_id=made["id"], output_index=index, content_index=0, text=text)
                made["content"] = [{"type": "output_text", "text": text, "annotations": []}]
            case Thinking(text=text):
                made = {"type": "reasoning", "id": f"rs_{name}_{index}", "summary": [], "encrypted_content": None}
                yield event("response.output_item.added", output_index=index, item=made)
                for part in halves(text):
                    yield event(
                        "response.reasoning_summary_text.delta", item_id=made["id"], output_index=index, summary_index=0, delta=part
                    )
                yield event("response.reasoning_summary_text.done", item_id=made["id"], output_index=index, summary_index=0, text=text)
                made["summary"] = [{"type": "summary_text", "text": text}]
            case Call(free=str(text)):
                made = {"type": "custom_tool_call", "id": f"ctc_{name}_{index}", "call_id": item.id, "name": item.name}
                yield event("response.output_item.added", output_index=index, item=made | {"input": "", "status": "in_progress"})
                for part in halves(text):
                    yield event("response.custom_tool_call_input.delta", item_id=made["id"], output_index=index, delta=part)
                yield event("response.custom_tool_call_input.done", item_id=made["id"], output_index=index, input=text)
                made |= {"input": text, "status": "completed"}
            case Call():
                made = {
                    "type": "function_call",
                    "id": f"fc_{name}_{index}",
                    "call_id": item.id,
                    "name": item.name,
                    "arguments": json.dumps(item.args),
                    "status": "completed",
                } | ({} if item.namespace is None else {"namespace": item.namespace})
                yield event("response.output_item.added", output_index=index, item=made | {"arguments": "", "status": "in_progress"})
                for part in halves(made["arguments"]):
                    yield event("response.function_call_arguments.delta", item_id=made["id"], output_index=index, delta=part)
                yield event("response.function_call_arguments.done", item_id=made["id"], output_index=index, arguments=made["arguments"])
        output.append(made)
        yield event("response.output_item.done", output_index=index, item=made)
    sent, answered = step.tokens
    usage = {
        "input_tokens": sent,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": answered,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": sent + answered,
    }
    status = "incomplete" if step.stop else "completed"
    response = {"id": name, "object": "response", "status": status, "output": output, "usage": usage}
    if step.stop:
        response["incomplete_details"] = {"reason": {"max_tokens": "max_output_tokens", "refusal": "content_filter"}[step.stop]}
    yield event(f"response.{status}", response=response)


def chat(step: Step) -> Iterator[tuple[str, Any]]:
    """OpenAI's Chat Completions API, and those that imitate it."""

    def chunk(delta: dict[str, Any], finish: str | None = None) -> tuple[str, Any]:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        return "", {
            "id": f"chatcmpl-{id(step):x}",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "scripted",
            "choices": choices,
        }

    yield chunk({"role": "assistant", "content": ""})
    called = [item for item in step.items if isinstance(item, Call)]
    for item in step.items:
        match item:
            case Text(text=text):
                yield from (chunk({"content": part}) for part in halves(text))
            case Thinking(text=text):
                yield from (chunk({"reasoning_content": part}) for part in halves(text))
            case Call():
                index = called.index(item)
                yield chunk(
                    {"tool_calls": [{"index": index, "id": item.id, "type": "function", "function": {"name": item.name, "arguments": ""}}]}
                )
                yield from (
                    chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]}) for part in halves(json.dumps(item.args))
                )
    stops = {"max_tokens": "length", "refusal": "content_filter", None: "tool_calls" if called else "stop"}
    yield chunk({}, stops[step.stop])
    sent, answered = step.tokens
    usage = {"prompt_tokens": sent, "completion_tokens": answered, "total_tokens": sent + answered}
    yield (
        "",
        {
            "id": f"chatcmpl-{id(step):x}",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "scripted",
            "choices": [],
            "usage": usage,
        },
    )
    yield "", "[DONE]"


def gemini(step: Step) -> Iterator[tuple[str, Any]]:
    """Google's Gemini API."""
    sent, answered = step.tokens

    def chunk(part: dict[str, Any], **more: Any) -> tuple[str, Any]:
        candidate = {"content": {"parts": [part], "role": "model"}, "index": 0, **more}
        usage = {"promptTokenCount": sent, "candidatesTokenCount": answered, "totalTokenCount": sent + answered}
        return "", {"candidates": [candidate], "modelVersion": "scripted", "responseId": f"r{id(step):x}", "usageMetadata": usage}

    for item in step.items:
        match item:
            case Text(text=text):
                yield from (chunk({"text": part}) for part in halves(text))
            case Thinking(text=text):
                yield chunk({"text": text, "thought": True})
            case Call():
                yield chunk({"functionCall": {"name": item.name, "args": item.args, "id": item.id}})
    yield chunk({"text": ""}, finishReason={"max_tokens": "MAX_TOKENS", "refusal": "SAFETY", None: "STOP"}[step.stop])


DIALECTS: dict[str, Callable[[Step], Iterator[tuple[str, Any]]]] = {
    r"/messages$": messages,
    r"/responses$": responses,
    r"/chat/completions$": chat,
    r":(stream)?[gG]enerateContent$": gemini,
}
"""By how the path of a request ends."""
