"""OpenCode's events, messages and parts as OpenCode 1.18.33 spells them (its OpenAPI document, npm ``@opencode-ai/sdk``).

A field named here is a field we read; the rest stays in the original. Every event has the same envelope: on ``/event`` what is said
is in ``properties``, on ``/api/event`` in ``data``. `EVENTS` says which struct reads it.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Union

import msgspec
from msgspec import field

from hansard.adapters.base import Wire, nested
from hansard.adapters.fields import camel_case
from hansard.events.structs import members, prepare, respell, union_of


def _spelled(name: str) -> str:
    """Return a field's name as OpenCode spells it: ``session_id`` is ``sessionID``."""
    return re.sub("Id$", "ID", camel_case(name))


class _Wire(Wire, rename=_spelled): ...


# ---- what messages consist of


class Times(_Wire):
    """Milliseconds since the epoch."""

    created: int | None = None
    updated: int | None = None
    completed: int | None = None
    start: int | None = None
    end: int | None = None

    @property
    def duration(self) -> int | None:
        """Milliseconds from start to end."""
        return None if self.start is None or self.end is None else self.end - self.start


class CacheTokens(_Wire):
    read: int | None = None
    write: int | None = None


class Tokens(_Wire):
    """``input`` excludes what was read from the cache; ``total`` (which we leave aside) adds it."""

    input: int | None = None
    output: int | None = None
    reasoning: int | None = None
    cache: CacheTokens | None = None


class _Part(_Wire, tag_field="type"):
    id: str | None = None
    message_id: str | None = None


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


class ToolState(_Wire):
    """pending, running (again and again, its metadata growing), completed or error."""

    status: str
    input: Any = None
    raw: str | None = None
    output: Any = None
    error: Any = None
    title: str | None = None
    metadata: Any = None
    time: Times | None = None
    attachments: Annotated[list[Any] | None, nested(FilePart)] = None


class ToolPart(_Part, tag="tool", kw_only=True):
    call_id: str
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
    tail_start_id: str | None = field(default=None, name="tail_start_id")


class SubtaskPart(_Part, tag="subtask", kw_only=True):
    """A command that hands its prompt to a sub-agent."""

    said_whole = True

    prompt: str
    description: str | None = None
    agent: str | None = None
    command: str | None = None


Part: Any = union_of(_Part)


class ModelRef(_Wire):
    provider_id: str | None = None
    model_id: str | None = None
    id: str | None = None


class ChosenModel(ModelRef):
    """The model of a session or a step; it is passed on whole."""

    said_whole = True

    variant: str | None = None


class UserInfo(_Wire, tag_field="role", tag="user", kw_only=True):
    id: str
    time: Times | None = None
    agent: str | None = None
    model: ModelRef | None = None
    summary: Any = None


class AssistantInfo(_Wire, tag_field="role", tag="assistant", kw_only=True):
    id: str
    parent_id: str | None = None
    agent: str | None = None
    mode: str | None = None
    model_id: str | None = None
    provider_id: str | None = None
    time: Times | None = None
    cost: float | None = None
    tokens: Tokens | None = None
    finish: str | None = None
    error: Any = None
    summary: Any = None
    structured: Any = None


MessageInfo = UserInfo | AssistantInfo


class SessionInfo(_Wire, kw_only=True):
    """A session's description. Whatever changes in it is said as it stands, except its times."""

    said_whole = True

    id: str
    parent_id: str | None = None
    title: str | None = None
    version: str | None = None
    directory: str | None = None
    agent: str | None = None
    model: ChosenModel | None = None
    cost: float | None = None
    tokens: Tokens | None = None
    time: Times | None = None
    project_id: Any = None
    slug: Any = None
    path: Any = None
    permission: Any = None
    summary: Any = None
    revert: Any = None


# ---- what is said on /event


class _SessionEvent(_Wire):
    session_id: str | None = None


class _SessionInfoEvent(_SessionEvent, kw_only=True):
    info: Annotated[Any, nested(SessionInfo)]


class SessionCreated(_SessionInfoEvent): ...


class SessionUpdated(_SessionInfoEvent):
    """Many repeats; what changed is for us to find."""


class SessionDeleted(_SessionInfoEvent): ...


class MessageUpdated(_SessionEvent, kw_only=True):
    """The header of a message, without its parts, several times."""

    info: Annotated[Any, nested(MessageInfo)]


class MessagePartUpdated(_SessionEvent, kw_only=True):
    """A whole part; it replaces the one with the same id. ``delta`` is how early versions said what is new in it."""

    part: Annotated[Any, nested(Part)]
    time: int | None = None
    delta: str | None = None


