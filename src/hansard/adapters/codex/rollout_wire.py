"""The lines of Codex's rollout files, ``sessions/YYYY/MM/DD/rollout-*.jsonl``: core 0.166 (paginated) and core 0.137 (legacy).

Event types that no recording shows are those that codex-rs/rollout/src/policy.rs persists in one of its modes.
"""

from __future__ import annotations

from typing import Annotated, Any, get_args

from msgspec import field

from hansard.adapter import Wire, read_as
from hansard.adapters.codex.responses import ResponseItem
from hansard.structs import prepare

# ---- items (event_msg/item_completed)


class _Item(Wire, tag_field="type", kw_only=True):
    id: str


class UserMessageItem(_Item, tag="UserMessage", kw_only=True):
    content: list[Any]
    client_id: str | None = None


class AgentMessageItem(_Item, tag="AgentMessage", kw_only=True):
    content: list[Any]
    phase: str | None = None
    memory_citation: Any = None


class HookPromptItem(_Item, tag="HookPrompt", kw_only=True):
    fragments: list[Any]


class FunctionCallOutputItem(_Item, tag="FunctionCallOutput", kw_only=True):
    output: Any = None
    name: str | None = None


class PlanItem(_Item, tag="Plan", kw_only=True):
    text: str


class ReasoningItem(_Item, tag="Reasoning", kw_only=True):
    summary_text: list[Any] | None = None
    raw_content: list[Any] | None = None


class CommandExecutionItem(_Item, tag="CommandExecution", kw_only=True):
    command: Any
    cwd: str | None = None
    source: str | None = None
    status: str | None = None
    aggregated_output: str | None = None
    exit_code: int | None = None
    duration: Any = None


class FileChangeItem(_Item, tag="FileChange", kw_only=True):
    changes: Any
    status: str | None = None
    stdout: str | None = None
    stderr: str | None = None


class McpToolCallItem(_Item, tag="McpToolCall", kw_only=True):
    server: str
    tool: str
    arguments: Any = None
    status: str | None = None
    result: Any = None
    error: Any = None
    duration: Any = None


class DynamicToolCallItem(_Item, tag="DynamicToolCall", kw_only=True):
    tool: str
    namespace: str | None = None
    arguments: Any = None
    status: str | None = None
    content_items: Any = None
    success: bool | None = None
    duration: Any = None


class CollabAgentToolCallItem(_Item, tag="CollabAgentToolCall", kw_only=True):
    said_whole = True
    tool: str
    status: str | None = None
    prompt: str | None = None
    model: str | None = None
    reasoning_effort: str | None = None
    sender_thread_id: str | None = None
    receiver_thread_ids: list[str] | None = None
    receiver_agents: list[Any] | None = None
    agents_states: Any = None


class SubAgentActivityItem(_Item, tag="SubAgentActivity", kw_only=True):
    said_whole = True
    kind: str
    agent_thread_id: str
    agent_path: str | None = None
    model: str | None = None
    reasoning_effort: str | None = None


class WebSearchItem(_Item, tag="WebSearch", kw_only=True):
    query: str | None = None
    action: Any = None
    results: Any = None


class ImageViewItem(_Item, tag="ImageView", kw_only=True):
    path: str


class ImageGenerationItem(_Item, tag="ImageGeneration", kw_only=True):
    status: str | None = None
    revised_prompt: str | None = None
    result: str | None = None
    saved_path: str | None = None


class SleepItem(_Item, tag="Sleep", kw_only=True):
    duration_ms: int | None = None


class ExtensionItem(_Item, tag="Extension", kw_only=True):
    kind: str
    duration_ms: int | None = field(default=None, name="durationMs")


class EnteredReviewModeItem(_Item, tag="EnteredReviewMode", kw_only=True):
    said_whole = True
    target: Any = None
    user_facing_hint: str | None = None


class ExitedReviewModeItem(_Item, tag="ExitedReviewMode", kw_only=True):
    said_whole = True
    review_output: Any = None


class ContextCompactionItem(_Item, tag="ContextCompaction", kw_only=True):
    pass


