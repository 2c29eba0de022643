"""OpenCode's events, messages and parts as OpenCode 1.18.33 spells them (its OpenAPI document, npm ``@opencode-ai/sdk``).

A field named here is a field we read; the rest stays in the original. Every event has the same envelope: on ``/event`` what is said
is in ``properties``, on ``/api/event`` in ``data``. `EVENTS` says which struct reads it.
"""

from __future__ import annotations

from typing import Annotated, Any, Union

import msgspec
from msgspec import field

from hansard.adapter import Wire, read_as
from hansard.structs import prepare

# ---- what messages consist of


class Times(Wire):
    """Milliseconds since the epoch."""

    created: int | None = None
    updated: int | None = None
    completed: int | None = None
    start: int | None = None
    end: int | None = None


class CacheTokens(Wire):
    read: int | None = None
    write: int | None = None


class Tokens(Wire):
    """``input`` excludes what was read from the cache; ``total`` (which we leave aside) adds it."""

    input: int | None = None
    output: int | None = None
    reasoning: int | None = None
    cache: CacheTokens | None = None


class _Part(Wire, tag_field="type"):
    id: str | None = None
    message_id: str | None = field(default=None, name="messageID")


class TextPart(_Part, tag="text", kw_only=True):
    text: str
    synthetic: bool = False
    ignored: bool = False
    time: Times | None = None


class ReasoningPart(_Part, tag="reasoning", kw_only=True):
    text: str
    metadata: Any = None
    time: Times | None = None


class FilePart(_Part, tag="file", kw_only=True):
    mime: str | None = None
    filename: str | None = None
    url: str


class ToolState(Wire):
    """pending, running (again and again, its metadata growing), completed or error."""

    status: str
    input: Any = None
    raw: str | None = None
    output: Any = None
    error: Any = None
    title: str | None = None
    metadata: Any = None
    time: Times | None = None
    attachments: Annotated[list[Any] | None, read_as(FilePart)] = None


class ToolPart(_Part, tag="tool", kw_only=True):
    call_id: str = field(name="callID")
    tool: str
    state: ToolState


class StepStartPart(_Part, tag="step-start", kw_only=True):
    said_whole = True

    snapshot: str | None = None


class StepFinishPart(_Part, tag="step-finish", kw_only=True):
    said_whole = True

    reason: str | None = None
    snapshot: str | None = None
    cost: float | None = None
    tokens: Tokens | None = None


class SnapshotPart(_Part, tag="snapshot", kw_only=True):
    said_whole = True

    snapshot: str | None = None


class PatchPart(_Part, tag="patch", kw_only=True):
    said_whole = True

    hash: str | None = None
    files: list[Any] | None = None


class AgentPart(_Part, tag="agent", kw_only=True):
    """The user wrote ``@name``."""

    name: str


class RetryPart(_Part, tag="retry", kw_only=True):
    attempt: int | None = None
    error: Any = None


class CompactionPart(_Part, tag="compaction", kw_only=True):
    said_whole = True

    auto: bool = False
    overflow: bool | None = None
    tail_start_id: str | None = None


class SubtaskPart(_Part, tag="subtask", kw_only=True):
    """A command that hands its prompt to a sub-agent."""

    said_whole = True

    prompt: str
    description: str | None = None
    agent: str | None = None
    command: str | None = None


Part = (
    TextPart
    | ReasoningPart
    | FilePart
    | ToolPart
    | StepStartPart
    | StepFinishPart
    | SnapshotPart
    | PatchPart
    | AgentPart
    | RetryPart
    | CompactionPart
    | SubtaskPart
)


class ModelRef(Wire):
    provider_id: str | None = field(default=None, name="providerID")
    model_id: str | None = field(default=None, name="modelID")
    id: str | None = None


class ChosenModel(ModelRef):
    """The model of a session or a step; it is passed on whole."""

    said_whole = True

    variant: str | None = None


class UserInfo(Wire, tag_field="role", tag="user", kw_only=True):
    id: str
    time: Times | None = None
    agent: str | None = None
    model: ModelRef | None = None
    summary: Any = None


class AssistantInfo(Wire, tag_field="role", tag="assistant", kw_only=True):
    id: str
    parent_id: str | None = field(default=None, name="parentID")
    agent: str | None = None
    mode: str | None = None
    model_id: str | None = field(default=None, name="modelID")
    provider_id: str | None = field(default=None, name="providerID")
    time: Times | None = None
    cost: float | None = None
    tokens: Tokens | None = None
    finish: str | None = None
    error: Any = None
    summary: Any = None
    structured: Any = None


MessageInfo = UserInfo | AssistantInfo


