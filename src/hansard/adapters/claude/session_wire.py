"""The lines of Claude Code's session files (``~/.claude/projects/<cwd>/<session>.jsonl``), as Claude Code 2.1.325 spells them.

A field named here is a field we read. Lines marked "in no recording" are spelled as public tools that read these files spell them.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import field

from hansard.adapter import Wire, read_as
from hansard.adapters.claude.blocks import Block
from hansard.adapters.claude.wire import ContextUsage, Message
from hansard.structs import prepare


class _Any(Wire, rename="camel"):
    session_id: str | None = None
    timestamp: str | None = None


class _Line(_Any, tag_field="type"):
    pass


class _Spoken(_Any):
    """The head that user, assistant, attachment and system lines share."""

    uuid: str | None = None
    parent_uuid: str | None = None
    cwd: str | None = None
    version: str | None = None
    is_sidechain: bool = False
    agent_id: str | None = None
    forked_from: Any = None


# ---- what was said


class Assistant(_Spoken, tag_field="type", tag="assistant", kw_only=True):
    """One line per content block, each with the final stop reason and usage of the whole message."""

    message: Message
    api_block_index: int | None = None
    error: str | None = None
    is_api_error_message: bool = False
    api_error_status: int | None = None
    api_error_type: str | None = None
    error_details: Any = None
    stream_cut_error: Any = None
    is_aborted_mid_stream: bool = False
    thinking_duration_ms: int | None = None


class Said(Wire):
    content: Annotated[Any, read_as(Block)]


class User(_Spoken, tag_field="type", tag="user", kw_only=True):
    """A prompt, tool results, or what the harness told the model; the fields say which."""

    message: Said
    prompt_id: str | None = None
    prompt_source: str | None = None
    turn_position: Any = None
    origin: Any = None
    permission_mode: str | None = None
    is_meta: bool = False
    is_compact_summary: bool = False
    is_visible_in_transcript_only: bool = False
    turn_companion: bool = False
    tool_use_result: Any = None
    tool_denial_kind: str | None = None
    permission_decision: Any = None
    tool_ends_turn: bool = False


# ---- attachments: what the harness put beside a message


class QueuedCommand(Wire, tag_field="type", tag="queued_command"):
    """A prompt that came while the agent worked, and was given to the model in the middle of the turn."""

    prompt: Annotated[Any, read_as(Block)] = None
    source_uuid: str | None = None
    command_mode: str | None = field(default=None, name="commandMode")
    origin: Any = None


class File(Wire, tag_field="type", tag="file", rename="camel"):
    """A file that the user named with ``@``."""

    filename: str | None = None
    display_path: str | None = None
    content: Any = None


class Model(Wire, tag_field="type", tag="model"):
    identity: Any = None


class StructuredOutput(Wire, tag_field="type", tag="structured_output"):
    data: Any = None


class MaxTurnsReached(Wire, tag_field="type", tag="max_turns_reached", rename="camel"):
    said_whole = True
    max_turns: int | None = None
    turn_count: int | None = None


class Note(Wire, tag_field="type", rename="camel"):
    """An attachment whose declared fields go into the detail of a status_change. The text that the model saw stays in the original."""

    said_whole = True


class BudgetUsd(Note, tag="budget_usd"):
    used: float | None = None
    total: float | None = None
    remaining: float | None = None


class Environment(Note, tag="environment"):
    snapshot: Any = None
    changes: Any = None


class Date(Note, tag="date"):
    date: str | None = None


class SessionContext(Note, tag="session_context"):
    context: Any = None


class DeferredToolsDelta(Note, tag="deferred_tools_delta"):
    added_names: list[Any] | None = None
    removed_names: list[Any] | None = None
    readded_names: list[Any] | None = None
    pending_mcp_servers: list[Any] | None = None
    needs_auth_mcp_servers: list[Any] | None = None
    failed_mcp_servers: list[Any] | None = None


class AgentListingDelta(Note, tag="agent_listing_delta"):
    added_types: list[Any] | None = None
    removed_types: list[Any] | None = None
    is_initial: bool | None = None


class SkillListing(Note, tag="skill_listing"):
    names: list[Any] | None = None
    skill_count: int | None = None
    is_initial: bool | None = None


class McpInstructionsDelta(Note, tag="mcp_instructions_delta"):
    added_names: list[Any] | None = None
    added_blocks: list[Any] | None = None
    removed_names: list[Any] | None = None


class PromptSnapshot(Note, tag="prompt_snapshot"):
    """The whole system prompt and every tool, time and again: only in the original."""


class RemoteSessionChange(Note, tag="remote_session_change"):
    url: str | None = None
    commit: str | None = None
    pr: str | None = None


class TotalTokensReminder(Note, tag="total_tokens_reminder"):
    text: str | None = None


class TaskReminder(Note, tag="task_reminder"):
    content: Any = None
    item_count: int | None = None


class CommandPermissions(Note, tag="command_permissions"):
    allowed_tools: list[Any] | None = None


class PlanMode(Note, tag="plan_mode"):
    reminder_type: str | None = None
    is_sub_agent: bool | None = None
    plan_file_path: str | None = None
    plan_exists: bool | None = None


class PlanModeExit(Note, tag="plan_mode_exit"):
    plan_file_path: str | None = None
    plan_exists: bool | None = None


class UnknownCommandFallback(Note, tag="unknown_command_fallback"):
    command_name: str | None = None


class _Hook(Note):
    hook_name: str | None = None
    hook_event: str | None = None
    tool_use_id: str | None = field(default=None, name="toolUseID")
    content: Any = None
    stdout: str | None = None
    stderr: str | None = None
    exit_code: int | None = None
    command: str | None = None
    duration_ms: float | None = None


class HookSuccess(_Hook, tag="hook_success"):
    pass


class HookBlockingError(_Hook, tag="hook_blocking_error"):
    blocking_error: Any = None


class HookNonBlockingError(_Hook, tag="hook_non_blocking_error"):
    """In no recording."""


class HookCancelled(_Hook, tag="hook_cancelled"):
    """In no recording."""


class HookErrorDuringExecution(_Hook, tag="hook_error_during_execution"):
    """In no recording."""


class HookAdditionalContext(_Hook, tag="hook_additional_context"):
    """In no recording."""


class HookStoppedContinuation(_Hook, tag="hook_stopped_continuation"):
    """In no recording."""

    message: Any = None


class HookSystemMessage(_Hook, tag="hook_system_message"):
    """In no recording."""


class HookPermissionDecision(_Hook, tag="hook_permission_decision"):
    """In no recording."""

    decision: Any = None


class AsyncHookResponse(_Hook, tag="async_hook_response"):
    """In no recording."""

    response: Any = None


class TodoReminder(Note, tag="todo_reminder"):
    """In no recording: what task_reminder was before."""

    content: Any = None
    item_count: int | None = None


class EditedTextFile(Note, tag="edited_text_file"):
    """In no recording: a file the agent knew was changed by somebody else."""

    filename: str | None = None
    snippet: str | None = None


class EditedImageFile(Note, tag="edited_image_file"):
    """In no recording."""

    filename: str | None = None


class AlreadyReadFile(Note, tag="already_read_file"):
    """In no recording."""

    filename: str | None = None


class CompactFileReference(Note, tag="compact_file_reference"):
    """In no recording."""

    filename: str | None = None


class PlanFileReference(Note, tag="plan_file_reference"):
    """In no recording."""

    plan_file_path: str | None = None
    plan_content: str | None = None


class OpenedFileInIde(Note, tag="opened_file_in_ide"):
    """In no recording."""

    filename: str | None = None


class SelectedLinesInIde(Note, tag="selected_lines_in_ide"):
    """In no recording."""

    filename: str | None = None
    line_start: int | None = None
    line_end: int | None = None
    content: str | None = None


class Directory(Note, tag="directory"):
    """In no recording."""

    path: str | None = None
    content: Any = None


class NestedMemory(Note, tag="nested_memory"):
    """In no recording: a CLAUDE.md further down."""

    path: str | None = None
    content: Any = None


class RelevantMemories(Note, tag="relevant_memories"):
    """In no recording."""

    memories: Any = None


class Diagnostics(Note, tag="diagnostics"):
    """In no recording."""

    files: Any = None


class McpResource(Note, tag="mcp_resource"):
    """In no recording."""

    server: str | None = None
    uri: str | None = None
    name: str | None = None
    content: Any = None


class AgentMention(Note, tag="agent_mention"):
    """In no recording."""

    agent_type: str | None = None


class InvokedSkills(Note, tag="invoked_skills"):
    """In no recording."""

    skills: Any = None


class DateChange(Note, tag="date_change"):
    """In no recording."""

    new_date: str | None = None


class OutputStyle(Note, tag="output_style"):
    """In no recording."""

    style: str | None = None


class AutoMode(Note, tag="auto_mode"):
    """In no recording."""


class AutoModeExit(Note, tag="auto_mode_exit"):
    """In no recording."""


class PlanModeReentry(Note, tag="plan_mode_reentry"):
    """In no recording."""

    plan_file_path: str | None = None


class TaskStatus(Note, tag="task_status"):
    """In no recording."""

    task_id: str | None = None
    status: str | None = None
    description: str | None = None


class TokenUsage(Note, tag="token_usage"):
    """In no recording."""

    used: float | None = None
    total: float | None = None
    remaining: float | None = None


class CriticalSystemReminder(Note, tag="critical_system_reminder"):
    """In no recording."""

    content: Any = None


AnyAttachment = (
    QueuedCommand
    | File
    | Model
    | StructuredOutput
    | MaxTurnsReached
    | BudgetUsd
    | Environment
    | Date
    | SessionContext
    | DeferredToolsDelta
    | AgentListingDelta
    | SkillListing
    | McpInstructionsDelta
    | PromptSnapshot
    | RemoteSessionChange
    | TotalTokensReminder
    | TaskReminder
    | CommandPermissions
    | PlanMode
    | PlanModeExit
    | UnknownCommandFallback
    | HookSuccess
    | HookBlockingError
    | HookNonBlockingError
    | HookCancelled
    | HookErrorDuringExecution
    | HookAdditionalContext
    | HookStoppedContinuation
    | HookSystemMessage
    | HookPermissionDecision
    | AsyncHookResponse
    | TodoReminder
    | EditedTextFile
    | EditedImageFile
    | AlreadyReadFile
    | CompactFileReference
    | PlanFileReference
    | OpenedFileInIde
    | SelectedLinesInIde
    | Directory
    | NestedMemory
    | RelevantMemories
    | Diagnostics
    | McpResource
    | AgentMention
    | InvokedSkills
    | DateChange
    | OutputStyle
    | AutoMode
    | AutoModeExit
    | PlanModeReentry
    | TaskStatus
    | TokenUsage
    | CriticalSystemReminder
)


class Rendered(Wire):
    """What the model was shown of an attachment."""

    content: Annotated[Any, read_as(Block)] = None


class Attachment(_Spoken, tag_field="type", tag="attachment", kw_only=True):
    attachment: Annotated[Any, read_as(AnyAttachment)]
    rendered: Annotated[Any, read_as(Rendered)] = None


# ---- system lines: a second word says which


class _System(_Spoken, tag_field="subtype"):
    pass


class CompactBoundary(_System, tag="compact_boundary"):
    compact_metadata: Any = None


class MicrocompactBoundary(_System, tag="microcompact_boundary"):
    """In no recording."""

    microcompact_metadata: Any = None


class Failure(Wire):
    """The error of an api_error line; ``formatted`` is for people."""

    message: str | None = None
    formatted: str | None = None
    status: int | None = None


class ApiError(_System, tag="api_error"):
    """A call that failed and is tried again."""

    said_whole = True
    error: Annotated[Any, read_as(Failure)] = None
    retry_in_ms: float | None = None
    retry_attempt: int | None = None
    max_retries: int | None = None


class LocalCommand(_System, tag="local_command", kw_only=True):
    """What a slash command printed."""

    content: str
    context_usage: ContextUsage | None = field(default=None, name="contextUsage")


class ModelFallback(_System, tag="model_fallback"):
    said_whole = True
    fallback_model: str | None = None
    original_model: str | None = None
    trigger: str | None = None
    content: str | None = None


class ModelRefusalNoFallback(_System, tag="model_refusal_no_fallback"):
    content: str | None = None
    api_refusal_category: str | None = None
    api_refusal_explanation: str | None = None


class StopHookSummary(_System, tag="stop_hook_summary"):
    said_whole = True
    hook_count: int | None = None
    hook_infos: list[Any] | None = None
    hook_errors: list[Any] | None = None
    hook_additional_context: list[Any] | None = None
    prevented_continuation: bool | None = None
    stop_reason: str | None = None
    has_output: bool | None = None


class TurnDuration(_System, tag="turn_duration"):
    """In no recording: the interactive program's last word on a turn."""

    said_whole = True
    duration_ms: float | None = None