Item = (
    UserMessageItem
    | AgentMessageItem
    | HookPromptItem
    | FunctionCallOutputItem
    | PlanItem
    | ReasoningItem
    | CommandExecutionItem
    | FileChangeItem
    | McpToolCallItem
    | DynamicToolCallItem
    | CollabAgentToolCallItem
    | SubAgentActivityItem
    | WebSearchItem
    | ImageViewItem
    | ImageGenerationItem
    | SleepItem
    | ExtensionItem
    | EnteredReviewModeItem
    | ExitedReviewModeItem
    | ContextCompactionItem
)

# ---- event_msg


class _Event(Wire, tag_field="type", kw_only=True):
    pass


class Attribution(Wire):
    turn_trigger: str | None = None
    parent_turn_id: str | None = None


class TaskStarted(_Event, tag="task_started", kw_only=True):
    turn_id: str | None = None
    turn_attribution: Attribution | None = None


class TurnStarted(TaskStarted, tag="turn_started", kw_only=True):
    """What older files call it."""


class Failure(Wire):
    message: str
    codex_error_info: Any = None


class TaskComplete(_Event, tag="task_complete", kw_only=True):
    turn_id: str | None = None
    last_agent_message: str | None = None
    error: Failure | None = None
    duration_ms: int | None = None


class TurnComplete(TaskComplete, tag="turn_complete", kw_only=True):
    """What older files call it."""


class TurnAborted(_Event, tag="turn_aborted", kw_only=True):
    reason: str | None = None
    duration_ms: int | None = None


class ItemCompleted(_Event, tag="item_completed", kw_only=True):
    item: Item


class Tokens(Wire):
    total_tokens: int | None = None
    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_output_tokens: int | None = None


class TokenInfo(Wire):
    total_token_usage: Tokens
    last_token_usage: Tokens
    model_context_window: int | None = None


class Window(Wire):
    said_whole = True
    used_percent: float | None = None
    window_minutes: int | None = None
    resets_at: int | None = None


class RateLimits(Wire):
    said_whole = True
    limit_id: str | None = None
    limit_name: str | None = None
    primary: Window | None = None
    secondary: Window | None = None
    credits: Any = None
    individual_limit: Any = None
    plan_type: Any = None
    rate_limit_reached_type: Any = None
    spend_control_reached: bool | None = None


class TokenCount(_Event, tag="token_count", kw_only=True):
    info: TokenInfo | None = None
    rate_limits: RateLimits | None = None


class SettingsApplied(_Event, tag="thread_settings_applied", kw_only=True):
    thread_settings: Any = None


class UserMessage(_Event, tag="user_message", kw_only=True):
    message: str
    images: list[Any] | None = None
    local_images: list[Any] | None = None


class AgentMessage(_Event, tag="agent_message", kw_only=True):
    message: str
    phase: str | None = None
    memory_citation: Any = None


class AgentReasoning(_Event, tag="agent_reasoning", kw_only=True):
    text: str


class AgentReasoningRaw(_Event, tag="agent_reasoning_raw_content", kw_only=True):
    text: str


class Invocation(Wire):
    server: str
    tool: str
    arguments: Any = None


class McpToolCallEnd(_Event, tag="mcp_tool_call_end", kw_only=True):
    call_id: str
    invocation: Invocation
    result: Any = None
    duration: Any = None


class PatchApplyEnd(_Event, tag="patch_apply_end", kw_only=True):
    call_id: str
    changes: Any = None
    stdout: str | None = None
    stderr: str | None = None
    success: bool | None = None
    status: str | None = None


class ExecCommandEnd(_Event, tag="exec_command_end", kw_only=True):
    call_id: str
    command: Any = None
    cwd: str | None = None
    source: str | None = None
    aggregated_output: str | None = None
    exit_code: int | None = None
    status: str | None = None
    duration: Any = None


class WebSearchEnd(_Event, tag="web_search_end", kw_only=True):
    call_id: str
    query: str | None = None
    action: Any = None


class ImageGenerationEnd(_Event, tag="image_generation_end", kw_only=True):
    call_id: str
    status: str | None = None
    revised_prompt: str | None = None
    result: str | None = None
    saved_path: str | None = None


class ContextCompacted(_Event, tag="context_compacted"):
    pass


class ThreadNameUpdated(_Event, tag="thread_name_updated", kw_only=True):
    thread_name: str | None = None


