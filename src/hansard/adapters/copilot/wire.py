"""An event of Copilot CLI's log, and what its ``data`` is, type by type."""

from __future__ import annotations

from typing import Annotated, Any

from hansard.adapter import Wire, read_as


class Event(Wire, rename="camel", kw_only=True):
    """One line. ``agentId`` is set on what a sub-agent says; the last line of a run (``result``) has its fields beside the type."""

    type: str
    data: Any = None
    timestamp: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    exit_code: int | None = None
    usage: Any = None


class Data(Wire, rename="camel", kw_only=True):
    """The root of what ``data`` can be."""

    parent_tool_call_id: str | None = None


class UserMessage(Data, kw_only=True):
    """``content`` is what was typed; ``transformedContent``, what the model got, is in the original."""

    content: str
    message_id: str | None = None
    attachments: list[Any] | None = None
    delivery: str | None = None


class ToolRequest(Data, kw_only=True):
    tool_call_id: str
    name: str
    arguments: Any = None
    tool_title: str | None = None
    intention_summary: str | None = None
    mcp_server_name: str | None = None


class AssistantMessage(Data, kw_only=True):
    message_id: str
    content: str = ""
    tool_requests: Annotated[list[Any] | None, read_as(ToolRequest)] = None
    reasoning_text: str | None = None
    reasoning_opaque: str | None = None
    api_call_id: str | None = None
    model: str | None = None


class MessageDelta(Data, kw_only=True):
    message_id: str
    delta_content: str = ""


class ReasoningDelta(Data, kw_only=True):
    reasoning_id: str
    delta_content: str = ""


class Reasoning(Data, kw_only=True):
    reasoning_id: str
    content: str


class ToolCallDelta(Data, kw_only=True):
    tool_call_id: str
    input_delta: str
    tool_name: str | None = None


class ExecutionStart(Data, kw_only=True):
    tool_call_id: str
    tool_name: str
    arguments: Any = None
    tool_title: str | None = None
    mcp_server_name: str | None = None


class PartialResult(Data, kw_only=True):
    """All of the output so far, each time."""

    tool_call_id: str
    partial_output: str


class ToolText(Data, kw_only=True):
    """``tool.execution_progress``."""

    tool_call_id: str
    progress_message: str | None = None


class ShellOutput(Data, kw_only=True):
    tool_call_id: str
    text: str
    stream: str | None = None


class ToolError(Wire):
    message: str | None = None
    code: str | None = None


class ShellExecution(Wire, rename="camel"):
    exit_code: int | None = None


class ExecutionComplete(Data, kw_only=True):
    tool_call_id: str
    success: bool | None = None
    result: Any = None
    error: ToolError | None = None
    shell_execution: ShellExecution | None = None
    file_edits: list[Any] | None = None


class CallFailure(Data, kw_only=True):
    error_message: str | None = None
    error_code: str | None = None
    error_type: str | None = None
    status_code: int | None = None


class SessionError(Data, kw_only=True):
    message: str
    error_type: str | None = None
    status_code: int | None = None


class PermissionRequested(Data, kw_only=True):
    request_id: str
    permission_request: Any = None


class PermissionCompleted(Data, kw_only=True):
    request_id: str
    result: Any = None
    decision_source: str | None = None


class SessionStart(Data, kw_only=True):
    session_id: str | None = None
    copilot_version: str | None = None
    selected_model: str | None = None
    context: Any = None


class UsageRecord(Wire, rename="camel", kw_only=True):
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    finish_reason: str | None = None
    content_filter_triggered: bool | None = None
    api_call_id: str | None = None
    parent_tool_call_id: str | None = None


class BinaryAsset(Data, kw_only=True):
    asset_id: str
    mime_type: str | None = None
    byte_length: int | None = None
    data: str | None = None


class Subagent(Data, kw_only=True):
    tool_call_id: str | None = None
    agent_display_name: str | None = None
    duration_ms: float | None = None


class Text(Wire, tag_field="type", tag="text"):
    text: str


class Image(Wire, tag_field="type", tag="image", rename="camel", kw_only=True):
    """The bytes, or the name of the asset that has them."""

    mime_type: str | None = None
    data: str | None = None
    asset_id: str | None = None


class ResourceLink(Wire, tag_field="type", tag="resource_link", rename="camel", kw_only=True):
    uri: str
    name: str | None = None
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None


Content = Text | Image | ResourceLink


class File(Wire, tag_field="type", tag="file", rename="camel", kw_only=True):
    path: str | None = None
    display_name: str | None = None
    mime_type: str | None = None
    byte_length: int | None = None
    asset_id: str | None = None


class Directory(Wire, tag_field="type", tag="directory", rename="camel", kw_only=True):
    path: str | None = None
    display_name: str | None = None


Attachment = File | Directory
