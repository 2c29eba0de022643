"""An event of Copilot CLI's log, and what its ``data`` is, type by type.

A type that stands here is read field by field; the data of every other one is passed on whole.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import defstruct

from hansard.adapters.base import Wire, nested
from hansard.events.structs import prepare, union_of


class Data(Wire, rename="camel", kw_only=True):
    """The root of what ``data`` can be."""

    parent_tool_call_id: str | None = None


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


class UserMessage(Data, kw_only=True):
    """``content`` is what was typed, ``transformedContent`` what the model got: the same with more around it."""

    content: str
    message_id: str | None = None
    attachments: Annotated[list[Any] | None, nested(Attachment)] = None
    delivery: str | None = None
    transformed_content: str | None = None
    source: str | None = None
    agent_mode: str | None = None


class SystemMessage(Data, kw_only=True):
    """What the program tells the model; ``kind`` says what a notification is about."""

    content: str
    message_id: str | None = None
    kind: Any = None


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
    tool_requests: Annotated[list[Any] | None, nested(ToolRequest)] = None
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
    shell_tool_info: Any = None


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


class FileEdit(Wire):
    path: str


class ShellExecution(Wire, rename="camel"):
    exit_code: int | None = None


class Metrics(Wire):
    """How full the context window is: live, nothing else tells."""

    context_current_tokens: float | None = None
    context_token_limit: float | None = None


class Telemetry(Wire):
    metrics: Metrics | None = None


class ExecutionComplete(Data, kw_only=True):
    tool_call_id: str
    model: str | None = None
    tool_telemetry: Telemetry | None = None
    success: bool | None = None
    result: Any = None
    error: ToolError | None = None
    shell_execution: ShellExecution | None = None
    file_edits: Annotated[list[Any] | None, nested(FileEdit)] = None


class SessionError(Data, kw_only=True):
    message: str
    error_type: str | None = None
    status_code: int | None = None


class PermissionRequested(Data, kw_only=True):
    request_id: str
    permission_request: Any = None
    permission_mode: str | None = None
    agent_mode: str | None = None


class Decision(Wire):
    """``approval`` is what is allowed from now on."""

    kind: str
    approval: Any = None
    feedback: str | None = None


class PermissionCompleted(Data, kw_only=True):
    request_id: str
    result: Decision
    tool_call_id: str | None = None
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
    max_prompt_tokens: int | None = None
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


# --------------------------------------------------------------------------------------------------------------------
# Events


class Line(Wire, rename="camel", kw_only=True):
    """The head of every event. ``agentId`` is set on what a sub-agent says."""

    timestamp: str | None = None
    agent_id: str | None = None


class _Known(Line, tag_field="type", kw_only=True):
    pass


class Over(_Known, tag="result", kw_only=True):
    """The last line of a run, its fields beside the type."""

    exit_code: int | None = None
    session_id: str | None = None
    usage: Any = None


DATA: dict[str, type[Data]] = {
    "user.message": UserMessage,
    "system.message": SystemMessage,
    "system.notification": SystemMessage,
    "assistant.message": AssistantMessage,
    "assistant.message_delta": MessageDelta,
    "assistant.reasoning_delta": ReasoningDelta,
    "assistant.reasoning": Reasoning,
    "assistant.tool_call_delta": ToolCallDelta,
    "tool.execution_start": ExecutionStart,
    "tool.user_requested": ExecutionStart,
    "tool.execution_partial_result": PartialResult,
    "tool.execution_progress": ToolText,
    "tool.shell_output": ShellOutput,
    "tool.execution_complete": ExecutionComplete,
    "permission.requested": PermissionRequested,
    "permission.completed": PermissionCompleted,
    "session.start": SessionStart,
    "session.error": SessionError,
    "session.binary_asset": BinaryAsset,
}
"""The data of each event that is read field by field, by its type."""

Known = union_of(Over, *[defstruct(word, [("data", data)], bases=(_Known,), module=__name__, tag=word) for word, data in DATA.items()])


class Event(Line, kw_only=True):
    """One line."""

    type: str
    data: Any = None

    @property
    def refine(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride] - here each event chooses
        """What it is read as, if its fields have a meaning of their own."""
        return Known if self.type in DATA or self.type == "result" else None


prepare(globals())
