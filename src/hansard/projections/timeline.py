"""What happened, row by row: what, who, when, how long, a title, and how it went. A row comes when the thing is over.

Turns, calls, questions and requests are one row each, from the event that begins them to the one that ends them. Titles are cut to a line;
the events that ``seq`` and ``lastSeq`` name have everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from hansard.events import (
    TYPES,
    AgentCallback,
    Answer,
    AssistantChunk,
    AssistantDone,
    AudioDone,
    ConfigurationChange,
    ContentBlock,
    ControlRequest,
    ControlResponse,
    Error,
    Event,
    Interrupt,
    McpStatus,
    PermissionCancelled,
    PermissionRequest,
    PermissionResponse,
    PlanUpdate,
    Question,
    QueueUpdate,
    SessionLifecycle,
    StatusChange,
    ThinkingChunk,
    ThinkingDone,
    ToolCall,
    ToolCallPayload,
    ToolKind,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserAudio,
    UserMessage,
)
from hansard.projections.display import line, text_of
from hansard.projections.projection import Projection
from hansard.projections.reasons import BOOKKEEPING, STREAMING, except_for
from hansard.projections.words import as_text
from hansard.tools import tool_action, tool_title
from hansard.transcript import LONG_AGO, Transcript

LEAVES = STREAMING | {
    "heartbeat": BOOKKEEPING["heartbeat"],
    "result": BOOKKEEPING["result"],
    "tool_progress": BOOKKEEPING["tool_progress"],
    "usage": "a count, not something that happened; the form `usage` adds them up",
}
USES = frozenset(TYPES) - LEAVES.keys() | {"assistant_chunk", "thinking_chunk"}

Who = Literal["user", "agent", "subagent", "other agent", "harness", "host", "hansard"]
"""Who did it. The host is the program around the agent, which answers its requests; hansard is whoever keeps the log."""

AUTHORS: dict[str, Who] = {"human": "user", "agent": "other agent", "harness": "harness"}
OPEN = "open"
"""The status of what nobody ended before the log did."""


class Row(Struct, rename="camel", omit_defaults=True):
    """One thing that happened. What is absent is unknown, or has no meaning here."""

    what: str
    """turn, tool, permission, question, control, or the type of the one event that says it."""
    who: Who
    timestamp: int
    """When it began, ms since the epoch."""
    title: str
    status: str | None = None
    duration_ms: int | None = None
    seq: int | None = None
    """Where it begins in the log, and where it ends if that is another event."""
    last_seq: int | None = None
    turn_id: str | None = None
    parent_tool_call_id: str | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    """The agent's own name of the tool."""
    kind: ToolKind | None = None
    action: str | None = None
    """What the tool does, in the word of `hansard.tools` that all agents share."""
    exit_code: int | None = None


Key = tuple[object, ...]


