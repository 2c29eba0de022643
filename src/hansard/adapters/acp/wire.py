"""The messages of the Agent Client Protocol as they are spelled: protocol version 1 and 2, npm @agentclientprotocol/sdk 2.4.0.

A field named here is a field we read; the rest stays in the original. A field that an update may leave out, set or clear is `Unset` when
it was left out. ``_meta`` is each agent's own; what we read of it is in `Meta`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import UNSET, UnsetType, field

from hansard.adapters.base import Wire, nested
from hansard.events.structs import prepare, union_of

Maybe = str | None | UnsetType


class _Camel(Wire, rename="camel"):
    """A part of a message; the wire spells its names in camelCase."""


# --------------------------------------------------------------------------------------------------------------------
# _meta: what the agents add


class ClaudeMeta(_Camel):
    """``_meta.claudeCode`` of claude-agent-acp."""

    tool_name: str | None = None
    parent_tool_use_id: str | None = None
    tool_response: Any = UNSET
    non_execution_kind: str | None = None
    kind: str | None = None


class TerminalText(Wire):
    """``_meta.terminal_output``: claude-agent-acp's way of passing on what a command printed."""

    data: str
    terminal_id: str | None = None


class TerminalExit(Wire):
    """``_meta.terminal_exit``: how that command ended."""

    exit_code: int | None = None
    signal: Any = None
    terminal_id: str | None = None


class CopilotMeta(_Camel):
    """``_meta["github.com/copilot"]``."""

    agent_id: str | None = None


class Counted(_Camel):
    """Tokens as ACP counts them; ``totalTokens`` also counts the cache, so we do not read it."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    thought_tokens: int | None = None
    cached_read_tokens: int | None = None
    cached_write_tokens: int | None = None


class TokenCount(Wire):
    """``_meta.quota.token_count`` of Gemini CLI."""

    input_tokens: int | None = None
    output_tokens: int | None = None


class Quota(Wire):
    """``_meta.quota``: the whole prompt, and per model."""

    token_count: TokenCount | None = None
    model_usage: list[Any] | None = None


class Meta(_Camel):
    """What we read of ``_meta``."""

    claude_code: ClaudeMeta | None = None
    terminal_output: TerminalText | None = field(default=None, name="terminal_output")
    terminal_exit: TerminalExit | None = field(default=None, name="terminal_exit")
    copilot: CopilotMeta | None = field(default=None, name="github.com/copilot")
    claude_model: str | None = field(default=None, name="_claude/model")
    claude_origin: Any = field(default=None, name="_claude/origin")
    tool_name: str | None = None
    server_id: str | None = None
    parent_tool_call_id: str | None = None
    usage: Counted | None = None
    duration_ms: float | None = None
    timestamp: int | None = None
    source: str | None = None
    context_compression: Any = None
    background_turn: Any = None
    available_skills: Any = None
    quota: Quota | None = None


# --------------------------------------------------------------------------------------------------------------------
# Content blocks


class TextContent(_Camel, tag_field="type", tag="text"):
    text: str


class ImageContent(_Camel, tag_field="type", tag="image"):
    data: str | None = None
    mime_type: str | None = None
    uri: str | None = None


class AudioContent(_Camel, tag_field="type", tag="audio"):
    data: str
    mime_type: str | None = None


class ResourceLink(_Camel, tag_field="type", tag="resource_link"):
    uri: str
    name: str | None = None
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None


class ResourceContents(_Camel):
    uri: str
    text: str | None = None
    blob: str | None = None
    mime_type: str | None = None


class EmbeddedResource(_Camel, tag_field="type", tag="resource"):
    resource: ResourceContents


Content = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource


class ContentItem(_Camel, tag_field="type", tag="content"):
    """A content block as the output of a tool."""

    content: Annotated[Any, nested(Content)]


class Change(_Camel):
    """A file in a version 2 diff."""

    path: str


class Patch(_Camel):
    text: str


class DiffItem(_Camel, tag_field="type", tag="diff"):
    """Version 1: whole texts of one file. Version 2: the files, and perhaps a patch."""

    path: str | None = None
    old_text: str | None = None
    new_text: str | None = None
    changes: list[Change] | None = None
    patch: Patch | None = None


class TerminalItem(_Camel, tag_field="type", tag="terminal"):
    terminal_id: str


ToolContent = ContentItem | DiffItem | TerminalItem


# --------------------------------------------------------------------------------------------------------------------
# session/update


class _Update(_Camel, tag_field="sessionUpdate", kw_only=True):
    meta: Annotated[Any, nested(Meta)] = field(default=None, name="_meta")


class _Chunk(_Update, kw_only=True):
    content: Annotated[Any, nested(Content)]
    message_id: str | None = None


class UserMessageChunk(_Chunk, tag="user_message_chunk"):
    """History, on session/load; seldom something new."""


class AgentMessageChunk(_Chunk, tag="agent_message_chunk"):
    """Text of the agent, or of the program in between."""


class AgentThoughtChunk(_Chunk, tag="agent_thought_chunk"):
    """What the agent thinks."""


class _Whole(_Update, kw_only=True):
    message_id: str
    content: Annotated[Any, nested(Content)] = UNSET


class UserMessage(_Whole, tag="user_message"):
    """Version 2: the echo of a prompt, with the id it got."""


class AgentMessage(_Whole, tag="agent_message"):
    """Version 2: the whole message; it replaces its chunks."""


class AgentThought(_Whole, tag="agent_thought"):
    """Version 2: the whole thought."""


class CallFields(_Camel, kw_only=True):
    """A tool call; every field but the id may be left out, and then is as it was."""

    tool_call_id: str
    name: Maybe = UNSET
    title: Maybe = UNSET
    kind: Maybe = UNSET
    status: Maybe = UNSET
    content: Annotated[Any, nested(ToolContent)] = UNSET
    locations: Any = UNSET
    raw_input: Any = UNSET
    raw_output: Any = UNSET
    meta: Annotated[Any, nested(Meta)] = field(default=None, name="_meta")


class ToolCall(CallFields, tag_field="sessionUpdate", tag="tool_call"):
    """Version 1: the first sight of a call, unless a permission request was."""


class ToolCallUpdate(CallFields, tag_field="sessionUpdate", tag="tool_call_update"):
    """More of a call; in version 2 also its first sight."""


class ToolCallContentChunk(_Update, tag="tool_call_content_chunk", kw_only=True):
    """Version 2: one more item of a call's content."""

    tool_call_id: str
    content: Annotated[Any, nested(ToolContent)]


