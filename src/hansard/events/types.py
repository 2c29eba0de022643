"""The vocabulary: one envelope, and every type of event that can be in a log.

Decoding is validation. What a newer writer knows and this version does not (types, fields, values) survives: codec.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

import msgspec
from msgspec import Raw, Struct

from hansard.events.content import AnyBlock

SCHEMA_VERSION = 1
"""The version in the first event of a log. It changes when an old reader would misread a new log."""

EARLIEST_CALENDAR_MS = 100_000_000_000
"""Times below this (March 1973) count from the start of a recording and are not calendar times."""

TITLE_CHARACTERS = 200
"""The length of a title, wherever it comes from."""

# --------------------------------------------------------------------------------------------------------------------
# Shared parts

ErrorCode = Literal[
    "provider_auth",
    "api_error",
    "context_overflow",
    "output_length",
    "aborted",
    "rate_limit",
    "max_turns",
    "max_budget",
    "execution_error",
    "unknown",
]
TurnStatus = Literal["completed", "interrupted", "error", "refused", "max_tokens", "denied", "lost"]
RawReason = Literal["unknown_type", "invalid_json", "invalid_utf8", "wrong_shape", "too_large", "noise"]
ToolKind = Literal["execute", "read", "edit", "search", "fetch", "think", "agent", "mcp", "other"]
OptionKind = Literal["allow_once", "allow_always", "reject_once", "reject_always"]


class Part(Struct, rename="camel", omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """The root of payloads and of what they consist of. Absent means unknown: never 0, never ""."""


class Usage(Part):
    """Tokens. ``total_tokens`` is input + output; cache and reasoning tokens stand apart.

    Of the tokens that created a cache entry, ``hour_cache_creation_input_tokens`` are kept for an hour.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    reasoning_tokens: int | None = None
    hour_cache_creation_input_tokens: int | None = None
    service_tier: str | None = None


class ErrorInfo(Part):
    """What went wrong: a canonical code, and the provider's own words beside it."""

    code: ErrorCode
    message: str
    provider_code: str | None = None
    status: int | None = None
    retryable: bool | None = None
    retry_after_ms: int | None = None
    details: Any = None
    error_source: str | None = None


class PermissionOption(Part):
    """One of the answers an agent offers."""

    option_id: str
    name: str
    kind: OptionKind


class Workspace(Part):
    """Where an agent works, and for whom: as the agent reports it, or as hansard finds it when it runs the agent."""

    cwd: str | None = None
    repository: str | None = None
    """The top folder of the repository."""
    remote: str | None = None
    """Where the repository comes from, without user name and password."""
    branch: str | None = None
    commit: str | None = None
    machine: str | None = None
    person: str | None = None
    entry_point: str | None = None
    """How the agent was started: run, server, python, terminal, ide, ci, or the agent's own word."""


class PlanEntry(Part):
    """A line of a plan or to-do list."""

    content: str
    status: str
    priority: str | None = None
    id: str | None = None
    detail: Any = None


# --------------------------------------------------------------------------------------------------------------------
# The envelope

if TYPE_CHECKING:
    Original = Raw | None
else:
    Original = Raw  # msgspec 0.22 reads only null into `Raw | None`, and every frame would take the slow path


class Event(Struct, tag_field="type", rename="camel", omit_defaults=True, forbid_unknown_fields=True, kw_only=True, gc=False):
    """One thing that happened. ``seq`` is the only order and the only cursor; the store assigns it."""

    id: str = ""
    seq: int = 0
    timestamp: int = -1
    received_at: int | None = None
    session_id: str = ""
    turn_id: str | None = None
    response_id: str | None = None
    block_index: int | None = None
    parent_tool_call_id: str | None = None
    source: str | None = None
    synthetic: bool = False
    replay: bool = False
    """Whether this repeats what the log already has: an agent does so when it resumes, and so does another stream of the session.

    Every count and view skips it (`hansard.events.replays`)."""
    same_as: str | None = None
    """The event that this one repeats, where that is known: another stream reported it first (`hansard.adapters.linking`)."""
    after: str | None = None
    """The event that this one follows in the conversation, if it was recorded later than its place (`hansard.events.order`)."""
    frame: int | None = None
    stream: str | None = None
    direction: Literal["out"] | None = None
    command_id: str | None = None
    payload: Any
    original: Original = None
    eol: str | None = None
    extra: dict[str, Any] | None = msgspec.field(default=None, name="$extra")
    """What a newer writer said and this version does not model, by JSON pointer. Written back in place by `codec.encode`."""

    @property
    def type(self) -> str:
        """The word that says what happened."""
        return str(self.__struct_config__.tag)