class SessionInfo(Wire, kw_only=True):
    """A session's description. Whatever changes in it is said as it stands, except its times."""

    said_whole = True

    id: str
    parent_id: str | None = field(default=None, name="parentID")
    title: str | None = None
    version: str | None = None
    directory: str | None = None
    agent: str | None = None
    model: ChosenModel | None = None
    cost: float | None = None
    tokens: Tokens | None = None
    time: Times | None = None
    project_id: Any = field(default=None, name="projectID")
    slug: Any = None
    path: Any = None
    permission: Any = None
    summary: Any = None
    revert: Any = None


# ---- what is said on /event


class _Said(Wire):
    session_id: str | None = field(default=None, name="sessionID")


class _SessionSaid(_Said, kw_only=True):
    info: Annotated[Any, read_as(SessionInfo)]


class SessionCreated(_SessionSaid):
    pass


class SessionUpdated(_SessionSaid):
    """Many repeats; what changed is for us to find."""


class SessionDeleted(_SessionSaid):
    pass


class MessageUpdated(_Said, kw_only=True):
    """The header of a message, without its parts, several times."""

    info: Annotated[Any, read_as(MessageInfo)]


class PartUpdated(_Said, kw_only=True):
    """A whole part; it replaces the one with the same id. ``delta`` is how early versions said what is new in it."""

    part: Annotated[Any, read_as(Part)]
    time: int | None = None
    delta: str | None = None


class PartDelta(_Said, kw_only=True):
    message_id: str | None = field(default=None, name="messageID")
    part_id: str = field(name="partID")
    field_name: str | None = field(default=None, name="field")
    delta: str


class MessageRemoved(_Said, kw_only=True):
    message_id: str = field(name="messageID")


class PartRemoved(_Said, kw_only=True):
    message_id: str | None = field(default=None, name="messageID")
    part_id: str = field(name="partID")


class Status(Wire):
    type: str
    attempt: int | None = None
    message: str | None = None
    next: int | None = None
    action: Any = None


class SessionStatus(_Said, kw_only=True):
    status: Status


class SessionIdle(_Said):
    """The same as `session.status` idle, from before there was one."""


class SessionCompacted(_Said):
    pass


class SessionDiff(_Said, kw_only=True):
    diff: Any = None


class SessionError(_Said, kw_only=True):
    error: Any = None


class CommandExecuted(_Said, kw_only=True):
    name: str
    arguments: str | None = None
    message_id: str | None = field(default=None, name="messageID")


class TodoUpdated(_Said, kw_only=True):
    todos: list[Any]


class ToolRef(Wire):
    message_id: str | None = field(default=None, name="messageID")
    call_id: str | None = field(default=None, name="callID")


class PermissionAsked(_Said, kw_only=True):
    id: str
    permission: str
    patterns: list[Any] | None = None
    metadata: Any = None
    always: list[Any] | None = None
    tool: ToolRef | None = None


class PermissionUpdated(_Said, kw_only=True):
    """How versions before 1.1 asked (SDK ``gen/types.gen.d.ts``, Permission)."""

    id: str
    type: str
    pattern: Any = None
    message_id: str | None = field(default=None, name="messageID")
    call_id: str | None = field(default=None, name="callID")
    title: str | None = None
    metadata: Any = None


class PermissionAskedV2(_Said, kw_only=True):
    id: str
    action: str
    resources: list[Any] | None = None
    save: list[Any] | None = None
    metadata: Any = None
    source: ToolRef | None = None


class PermissionReplied(_Said, kw_only=True):
    """``permissionID`` and ``response`` are the words of versions before 1.1."""

    request_id: str | None = field(default=None, name="requestID")
    reply: Any = None
    permission_id: str | None = field(default=None, name="permissionID")
    response: Any = None


class QuestionAsked(_Said, kw_only=True):
    id: str
    questions: Any = None
    tool: ToolRef | None = None


class QuestionReplied(_Said, kw_only=True):
    request_id: str = field(name="requestID")
    answers: Any = None


class QuestionRejected(_Said, kw_only=True):
    request_id: str = field(name="requestID")


class McpToolsChanged(Wire):
    server: str


class McpBrowserOpenFailed(Wire, kw_only=True):
    mcp_name: str = field(name="mcpName")
    url: str | None = None


class HttpResponse(Wire, kw_only=True):
    """Not OpenCode's: the form in which whoever talks to the server hands us the answer to a request."""

    id: int | None = None
    method: str
    path: str
    status: int
    body: Any = None


# ---- what is said on /api/event about a session of the newer engine


class _Next(_Said):
    timestamp: int | None = None


class Prompt(Wire):
    text: str
    files: list[Any] | None = None
    agents: list[Any] | None = None


class PromptAdmitted(_Next, kw_only=True):
    message_id: str = field(name="messageID")
    prompt: Prompt
    delivery: str | None = None