class TerminalOutput(_Camel):
    data: str


class ExitStatus(_Camel):
    exit_code: int | None = None
    signal: Any = None


class TerminalUpdate(_Update, tag="terminal_update", kw_only=True):
    """Version 2: a terminal of the agent's own."""

    terminal_id: str
    command: str | None = None
    cwd: str | None = None
    output: TerminalOutput | None = None
    exit_status: ExitStatus | None = None
    size: Any = None


class TerminalOutputChunk(_Update, tag="terminal_output_chunk", kw_only=True):
    """Version 2: more bytes of its output, in base64."""

    terminal_id: str
    data: str


class Plan(_Update, tag="plan", kw_only=True):
    entries: list[Any]


class PlanUpdate(_Update, tag="plan_update", kw_only=True):
    plan: Any


class PlanRemoved(_Update, tag="plan_removed", kw_only=True):
    plan_id: str


class AvailableCommandsUpdate(_Update, tag="available_commands_update", kw_only=True):
    available_commands: list[Any]


class CurrentModeUpdate(_Update, tag="current_mode_update", kw_only=True):
    current_mode_id: str


class ConfigOptionUpdate(_Update, tag="config_option_update", kw_only=True):
    config_options: list[Any]


class SessionInfoUpdate(_Update, tag="session_info_update", kw_only=True):
    title: Maybe = UNSET
    updated_at: str | None = None
    meta: Any = field(default=None, name="_meta")


class Cost(_Camel):
    amount: float
    currency: str | None = None


class UsageUpdate(_Update, tag="usage_update", kw_only=True):
    """How full the context is, and what the session has cost."""

    used: int | None = None
    size: int | None = None
    cost: Cost | None = None


class StateUpdate(_Update, tag="state_update", kw_only=True):
    """Version 2: running, requires_action, idle; idle with a stop reason is the end of a turn."""

    state: str
    stop_reason: str | None = None
    usage: Counted | None = None
    error: Any = None
    background: Any = None


class Notice(_Update, tag="notice", kw_only=True):
    severity: str | None = None
    title: str | None = None
    description: str | None = None


class CompactionUpdate(_Update, tag="compaction_update", kw_only=True):
    compaction_id: str
    status: str
    summary: Annotated[Any, nested(Content)] = None
    error: str | None = None


class CompactionSummaryChunk(_Update, tag="compaction_summary_chunk", kw_only=True):
    compaction_id: str
    content: Annotated[Any, nested(Content)]


class SubagentUpdate(_Update, tag="subagent_update", kw_only=True):
    """A session of its own that this one started."""

    session_id: str
    title: str | None = None
    description: str | None = None
    state: Any = None
    cwd: str | None = None