class Unknown(Event, tag="$unknown", kw_only=True):
    """An event of a type (or a shape) this version does not know. ``fields`` is all of it, and all of it is written back."""

    fields: dict[str, Any]
    payload: Any = None

    @property
    def type(self) -> str:
        """The word the writer used."""
        return str(self.fields.get("type"))


MAIN_STREAM_MARK = "@"
"""How the name of a stream begins that reports the session itself, in addition to the first one. Other names are those of subagents."""
LIVE_STREAM = "@live"
"""The stream of the agents that hansard runs in a session that began as an import."""


def is_main_stream(stream: str | None) -> bool:
    """Returns whether a stream reports the session itself, and not a subagent."""
    return stream is None or stream.startswith(MAIN_STREAM_MARK)


def is_main_agent(event: Event) -> bool:
    """Returns whether the event is about the main agent, not about a subagent."""
    return event.parent_tool_call_id is None and is_main_stream(event.stream)


def agent_response_id(event: Event) -> str | None:
    """Returns the id of a response if it is the agent's own. Where the wire has none, an adapter makes one from the turn."""
    derived = event.turn_id is not None and event.response_id is not None and event.response_id.startswith(event.turn_id)
    return None if derived else event.response_id


# --------------------------------------------------------------------------------------------------------------------
# Turns, messages, thinking


class TurnStartPayload(Part):
    """Who set the turn off."""

    trigger: Literal["user", "callback", "system"]


class TurnStart(Event, tag="turn_start", kw_only=True):
    """A turn begins; its id is this event's ``turn_id``."""

    payload: TurnStartPayload


class TurnEndPayload(Part):
    """How it ended; ``stop_reason`` is the provider's own word.

    ``denied`` means that the turn stopped at a denied call. A turn in which the agent continued after it has another status.
    """

    status: TurnStatus
    stop_reason: str | None = None
    error: ErrorInfo | None = None


class TurnEnd(Event, tag="turn_end", kw_only=True):
    """A turn is over. Every turn ends, also after a crash."""

    payload: TurnEndPayload


class UserMessagePayload(Part):
    """What was said to the agent. Role is not authorship: injected context arrives as "user" too.

    ``role`` is the wire's own word where that is another one (system, developer). ``steer``: it was sent into a running turn.
    """

    text: str
    content: list[AnyBlock] | None = None
    author: Literal["human", "agent", "harness"] = "human"
    from_agent_id: str | None = None
    from_session_id: str | None = None
    queued: bool = False
    message_id: str | None = None
    role: str | None = None
    steer: bool = False


class UserMessage(Event, tag="user_message", kw_only=True):
    """Something was said to the agent."""

    payload: UserMessagePayload


class UserAudioPayload(Part):
    """Spoken input."""

    transcription: str
    duration_ms: int | None = None
    audio: str | None = None


class UserAudio(Event, tag="user_audio", kw_only=True):
    """Something was spoken to the agent; ``audio`` names a blob."""

    payload: UserAudioPayload


class TextPayload(Part):
    """A piece of text, exactly as long as it came."""

    text: str


class AssistantChunk(Event, tag="assistant_chunk", kw_only=True):
    """A piece of an answer."""

    payload: TextPayload


class AssistantDonePayload(Part):
    """The whole text of one block; it replaces its chunks."""

    text: str
    interrupted: bool = False
    phase: str | None = None
    citations: list[Any] | None = None


class AssistantDone(Event, tag="assistant_done", kw_only=True):
    """A text block is complete, or was cut off (``interrupted``)."""

    payload: AssistantDonePayload