class MessagePartDelta(_SessionEvent, kw_only=True):
    message_id: str | None = None
    part_id: str
    field_name: str | None = field(default=None, name="field")
    delta: str


class MessageRemoved(_SessionEvent, kw_only=True):
    message_id: str


class MessagePartRemoved(_SessionEvent, kw_only=True):
    message_id: str | None = None
    part_id: str


class Status(_Wire):
    type: str
    attempt: int | None = None
    message: str | None = None
    next: int | None = None
    action: Any = None


class SessionStatus(_SessionEvent, kw_only=True):
    status: Status


class SessionIdle(_SessionEvent):
    """The same as `session.status` idle, from before there was one."""


class SessionCompacted(_SessionEvent): ...


class SessionDiff(_SessionEvent, kw_only=True):
    diff: Any = None


class SessionError(_SessionEvent, kw_only=True):
    error: Any = None


class CommandExecuted(_SessionEvent, kw_only=True):
    name: str
    arguments: str | None = None
    message_id: str | None = None


class TodoUpdated(_SessionEvent, kw_only=True):
    todos: list[Any]


class ToolRef(_Wire):
    message_id: str | None = None
    call_id: str | None = None


class PermissionAsked(_SessionEvent, kw_only=True):
    """``call_id`` and ``title`` are the words of versions before 1.1 (SDK ``gen/types.gen.d.ts``, Permission)."""

    id: str
    permission: str
    patterns: Any = None
    metadata: Any = None
    always: list[Any] | None = None
    tool: ToolRef | None = None
    call_id: str | None = None
    title: str | None = None


class PermissionReplied(_SessionEvent, kw_only=True):
    """``permissionID`` and ``response`` are the words of versions before 1.1."""

    request_id: str | None = None
    reply: Any = None
    permission_id: str | None = None
    response: Any = None


class QuestionAsked(_SessionEvent, kw_only=True):
    id: str
    questions: Any = None
    tool: ToolRef | None = None


class QuestionReplied(_SessionEvent, kw_only=True):
    request_id: str
    answers: Any = None


class QuestionRejected(_SessionEvent, kw_only=True):
    request_id: str


class _ServerEvent(_Wire): ...


class McpToolsChanged(_ServerEvent):
    server: str


class McpBrowserOpenFailed(_ServerEvent, kw_only=True):
    mcp_name: str
    url: str | None = None


class HttpResponse(_ServerEvent, kw_only=True):
    """Not OpenCode's: the form in which whoever talks to the server hands us the answer to a request."""

    id: int | None = None
    method: str
    path: str
    status: int
    body: Any = None


# ---- what is said on /api/event about a session of the newer engine


class NextEvent(_SessionEvent):
    timestamp: int | None = None


class Prompt(_Wire):
    text: str
    files: list[Any] | None = None
    agents: list[Any] | None = None


class PromptAdmitted(NextEvent, kw_only=True):
    message_id: str
    prompt: Prompt
    delivery: str | None = None


class Prompted(PromptAdmitted, kw_only=True): ...


class AgentSwitched(NextEvent, kw_only=True):
    agent: str


class ModelSwitched(NextEvent, kw_only=True):
    model: ModelRef


class Moved(NextEvent, kw_only=True):
    said_whole = True

    location: Any = None
    subdirectory: str | None = None


class ContextUpdated(NextEvent, kw_only=True):
    message_id: str | None = None
    text: str


class Synthetic(ContextUpdated, kw_only=True): ...


class ShellStarted(NextEvent, kw_only=True):
    message_id: str | None = None
    call_id: str
    command: str


class ShellEnded(NextEvent, kw_only=True):
    call_id: str
    output: str


class NextStep(NextEvent, kw_only=True):
    message_id: str = field(name="assistantMessageID")


class StepStarted(NextStep, kw_only=True):
    said_whole = True

    agent: str | None = None
    model: ChosenModel | None = None
    snapshot: str | None = None


class StepEnded(NextStep, kw_only=True):
    said_whole = True

    finish: str
    cost: float | None = None
    tokens: Tokens | None = None
    snapshot: str | None = None
    files: Any = None


class StepFailed(NextStep, kw_only=True):
    error: Any = None


class _Text(NextStep, kw_only=True):
    part_id: str = field(name="textID")


class TextStarted(_Text): ...


class TextDelta(_Text, kw_only=True):
    delta: str


class TextEnded(_Text, kw_only=True):
    text: str


class _Reasoning(NextStep, kw_only=True):
    part_id: str = field(name="reasoningID")


