"""The answers of a model as the APIs give them to agents: streamed as server-sent events, or whole.

Each API is one function in `DIALECTS`. `ModelServer` serves them on loopback.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

from msgspec import Struct, field

BESIDE = ("Reply with ONLY the suggestion", "managed memory index")
"""Marks of requests that have all tools and are still not part of the conversation."""


def conversation(request: dict[str, Any]) -> list[Any]:
    """Returns what the model was shown of the conversation; each API has another name for it."""
    return request.get("messages") or request.get("contents") or request.get("input") or []


def is_conversation(request: dict[str, Any], without_tools: bool = False) -> bool:
    """Returns whether a request is about the conversation. For titles, topics, and summaries, agents offer no tools.

    ``without_tools``: the agent never offers tools.
    """
    asked = request.get("tools") or without_tools or request.get("response_format") or request.get("contents")
    return bool(asked) and not any(words in json.dumps(conversation(request)[-1:]) for words in BESIDE)


class Text(Struct):
    """The model says this."""

    text: str


class Thinking(Struct):
    """The model thinks this."""

    text: str
    signature: str = "c2lnbmVk"


class Call(Struct):
    """The model calls a tool."""

    name: str
    args: Any
    id: str = ""
    namespace: str | None = None
    """Where the tool is from, for the one API that says so apart from its name."""
    is_text: bool = False
    """Whether the tool takes a text instead of JSON, for the one API that has such tools."""


class Step(Struct):
    """One answer of the model, or its refusal to give one."""

    items: list[Text | Thinking | Call] = field(default_factory=list[Any])
    status: int = 200
    """Anything but 200 is an error of the API."""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    """More headers of an error."""
    hang: bool = False
    """Stop after half of the answer and say nothing more until the agent hangs up."""
    unfinished: bool = False
    """Say all of this, but not that it is over, and nothing more until the agent hangs up."""
    stays: bool = False
    """Whether this is also the answer to every later request of the turn."""
    tokens: tuple[int, int] = (10, 5)
    """What it reports that it read and wrote."""
    cached: tuple[int, int] = (0, 0)
    """What it reports that it read from a cache, and wrote into it."""
    reasoning: int = 0
    """How many tokens it reports that it thought."""
    stop: Literal["max_tokens", "refusal"] | None = None
    """Why the answer ends, if it does not just end or call a tool. Each API has another name for it."""
    model: str = "scripted"
    id: str | None = None
    """The id of the answer; without one it gets its own."""
    message: str | None = None
    """The message of an error."""

    def name(self, prefix: str) -> str:
        """Returns the id of the answer."""
        return f"{prefix}{id(self):x}" if self.id is None else self.id


def error_body(step: Step) -> dict[str, Any]:
    """Returns the body of an error."""
    message = f"scripted {step.status}" if step.message is None else step.message
    kind = "scripted_error" if step.message is None else ERROR_TYPES.get(step.status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": message, "code": step.status}}


ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}
"""The types of errors by their status, as Anthropic calls them."""


def halves(text: str) -> list[str]:
    """A text in a few pieces, so that there is something to stream."""
    size = max(1, len(text) // 4)
    return [text[start : start + size] for start in range(0, len(text), size)]


# --------------------------------------------------------------------------------------------------------------------
# The APIs

ServerEvent = tuple[str, Any]
"""The name of a server-sent event, and its data."""


def messages(step: Step) -> Iterator[ServerEvent]:
    """Anthropic's Messages API."""
    usage = _anthropic_usage(step)
    events: list[dict[str, Any]] = [{"type": "message_start", "message": _message(step) | {"usage": usage | {"output_tokens": 1}}}]
    for index, item in enumerate(step.items):
        match item:
            case Text(text=text):
                block: dict[str, Any] = {"type": "text", "text": ""}
                deltas = [{"type": "text_delta", "text": part} for part in halves(text)]
            case Thinking(text=text, signature=signature):
                block = {"type": "thinking", "thinking": "", "signature": ""}
                deltas = [{"type": "thinking_delta", "thinking": part} for part in halves(text)]
                deltas.append({"type": "signature_delta", "signature": signature})
            case Call():
                block = {"type": "tool_use", "id": item.id, "name": item.name, "input": {}}
                deltas = [{"type": "input_json_delta", "partial_json": part} for part in halves(_json(item.args))]
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": _anthropic_stop(step), "stop_sequence": None}, "usage": usage})
    events.append({"type": "message_stop"})
    for event in events:
        yield event["type"], event


def whole_message(step: Step) -> dict[str, Any]:
    """The same without streaming."""
    content: list[dict[str, Any]] = []
    for item in step.items:
        match item:
            case Text(text=text):
                content.append({"type": "text", "text": text})
            case Thinking(text=text, signature=signature):
                content.append({"type": "thinking", "thinking": text, "signature": signature})
            case Call():
                content.append({"type": "tool_use", "id": item.id, "name": item.name, "input": item.args})
    return _message(step) | {"content": content, "stop_reason": _anthropic_stop(step), "usage": _anthropic_usage(step)}


