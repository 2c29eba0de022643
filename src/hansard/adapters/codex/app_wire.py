"""What ``codex app-server`` 0.166.0 says, as its own schema spells it (``codex app-server generate-json-schema --experimental``).

A field named here is a field we read. The rest stays in the original.
"""

from __future__ import annotations

from typing import Any, get_args

from msgspec import field

from hansard.adapter import Wire
from hansard.adapters.codex.responses import ResponseItem
from hansard.structs import prepare

# ---- threads, turns, tokens


class Thread(Wire, rename="camel"):
    id: str
    cli_version: str | None = None
    cwd: str | None = None
    model: str | None = None
    forked_from_id: str | None = None
    parent_thread_id: str | None = None
    name: str | None = None
    path: str | None = None


class TurnError(Wire, rename="camel"):
    message: str
    codex_error_info: Any = None
    additional_details: str | None = None


class Tokens(Wire, rename="camel"):
    total_tokens: int | None = None
    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_output_tokens: int | None = None


class TokenUsage(Wire, rename="camel"):
    total: Tokens
    last: Tokens
    model_context_window: int | None = None


# ---- items of a thread


class _Item(Wire, tag_field="type", rename="camel", kw_only=True):
    id: str


class UserMessage(_Item, tag="userMessage", kw_only=True):
    content: list[Any]
    client_id: str | None = None


class HookPrompt(_Item, tag="hookPrompt", kw_only=True):
    fragments: list[Any]


class AgentMessage(_Item, tag="agentMessage", kw_only=True):
    text: str
    phase: str | None = None
    memory_citation: Any = None


class FunctionCallOutput(_Item, tag="functionCallOutput", kw_only=True):
    name: str
    output: Any
    namespace: str | None = None


class Plan(_Item, tag="plan", kw_only=True):
    text: str


class Reasoning(_Item, tag="reasoning", kw_only=True):
    summary: list[Any] | None = None
    content: list[Any] | None = None


class CommandExecution(_Item, tag="commandExecution", kw_only=True):
    command: str
    cwd: str | None = None
    source: str | None = None
    status: str | None = None
    aggregated_output: str | None = None
    exit_code: int | None = None
    duration_ms: int | None = None


class FileChange(_Item, tag="fileChange", kw_only=True):
    changes: list[Any]
    status: str | None = None


class McpToolCall(_Item, tag="mcpToolCall", kw_only=True):
    server: str
    tool: str
    arguments: Any = None
    status: str | None = None
    result: Any = None
    error: Any = None
    duration_ms: int | None = None


class DynamicToolCall(_Item, tag="dynamicToolCall", kw_only=True):
    tool: str
    namespace: str | None = None
    arguments: Any = None
    status: str | None = None
    content_items: Any = None
    success: bool | None = None
    duration_ms: int | None = None


class CollabAgentToolCall(_Item, tag="collabAgentToolCall", kw_only=True):
    said_whole = True
    tool: str
    sender_thread_id: str | None = None
    receiver_thread_ids: list[str] | None = None
    prompt: str | None = None
    model: str | None = None
    reasoning_effort: str | None = None
    agents_states: Any = None
    status: str | None = None


class SubAgentActivity(_Item, tag="subAgentActivity", kw_only=True):
    said_whole = True
    kind: str
    agent_thread_id: str
    agent_path: str | None = None
    model: str | None = None
    reasoning_effort: str | None = None


class WebSearch(_Item, tag="webSearch", kw_only=True):
    query: str | None = None
    action: Any = None
    results: Any = None


class ImageView(_Item, tag="imageView", kw_only=True):
    path: str


class Sleep(_Item, tag="sleep", kw_only=True):
    duration_ms: int | None = None


class ImageGeneration(_Item, tag="imageGeneration", kw_only=True):
    status: str | None = None
    revised_prompt: str | None = None
    result: str | None = None
    file_id: str | None = None
    saved_path: str | None = None


class EnteredReviewMode(_Item, tag="enteredReviewMode", kw_only=True):
    review: Any = None


class ExitedReviewMode(_Item, tag="exitedReviewMode", kw_only=True):
    review: Any = None


class ContextCompaction(_Item, tag="contextCompaction", kw_only=True):
    pass