class ThinkingChunk(Event, tag="thinking_chunk", kw_only=True):
    """A piece of reasoning."""

    payload: TextPayload


class ThinkingDonePayload(Part):
    """The whole of one reasoning block. ``redacted`` is the provider's sealed data."""

    text: str
    signature: str | None = None
    redacted: str | None = None
    budget_tokens: int | None = None
    summary: bool = False
    interrupted: bool = False
    duration_ms: int | None = None


class ThinkingDone(Event, tag="thinking_done", kw_only=True):
    """A reasoning block is complete."""

    payload: ThinkingDonePayload


class ContentBlockPayload(Part):
    """A block an assistant said that is neither text, thinking nor tool use."""

    block: AnyBlock


class ContentBlock(Event, tag="content_block", kw_only=True):
    """Image, file, code, refusal, document, resource, … or a block nobody knows (``raw``)."""

    payload: ContentBlockPayload


# --------------------------------------------------------------------------------------------------------------------
# Tools


class ToolCallPayload(Part):
    """A call: the provider's own id and name, any JSON as arguments (text if the wire's was not JSON)."""

    tool_call_id: str
    tool_name: str
    args: Any
    kind: ToolKind | None = None
    title: str | None = None
    server: str | None = None


class ToolCall(Event, tag="tool_call", kw_only=True):
    """A tool is called."""

    payload: ToolCallPayload


class ToolInputChunkPayload(Part):
    """A piece of the arguments while they are being written."""

    tool_call_id: str
    chunk: str
    offset: int
    tool_name: str | None = None


class ToolInputChunk(Event, tag="tool_input_chunk", kw_only=True):
    """Arguments, streaming."""

    payload: ToolInputChunkPayload


class ToolOutputChunkPayload(Part):
    """A piece of what a tool prints."""

    tool_call_id: str
    chunk: str
    offset: int
    stream: Literal["stdout", "stderr"] | None = None


class ToolOutputChunk(Event, tag="tool_output_chunk", kw_only=True):
    """Output, streaming."""

    payload: ToolOutputChunkPayload


class ToolProgressPayload(Part):
    """Where a call stands: pending, running, … in the agent's own word."""

    tool_call_id: str
    status: str
    tool_name: str | None = None
    title: str | None = None
    elapsed_ms: int | None = None
    content: list[AnyBlock] | None = None
    detail: Any = None


class ToolProgress(Event, tag="tool_progress", kw_only=True):
    """A call moves on."""

    payload: ToolProgressPayload


class ToolResultPayload(Part):
    """What a tool gave back. ``result`` is any JSON, its structure kept.

    ``background``: it was only started, and continues after its result. A ``tool_progress`` with the last status tells how it ended.
    """

    tool_call_id: str
    result: Any
    tool_name: str | None = None
    content: list[AnyBlock] | None = None
    is_error: bool | None = None
    error: str | None = None
    exit_code: int | None = None
    duration_ms: int | None = None
    background: bool = False


class ToolResult(Event, tag="tool_result", kw_only=True):
    """A call is over. Every call ends, also after an interrupt (``synthetic``, with an error)."""

    payload: ToolResultPayload


class ToolUseSummaryPayload(Part):
    """Several calls in a sentence."""

    summary: str
    tool_call_ids: list[str]


class ToolUseSummary(Event, tag="tool_use_summary", kw_only=True):
    """The agent sums up what its tools did."""

    payload: ToolUseSummaryPayload


# --------------------------------------------------------------------------------------------------------------------
# Agents among themselves


class AgentMessagePayload(Part):
    """From this session to another agent's."""

    message_id: str
    target_agent_id: str
    message: str
    target_session_id: str | None = None
    wait: bool = False


class AgentMessage(Event, tag="agent_message", kw_only=True):
    """An agent asks another one."""

    payload: AgentMessagePayload


