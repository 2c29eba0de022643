"""Anthropic's Messages API: the bodies of requests, and of responses that are not streamed."""

from __future__ import annotations

from typing import Annotated, Any

from hansard.adapters.base import Wire, nested
from hansard.adapters.claude.blocks import AnyToolResult, Block
from hansard.adapters.claude.wire import AnyStreamEvent, Tokens
from hansard.events.structs import prepare


class Said(Wire):
    """A message of the conversation that a request repeats."""

    role: str
    content: Annotated[Any, nested(Block | AnyToolResult)] = None


class Metadata(Wire):
    """The sender of a request. Claude Code writes an object of its own into the user's id, as JSON."""

    user_id: str | None = None


class Request(Wire):
    """``POST /v1/messages``: the conversation so far."""

    said_whole = True

    messages: Annotated[list[Any], nested(Said)]
    model: str | None = None
    system: Annotated[Any, nested(Block)] = None
    tools: list[Any] | None = None
    metadata: Metadata | None = None
    stream: bool | None = None
    thinking: Any = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop_sequences: list[str] | None = None
    tool_choice: Any = None
    service_tier: str | None = None
    output_config: Any = None
    context_management: Any = None
    container: Any = None
    mcp_servers: list[Any] | None = None


class Response(Wire, tag_field="type", tag="message", kw_only=True):
    """A response that is not streamed."""

    content: Annotated[Any, nested(Block)]
    id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    stop_sequence: str | None = None
    stop_details: Any = None
    usage: Tokens | None = None


AnyResponse = AnyStreamEvent | Response


class Message(Wire):
    """A frame of a capture: a request has messages, everything else has a type."""

    messages: Any = None

    @property
    def refine(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride] (each message chooses)
        """What to read it as."""
        return Request if isinstance(self.messages, list) else AnyResponse


prepare(globals())