class SessionMessage(_Update, tag="session_message", kw_only=True):
    """A message of one session to another; both report it."""

    message_id: str
    sender_session_id: str | None = None
    recipient_session_id: str | None = None
    content: Annotated[Any, nested(Content)] = None


class SessionMessageChunk(_Update, tag="session_message_chunk", kw_only=True):
    message_id: str
    content: Annotated[Any, nested(Content)]


if TYPE_CHECKING:
    Update = Any
else:
    Update = union_of(_Update, ToolCall, ToolCallUpdate)


# --------------------------------------------------------------------------------------------------------------------
# Parameters and results


class SessionUpdate(_Camel):
    """The parameters of session/update."""

    update: Annotated[Any, nested(Update)]
    session_id: str | None = None


class Option(_Camel):
    option_id: str
    name: str | None = None
    kind: str | None = None


class Subject(_Camel):
    """Version 2: what is asked about, a tool call or a command."""

    type: str
    tool_call: Annotated[Any, nested(CallFields)] = None
    command: str | None = None
    cwd: str | None = None
    tool_call_id: str | None = None


class RequestPermission(_Camel):
    """The parameters of session/request_permission."""

    options: list[Option]
    session_id: str | None = None
    tool_call: Annotated[Any, nested(CallFields)] = None
    subject: Subject | None = None
    title: str | None = None
    description: str | None = None


class Outcome(_Camel):
    outcome: str
    option_id: str | None = None


class PermissionResult(_Camel):
    outcome: Outcome


class Elicitation(_Camel):
    """The parameters of elicitation/create."""

    message: str | None = None
    mode: str | None = None
    requested_schema: Any = None
    url: str | None = None
    elicitation_id: str | None = None
    tool_call_id: str | None = None


class ElicitationResult(_Camel):
    action: str
    content: Any = None


class TerminalOutputResult(_Camel):
    """Our answer to terminal/output."""

    output: str
    exit_status: ExitStatus | None = None


class Prompt(_Camel):
    """The parameters of session/prompt."""

    prompt: Annotated[Any, nested(Content)]
    session_id: str | None = None


class PromptResult(_Camel):
    """Version 1: how the turn ended. Version 2: the id the prompt got, and nothing of its end."""

    stop_reason: str | None = None
    usage: Counted | None = None
    message_id: str | None = None
    meta: Annotated[Any, nested(Meta, having="quota")] = field(default=None, name="_meta")


class Implementation(_Camel):
    name: str
    version: str | None = None


class InitializeResult(_Camel):
    """Version 2 has ``info`` and ``capabilities``."""

    protocol_version: int | None = None
    agent_info: Implementation | None = None
    info: Implementation | None = None
    agent_capabilities: Any = None
    capabilities: Any = None
    auth_methods: list[Any] | None = None


class ModeState(_Camel):
    current_mode_id: str | None = None
    available_modes: list[Any] | None = None


class ModelState(_Camel):
    current_model_id: str | None = None
    available_models: list[Any] | None = None


class SessionResult(_Camel):
    """The answer to session/new, load, resume and fork."""

    session_id: str | None = None
    modes: ModeState | None = None
    models: ModelState | None = None
    config_options: list[Any] | None = None
    available_commands: list[Any] | None = None


class Failure(Wire):
    """An error of JSON-RPC."""

    code: int | None = None
    message: str | None = None
    data: Any = None


PARAMS = {
    "update": SessionUpdate,
    "options": RequestPermission,
    "requestedSchema": Elicitation,
    "elicitationId": Elicitation,
    "prompt": Prompt,
}
"""Parameters that we read field by field, by the field that identifies them; all others are carried whole."""

RESULTS = {"stopReason": PromptResult, "outcome": PermissionResult, "action": ElicitationResult}
"""Results that we read field by field."""


class Message(Wire):
    """A message of JSON-RPC 2.0. An ``id`` may be 1, 1.0 or "1": three different ids."""

    jsonrpc: Any = None
    id: Any = UNSET
    method: str | None = None
    params: Annotated[Any, nested(PARAMS)] = None
    result: Annotated[Any, nested(RESULTS)] = UNSET
    error: Annotated[Any, nested(Failure)] = UNSET


class _TypedUpdate(SessionUpdate):
    update: Update


class UpdateMessage(Wire):
    """A session/update whose fields all have the declared types: nearly every message of a stream, and decoded in one step."""

    method: Literal["session/update"]
    params: _TypedUpdate


prepare(globals())