class AgentCallbackPayload(Part):
    """The other agent's answer. If it came to no good end, ``error`` says why, and ``result`` is what there is of an answer.

    ``as_result``: the agent that asked waited, and got the answer as the result of its call. It is not sent again.
    """

    message_id: str
    result: Any
    from_agent_id: str | None = None
    from_session_id: str | None = None
    error: str | None = None
    as_result: bool = False


class AgentCallback(Event, tag="agent_callback", kw_only=True):
    """The answer to an ``agent_message``."""

    payload: AgentCallbackPayload


class AgentSwitchPayload(Part):
    """Which agent continues the session, and with which options if they were chosen."""

    to_agent_id: str
    from_agent_id: str | None = None
    options: Any = None


class AgentSwitch(Event, tag="agent_switch", kw_only=True):
    """Another agent continues this session."""

    payload: AgentSwitchPayload


# --------------------------------------------------------------------------------------------------------------------
# Interrupts, errors, audio


class InterruptPayload(Part):
    """Why it was stopped, and by whom."""

    reason: Literal["user_cancel", "timeout", "error"]
    by: str | None = None


class Interrupt(Event, tag="interrupt", kw_only=True):
    """Somebody or something stopped the turn."""

    payload: InterruptPayload


class Error(Event, tag="error", kw_only=True):
    """Something failed; it may be retried, or end the turn."""

    payload: ErrorInfo


class AudioChunkPayload(Part):
    """A piece of sound: inline base64 or a blob."""

    seq: int
    data: str | None = None
    blob: str | None = None
    media_type: str | None = None


class AudioChunk(Event, tag="audio_chunk", kw_only=True):
    """Sound, streaming."""

    payload: AudioChunkPayload


class AudioDonePayload(Part):
    """The whole of what was spoken."""

    duration_ms: int | None = None
    transcript: str | None = None
    audio: str | None = None


class AudioDone(Event, tag="audio_done", kw_only=True):
    """The agent stopped speaking; ``audio`` names a blob."""

    payload: AudioDonePayload


# --------------------------------------------------------------------------------------------------------------------
# Sessions


class SessionInitPayload(Part):
    """Who is there and what it can do."""

    agent_id: str
    agent_version: str | None = None
    provider_session_id: str | None = None
    model: str | None = None
    cwd: str | None = None
    tools: list[Any] | None = None
    mcp_servers: list[Any] | None = None
    commands: list[Any] | None = None
    skills: list[Any] | None = None
    agents: list[Any] | None = None
    plugins: list[Any] | None = None
    permission_mode: str | None = None
    modes: list[Any] | None = None
    models: list[Any] | None = None
    capabilities: Any = None
    auth_methods: list[Any] | None = None
    api_key_source: str | None = None
    output_style: str | None = None
    workspace: Workspace | None = None


class SessionInit(Event, tag="session_init", kw_only=True):
    """The agent introduces itself."""

    payload: SessionInitPayload


class StatusChangePayload(Part):
    """The agent's own word for what it is doing."""

    status: str
    detail: Any = None


class StatusChange(Event, tag="status_change", kw_only=True):
    """running, idle, compacting, retrying, step_start, hook_started, …"""

    payload: StatusChangePayload


class ResultPayload(Part):
    """What the agent itself reports at the end of a turn.

    ``model_usage`` is as the agent reports it: an object has the session's totals by model, a list what each model used in this turn.
    """

    status: TurnStatus
    subtype: str | None = None
    text: str | None = None
    structured_output: Any = None
    usage: Usage | None = None
    model_usage: Any = None
    cost_usd: float | None = None
    duration_ms: int | None = None
    duration_api_ms: int | None = None
    num_turns: int | None = None
    stop_reason: str | None = None
    permission_denials: list[Any] | None = None
    lines_added: int | None = None
    lines_removed: int | None = None
    error: ErrorInfo | None = None


class Result(Event, tag="result", kw_only=True):
    """The agent's own summing-up of a turn."""

    payload: ResultPayload


class UsagePayload(Part):
    """Tokens and money, and what they were spent on.

    ``origin_id`` names the provider's response where the event's ``response_id`` does not: it is the same in a fork's copy.
    ``model_usage`` are the session's totals by model, as the agent reports them.
    """

    scope: Literal["message", "turn", "session", "context"]
    usage: Usage
    model: str | None = None
    cost_usd: float | None = None
    context_window: int | None = None
    origin_id: str | None = None
    model_usage: Any = None


