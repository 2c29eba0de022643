"""What ``codex app-server`` 0.166.0 says, as its own schema spells it (``codex app-server generate-json-schema --experimental``).

A field named here is a field that the adapter reads. The rest stays in the original.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from msgspec import defstruct, field

from hansard.adapters.base import Wire
from hansard.adapters.codex import shared_wire as shared
from hansard.adapters.codex.response_items import ResponseItem
from hansard.events.structs import prepare, respell, union_of

# ---- threads and tokens


class GitInfo(Wire, rename="camel"):
    sha: str | None = None
    branch: str | None = None
    origin_url: str | None = None


class Thread(Wire, rename="camel"):
    id: str
    cli_version: str | None = None
    cwd: str | None = None
    model: str | None = None
    forked_from_id: str | None = None
    parent_thread_id: str | None = None
    name: str | None = None
    path: str | None = None
    source: Any = None
    git_info: GitInfo | None = None


if TYPE_CHECKING:
    from hansard.adapters.codex.shared_wire import RateLimits, Tokens, TurnError
else:
    RateLimits, Tokens, TurnError = (respell(one, rename="camel") for one in (shared.RateLimits, shared.Tokens, shared.TurnError))


class TokenUsage(Wire, rename="camel"):
    total: Tokens
    last: Tokens
    model_context_window: int | None = None


# ---- items of a thread


class _Item(Wire, tag_field="type", rename="camel", kw_only=True):
    id: str


class AgentMessage(_Item, tag="agentMessage", kw_only=True):
    text: str
    phase: str | None = None
    memory_citation: Any = None


class FunctionCallOutput(_Item, tag="functionCallOutput", kw_only=True):
    name: str
    output: Any
    namespace: str | None = None


class Reasoning(_Item, tag="reasoning", kw_only=True):
    summary: list[Any] | None = None
    content: list[Any] | None = None


class EnteredReviewMode(_Item, tag="enteredReviewMode", kw_only=True):
    review: Any = None


class ExitedReviewMode(_Item, tag="exitedReviewMode", kw_only=True):
    review: Any = None


if TYPE_CHECKING:
    Item = Any
else:
    Item = union_of(_Item, *(respell(one, rename="camel", tag=one.__name__[0].lower() + one.__name__[1:]) for one in shared.ITEMS))


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


class PlanParams(OfTurn, rename="camel", kw_only=True):
    plan: list[shared.PlanStep]
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


PARAMS: dict[str, Any] = {
    "error": ErrorParams,
    "thread/started": ThreadParams,
    "thread/status/changed": StatusParams,
    "thread/archived": OfThread,
    "thread/unarchived": OfThread,
    "thread/deleted": OfThread,
    "thread/closed": OfThread,
    "thread/reverted": OfThread,
    "thread/name/updated": NameParams,
    "thread/settings/updated": SettingsParams,
    "thread/tokenUsage/updated": TokenUsageParams,
    "turn/started": TurnParams,
    "turn/completed": TurnParams,
    "turn/diff/updated": DiffParams,
    "turn/plan/updated": PlanParams,
    "item/started": ItemParams,
    "item/completed": ItemParams,
    "item/autoApprovalReview/started": ReviewParams,
    "item/autoApprovalReview/completed": ReviewParams,
    "item/agentMessage/delta": DeltaParams,
    "item/plan/delta": DeltaParams,
    "item/reasoning/summaryTextDelta": SummaryParams,
    "item/reasoning/textDelta": ReasoningParams,
    "item/commandExecution/outputDelta": DeltaParams,
    "item/fileChange/outputDelta": DeltaParams,
    "item/fileChange/patchUpdated": PatchParams,
    "item/commandExecution/terminalInteraction": TerminalParams,
    "item/mcpToolCall/progress": ProgressParams,
    "command/exec/outputDelta": OutputParams,
    "process/outputDelta": OutputParams,
    "serverRequest/resolved": ResolvedParams,
    "mcpServer/oauthLogin/completed": LoginParams,
    "mcpServer/startupStatus/updated": StartupParams,
    "account/login/completed": LoginParams,
    "account/gatewayOAuth/changed": GatewayParams,
    "account/rateLimits/updated": RateLimitParams,
    "thread/compacted": OfTurn,
    "model/rerouted": ReroutedParams,
    "modelProvider/authRecoveryStarted": RecoveryParams,
    "modelProvider/authRecoveryCompleted": RecoveryParams,
    "rawResponseItem/completed": RawItemParams,
    "thread/realtime/item/completed": RealtimeItemParams,
    "thread/realtime/transcript/delta": TranscriptDeltaParams,
    "thread/realtime/transcript/done": TranscriptParams,
    "thread/realtime/outputAudio/delta": AudioParams,
    "thread/realtime/error": RealtimeErrorParams,
    "thread/realtime/closed": Any,
}
"""The parameters of each notification, by its method."""


class Notification(Wire, tag_field="method", kw_only=True):
    """The base of the notifications whose parameters are read."""

    emitted_at_ms: int | None = field(default=None, name="emittedAtMs")


Note = union_of(
    *(defstruct(method, [("params", params)], bases=(Notification,), tag=method, kw_only=True) for method, params in PARAMS.items())
)


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


class RpcError(Wire, kw_only=True):
    code: int | None = None
    message: str
    data: Any = None


class Reply(Wire, kw_only=True):
    """The answer of either side."""

    id: Any = None
    result: Any = None
    error: RpcError | None = None


class Notice(Wire, kw_only=True):
    """A notification that is passed on as it is: its method, and its parameters."""

    method: str
    params: Any = None
    emitted_at_ms: int | None = field(default=None, name="emittedAtMs")


PASSED_ON = (
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

NOTES: dict[str, Any] = {str(note.__struct_config__.tag): note for note in get_args(Note)} | dict.fromkeys(PASSED_ON, Notice)
"""Every notification that the program declares, by its method."""


prepare(globals())
