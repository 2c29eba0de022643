"""The lines of ``cursor-agent --output-format stream-json``, as they are spelled."""

from __future__ import annotations

from typing import Annotated, Any

from hansard.adapters.base import Wire, nested
from hansard.events.structs import prepare


class Text(Wire, tag_field="type", tag="text"):
    text: str


class Message(Wire):
    content: Annotated[Any, nested(Text)] = None


class System(
    Wire, tag_field="type", tag="system", rename={"api_key_source": "apiKeySource", "permission_mode": "permissionMode"}, kw_only=True
):
    subtype: str
    session_id: str | None = None
    model: str | None = None
    cwd: str | None = None
    api_key_source: str | None = None
    permission_mode: str | None = None
    timestamp_ms: float | None = None


class User(Wire, tag_field="type", tag="user", kw_only=True):
    message: Message
    timestamp_ms: float | None = None


class Thinking(Wire, tag_field="type", tag="thinking", kw_only=True):
    """``delta`` has the text, ``completed`` none."""

    subtype: str
    text: str | None = None
    timestamp_ms: float | None = None


class Assistant(Wire, tag_field="type", tag="assistant", kw_only=True):
    """A piece has a time and no ``model_call_id``; a whole segment has both, or (the last one) neither."""

    message: Message
    model_call_id: str | None = None
    timestamp_ms: float | None = None


class ToolCall(Wire, tag_field="type", tag="tool_call", kw_only=True):
    """``tool_call`` has one key that names the tool, among siblings that do not."""

    subtype: str
    call_id: str
    tool_call: Any = None
    timestamp_ms: float | None = None


class Change(Wire, rename="camel", kw_only=True):
    """What an edit gives back."""

    path: str
    diff_string: str
    before_full_file_content: str | None = None
    after_full_file_content: str | None = None


class Inner(Wire, rename="camel"):
    text: str | None = None
    mime_type: str | None = None
    data: str | None = None


class McpContent(Wire):
    """A block of an MCP server, its type the name of a key."""

    text: Inner | None = None
    image: Inner | None = None


class Tokens(Wire, rename="camel"):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None


class Result(Wire, tag_field="type", tag="result", kw_only=True):
    """``result`` is all segments, glued together without a break; after a failure the message."""

    subtype: str | None = None
    is_error: bool = False
    result: Any = None
    duration_ms: float | None = None
    duration_api_ms: float | None = None
    usage: Tokens | None = None
    timestamp_ms: float | None = None


Line = System | User | Thinking | Assistant | ToolCall | Result


prepare(globals())