class UsageEvent(Event, tag="usage", kw_only=True):
    """What was used. One final ``message`` usage per provider message, however often the wire repeats it."""

    payload: UsagePayload


# --------------------------------------------------------------------------------------------------------------------
# Questions and answers


class PermissionRequestPayload(Part):
    """May I? ``input_hash`` binds the answer to what was shown."""

    request_id: str
    options: list[PermissionOption]
    input_hash: str
    tool_call_id: str | None = None
    tool_name: str | None = None
    input: Any = None
    description: str | None = None
    suggestions: list[Any] | None = None


class PermissionRequest(Event, tag="permission_request", kw_only=True):
    """The agent asks before it acts."""

    payload: PermissionRequestPayload


class PermissionResponsePayload(Part):
    """The answer, good once. ``input_hash`` is that of the request as it was shown to whoever decided."""

    request_id: str
    decision: Literal["allow", "deny", "cancelled"]
    option_id: str | None = None
    updated_input: Any = None
    updated_permissions: list[Any] | None = None
    message: str | None = None
    by: str | None = None
    interrupt: bool = False
    input_hash: str | None = None


class PermissionResponse(Event, tag="permission_response", kw_only=True):
    """Somebody answered."""

    payload: PermissionResponsePayload

    @property
    def allowed(self) -> bool:
        """Whether the agent may go on."""
        return self.payload.decision == "allow"


class PermissionCancelledPayload(Part):
    """The question is void."""

    request_id: str
    reason: str


class PermissionCancelled(Event, tag="permission_cancelled", kw_only=True):
    """Nobody needs to answer any more."""

    payload: PermissionCancelledPayload


class QuestionPayload(Part):
    """What the agent wants to know: questions with options, or a form's JSON Schema."""

    request_id: str
    questions: Any = None
    schema: Any = None
    message: str | None = None
    server: str | None = None
    tool_call_id: str | None = None


class Question(Event, tag="question", kw_only=True):
    """AskUserQuestion, elicitation, request_user_input."""

    payload: QuestionPayload


class AnswerPayload(Part):
    """What was answered; ``action`` says accept, decline or cancel where the protocol has the word."""

    request_id: str
    values: Any
    action: str | None = None
    by: str | None = None


class Answer(Event, tag="answer", kw_only=True):
    """The answer to a ``question``."""

    payload: AnswerPayload


# --------------------------------------------------------------------------------------------------------------------
# Settings, life of the session, plan, teams, queue


class ConfigurationChangePayload(Part):
    """What is set, and how: set_model, set_permission_mode, current_mode_update, …

    ``refused`` has the settings that hold after the agent refused a change, and the ``reason``.
    """

    subtype: str
    model: str | None = None
    permission_mode: str | None = None
    mode_id: str | None = None
    commands: list[Any] | None = None
    options: Any = None
    reason: str | None = None


class ConfigurationChange(Event, tag="configuration_change", kw_only=True):
    """A setting changes or is asked to change."""

    payload: ConfigurationChangePayload


class SessionLifecyclePayload(Part):
    """What became of the session: created, resumed, forked, renamed, compacted, log_recovered, checkpoint, closed, …"""

    subtype: str
    schema_version: int | None = None
    writer_version: str | None = None
    log_id: str | None = None
    format: str | None = None
    title: str | None = None
    message_id: str | None = None
    part_id: str | None = None
    provider_session_id: str | None = None
    parent_session_id: str | None = None
    parent_seq: int | None = None
    path: str | None = None
    blob: str | None = None
    size: int | None = None
    reason: str | None = None
    text: str | None = None
    detail: Any = None
    workspace: Workspace | None = None


class SessionLifecycle(Event, tag="session_lifecycle", kw_only=True):
    """The session itself changes."""

    payload: SessionLifecyclePayload


class PlanUpdatePayload(Part):
    """The plan, whole, each time."""

    entries: list[PlanEntry]


