"""The lines of Codex's rollout files, ``sessions/YYYY/MM/DD/rollout-*.jsonl``: core 0.166 (paginated) and core 0.137 (legacy).

Event types that no recording shows are those that codex-rs/rollout/src/policy.rs persists in one of its modes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, get_args

from msgspec import field

from hansard.adapters.base import Wire, nested
from hansard.adapters.codex import shared_wire as shared
from hansard.adapters.codex.response_items import ResponseItem
from hansard.events.structs import prepare, respell, union_of

# ---- items (event_msg/item_completed)


class _Item(Wire, tag_field="type", kw_only=True):
    id: str


class AgentMessageItem(_Item, tag="AgentMessage", kw_only=True):
    content: list[Any]
    phase: str | None = None
    memory_citation: Any = None


class FunctionCallOutputItem(_Item, tag="FunctionCallOutput", kw_only=True):
    output: Any = None
    name: str | None = None


class ReasoningItem(_Item, tag="Reasoning", kw_only=True):
    summary_text: list[Any] | None = None
    raw_content: list[Any] | None = None


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


if TYPE_CHECKING:
    Item = Any
else:
    Item = union_of(_Item, *(respell(one, tag=one.__name__) for one in shared.ITEMS))

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
    """The same in older files."""


class TaskComplete(_Event, tag="task_complete", kw_only=True):
    turn_id: str | None = None
    last_agent_message: str | None = None
    error: shared.TurnError | None = None
    duration_ms: int | None = None


class TurnComplete(TaskComplete, tag="turn_complete", kw_only=True):
    """The same in older files."""


class TurnAborted(_Event, tag="turn_aborted", kw_only=True):
    reason: str | None = None
    duration_ms: int | None = None


class ItemCompleted(_Event, tag="item_completed", kw_only=True):
    item: Item


class TokenInfo(Wire):
    total_token_usage: shared.Tokens
    last_token_usage: shared.Tokens
    model_context_window: int | None = None


class TokenCount(_Event, tag="token_count", kw_only=True):
    info: TokenInfo | None = None
    rate_limits: shared.RateLimits | None = None


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


class PlanUpdate(_Event, tag="plan_update", kw_only=True):
    plan: list[shared.PlanStep]


class PatchApplyEnd(shared.FileChange, kw_only=True):
    success: bool | None = None


_CALL_ID = {"id": "call_id"}

TOOLS = {"exec_command_end": "exec_command", "patch_apply_end": "apply_patch"}
"""The tools whose calls these events of older files end."""

EventMsg = union_of(
    _Event,
    # Calls that are over, as older files tell them: the items under other tags.
    respell(shared.CommandExecution, rename=_CALL_ID, tag="exec_command_end"),
    respell(PatchApplyEnd, rename=_CALL_ID, tag="patch_apply_end"),
    respell(shared.WebSearch, rename=_CALL_ID, tag="web_search_end"),
    respell(shared.ImageGeneration, rename=_CALL_ID, tag="image_generation_end"),
)

PASSED_ON = (
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
"""Events that are passed on as they are: their type, and their fields."""

EVENTS: dict[str, Any] = {str(event.__struct_config__.tag): event for event in get_args(EventMsg)}

# ---- lines


class Git(Wire):
    commit_hash: str | None = None
    branch: str | None = None
    repository_url: str | None = None


class HistoryBase(Wire):
    """Where a fork leaves its parent's file, whose lines it continues to number."""

    end_ordinal_exclusive: int | None = None


class Meta(Wire):
    id: str
    timestamp: str | None = None
    cwd: str | None = None
    cli_version: str | None = None
    source: Any = None
    history_mode: str | None = None
    forked_from_id: str | None = None
    history_base: HistoryBase | None = None
    parent_thread_id: str | None = None
    dynamic_tools: list[Any] | None = None
    git: Git | None = None


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
    usage: shared.Tokens
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
    payload: Annotated[Any, nested(EventMsg)]


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


Line = union_of(_Line)


prepare(globals())