class Prompted(PromptAdmitted, kw_only=True):
    pass


class AgentSwitched(_Next, kw_only=True):
    agent: str


class ModelSwitched(_Next, kw_only=True):
    model: ModelRef


class Moved(_Next, kw_only=True):
    said_whole = True

    location: Any = None
    subdirectory: str | None = None


class ContextUpdated(_Next, kw_only=True):
    message_id: str | None = field(default=None, name="messageID")
    text: str


class Synthetic(ContextUpdated, kw_only=True):
    pass


class ShellStarted(_Next, kw_only=True):
    message_id: str | None = field(default=None, name="messageID")
    call_id: str = field(name="callID")
    command: str


class ShellEnded(_Next, kw_only=True):
    call_id: str = field(name="callID")
    output: str


class _NextStep(_Next, kw_only=True):
    message_id: str = field(name="assistantMessageID")


class StepStarted(_NextStep, kw_only=True):
    said_whole = True

    agent: str | None = None
    model: ChosenModel | None = None
    snapshot: str | None = None


class StepEnded(_NextStep, kw_only=True):
    said_whole = True

    finish: str
    cost: float | None = None
    tokens: Tokens | None = None
    snapshot: str | None = None
    files: Any = None


class StepFailed(_NextStep, kw_only=True):
    error: Any = None


class TextStarted(_NextStep, kw_only=True):
    text_id: str = field(name="textID")


class TextDelta(_NextStep, kw_only=True):
    text_id: str = field(name="textID")
    delta: str


class TextEnded(_NextStep, kw_only=True):
    text_id: str = field(name="textID")
    text: str


class ReasoningStarted(_NextStep, kw_only=True):
    reasoning_id: str = field(name="reasoningID")


class ReasoningDelta(_NextStep, kw_only=True):
    reasoning_id: str = field(name="reasoningID")
    delta: str


class ReasoningEnded(_NextStep, kw_only=True):
    reasoning_id: str = field(name="reasoningID")
    text: str
    metadata: Any = field(default=None, name="providerMetadata")


class _NextTool(_NextStep, kw_only=True):
    call_id: str = field(name="callID")


class ToolInputStarted(_NextTool, kw_only=True):
    name: str


class ToolInputDelta(_NextTool, kw_only=True):
    delta: str


class ToolInputEnded(_NextTool, kw_only=True):
    text: str


class ToolCalled(_NextTool, kw_only=True):
    tool: str
    input: Any = None


class ToolProgressed(_NextTool, kw_only=True):
    structured: Any = None
    content: list[Any] | None = None


class ToolSucceeded(_NextTool, kw_only=True):
    said_whole = True

    structured: Any = None
    content: list[Any] | None = None
    output_paths: list[Any] | None = field(default=None, name="outputPaths")
    result: Any = None


class ToolFailed(_NextTool, kw_only=True):
    error: Any = None
    result: Any = None


class Retried(_Next, kw_only=True):
    attempt: int | None = None
    error: Any = None


class CompactionStarted(_Next, kw_only=True):
    message_id: str | None = field(default=None, name="messageID")
    reason: str | None = None


class CompactionDelta(_Next, kw_only=True):
    message_id: str | None = field(default=None, name="messageID")
    text: str


class CompactionEnded(_Next, kw_only=True):
    message_id: str | None = field(default=None, name="messageID")
    reason: str | None = None
    text: str
    recent: str | None = None


class RevertStaged(_Next, kw_only=True):
    revert: Any = None


class RevertCleared(_Next):
    pass


class RevertCommitted(_Next, kw_only=True):
    message_id: str | None = field(default=None, name="messageID")