class PlanUpdate(Event, tag="plan_update", kw_only=True):
    """The agent's plan or to-do list as it is now."""

    payload: PlanUpdatePayload


class TeamPayload(Part):
    """What an agent with a team reports, as it reports it."""

    team_id: str | None = None
    member_id: str | None = None
    task_id: str | None = None
    status: str | None = None
    text: str | None = None
    detail: Any = None


class TeamMessage(Event, tag="team_message", kw_only=True):
    """A member of a team speaks to another."""

    payload: TeamPayload


class TeamTaskUpdate(Event, tag="team_task_update", kw_only=True):
    """A task of a team changes."""

    payload: TeamPayload


class TeamStateChange(Event, tag="team_state_change", kw_only=True):
    """A team or a member changes."""

    payload: TeamPayload


class QueueUpdatePayload(Part):
    """What waits for its turn: a message, or (``callback``) an answer of another agent."""

    action: Literal["queued", "edited", "cancelled", "sent", "steered"]
    item_id: str | None = None
    text: str | None = None
    content: list[AnyBlock] | None = None
    author: Literal["human", "agent", "harness"] = "human"
    from_agent_id: str | None = None
    from_session_id: str | None = None
    message_id: str | None = None
    callback: AgentCallbackPayload | None = None
    reason: str | None = None


class QueueUpdate(Event, tag="queue_update", kw_only=True):
    """The queue of messages changes."""

    payload: QueueUpdatePayload


# --------------------------------------------------------------------------------------------------------------------
# Surroundings


class AuthStatusPayload(Part):
    """How far signing in has got."""

    is_authenticating: bool
    output: list[Any] | None = None
    error: str | None = None
    link: str | None = None


class AuthStatus(Event, tag="auth_status", kw_only=True):
    """The agent is signing in, or fails to."""

    payload: AuthStatusPayload


class McpStatusPayload(Part):
    """A tool server and its state."""

    server: str
    state: str
    detail: Any = None


class McpStatus(Event, tag="mcp_status", kw_only=True):
    """A tool server comes or goes."""

    payload: McpStatusPayload


class RateLimitPayload(Part):
    """How much of a window is used (0 to 1), and when it starts anew (ms since the epoch)."""

    status: str | None = None
    window: str | None = None
    used: float | None = None
    resets_at: int | None = None
    detail: Any = None


class RateLimit(Event, tag="rate_limit", kw_only=True):
    """The provider's limit, before or when it bites."""

    payload: RateLimitPayload


class HeartbeatPayload(Part):
    """Nothing but a sign of life."""

    detail: Any = None


class Heartbeat(Event, tag="heartbeat", kw_only=True):
    """A sign of life."""

    payload: HeartbeatPayload


class StreamSum(Part):
    """How many bytes went over a stream, and the SHA-256 of them all."""

    bytes: int
    sha256: str


class ProcessPayload(Part):
    """The agent's process."""

    event: Literal["started", "stderr", "exited", "killed", "relaunched"]
    text: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    argv: list[str] | None = None
    pid: int | None = None
    streams: dict[str, StreamSum] | None = None
    """When it has exited: ``in`` is what it said, ``out`` what it was told, ``stderr`` what it complained of, of which the log has all."""


class Process(Event, tag="process", kw_only=True):
    """The agent's process starts, complains, or ends."""

    payload: ProcessPayload


class ControlRequestPayload(Part):
    """A protocol request that is none of the above: handshakes, hooks, fs/*, terminal/*, … in either direction."""

    method: str
    request_id: str | None = None
    params: Any = None


class ControlRequest(Event, tag="control_request", kw_only=True):
    """One side asks the other."""

    payload: ControlRequestPayload


class ControlResponsePayload(Part):
    """Its answer."""

    ok: bool
    request_id: str | None = None
    method: str | None = None
    result: Any = None
    error: Any = None


class ControlResponse(Event, tag="control_response", kw_only=True):
    """The other side answers."""

    payload: ControlResponsePayload


class RawPayload(Part):
    """What nobody knows: the wire's own type word, and why it is here. The bytes are in ``original``."""

    reason: RawReason
    kind: str | None = None
    detail: str | None = None