class Notice(_System):
    """A system line for people: its text and level go into the detail of a status_change."""

    said_whole = True
    content: Any = None
    level: str | None = None


class Informational(Notice, tag="informational"):
    pass


class AwaySummary(Notice, tag="away_summary"):
    """In no recording."""


class AgentsKilled(Notice, tag="agents_killed"):
    """In no recording."""


class ScheduledTaskFire(Notice, tag="scheduled_task_fire"):
    """In no recording."""


class BridgeStatus(Notice, tag="bridge_status"):
    """In no recording."""


class MemorySaved(Notice, tag="memory_saved"):
    """In no recording."""


AnySystem = (
    CompactBoundary
    | MicrocompactBoundary
    | ApiError
    | LocalCommand
    | ModelFallback
    | ModelRefusalNoFallback
    | StopHookSummary
    | TurnDuration
    | Informational
    | AwaySummary
    | AgentsKilled
    | ScheduledTaskFire
    | BridgeStatus
    | MemorySaved
)


class System(Wire, tag_field="type", tag="system"):
    refine = AnySystem


# ---- bookkeeping, without an id of its own


class QueueOperation(_Line, tag="queue-operation", kw_only=True):
    said_whole = True
    operation: str
    content: Any = None
    reason: str | None = None
    command_uuid: str | None = None