Item = (
    UserMessage
    | HookPrompt
    | AgentMessage
    | FunctionCallOutput
    | Plan
    | Reasoning
    | CommandExecution
    | FileChange
    | McpToolCall
    | DynamicToolCall
    | CollabAgentToolCall
    | SubAgentActivity
    | WebSearch
    | ImageView
    | Sleep
    | ImageGeneration
    | EnteredReviewMode
    | ExitedReviewMode
    | ContextCompaction
)


class Turn(Wire, rename="camel"):
    id: str
    status: str | None = None
    error: TurnError | None = None
    duration_ms: int | None = None
    items: list[Any] | None = None


# ---- notifications: parameters


class OfThread(Wire, rename="camel"):
    thread_id: str | None = None


class OfTurn(OfThread, rename="camel"):
    turn_id: str | None = None


class OfItem(OfTurn, rename="camel", kw_only=True):
    item_id: str


class ErrorParams(OfTurn, rename="camel", kw_only=True):
    error: TurnError
    will_retry: bool = False


class ThreadParams(Wire, rename="camel"):
    thread: Thread


class StatusParams(OfThread, rename="camel", kw_only=True):
    status: Any


class NameParams(OfThread, rename="camel", kw_only=True):
    thread_name: str | None = None


class SettingsParams(OfThread, rename="camel", kw_only=True):
    thread_settings: Any


class TokenUsageParams(OfTurn, rename="camel", kw_only=True):
    token_usage: TokenUsage


class TurnParams(OfThread, rename="camel", kw_only=True):
    turn: Turn


class DiffParams(OfTurn, rename="camel", kw_only=True):
    diff: str


class PlanStep(Wire):
    step: str
    status: str


class PlanParams(OfTurn, rename="camel", kw_only=True):
    plan: list[PlanStep]
    explanation: str | None = None


class ItemParams(OfTurn, rename="camel", kw_only=True):
    item: Item


class ReviewParams(OfTurn, rename="camel", kw_only=True):
    said_whole = True
    review_id: str
    review: Any = None
    action: Any = None
    target_item_id: str | None = None
    decision_source: str | None = None


class DeltaParams(OfItem, rename="camel", kw_only=True):
    delta: str


class SummaryParams(DeltaParams, rename="camel", kw_only=True):
    summary_index: int = 0


class ReasoningParams(DeltaParams, rename="camel", kw_only=True):
    content_index: int = 0


class PatchParams(OfItem, rename="camel", kw_only=True):
    changes: list[Any]


class TerminalParams(OfItem, rename="camel", kw_only=True):
    said_whole = True
    stdin: str
    process_id: str | None = None


class ProgressParams(OfItem, rename="camel", kw_only=True):
    message: str


class OutputParams(Wire, rename="camel", kw_only=True):
    said_whole = True
    delta_base64: str = field(name="deltaBase64")
    stream: str | None = None
    process_id: str | None = None
    process_handle: str | None = None
    cap_reached: bool = False


class ResolvedParams(OfThread, rename="camel", kw_only=True):
    request_id: Any


class LoginParams(Wire, rename="camel", kw_only=True):
    success: bool
    error: str | None = None
    name: str | None = None
    login_id: str | None = None


class StartupParams(OfThread, rename="camel", kw_only=True):
    said_whole = True
    name: str
    status: str
    error: str | None = None
    failure_reason: Any = None


class GatewayParams(Wire, rename="camel", kw_only=True):
    provider_id: str
    status: str
    auth_url: str | None = None
    error: str | None = None


class Window(Wire, rename="camel"):
    said_whole = True
    used_percent: float | None = None
    window_duration_mins: int | None = None
    resets_at: int | None = None


class RateLimits(Wire, rename="camel"):
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


class RateLimitParams(Wire, rename="camel"):
    rate_limits: RateLimits


class ReroutedParams(OfTurn, rename="camel", kw_only=True):
    said_whole = True
    to_model: str
    from_model: str | None = None
    reason: Any = None


class RecoveryParams(OfTurn, rename="camel", kw_only=True):
    message: str
    provider: str | None = None


class RawItemParams(OfTurn, rename="camel", kw_only=True):
    item: ResponseItem


class RealtimeItemParams(OfThread, rename="camel", kw_only=True):
    item: Any = None


class TranscriptDeltaParams(OfThread, rename="camel", kw_only=True):
    delta: str
    role: str | None = None
    item_id: str | None = None


class TranscriptParams(OfThread, rename="camel", kw_only=True):
    role: str
    text: str


class Audio(Wire, rename="camel"):
    data: str
    sample_rate: int | None = None
    num_channels: int | None = None
    item_id: str | None = None