class RawEvent(Event, tag="raw", kw_only=True):
    """A frame, or a part of one, that no adapter understands. It is kept, counted and shown like everything else."""

    payload: RawPayload


# --------------------------------------------------------------------------------------------------------------------
# Making events: one function per type, its arguments are the payload's

E = TypeVar("E", bound=Event)
P = ParamSpec("P")


def _maker(event: Callable[..., E], payload: Callable[P, Part]) -> Callable[P, E]:
    def make(*args: P.args, **kwargs: P.kwargs) -> E:
        return event(payload=payload(*args, **kwargs))

    return make


turn_start = _maker(TurnStart, TurnStartPayload)
turn_end = _maker(TurnEnd, TurnEndPayload)
user_message = _maker(UserMessage, UserMessagePayload)
user_audio = _maker(UserAudio, UserAudioPayload)
assistant_chunk = _maker(AssistantChunk, TextPayload)
assistant_done = _maker(AssistantDone, AssistantDonePayload)
thinking_chunk = _maker(ThinkingChunk, TextPayload)
thinking_done = _maker(ThinkingDone, ThinkingDonePayload)
content_block = _maker(ContentBlock, ContentBlockPayload)
tool_call = _maker(ToolCall, ToolCallPayload)
tool_input_chunk = _maker(ToolInputChunk, ToolInputChunkPayload)
tool_output_chunk = _maker(ToolOutputChunk, ToolOutputChunkPayload)
tool_progress = _maker(ToolProgress, ToolProgressPayload)
tool_result = _maker(ToolResult, ToolResultPayload)
tool_use_summary = _maker(ToolUseSummary, ToolUseSummaryPayload)
agent_message = _maker(AgentMessage, AgentMessagePayload)
agent_callback = _maker(AgentCallback, AgentCallbackPayload)
agent_switch = _maker(AgentSwitch, AgentSwitchPayload)
interrupt = _maker(Interrupt, InterruptPayload)
error = _maker(Error, ErrorInfo)
audio_chunk = _maker(AudioChunk, AudioChunkPayload)
audio_done = _maker(AudioDone, AudioDonePayload)
session_init = _maker(SessionInit, SessionInitPayload)
status_change = _maker(StatusChange, StatusChangePayload)
result = _maker(Result, ResultPayload)
usage = _maker(UsageEvent, UsagePayload)
permission_request = _maker(PermissionRequest, PermissionRequestPayload)
permission_response = _maker(PermissionResponse, PermissionResponsePayload)
permission_cancelled = _maker(PermissionCancelled, PermissionCancelledPayload)
question = _maker(Question, QuestionPayload)
answer = _maker(Answer, AnswerPayload)
configuration_change = _maker(ConfigurationChange, ConfigurationChangePayload)
session_lifecycle = _maker(SessionLifecycle, SessionLifecyclePayload)
plan_update = _maker(PlanUpdate, PlanUpdatePayload)
team_message = _maker(TeamMessage, TeamPayload)
team_task_update = _maker(TeamTaskUpdate, TeamPayload)
team_state_change = _maker(TeamStateChange, TeamPayload)
queue_update = _maker(QueueUpdate, QueueUpdatePayload)
auth_status = _maker(AuthStatus, AuthStatusPayload)
mcp_status = _maker(McpStatus, McpStatusPayload)
rate_limit = _maker(RateLimit, RateLimitPayload)
heartbeat = _maker(Heartbeat, HeartbeatPayload)
process = _maker(Process, ProcessPayload)
control_request = _maker(ControlRequest, ControlRequestPayload)
control_response = _maker(ControlResponse, ControlResponsePayload)
raw = _maker(RawEvent, RawPayload)

TYPES: dict[str, type[Event]] = {str(event.__struct_config__.tag): event for event in Event.__subclasses__() if event is not Unknown}
"""Every known event type by its word."""

for _word, _type in TYPES.items():
    setattr(_type, "type", _word)  # noqa: B010 (a word that is asked for all the time: six times as fast as the property)