class Summary(_Line, tag="summary", kw_only=True):
    """In no recording: what earlier versions called a session."""

    summary: str
    leaf_uuid: str | None = None


class AiTitle(_Line, tag="ai-title", kw_only=True):
    """In no recording."""

    ai_title: str


class CustomTitle(_Line, tag="custom-title", kw_only=True):
    """Repeated from time to time, so that it stays near the end of the file."""

    custom_title: str


class AgentName(_Line, tag="agent-name", kw_only=True):
    agent_name: str


class Mode(_Line, tag="mode", kw_only=True):
    mode: str


class PermissionMode(_Line, tag="permission-mode", kw_only=True):
    """In no recording."""

    permission_mode: str


class CostState(_Line, tag="cost-state"):
    """Written when the program exits; the totals go on from those of the program before."""

    said_whole = True
    total_cost_usd: float | None = field(default=None, name="totalCostUSD")
    total_api_duration: float | None = field(default=None, name="totalAPIDuration")
    total_tool_duration: float | None = None
    total_duration: float | None = None
    total_lines_added: int | None = None
    total_lines_removed: int | None = None
    model_usage: Any = None


class FileHistorySnapshot(_Line, tag="file-history-snapshot"):
    said_whole = True
    message_id: str | None = None
    snapshot: Any = None
    is_snapshot_update: bool | None = None