class AudioParams(OfThread, rename="camel", kw_only=True):
    audio: Audio


class RealtimeErrorParams(OfThread, rename="camel", kw_only=True):
    message: str


# ---- notifications


class _Note(Wire, tag_field="method", kw_only=True):
    emitted_at_ms: int | None = field(default=None, name="emittedAtMs")


class ErrorNote(_Note, tag="error"):
    params: ErrorParams


class ThreadStarted(_Note, tag="thread/started"):
    params: ThreadParams


class ThreadStatusChanged(_Note, tag="thread/status/changed"):
    params: StatusParams


class ThreadArchived(_Note, tag="thread/archived"):
    params: OfThread


class ThreadUnarchived(_Note, tag="thread/unarchived"):
    params: OfThread


class ThreadDeleted(_Note, tag="thread/deleted"):
    params: OfThread


class ThreadClosed(_Note, tag="thread/closed"):
    params: OfThread


class ThreadReverted(_Note, tag="thread/reverted"):
    params: OfThread


class ThreadNameUpdated(_Note, tag="thread/name/updated"):
    params: NameParams


class ThreadSettingsUpdated(_Note, tag="thread/settings/updated"):
    params: SettingsParams


class TokenUsageUpdated(_Note, tag="thread/tokenUsage/updated"):
    params: TokenUsageParams


class TurnStarted(_Note, tag="turn/started"):
    params: TurnParams


class TurnCompleted(_Note, tag="turn/completed"):
    params: TurnParams


class TurnDiffUpdated(_Note, tag="turn/diff/updated"):
    params: DiffParams


class TurnPlanUpdated(_Note, tag="turn/plan/updated"):
    params: PlanParams


class ItemStarted(_Note, tag="item/started"):
    params: ItemParams


class ItemCompleted(_Note, tag="item/completed"):
    params: ItemParams


class ReviewStarted(_Note, tag="item/autoApprovalReview/started"):
    params: ReviewParams


class ReviewCompleted(_Note, tag="item/autoApprovalReview/completed"):
    params: ReviewParams


class AgentMessageDelta(_Note, tag="item/agentMessage/delta"):
    params: DeltaParams


class PlanDelta(_Note, tag="item/plan/delta"):
    params: DeltaParams


class SummaryTextDelta(_Note, tag="item/reasoning/summaryTextDelta"):
    params: SummaryParams


class ReasoningTextDelta(_Note, tag="item/reasoning/textDelta"):
    params: ReasoningParams


class CommandOutputDelta(_Note, tag="item/commandExecution/outputDelta"):
    params: DeltaParams


class FileChangeOutputDelta(_Note, tag="item/fileChange/outputDelta"):
    params: DeltaParams


class PatchUpdated(_Note, tag="item/fileChange/patchUpdated"):
    params: PatchParams


class TerminalInteraction(_Note, tag="item/commandExecution/terminalInteraction"):
    params: TerminalParams


class McpProgress(_Note, tag="item/mcpToolCall/progress"):
    params: ProgressParams


class ExecOutputDelta(_Note, tag="command/exec/outputDelta"):
    params: OutputParams


class ProcessOutputDelta(_Note, tag="process/outputDelta"):
    params: OutputParams


class RequestResolved(_Note, tag="serverRequest/resolved"):
    params: ResolvedParams


class McpLoginCompleted(_Note, tag="mcpServer/oauthLogin/completed"):
    params: LoginParams


class McpStartupUpdated(_Note, tag="mcpServer/startupStatus/updated"):
    params: StartupParams


class AccountLoginCompleted(_Note, tag="account/login/completed"):
    params: LoginParams


class GatewayChanged(_Note, tag="account/gatewayOAuth/changed"):
    params: GatewayParams


class RateLimitsUpdated(_Note, tag="account/rateLimits/updated"):
    params: RateLimitParams


class ThreadCompacted(_Note, tag="thread/compacted"):
    params: OfTurn


class ModelRerouted(_Note, tag="model/rerouted"):
    params: ReroutedParams


class AuthRecoveryStarted(_Note, tag="modelProvider/authRecoveryStarted"):
    params: RecoveryParams


class AuthRecoveryCompleted(_Note, tag="modelProvider/authRecoveryCompleted"):
    params: RecoveryParams


class RawItemCompleted(_Note, tag="rawResponseItem/completed"):
    params: RawItemParams