class Timeline(Projection[Row]):
    """Holds a row for everything that is open, and no more."""

    uses = USES
    leaves = except_for(USES, LEAVES)
    leaves_unknown = None

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[Key, Row] = {}
        self._speaking: dict[Key, Row] = {}
        self._turns = 0
        self._transcript = Transcript()

    def take(self, event: Event) -> Iterator[Row]:
        """The rows of what is over with this event."""
        match event:
            case ControlRequest(payload=said) if said.request_id is None:  # it is told, and nobody answers
                yield _row(event, "control", said.method)
            case TurnStart() | ToolCall() | PermissionRequest() | Question() | ControlRequest():
                yield from self._begin(event)
            case TurnEnd(payload=end):
                yield self._end(event, _turn(event), "turn", end.status, "Turn")
            case ToolResult():
                yield self._returned(event)
            case PermissionResponse(payload=said):
                yield self._end(event, ("permission", said.request_id), "permission", said.decision, "Permission")
            case PermissionCancelled(payload=void):
                what = "question" if ("permission", void.request_id) not in self._open else "permission"
                yield self._end(event, (what, void.request_id), what, "cancelled", void.reason)
            case Answer(payload=said):
                yield self._end(event, ("question", said.request_id), "question", said.action or "answered", as_text(said.values))
            case ControlResponse(payload=said):
                key = ("control", said.request_id, event.direction is None)
                yield self._end(event, key, "control", "ok" if said.ok else "failed", said.method or "Answer")
            case AssistantChunk() | ThinkingChunk():
                self._speak(event)
            case _:
                yield self._point(event)

    def finish(self) -> Iterator[Row]:
        """What is still open, in the order in which it began."""
        for row in [*self._open.values(), *self._speaking.values()]:
            row.status = OPEN
            yield row

    # ---- what begins and ends

    def _begin(self, event: TurnStart | ToolCall | PermissionRequest | Question | ControlRequest) -> Iterator[Row]:
        """Remember it. What had the same name and did not end is told as it stands."""
        key, row = self._beginning(event)
        before = self._open.pop(key, None)
        if before is not None:
            before.status = OPEN
            yield before
        self._open[key] = row

    def _beginning(self, event: TurnStart | ToolCall | PermissionRequest | Question | ControlRequest) -> tuple[Key, Row]:
        match event:
            case TurnStart():
                return _turn(event), _row(event, "turn", self._turn_title(event))
            case ToolCall(payload=call):
                row = _row(event, "tool", tool_title(call))
                row.tool_call_id, row.tool_name, row.kind, row.action = call.tool_call_id, call.tool_name, call.kind, tool_action(call)
                return _call(event, call.tool_call_id), row
            case PermissionRequest(payload=asked):
                return ("permission", asked.request_id), self._asked(event)
            case Question(payload=asked):
                row = _row(event, "question", asked.message or self._words(event))
                row.tool_call_id = asked.tool_call_id
                return ("question", asked.request_id), row
            case ControlRequest(payload=asked):
                return ("control", asked.request_id, event.direction is not None), _row(event, "control", asked.method)

    def _turn_title(self, event: TurnStart) -> str:
        if event.parent_tool_call_id is not None:
            return "Turn of a sub-agent"
        self._turns += 1
        return f"Turn {self._turns}"

    def _asked(self, event: PermissionRequest) -> Row:
        """May it? In the words of the call it is about."""
        asked = event.payload
        call = self._open.get(_call(event, asked.tool_call_id or ""))
        kind = None if call is None else call.kind
        title = tool_title(ToolCallPayload(asked.tool_call_id or "", asked.tool_name or "a tool", asked.input, kind, asked.description))
        row = _row(event, "permission", f"May it? {title}")
        row.tool_call_id, row.tool_name, row.kind = asked.tool_call_id, asked.tool_name, kind
        return row

    def _returned(self, event: ToolResult) -> Row:
        got = event.payload
        failed = bool(got.is_error) or got.error is not None
        row = self._end(event, _call(event, got.tool_call_id), "tool", "failed" if failed else "ok", got.tool_name or "Result of a call")
        row.tool_call_id = got.tool_call_id
        row.tool_name = row.tool_name or got.tool_name
        row.exit_code = got.exit_code
        row.duration_ms = row.duration_ms if got.duration_ms is None else got.duration_ms
        return row

    def _end(self, event: Event, key: Key, what: str, status: str, title: str) -> Row:
        """The row that an event ends. An end without a beginning is a row as well."""
        row = self._open.pop(key, None)
        if row is None:
            row = _row(event, what, title)
        else:
            _until(row, event)
        row.status = status
        return row

    # ---- what is said, and what is over at once

    def _speak(self, event: AssistantChunk | ThinkingChunk) -> None:
        """Only the first piece says something: when it began."""
        key = _speech(event)
        if key in self._speaking:
            self.leave(event, STREAMING[event.type])
        else:
            self._speaking[key] = _row(event, _WHOLE[event.type], event.payload.text)

    def _point(self, event: Event) -> Row:
        row = _row(event, event.type, self._words(event))
        match event:
            case AssistantDone(payload=done) | ThinkingDone(payload=done):
                began = self._speaking.pop(_speech(event), None)
                if began is not None:
                    row.timestamp, row.seq = began.timestamp, began.seq
                    _until(row, event)
                row.status = "interrupted" if done.interrupted else None
                if isinstance(event, ThinkingDone) and event.payload.duration_ms is not None:
                    row.duration_ms = event.payload.duration_ms
            case AudioDone(payload=spoken) | UserAudio(payload=spoken):
                row.duration_ms = spoken.duration_ms
            case Error(payload=failed):
                row.status = failed.code
            case Interrupt(payload=stopped):
                row.status = stopped.reason
            case SessionLifecycle(payload=life):
                row.status = life.subtype
            case StatusChange(payload=change):
                row.status = change.status
            case McpStatus(payload=server):
                row.status = server.state
            case _:
                pass
        return row

    def _words(self, event: Event) -> str:
        """What is said; for everything else the words of the transcript, or of the event itself."""
        match event:
            case UserMessage() | UserAudio() | AssistantDone() | ThinkingDone() | ContentBlock() | AudioDone():
                return text_of(event) or ""
            case StatusChange(payload=change):
                return change.status
            case PlanUpdate(payload=plan):
                return f"Plan: {', '.join(entry.content for entry in plan.entries)}"
            case QueueUpdate(payload=queue):
                return f"{queue.action}: {queue.text}" if queue.text else queue.action
            case _:
                shown = (told.text.lstrip(_MARKS) for told in self._transcript.lines(event))
                return next(filter(str.strip, shown), getattr(event.payload, "subtype", event.type))


