"""The frames of ``claude -p --output-format stream-json`` and of its control protocol, as Claude Code 2.1.325 spells them.

A field named here is a field we read. The rest stays in the original: only-in-original.txt lists what we have seen and left there.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import field

from hansard.adapters.base import Wire, declare, nested
from hansard.adapters.claude.blocks import Block
from hansard.events.structs import prepare, union_of


class OutputDetails(Wire):
    thinking_tokens: Any = None


class CacheCreation(Wire):
    ephemeral_1h_input_tokens: Any = None


class Tokens(Wire):
    """Usage as the Anthropic API counts it: cache apart from input."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    service_tier: str | None = None
    output_tokens_details: Annotated[Any, nested(OutputDetails)] = None
    cache_creation: Annotated[Any, nested(CacheCreation)] = None


class Message(Wire):
    content: Annotated[Any, nested(Block)]
    id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    usage: Tokens | None = None


class UserContent(Wire):
    content: Annotated[Any, nested(Block)]


class _Frame(Wire, tag_field="type"):
    """Every frame has a ``uuid`` and a ``session_id``; only where they mean something to us do we read them."""


class ContextUsage(Wire):
    """What ``/context`` found: how much of the window is taken."""

    total_tokens: int | None = None
    raw_max_tokens: int | None = None
    model: str | None = None


class Assistant(_Frame, tag="assistant", kw_only=True):
    """One frame per content block; the frames of one response share the message's id."""

    message: Message
    parent_tool_use_id: str | None = None
    timestamp: str | None = None
    error: str | None = None
    is_api_error_message: bool = False
    api_error_status: int | None = None
    api_error_type: str | None = None
    aborted: bool = False
    thinking_duration_ms: int | None = None
    local_command_run: Any = None
    context_usage: ContextUsage | None = None


class User(_Frame, tag="user", kw_only=True):
    """Tool results, the harness's own nudges, a subagent's prompt, an echo; seldom the user."""

    message: UserContent
    uuid: str | None = None
    parent_tool_use_id: str | None = None
    timestamp: str | None = None
    tool_use_result: Any = None
    tool_result_meta: list[Any] | None = None
    is_synthetic: bool = field(default=False, name="isSynthetic")
    is_replay: bool = field(default=False, name="isReplay")
    origin: Any = None


# ---- stream_event: the API's own stream, passed on


class StartedMessage(Wire):
    id: str | None = None
    model: str | None = None
    usage: Tokens | None = None


class MessageStart(Wire, tag_field="type", tag="message_start"):
    message: StartedMessage


class ContentBlockStart(Wire, tag_field="type", tag="content_block_start"):
    index: int
    content_block: Annotated[Any, nested(Block)]


class TextDelta(Wire, tag_field="type", tag="text_delta"):
    text: str


class ThinkingDelta(Wire, tag_field="type", tag="thinking_delta"):
    thinking: str


class SignatureDelta(Wire, tag_field="type", tag="signature_delta"):
    signature: str


class InputJsonDelta(Wire, tag_field="type", tag="input_json_delta"):
    partial_json: str


class CitationsDelta(Wire, tag_field="type", tag="citations_delta"):
    citation: Any


class ContentBlockDelta(Wire, tag_field="type", tag="content_block_delta"):
    index: int
    delta: TextDelta | ThinkingDelta | SignatureDelta | InputJsonDelta | CitationsDelta


class ContentBlockStop(Wire, tag_field="type", tag="content_block_stop"):
    index: int


class Delta(Wire):
    said_whole = True
    stop_reason: str | None = None
    stop_sequence: str | None = None
    stop_details: Any = None


class MessageDelta(Wire, tag_field="type", tag="message_delta"):
    delta: Delta
    usage: Tokens | None = None


class MessageStop(Wire, tag_field="type", tag="message_stop"):
    pass


class Ping(Wire, tag_field="type", tag="ping"):
    pass


class StreamError(Wire, tag_field="type", tag="error"):
    error: Any = None


AnyStreamEvent = MessageStart | ContentBlockStart | ContentBlockDelta | ContentBlockStop | MessageDelta | MessageStop | Ping | StreamError


class StreamFields(Wire, kw_only=True):
    event: AnyStreamEvent
    parent_tool_use_id: str | None = None
    api_message_id: str | None = None
    abandoned_blocks: Any = None


class StreamEvent(StreamFields, tag_field="type", tag="stream_event"):
    pass


# ---- system frames: a second word says which


class _System(Wire, tag_field="subtype"):
    """``type`` is "system"; the second word says which."""


class Init(_System, tag="init"):
    """At the start of every turn."""

    session_id: str | None = None
    cwd: str | None = None
    model: str | None = None
    tools: list[Any] | None = None
    mcp_servers: list[Any] | None = None
    permission_mode: str | None = field(default=None, name="permissionMode")
    slash_commands: list[Any] | None = None
    agents: list[Any] | None = None
    skills: list[Any] | None = None
    plugins: list[Any] | None = None
    capabilities: Any = None
    api_key_source: str | None = field(default=None, name="apiKeySource")
    claude_code_version: str | None = None
    output_style: str | None = None