class RealtimeItemCompleted(_Note, tag="thread/realtime/item/completed"):
    params: RealtimeItemParams


class TranscriptDelta(_Note, tag="thread/realtime/transcript/delta"):
    params: TranscriptDeltaParams


class TranscriptDone(_Note, tag="thread/realtime/transcript/done"):
    params: TranscriptParams


class OutputAudioDelta(_Note, tag="thread/realtime/outputAudio/delta"):
    params: AudioParams


class RealtimeError(_Note, tag="thread/realtime/error"):
    params: RealtimeErrorParams


class RealtimeClosed(_Note, tag="thread/realtime/closed"):
    params: Any


# ---- the envelope: JSON-RPC 2.0 without its "jsonrpc" field, both ways


class Envelope(Wire):
    """Enough of a message to know what it is."""

    method: str | None = None
    id: Any = None


class Request(Wire, kw_only=True):
    """A question of either side, or a notification of ours."""

    method: str
    id: Any = None
    params: Any = None


class RpcError(Wire):
    message: str
    code: int | None = None
    data: Any = None


class Reply(Wire, kw_only=True):
    """The answer of either side."""

    id: Any = None
    result: Any = None
    error: RpcError | None = None


class Notice(Wire, kw_only=True):
    """A notification that is passed on as it is: the agent's own word, and what it says with it."""

    method: str
    params: Any = None
    emitted_at_ms: int | None = field(default=None, name="emittedAtMs")


TOLD = (
    "thread/readState/changed",
    "skills/changed",
    "thread/attachment/updated",
    "thread/goal/updated",
    "thread/goal/cleared",
    "thread/prediction/updated",
    "thread/queue/changed",
    "project/changed",
    "thread/project/updated",
    "thread/environment/connected",
    "thread/environment/disconnected",
    "hook/started",
    "hook/completed",
    "autoApprovalReview/strictReviewRequired",
    "process/exited",
    "item/reasoning/summaryPartAdded",
    "mcpServer/event/stream/notification",
    "account/updated",
    "app/list/updated",
    "remoteControl/status/changed",
    "externalAgentConfig/import/progress",
    "externalAgentConfig/import/completed",
    "fs/changed",
    "model/verification",
    "model/safetyBuffering/updated",
    "turn/moderationMetadata",
    "warning",
    "guardianWarning",
    "deprecationNotice",
    "configWarning",
    "fuzzyFileSearch/sessionUpdated",
    "fuzzyFileSearch/sessionCompleted",
    "rawResponse/completed",
    "thread/realtime/started",
    "thread/realtime/itemAdded",
    "thread/realtime/item/started",
    "thread/realtime/item/transcript/delta",
    "thread/realtime/sdp",
    "windows/worldWritableWarning",
    "windowsSandbox/setupCompleted",
)
"""The notifications that are `Notice`s."""

Note = (
    ErrorNote
    | ThreadStarted
    | ThreadStatusChanged
    | ThreadArchived
    | ThreadUnarchived
    | ThreadDeleted
    | ThreadClosed
    | ThreadReverted
    | ThreadNameUpdated
    | ThreadSettingsUpdated
    | TokenUsageUpdated
    | TurnStarted
    | TurnCompleted
    | TurnDiffUpdated
    | TurnPlanUpdated
    | ItemStarted
    | ItemCompleted
    | ReviewStarted
    | ReviewCompleted
    | AgentMessageDelta
    | PlanDelta
    | SummaryTextDelta
    | ReasoningTextDelta
    | CommandOutputDelta
    | FileChangeOutputDelta
    | PatchUpdated
    | TerminalInteraction
    | McpProgress
    | ExecOutputDelta
    | ProcessOutputDelta
    | RequestResolved
    | McpLoginCompleted
    | McpStartupUpdated
    | AccountLoginCompleted
    | GatewayChanged
    | RateLimitsUpdated
    | ThreadCompacted
    | ModelRerouted
    | AuthRecoveryStarted
    | AuthRecoveryCompleted
    | RawItemCompleted
    | RealtimeItemCompleted
    | TranscriptDelta
    | TranscriptDone
    | OutputAudioDelta
    | RealtimeError
    | RealtimeClosed
)
NOTES: dict[str, Any] = {str(note.__struct_config__.tag): note for note in get_args(Note)} | dict.fromkeys(TOLD, Notice)
"""Every notification that the program declares, by its method."""


prepare(globals())