_MARKS = " ✗■?"
_WHOLE = {"assistant_chunk": "assistant_done", "thinking_chunk": "thinking_done"}


def _row(event: Event, what: str, title: str) -> Row:
    return Row(
        what=what,
        who=_who(event),
        timestamp=event.timestamp,
        title=line(title),
        seq=event.seq or None,
        turn_id=event.turn_id,
        parent_tool_call_id=event.parent_tool_call_id,
    )


def _until(row: Row, event: Event) -> None:
    """The row goes on to this event. Clocks that go back measure nothing, nor do two clocks: the wire's and a recording's."""
    row.last_seq = event.seq or None
    if event.timestamp >= row.timestamp >= 0 and (event.timestamp < LONG_AGO) == (row.timestamp < LONG_AGO):
        row.duration_ms = event.timestamp - row.timestamp


def _who(event: Event) -> Who:
    match event:
        case UserMessage(payload=said):
            return AUTHORS[said.author]
        case UserAudio():
            return "user"
        case Interrupt(payload=stopped) if stopped.reason == "user_cancel":
            return "user"
        case TurnStart(payload=begun) if begun.trigger == "user" and event.parent_tool_call_id is None:
            return "user"
        case AgentCallback():
            return "other agent"
        case ControlRequest() | ConfigurationChange() | QueueUpdate() | SessionLifecycle() | StatusChange() if event.direction == "out":
            return "host"
        case _ if event.parent_tool_call_id is not None:
            return "subagent"
        case _:
            return "hansard" if event.source is None else "agent"


def _turn(event: Event) -> Key:
    return ("turn", event.stream, event.parent_tool_call_id, event.turn_id)


def _call(event: Event, call_id: str) -> Key:
    return ("tool", event.parent_tool_call_id, call_id)


def _speech(event: AssistantChunk | ThinkingChunk | AssistantDone | ThinkingDone) -> Key:
    """A message that has an id is known by it: whose it is may be said only at its end."""
    lane = event.parent_tool_call_id if event.response_id is None else None
    return (_WHOLE.get(event.type, event.type), event.stream, lane, event.response_id, event.block_index)