class Status(_System, tag="status"):
    status: str | None = None
    permission_mode: str | None = field(default=None, name="permissionMode")
    compact_result: str | None = None
    compact_error: str | None = None


class ApiRetry(_System, tag="api_retry"):
    said_whole = True
    attempt: int | None = None
    max_retries: int | None = None
    retry_delay_ms: float | None = None
    error_status: int | None = None
    error: str | None = None


class CompactBoundary(_System, tag="compact_boundary"):
    compact_metadata: Any = None


class TaskStarted(_System, tag="task_started", kw_only=True):
    said_whole = True
    task_id: str
    tool_use_id: str | None = None
    description: str | None = None
    subagent_type: str | None = None
    task_type: str | None = None
    is_backgrounded: bool | None = None
    prompt: str | None = None


class TaskProgress(_System, tag="task_progress", kw_only=True):
    said_whole = True
    task_id: str
    tool_use_id: str | None = None
    description: str | None = None
    subagent_type: str | None = None
    usage: Any = None
    last_tool_name: str | None = None


class TaskUpdated(_System, tag="task_updated", kw_only=True):
    said_whole = True
    task_id: str
    patch: Any = None


class TaskNotification(_System, tag="task_notification", kw_only=True):
    said_whole = True
    task_id: str
    status: str
    tool_use_id: str | None = None
    summary: str | None = None
    output_file: str | None = None
    usage: Any = None
    reason: str | None = None


class PermissionDenied(_System, tag="permission_denied", kw_only=True):
    """Denied by a rule, without asking anyone."""

    tool_use_id: str
    tool_name: str | None = None
    message: str | None = None
    decision_reason: str | None = None


class ModelFallback(_System, tag="model_fallback"):
    """Not in the SDK's declared union."""

    said_whole = True
    fallback_model: str | None = None
    original_model: str | None = None
    trigger: str | None = None
    content: str | None = None


class ModelRefusalFallback(_System, tag="model_refusal_fallback"):
    """Declared in sdk.d.ts 0.3.312, in no recording."""

    said_whole = True
    fallback_model: str | None = None
    original_model: str | None = None
    trigger: str | None = None
    direction: str | None = None
    scope: str | None = None
    content: str | None = None
    api_refusal_category: str | None = None
    api_refusal_explanation: str | None = None
    retracted_message_uuids: list[Any] | None = None


class ModelRefusalNoFallback(_System, tag="model_refusal_no_fallback"):
    content: str | None = None
    api_refusal_category: str | None = None
    api_refusal_explanation: str | None = None


class SessionStateChanged(_System, tag="session_state_changed", kw_only=True):
    state: str


class SessionTitleChanged(_System, tag="session_title_changed", kw_only=True):
    """Not in the SDK's declared union."""

    title: str


class CommandsChanged(_System, tag="commands_changed"):
    """Declared in sdk.d.ts 0.3.312, in no recording."""

    commands: list[Any] | None = None


class LocalCommandOutput(_System, tag="local_command_output", kw_only=True):
    """Declared in sdk.d.ts 0.3.312, in no recording."""

    content: str


class ElicitationComplete(_System, tag="elicitation_complete"):
    """Declared in sdk.d.ts 0.3.312, in no recording."""

    said_whole = True
    mcp_server_name: str | None = None
    elicitation_id: str | None = None


class _Notice(_System):
    """A frame whose declared fields go into the detail of a status_change."""

    said_whole = True


_HOOK = {"hook_id": str, "hook_name": str, "hook_event": str}
_PRINTED = {"stdout": str, "stderr": str, "output": str}

NOTICES = declare(
    _Notice,
    {
        "thinking_tokens": {"estimated_tokens": int, "estimated_tokens_delta": int},
        "background_tasks_changed": {"tasks": list[Any]},
        "hook_started": _HOOK,
        "hook_response": _HOOK | _PRINTED | {"exit_code": int, "outcome": str},
        "informational": {"content": str, "level": str},
        "control_request_progress": {"request_id": str, "status": str},
        # Declared in sdk.d.ts 0.3.312, in no recording. The SDK itself makes mirror_error.
        "hook_progress": _HOOK | _PRINTED,
        "notification": {"key": str, "text": str, "priority": str, "color": str, "timeout_ms": float},
        "plugin_install": {"status": str, "name": str, "error": str},
        "worker_shutting_down": {"reason": str},
        "files_persisted": {"files": list[Any], "failed": list[Any], "processed_at": str},
        "memory_recall": {"mode": str, "memories": list[Any]},
        "mirror_error": {"error": str, "key": Any},
    },
)

AnySystem = union_of(_System)


class System(_Frame, tag="system"):
    refine = AnySystem


# ---- the rest of the frames