def _message(step: Step) -> dict[str, Any]:
    message: dict[str, Any] = {"id": step.name("msg_"), "type": "message", "role": "assistant", "model": step.model, "content": []}
    return message | {"stop_reason": None, "stop_sequence": None}


def _anthropic_usage(step: Step) -> dict[str, int]:
    (sent, answered), (read, written) = step.tokens, step.cached
    tokens = {"input_tokens": sent, "output_tokens": answered}
    return tokens | {"cache_creation_input_tokens": written, "cache_read_input_tokens": read}


def _anthropic_stop(step: Step) -> str:
    return step.stop or ("tool_use" if _calls(step) else "end_turn")


def responses(step: Step) -> Iterator[ServerEvent]:
    """OpenAI's Responses API."""
    name, output, number = step.name("resp_"), list[dict[str, Any]](), 0

    def event(kind: str, **fields: Any) -> ServerEvent:
        nonlocal number
        number += 1
        return kind, {"type": kind, "sequence_number": number, **fields}

    yield event("response.created", response={"id": name, "object": "response", "status": "in_progress", "output": []})
    for index, item in enumerate(step.items):
        match item:
            case Text(text=text):
                made: dict[str, Any] = {"type": "message", "id": f"msg_{name}_{index}", "role": "assistant", "status": "completed"}
                where: dict[str, Any] = {"item_id": made["id"], "output_index": index, "content_index": 0}
                part: dict[str, Any] = {"type": "output_text", "text": "", "annotations": []}
                yield event("response.output_item.added", output_index=index, item=made | {"status": "in_progress", "content": []})
                yield event("response.content_part.added", **where, part=part)
                for piece in halves(text):
                    yield event("response.output_text.delta", **where, delta=piece)
                yield event("response.output_text.done", **where, text=text)
                made["content"] = [part | {"text": text}]
            case Thinking(text=text):
                made = {"type": "reasoning", "id": f"rs_{name}_{index}", "summary": [], "encrypted_content": None}
                where = {"item_id": made["id"], "output_index": index, "summary_index": 0}
                yield event("response.output_item.added", output_index=index, item=made)
                for piece in halves(text):
                    yield event("response.reasoning_summary_text.delta", **where, delta=piece)
                yield event("response.reasoning_summary_text.done", **where, text=text)
                made["summary"] = [{"type": "summary_text", "text": text}]
            case Call():
                made, field, kind = _responses_call(item, f"{name}_{index}")
                yield event("response.output_item.added", output_index=index, item=made | {field: "", "status": "in_progress"})
                for piece in halves(made[field]):
                    yield event(f"response.{kind}.delta", item_id=made["id"], output_index=index, delta=piece)
                yield event(f"response.{kind}.done", item_id=made["id"], output_index=index, **{field: made[field]})
        output.append(made)
        yield event("response.output_item.done", output_index=index, item=made)
    status = "incomplete" if step.stop else "completed"
    response: dict[str, Any] = {"id": name, "object": "response", "status": status, "output": output, "usage": _responses_usage(step)}
    if step.stop:
        response["incomplete_details"] = {"reason": {"max_tokens": "max_output_tokens", "refusal": "content_filter"}[step.stop]}
    yield event(f"response.{status}", response=response)


def whole_response(step: Step) -> dict[str, Any]:
    """The same without streaming."""
    return [data for _, data in responses(step)][-1]["response"] | {"model": step.model}


def _responses_call(item: Call, name: str) -> tuple[dict[str, Any], str, str]:
    """Returns the item of a call, the field with its arguments, and the word for events about them."""
    namespace = {} if item.namespace is None else {"namespace": item.namespace}
    made = {"call_id": item.id, "name": item.name, "status": "completed"} | namespace
    if item.is_text:
        return {"type": "custom_tool_call", "id": f"ctc_{name}", "input": str(item.args)} | made, "input", "custom_tool_call_input"
    arguments = {"type": "function_call", "id": f"fc_{name}", "arguments": _json(item.args)}
    return arguments | made, "arguments", "function_call_arguments"


def _responses_usage(step: Step) -> dict[str, Any]:
    sent, answered = step.tokens
    return {
        "input_tokens": sent,
        "input_tokens_details": {"cached_tokens": step.cached[0]},
        "output_tokens": answered,
        "output_tokens_details": {"reasoning_tokens": step.reasoning},
        "total_tokens": sent + answered,
    }