class ReasoningStarted(_Reasoning): ...


class ReasoningDelta(_Reasoning, kw_only=True):
    delta: str


class ReasoningEnded(_Reasoning, kw_only=True):
    text: str
    metadata: Any = field(default=None, name="providerMetadata")


class _NextTool(NextStep, kw_only=True):
    call_id: str


class ToolInputStarted(_NextTool, kw_only=True):
    name: str


class ToolInputDelta(_NextTool, kw_only=True):
    delta: str


class ToolInputEnded(_NextTool, kw_only=True):
    text: str


class ToolCalled(_NextTool, kw_only=True):
    tool: str
    input: Any = None


class ToolProgress(_NextTool, kw_only=True):
    structured: Any = None
    content: list[Any] | None = None


class ToolSuccess(_NextTool, kw_only=True):
    said_whole = True

    structured: Any = None
    content: list[Any] | None = None
    output_paths: list[Any] | None = None
    result: Any = None


class ToolFailed(_NextTool, kw_only=True):
    error: Any = None
    result: Any = None


class Retried(NextEvent, kw_only=True):
    attempt: int | None = None
    error: Any = None


class CompactionStarted(NextEvent, kw_only=True):
    message_id: str | None = None
    reason: str | None = None


class CompactionDelta(NextEvent, kw_only=True):
    message_id: str | None = None
    text: str


class CompactionEnded(NextEvent, kw_only=True):
    message_id: str | None = None
    reason: str | None = None
    text: str
    recent: str | None = None


class RevertStaged(NextEvent, kw_only=True):
    revert: Any = None


class RevertCleared(NextEvent): ...


class RevertCommitted(NextEvent, kw_only=True):
    message_id: str | None = None


def _event_type(struct: type[msgspec.Struct]) -> str:
    """Return the type of the event that a struct reads: ``session.next.text.delta`` for `TextDelta`."""
    words = re.findall("[A-Z][a-z0-9]*", struct.__name__)
    return ".".join(["session", "next", *words] if issubclass(struct, NextEvent) else words).lower()


EVENTS: dict[str, Any] = {
    _event_type(struct): struct for root in (_SessionEvent, _ServerEvent) for struct in members(root) if struct not in (NextEvent, NextStep)
}
"""The events that have a meaning of their own for a conversation."""
for _name in ("permission.replied", "question.asked", "question.replied", "question.rejected"):
    EVENTS[_name.replace(".", ".v2.")] = EVENTS[_name]

_ASKED = dict(zip(PermissionAsked.__struct_fields__, PermissionAsked.__struct_encode_fields__, strict=True))
EVENTS["permission.updated"] = respell(PermissionAsked, rename=_ASKED | {"permission": "type", "patterns": "pattern"})
EVENTS["permission.v2.asked"] = respell(
    PermissionAsked, rename=_ASKED | {"permission": "action", "patterns": "resources", "always": "save", "tool": "source"}
)

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
    return msgspec.defstruct(name, fields, bases=(_Wire,), module=__name__, tag_field="type", tag=tag, gc=False)


Event: Any = Union[(*(_envelope(tag, struct | None) for tag, struct in EVENTS.items()), *(_envelope(tag, Any) for tag in NOTICES))]
"""Everything that can come on ``/event`` or ``/api/event``."""


# ---- what our side sends


class HttpRequest(_Wire, kw_only=True):
    """A request to the server. ``http.jsonl`` beside a recording has the same fields, but for the id, by which its answer is known."""

    id: int | None = None
    method: str
    path: str
    body: Any = None


# ---- opencode run --format json


class _Line(_Wire, tag_field="type"):
    timestamp: int | None = None
    session_id: str | None = None


class RunPart(_Line, kw_only=True):
    """A part that is complete. Its line is called by the type of the part."""

    part: Annotated[Any, nested(Part)]


class RunError(_Line, tag="error", kw_only=True):
    error: Any = None


def _run_part(tag: str) -> Any:
    return msgspec.defstruct(f"Run{camel_case('_' + tag)}", [], bases=(RunPart,), module=__name__, tag=tag, gc=False)


RunLine: Any = Union[(RunError, *map(_run_part, ("step_start", "text", "reasoning", "tool_use", "step_finish")))]


# ---- opencode export, and the rows of opencode.db


class StoredRecord(_Wire):
    """A piece of an export (its head, or one message with its parts) or a row of the database."""

    info: Annotated[Any, nested((MessageInfo, SessionInfo))] = None
    parts: Annotated[list[Any] | None, nested(Part)] = None
    table: str | None = None
    row: Any = None


prepare(globals())