class ResultFields(Wire, kw_only=True):
    """The end of a turn. ``subtype: "success"`` proves nothing; the error flags do."""

    subtype: str | None = None
    is_error: bool = False
    stop_reason: str | None = None
    terminal_reason: str | None = None
    api_error_status: int | None = None
    result: Any = None
    errors: list[Any] | None = None
    usage: Tokens | None = None
    model_usage: Any = None
    total_cost_usd: float | None = None
    duration_ms: float | None = None
    duration_api_ms: float | None = None
    num_turns: int | None = None
    permission_denials: list[Any] | None = None
    structured_output: Any = None
    deferred_tool_use: Any = None
    total_lines_added: int | None = None
    total_lines_removed: int | None = None


class Result(ResultFields, tag_field="type", tag="result", kw_only=True):
    model_usage: Any = field(default=None, name="modelUsage")


class ToolProgress(_Frame, tag="tool_progress", kw_only=True):
    """A heartbeat of a running tool: the real id is in ``parent_tool_use_id``, the other has ``-heartbeat-n`` behind it."""

    tool_use_id: str
    tool_name: str | None = None
    parent_tool_use_id: str | None = None
    elapsed_time_seconds: float | None = None
    heartbeat: bool = False
    subagent_retry: Any = None


class ToolUseSummary(_Frame, tag="tool_use_summary", kw_only=True):
    """Declared in sdk.d.ts 0.3.312, in no recording."""

    summary: str
    preceding_tool_use_ids: list[str]


class RateLimitInfo(Wire):
    said_whole = True
    status: str | None = None
    resets_at: float | None = field(default=None, name="resetsAt")
    rate_limit_type: str | None = field(default=None, name="rateLimitType")
    utilization: float | None = None
    is_using_overage: bool | None = field(default=None, name="isUsingOverage")
    overage_status: str | None = field(default=None, name="overageStatus")
    overage_resets_at: float | None = field(default=None, name="overageResetsAt")
    overage_disabled_reason: str | None = field(default=None, name="overageDisabledReason")


class RateLimitEvent(_Frame, tag="rate_limit_event", kw_only=True):
    rate_limit_info: RateLimitInfo


class AuthStatus(_Frame, tag="auth_status", kw_only=True):
    is_authenticating: bool = field(default=False, name="isAuthenticating")
    output: list[Any] | None = None
    error: str | None = None


class PromptSuggestion(_Frame, tag="prompt_suggestion", kw_only=True):
    suggestion: str


class CommandLifecycle(_Frame, tag="command_lifecycle", kw_only=True):
    """What becomes of a user message that has a uuid. Not in the SDK's declared union."""

    command_uuid: str
    state: str


class ResetFields(Wire):
    new_conversation_id: str | None = None
    trigger: str | None = None
    timestamp: str | None = None


class ConversationReset(ResetFields, tag_field="type", tag="conversation_reset"):
    """/clear: later frames have another session id."""


class TranscriptMirror(_Frame, tag="transcript_mirror"):
    """Lines of the session file as they are written. Not in the SDK's declared union; read the file's format for their meaning."""

    file_path: str | None = field(default=None, name="filePath")
    entries: list[Any] | None = None


class ActiveGoal(_Frame, tag="active_goal", kw_only=True):
    """Declared in sdk.d.ts 0.3.312, in no recording."""

    value: Any = None


class KeepAlive(_Frame, tag="keep_alive"):
    """Declared in sdk.d.ts 0.3.312, in no recording."""


# ---- the control protocol


class CanUseTool(Wire, tag_field="subtype", tag="can_use_tool"):
    """``can_use_tool``: may this tool run with this input?"""

    tool_name: str
    input: Any = None
    tool_use_id: str | None = None
    description: str | None = None
    permission_suggestions: list[Any] | None = None


class Elicitation(Wire, tag_field="subtype", tag="elicitation"):
    """``elicitation``: an MCP server asks the user."""

    message: str | None = None
    mcp_server_name: str | None = None
    requested_schema: Any = None


class ControlRequest(_Frame, tag="control_request"):
    """Either side asks; ``subtype`` inside says what."""

    request_id: str
    request: Annotated[Any, nested(CanUseTool | Elicitation)]


class PermissionResult(Wire):
    """Our answer to ``can_use_tool``."""

    behavior: str | None = None
    updated_input: Any = field(default=None, name="updatedInput")
    updated_permissions: list[Any] | None = field(default=None, name="updatedPermissions")
    message: str | None = None
    interrupt: bool = False


class ControlAnswer(Wire):
    request_id: str
    subtype: str
    response: Annotated[Any, nested(PermissionResult, having="behavior")] = None
    error: Any = None
    error_code: str | None = None


class ControlResponse(_Frame, tag="control_response"):
    response: ControlAnswer


class ControlCancelRequest(_Frame, tag="control_cancel_request"):
    """The asking side withdraws its question."""

    request_id: str


Frame = union_of(_Frame, StreamEvent, Result, ConversationReset)


prepare(globals())