def chat(step: Step) -> Iterator[ServerEvent]:
    """OpenAI's Chat Completions API, and those that imitate it."""

    def chunk(delta: dict[str, Any], finish: str | None = None) -> ServerEvent:
        return "", _completion(step, "chat.completion.chunk", [{"index": 0, "delta": delta, "finish_reason": finish}])

    def part(call: dict[str, Any]) -> ServerEvent:
        return chunk({"tool_calls": [call]})

    yield chunk({"role": "assistant", "content": ""})
    called = _calls(step)
    for item in step.items:
        match item:
            case Text(text=text):
                yield from (chunk({"content": piece}) for piece in halves(text))
            case Thinking(text=text):
                yield from (chunk({"reasoning_content": piece}) for piece in halves(text))
            case Call():
                index = called.index(item)
                yield part({"index": index, "id": item.id, "type": "function", "function": {"name": item.name, "arguments": ""}})
                yield from (part({"index": index, "function": {"arguments": piece}}) for piece in halves(_json(item.args)))
    yield chunk({}, _chat_stop(step))
    yield "", _completion(step, "chat.completion.chunk", []) | {"usage": _chat_usage(step)}
    yield "", "[DONE]"


def whole_chat(step: Step) -> dict[str, Any]:
    """The same without streaming."""
    text = "".join(item.text for item in step.items if isinstance(item, Text))
    thought = "".join(item.text for item in step.items if isinstance(item, Thinking))
    called = [{"id": item.id, "type": "function", "function": {"name": item.name, "arguments": _json(item.args)}} for item in _calls(step)]
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    message |= ({"reasoning_content": thought} if thought else {}) | ({"tool_calls": called} if called else {})
    choices = [{"index": 0, "message": message, "finish_reason": _chat_stop(step)}]
    return _completion(step, "chat.completion", choices) | {"usage": _chat_usage(step)}


def _completion(step: Step, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {"id": step.name("chatcmpl-"), "object": kind, "created": 1, "model": step.model, "choices": choices}


def _chat_stop(step: Step) -> str:
    return {"max_tokens": "length", "refusal": "content_filter", None: "tool_calls" if _calls(step) else "stop"}[step.stop]


def _chat_usage(step: Step) -> dict[str, Any]:
    sent, answered = step.tokens
    usage: dict[str, Any] = {"prompt_tokens": sent, "completion_tokens": answered, "total_tokens": sent + answered}
    details: dict[str, Any] = {"prompt_tokens_details": {"cached_tokens": step.cached[0]}} if step.cached[0] else {}
    return usage | details | ({"completion_tokens_details": {"reasoning_tokens": step.reasoning}} if step.reasoning else {})


def gemini(step: Step) -> Iterator[ServerEvent]:
    """Google's Gemini API."""

    def chunk(part: dict[str, Any], **more: Any) -> ServerEvent:
        return "", _generated(step, [part], **more)

    for item in step.items:
        match item:
            case Text(text=text):
                yield from (chunk({"text": piece}) for piece in halves(text))
            case Thinking() | Call():
                yield chunk(_gemini_part(item))
    yield chunk({"text": ""}, finishReason=_GEMINI_STOPS[step.stop])


def whole_gemini(step: Step) -> dict[str, Any]:
    """The same without streaming."""
    return _generated(step, [_gemini_part(item) for item in step.items], finishReason=_GEMINI_STOPS[step.stop])


def _gemini_part(item: Text | Thinking | Call) -> dict[str, Any]:
    match item:
        case Text(text=text):
            return {"text": text}
        case Thinking(text=text):
            return {"text": text, "thought": True}
        case Call():
            return {"functionCall": {"name": item.name, "args": item.args, "id": item.id}}


def _generated(step: Step, parts: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    (sent, answered), read = step.tokens, step.cached[0]
    usage = {"promptTokenCount": sent, "candidatesTokenCount": answered, "totalTokenCount": sent + answered + step.reasoning}
    usage |= ({"cachedContentTokenCount": read} if read else {}) | ({"thoughtsTokenCount": step.reasoning} if step.reasoning else {})
    candidate = {"content": {"parts": parts, "role": "model"}, "index": 0, **more}
    return {"candidates": [candidate], "modelVersion": step.model, "responseId": step.name("r"), "usageMetadata": usage}


_GEMINI_STOPS = {"max_tokens": "MAX_TOKENS", "refusal": "SAFETY", None: "STOP"}


def _calls(step: Step) -> list[Call]:
    return [item for item in step.items if isinstance(item, Call)]


def _json(args: Any) -> str:
    """Returns arguments as JSON; those that were not JSON as they were."""
    return args if isinstance(args, str) else json.dumps(args)


class Dialect(NamedTuple):
    """The functions of an API."""

    stream: Callable[[Step], Iterator[ServerEvent]]
    whole: Callable[[Step], dict[str, Any]]
    closing: int
    """How many events at the end of an answer say that its last item, and the answer, are complete."""


DIALECTS: dict[str, Dialect] = {
    r"/messages$": Dialect(messages, whole_message, 3),
    r"/responses$": Dialect(responses, whole_response, 3),
    r"/chat/completions$": Dialect(chat, whole_chat, 3),
    r":(stream)?[gG]enerateContent$": Dialect(gemini, whole_gemini, 1),
}
"""By how the path of a request ends."""
