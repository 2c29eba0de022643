"""Chat completions as the `openai` SDK 3.49.0 declares them, with the fields that compatible servers add.

A field named here is a field we read; the rest stays in the original.
"""

from __future__ import annotations

from typing import Annotated, Any

from hansard.adapters.base import Wire, nested
from hansard.adapters.openai.fields import ChatTokens
from hansard.adapters.openai.parts import Part
from hansard.events.structs import prepare


class Function(Wire):
    name: str | None = None
    arguments: str | None = None


class Custom(Wire):
    name: str | None = None
    input: str | None = None


class ToolCall(Wire):
    """A call, whole or a piece of it; id, type and name come with the first piece only."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None
    custom: Custom | None = None


class Audio(Wire):
    said_whole = True

    id: str | None = None
    data: str | None = None
    transcript: str | None = None
    expires_at: int | None = None


class CompletionMessage(Wire):
    """A delta of a chunk, or the message of a whole body: the same fields."""

    role: str | None = None
    content: Annotated[Any, nested(Part)] = None
    refusal: str | None = None
    tool_calls: list[ToolCall] | None = None
    function_call: Function | None = None
    """Deprecated: one call without an id."""
    audio: Audio | None = None
    annotations: list[Any] | None = None
    reasoning_content: str | None = None
    """DeepSeek-like servers."""
    reasoning: str | None = None
    """Routers and newer vLLM."""
    reasoning_details: list[Any] | None = None
    """Routers: the same again in parts, with what is encrypted or signed."""
    images: Annotated[list[Any] | None, nested(Part)] = None
    """Routers: generated pictures."""


class Choice(Wire):
    said_whole = True

    index: int = 0
    delta: Annotated[Any, nested(CompletionMessage)] = None
    message: Annotated[Any, nested(CompletionMessage)] = None
    finish_reason: str | None = None
    native_finish_reason: str | None = None
    logprobs: Any = None
    content_filter_results: Any = None
    """Azure."""


class Completion(Wire):
    """A chunk (``chat.completion.chunk``), a whole body (``chat.completion``) or an error body: ``object`` says which, if anything does."""

    object: str | None = None
    id: str | None = None
    created: float | None = None
    model: str | None = None
    choices: list[Choice] | None = None
    usage: ChatTokens | None = None
    service_tier: str | None = None
    error: Any = None
    prompt_filter_results: Any = None
    """Azure."""
    moderation: Any = None
    message: Any = None
    type: Any = None
    code: Any = None
    """vLLM before 0.10 has no ``error`` around its errors: ``object: "error"`` and these three."""


class Message(Wire):
    """A message of a request."""

    role: str
    content: Annotated[Any, nested(Part)] = None
    name: str | None = None
    tool_call_id: str | None = None
    refusal: str | None = None
    tool_calls: list[ToolCall] | None = None
    function_call: Function | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[Any] | None = None
    audio: Audio | None = None


class Request(Wire):
    """The body of a request."""

    said_whole = True

    messages: Annotated[list[Any], nested(Message)]
    model: str | None = None
    tools: list[Any] | None = None
    functions: list[Any] | None = None
    stream: bool | None = None
    stream_options: Any = None
    n: int | None = None
    audio: Any = None
    modalities: Any = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    reasoning_effort: Any = None
    response_format: Any = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    stop: Any = None
    seed: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    service_tier: str | None = None
    verbosity: Any = None
    prediction: Any = None
    web_search_options: Any = None
    metadata: Any = None
    x_recorder_left_out_messages: int = 0
    """A recording that keeps only the new messages of each request says how many stood before them."""


prepare(globals())
