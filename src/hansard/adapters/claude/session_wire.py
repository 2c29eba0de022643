"""The lines of Claude Code's session files (``~/.claude/projects/<cwd>/<session>.jsonl``), as Claude Code 2.1.325 spells them.

A field named here is a field we read. Lines marked "in no recording" are spelled as public tools that read these files spell them.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import field

from hansard.adapters.base import Wire, declare, nested
from hansard.adapters.claude.blocks import Block
from hansard.adapters.claude.wire import ContextUsage, Message
from hansard.events.structs import prepare, union_of


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
    git_branch: str | None = None
    entrypoint: str | None = None


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
    content: Annotated[Any, nested(Block)]


class ThinkingMetadata(Wire, rename="camel"):
    """How much the model may think about a prompt, as Claude Code 2.0 wrote it."""

    max_thinking_tokens: int | None = None


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
    thinking_metadata: ThinkingMetadata | None = None


# ---- attachments: what the harness put beside a message


class _Attached(Wire, tag_field="type", rename="camel"):
    pass


class QueuedCommand(_Attached, tag="queued_command"):
    """A prompt that came while the agent worked, and was given to the model in the middle of the turn."""

    prompt: Annotated[Any, nested(Block)] = None
    source_uuid: str | None = field(default=None, name="source_uuid")
    command_mode: str | None = None
    origin: Any = None


class File(_Attached, tag="file"):
    """A file that the user named with ``@``."""

    filename: str | None = None
    display_path: str | None = None
    content: Any = None


class Model(_Attached, tag="model"):
    identity: Any = None


class StructuredOutput(_Attached, tag="structured_output"):
    data: Any = None


class MaxTurnsReached(_Attached, tag="max_turns_reached"):
    said_whole = True
    max_turns: int | None = None
    turn_count: int | None = None


class _Note(_Attached):
    """An attachment whose declared fields go into the detail of a status_change. The text that the model saw stays in the original."""

    said_whole = True


class BudgetUsd(_Note, tag="budget_usd"):
    used: float | None = None
    total: float | None = None
    remaining: float | None = None


class _Hook(_Note):
    hook_name: str | None = None
    hook_event: str | None = None
    tool_use_id: str | None = field(default=None, name="toolUseID")
    content: Any = None
    stdout: str | None = None
    stderr: str | None = None
    exit_code: int | None = None
    command: str | None = None
    duration_ms: float | None = None


_FILE = {"filename": str}
_CONTENT = {"content": Any}

NOTES = {
    BudgetUsd,
    *declare(
        _Note,
        {
            "environment": {"snapshot": Any, "changes": Any},
            "date": {"date": str},
            "session_context": {"context": Any},
            "deferred_tools_delta": {
                "added_names": list[Any],
                "removed_names": list[Any],
                "readded_names": list[Any],
                "pending_mcp_servers": list[Any],
                "needs_auth_mcp_servers": list[Any],
                "failed_mcp_servers": list[Any],
            },
            "agent_listing_delta": {"added_types": list[Any], "removed_types": list[Any], "is_initial": bool},
            "skill_listing": {"names": list[Any], "skill_count": int, "is_initial": bool},
            "mcp_instructions_delta": {"added_names": list[Any], "added_blocks": list[Any], "removed_names": list[Any]},
            "prompt_snapshot": {},  # the whole system prompt and every tool, time and again: only in the original
            "remote_session_change": {"url": str, "commit": str, "pr": str},
            "total_tokens_reminder": {"text": str},
            "task_reminder": _CONTENT | {"item_count": int},
            "command_permissions": {"allowed_tools": list[Any]},
            "plan_mode": {"reminder_type": str, "is_sub_agent": bool, "plan_file_path": str, "plan_exists": bool},
            "plan_mode_exit": {"plan_file_path": str, "plan_exists": bool},
            "unknown_command_fallback": {"command_name": str},
            # In no recording.
            "todo_reminder": _CONTENT | {"item_count": int},  # the earlier name of task_reminder
            "edited_text_file": _FILE | {"snippet": str},  # changed by someone else after the agent read it
            "edited_image_file": _FILE,
            "already_read_file": _FILE,
            "compact_file_reference": _FILE,
            "plan_file_reference": {"plan_file_path": str, "plan_content": str},
            "opened_file_in_ide": _FILE,
            "selected_lines_in_ide": _FILE | {"line_start": int, "line_end": int, "content": str},
            "directory": {"path": str, "content": Any},
            "nested_memory": {"path": str, "content": Any},  # a CLAUDE.md in a subfolder
            "relevant_memories": {"memories": Any},
            "diagnostics": {"files": Any},
            "mcp_resource": {"server": str, "uri": str, "name": str, "content": Any},
            "agent_mention": {"agent_type": str},
            "invoked_skills": {"skills": Any},
            "date_change": {"new_date": str},
            "output_style": {"style": str},
            "auto_mode": {},
            "auto_mode_exit": {},
            "plan_mode_reentry": {"plan_file_path": str},
            "task_status": {"task_id": str, "status": str, "description": str},
            "token_usage": {"used": float, "total": float, "remaining": float},
            "critical_system_reminder": _CONTENT,
        },
    ),
    *declare(
        _Hook,
        {
            "hook_success": {},
            "hook_blocking_error": {"blocking_error": Any},
            # In no recording.
            "hook_non_blocking_error": {},
            "hook_cancelled": {},
            "hook_error_during_execution": {},
            "hook_additional_context": {},
            "hook_stopped_continuation": {"message": Any},
            "hook_system_message": {},
            "hook_permission_decision": {"decision": Any},
            "async_hook_response": {"response": Any},
        },
    ),
}

AnyAttachment = union_of(_Attached)


class Rendered(Wire):
    """What the model was shown of an attachment."""

    content: Annotated[Any, nested(Block)] = None


class Attachment(_Spoken, tag_field="type", tag="attachment", kw_only=True):
    attachment: Annotated[Any, nested(AnyAttachment)]
    rendered: Annotated[Any, nested(Rendered)] = None


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
    error: Annotated[Any, nested(Failure)] = None
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


class _Notice(_System):
    """A system line for people: its text and level go into the detail of a status_change."""

    said_whole = True
    content: Any = None
    level: str | None = None


# All but the first are in no recording.
NOTICES = declare(
    _Notice,
    {"informational": {}, "away_summary": {}, "agents_killed": {}, "scheduled_task_fire": {}, "bridge_status": {}, "memory_saved": {}},
)

AnySystem = union_of(_System)


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


class _Book(_Line):
    """Bookkeeping whose declared fields go into the detail of a status_change."""

    said_whole = True


class ThinkingConfig(Wire):
    budget_tokens: int | None = None


class RequestParams(Wire):
    thinking: ThinkingConfig | None = None


class ApiRequest(_Line, tag="api-request", kw_only=True):
    """With its shape and blobs a delta-coded copy of every request: most of the bytes of a file."""

    said_whole = True
    id: str | None = None
    query_source: str | None = None
    base: str | None = None
    shape_hash: str | None = None
    params: RequestParams | None = None


BOOKS = declare(
    _Book,
    {
        "last-prompt": {"last_prompt": str, "leaf_uuid": str},
        "tools-used": {"tools": list[Any]},
        "atis-latch": {"atis": Any},
        "api-request-shape": {"shape_hash": str},
        "api-request-blob": {"hash": str},
        # In no recording.
        "pr-link": {"pr_number": int, "pr_url": str, "pr_repository": str},
        "tag": {"tag": str},
        "agent-color": {"agent_color": str},
        "agent-setting": {"agent_setting": Any},
        "worktree-state": {"worktree_session": Any},
        "task-summary": {"summary": str},
        "attribution-snapshot": {"message_id": str, "surface": str},
        "content-replacement": {"replacements": Any},
        "bridge-session": {},
        "frame-link": {},
        "history-suppression": {},
    },
)

Line = union_of(User, Assistant, Attachment, System, _Line)


prepare(globals())