EVENTS: dict[str, type[Wire]] = {
    "session.created": SessionCreated,
    "session.updated": SessionUpdated,
    "session.deleted": SessionDeleted,
    "session.status": SessionStatus,
    "session.idle": SessionIdle,
    "session.compacted": SessionCompacted,
    "session.diff": SessionDiff,
    "session.error": SessionError,
    "message.updated": MessageUpdated,
    "message.removed": MessageRemoved,
    "message.part.updated": PartUpdated,
    "message.part.delta": PartDelta,
    "message.part.removed": PartRemoved,
    "permission.asked": PermissionAsked,
    "permission.updated": PermissionUpdated,
    "permission.v2.asked": PermissionAskedV2,
    "permission.replied": PermissionReplied,
    "permission.v2.replied": PermissionReplied,
    "question.asked": QuestionAsked,
    "question.v2.asked": QuestionAsked,
    "question.replied": QuestionReplied,
    "question.v2.replied": QuestionReplied,
    "question.rejected": QuestionRejected,
    "question.v2.rejected": QuestionRejected,
    "todo.updated": TodoUpdated,
    "command.executed": CommandExecuted,
    "mcp.tools.changed": McpToolsChanged,
    "mcp.browser.open.failed": McpBrowserOpenFailed,
    "http.response": HttpResponse,
    "session.next.prompt.admitted": PromptAdmitted,
    "session.next.prompted": Prompted,
    "session.next.agent.switched": AgentSwitched,
    "session.next.model.switched": ModelSwitched,
    "session.next.moved": Moved,
    "session.next.context.updated": ContextUpdated,
    "session.next.synthetic": Synthetic,
    "session.next.shell.started": ShellStarted,
    "session.next.shell.ended": ShellEnded,
    "session.next.step.started": StepStarted,
    "session.next.step.ended": StepEnded,
    "session.next.step.failed": StepFailed,
    "session.next.text.started": TextStarted,
    "session.next.text.delta": TextDelta,
    "session.next.text.ended": TextEnded,
    "session.next.reasoning.started": ReasoningStarted,
    "session.next.reasoning.delta": ReasoningDelta,
    "session.next.reasoning.ended": ReasoningEnded,
    "session.next.tool.input.started": ToolInputStarted,
    "session.next.tool.input.delta": ToolInputDelta,
    "session.next.tool.input.ended": ToolInputEnded,
    "session.next.tool.called": ToolCalled,
    "session.next.tool.progress": ToolProgressed,
    "session.next.tool.success": ToolSucceeded,
    "session.next.tool.failed": ToolFailed,
    "session.next.retried": Retried,
    "session.next.compaction.started": CompactionStarted,
    "session.next.compaction.delta": CompactionDelta,
    "session.next.compaction.ended": CompactionEnded,
    "session.next.revert.staged": RevertStaged,
    "session.next.revert.cleared": RevertCleared,
    "session.next.revert.committed": RevertCommitted,
}
"""The events that have a meaning of their own for a conversation."""

NOTICES = (
    "server.connected",
    "server.heartbeat",
    "server.instance.disposed",
    "global.disposed",
    "models-dev.refreshed",
    "catalog.updated",
    "reference.updated",
    "integration.updated",
    "integration.connection.updated",
    "plugin.added",
    "installation.updated",
    "installation.update-available",
    "project.updated",
    "project.directories.updated",
    "file.edited",
    "file.watcher.updated",
    "lsp.updated",
    "lsp.client.diagnostics",
    "vcs.branch.updated",
    "workspace.ready",
    "workspace.failed",
    "workspace.status",
    "worktree.ready",
    "worktree.failed",
    "pty.created",
    "pty.updated",
    "pty.exited",
    "pty.deleted",
    "tui.prompt.append",
    "tui.command.execute",
    "tui.toast.show",
    "tui.session.select",
)
"""The events about the server and its surroundings, passed on under their own word."""


def _envelope(tag: str, said: Any) -> Any:
    name = "".join(word.capitalize() for word in tag.replace("-", ".").split("."))
    fields = [("id", str | None, None), ("properties", said, None), ("data", said, None)]
    return msgspec.defstruct(name, fields, bases=(Wire,), module=__name__, tag_field="type", tag=tag, gc=False)


Event: Any = Union[(*(_envelope(tag, struct | None) for tag, struct in EVENTS.items()), *(_envelope(tag, Any) for tag in NOTICES))]
"""Everything that can come on ``/event`` or ``/api/event``."""


# ---- what our side sends


class HttpRequest(Wire, kw_only=True):
    """A request to the server. ``http.jsonl`` beside a recording has the same fields, but for the id, by which its answer is known."""

    id: int | None = None
    method: str
    path: str
    body: Any = None


# ---- opencode run --format json


class _Line(Wire, tag_field="type"):
    timestamp: int | None = None
    session_id: str | None = field(default=None, name="sessionID")


class _PartLine(_Line, kw_only=True):
    part: Annotated[Any, read_as(Part)]


class RunStepStart(_PartLine, tag="step_start"):
    pass


class RunText(_PartLine, tag="text"):
    pass


class RunReasoning(_PartLine, tag="reasoning"):
    pass


class RunToolUse(_PartLine, tag="tool_use"):
    pass


class RunStepFinish(_PartLine, tag="step_finish"):
    pass


class RunError(_Line, tag="error", kw_only=True):
    error: Any = None


RunLine = RunStepStart | RunText | RunReasoning | RunToolUse | RunStepFinish | RunError


# ---- opencode export, and the rows of opencode.db


class Piece(Wire):
    """A piece of an export (its head, or one message with its parts) or a row of the database."""

    info: Annotated[Any, read_as((MessageInfo, SessionInfo))] = None
    parts: Annotated[list[Any] | None, read_as(Part)] = None
    table: str | None = None
    row: Any = None


prepare(globals())
