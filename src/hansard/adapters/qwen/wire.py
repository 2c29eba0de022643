"""The lines of ``qwen -o stream-json`` and of its control protocol, as they are spelled."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from hansard.adapters.base import Wire, nested
from hansard.events.structs import prepare

# --------------------------------------------------------------------------------------------------------------------
# Content


class Text(Wire, tag_field="type", tag="text"):
    text: str


class Thinking(Wire, tag_field="type", tag="thinking"):
    thinking: str
    signature: str | None = None


class ToolUse(Wire, tag_field="type", tag="tool_use"):
    id: str
    name: str
    input: Any = None


class ToolResult(Wire, tag_field="type", tag="tool_result"):
    tool_use_id: str
    content: Any = None
    is_error: bool | None = None


Content = Text | Thinking | ToolUse
Heard = Text | ToolResult


class Tokens(Wire):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None


# --------------------------------------------------------------------------------------------------------------------
# What the agent says


class Message(Wire, kw_only=True):
    id: str | None = None
    model: str | None = None
    content: Annotated[list[Any] | None, nested(Content)] = None
    stop_reason: str | None = None
    usage: Tokens | None = None


class Assistant(Wire, tag_field="type", tag="assistant", kw_only=True):
    message: Message
    parent_tool_use_id: str | None = None


class UserContent(Wire, kw_only=True):
    content: Annotated[Any, nested(Heard)] = None


class User(Wire, tag_field="type", tag="user", kw_only=True):
    message: UserContent
    parent_tool_use_id: str | None = None
    uuid: str | None = None


class System(Wire, tag_field="type", tag="system", kw_only=True):
    """``init`` has its fields beside the type, every other subtype in ``data``."""

    subtype: str
    data: Any = None
    session_id: str | None = None
    cwd: str | None = None
    tools: list[Any] | None = None
    mcp_servers: list[Any] | None = None
    model: str | None = None
    permission_mode: str | None = None
    slash_commands: list[Any] | None = None
    skills: list[Any] | None = None
    agents: list[Any] | None = None
    qwen_code_version: str | None = None
    parent_tool_use_id: str | None = None


class MessageStart(Wire, tag_field="type", tag="message_start"):
    message: Message


class ContentBlockStart(Wire, tag_field="type", tag="content_block_start"):
    index: int
    content_block: Text | Thinking | ToolUse


class TextDelta(Wire, tag_field="type", tag="text_delta"):
    text: str


class ThinkingDelta(Wire, tag_field="type", tag="thinking_delta"):
    thinking: str


class InputJsonDelta(Wire, tag_field="type", tag="input_json_delta"):
    partial_json: str


class ContentBlockDelta(Wire, tag_field="type", tag="content_block_delta"):
    index: int
    delta: TextDelta | ThinkingDelta | InputJsonDelta


class ContentBlockStop(Wire, tag_field="type", tag="content_block_stop"):
    index: int


class MessageStop(Wire, tag_field="type", tag="message_stop"):
    pass


class GoalState(Wire, tag_field="type", tag="goal_state"):
    goal_state: Any = None


class ToolProgress(Wire, tag_field="type", tag="tool_progress"):
    tool_use_id: str
    content: Any = None


Piece = MessageStart | ContentBlockStart | ContentBlockDelta | ContentBlockStop | MessageStop | GoalState | ToolProgress


class StreamEvent(Wire, tag_field="type", tag="stream_event", kw_only=True):
    event: Piece
    parent_tool_use_id: str | None = None


class Failure(Wire):
    message: str | None = None
    type: str | None = None


class Result(Wire, tag_field="type", tag="result", kw_only=True):
    """``usage`` counts from the start of the process; ``result`` is the text, ``error`` what took its place."""

    subtype: str | None = None
    is_error: bool = False
    duration_ms: float | None = None
    duration_api_ms: float | None = None
    num_turns: int | None = None
    result: Any = None
    structured_result: Any = None
    usage: Tokens | None = None
    model_usage: Any = msgspec.field(default=None, name="modelUsage")
    permission_denials: list[Any] | None = None
    error: Failure | None = None


# --------------------------------------------------------------------------------------------------------------------
# The control protocol, both ways


class CanUseTool(Wire, tag_field="subtype", tag="can_use_tool"):
    """``blocked_path`` is the path that made it ask."""

    tool_name: str
    input: Any = None
    tool_use_id: str | None = None
    permission_suggestions: list[Any] | None = None
    blocked_path: str | None = None


class PermissionResult(Wire, rename="camel"):
    behavior: str | None = None
    message: str | None = None
    updated_input: Any = None
    interrupt: bool = False


class ControlRequest(Wire, tag_field="type", tag="control_request"):
    request_id: str
    request: Annotated[Any, nested(CanUseTool)]


class ControlAnswer(Wire):
    subtype: str
    request_id: str
    response: Annotated[Any, nested(PermissionResult, having="behavior")] = None
    error: Any = None


class ControlResponse(Wire, tag_field="type", tag="control_response"):
    response: ControlAnswer


class ControlCancelRequest(Wire, tag_field="type", tag="control_cancel_request"):
    request_id: str | None = None


Line = System | StreamEvent | Assistant | User | Result | ControlRequest | ControlResponse | ControlCancelRequest


prepare(globals())