class FileHistoryDelta(_Line, tag="file-history-delta"):
    snapshot_message_id: str | None = None
    tracking_path: str | None = None
    backup: Any = None


class Progress(_Line, tag="progress"):
    """In no recording: how a running tool or hook got on, in versions before 2.1.97."""

    data: Any = None
    tool_use_id: str | None = field(default=None, name="toolUseID")
    parent_tool_use_id: str | None = field(default=None, name="parentToolUseID")


class Book(_Line):
    """Bookkeeping whose declared fields go into the detail of a status_change."""

    said_whole = True


class LastPrompt(Book, tag="last-prompt"):
    last_prompt: str | None = None
    leaf_uuid: str | None = None


class ToolsUsed(Book, tag="tools-used"):
    tools: list[Any] | None = None


class AtisLatch(Book, tag="atis-latch"):
    atis: Any = None


class ApiRequest(Book, tag="api-request"):
    """With its shape and blobs a delta-coded copy of every request: most of the bytes of a file."""

    id: str | None = None
    query_source: str | None = None
    base: str | None = None
    shape_hash: str | None = None


class ApiRequestShape(Book, tag="api-request-shape"):
    shape_hash: str | None = None


class ApiRequestBlob(Book, tag="api-request-blob"):
    hash: str | None = None


class PrLink(Book, tag="pr-link"):
    """In no recording."""

    pr_number: int | None = None
    pr_url: str | None = None
    pr_repository: str | None = None


class Tag(Book, tag="tag"):
    """In no recording."""

    tag: str | None = None


class AgentColor(Book, tag="agent-color"):
    """In no recording."""

    agent_color: str | None = None


class AgentSetting(Book, tag="agent-setting"):
    """In no recording."""

    agent_setting: Any = None


class WorktreeState(Book, tag="worktree-state"):
    """In no recording."""

    worktree_session: Any = None


class TaskSummary(Book, tag="task-summary"):
    """In no recording."""

    summary: str | None = None


class AttributionSnapshot(Book, tag="attribution-snapshot"):
    """In no recording."""

    message_id: str | None = None
    surface: str | None = None


class ContentReplacement(Book, tag="content-replacement"):
    """In no recording."""

    replacements: Any = None


class BridgeSession(Book, tag="bridge-session"):
    """In no recording."""


class FrameLink(Book, tag="frame-link"):
    """In no recording."""


class HistorySuppression(Book, tag="history-suppression"):
    """In no recording."""


Line = (
    User
    | Assistant
    | Attachment
    | System
    | QueueOperation
    | Summary
    | AiTitle
    | CustomTitle
    | AgentName
    | Mode
    | PermissionMode
    | CostState
    | FileHistorySnapshot
    | FileHistoryDelta
    | Progress
    | LastPrompt
    | ToolsUsed
    | AtisLatch
    | ApiRequest
    | ApiRequestShape
    | ApiRequestBlob
    | PrLink
    | Tag
    | AgentColor
    | AgentSetting
    | WorktreeState
    | TaskSummary
    | AttributionSnapshot
    | ContentReplacement
    | BridgeSession
    | FrameLink
    | HistorySuppression
)


prepare(globals())