class ThreadRolledBack(_Event, tag="thread_rolled_back", kw_only=True):
    said_whole = True
    num_turns: int | None = None


class ErrorEvent(_Event, tag="error", kw_only=True):
    message: str
    codex_error_info: Any = None


class StreamError(_Event, tag="stream_error", kw_only=True):
    message: str
    codex_error_info: Any = None
    additional_details: str | None = None


class PlanStep(Wire):
    step: str
    status: str


class PlanUpdate(_Event, tag="plan_update", kw_only=True):
    plan: list[PlanStep]


EventMsg = (
    TaskStarted
    | TurnStarted
    | TaskComplete
    | TurnComplete
    | TurnAborted
    | ItemCompleted
    | TokenCount
    | SettingsApplied
    | UserMessage
    | AgentMessage
    | AgentReasoning
    | AgentReasoningRaw
    | McpToolCallEnd
    | PatchApplyEnd
    | ExecCommandEnd
    | WebSearchEnd
    | ImageGenerationEnd
    | ContextCompacted
    | ThreadNameUpdated
    | ThreadRolledBack
    | ErrorEvent
    | StreamError
    | PlanUpdate
)

TOLD = (
    "thread_goal_updated",
    "entered_review_mode",
    "exited_review_mode",
    "undo_completed",
    "realtime_conversation_closed",
    "sub_agent_activity",
    "warning",
    "guardian_assessment",
    "guardian_warning",
    "deprecation_notice",
    "model_reroute",
    "model_verification",
    "turn_diff",
    "view_image_tool_call",
    "dynamic_tool_call_request",
    "dynamic_tool_call_response",
    "collab_agent_spawn_end",
    "collab_agent_interaction_end",
    "collab_waiting_end",
    "collab_close_end",
    "collab_resume_end",
    "mcp_startup_complete",
    "background_event",
    "hook_started",
    "hook_completed",
    "agent_reasoning_section_break",
    "session_configured",
    "shutdown_complete",
    "terminal_interaction",
)
"""Events that are passed on as they are: Codex's own word, and what it says with it."""

EVENTS: dict[str, Any] = {str(event.__struct_config__.tag): event for event in get_args(EventMsg)}

# ---- lines


class Meta(Wire):
    id: str
    timestamp: str | None = None
    cwd: str | None = None
    cli_version: str | None = None
    source: Any = None
    history_mode: str | None = None
    forked_from_id: str | None = None
    parent_thread_id: str | None = None
    dynamic_tools: list[Any] | None = None


class Settings(Wire):
    said_whole = True
    turn_id: str | None = None
    cwd: str | None = None
    model: str | None = None
    approval_policy: Any = None
    approvals_reviewer: Any = None
    sandbox_policy: Any = None
    permission_profile: Any = None
    effort: Any = None
    summary: Any = None
    collaboration_mode: Any = None


class Compaction(Wire):
    message: str
    replacement_history: list[Any] | None = None


class UsageRecord(Wire):
    usage: Tokens
    response_id: str | None = None


class _Line(Wire, tag_field="type", kw_only=True):
    timestamp: str | None = None


class SessionMeta(_Line, tag="session_meta", kw_only=True):
    payload: Meta


class TurnContext(_Line, tag="turn_context", kw_only=True):
    payload: Settings


class ResponseItemLine(_Line, tag="response_item", kw_only=True):
    payload: ResponseItem


class EventLine(_Line, tag="event_msg", kw_only=True):
    payload: Annotated[Any, read_as(EventMsg)]


class Compacted(_Line, tag="compacted", kw_only=True):
    payload: Compaction


class TokenUsageRecord(_Line, tag="token_usage_record", kw_only=True):
    payload: UsageRecord


class WorldState(_Line, tag="world_state", kw_only=True):
    payload: Any = None


class InterAgentMetadata(_Line, tag="inter_agent_communication_metadata", kw_only=True):
    payload: Any = None


class RetainedContext(_Line, tag="retained_context", kw_only=True):
    payload: Any = None


Line = (
    SessionMeta
    | TurnContext
    | ResponseItemLine
    | EventLine
    | Compacted
    | TokenUsageRecord
    | WorldState
    | InterAgentMetadata
    | RetainedContext
)


prepare(globals())
