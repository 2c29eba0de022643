"""What happened, row by row: what, who, when, how long, a title, and how it went. A row comes when the thing is over.

Turns, calls, questions and requests are one row each, from the event that begins them to the one that ends them. Titles are cut to a line;
the events that ``seq`` and ``lastSeq`` name have everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from hansard import events as ev
from hansard.events.tool_inputs import tool_action, tool_title
from hansard.projections.base import Projection
from hansard.projections.display import preview, text_of
from hansard.projections.omissions import BOOKKEEPING, STREAMING, skip_except
from hansard.projections.text import json_text
from hansard.projections.transcript import Transcript

LEAVES = STREAMING | {
    "heartbeat": BOOKKEEPING["heartbeat"],
    "result": BOOKKEEPING["result"],
    "tool_progress": BOOKKEEPING["tool_progress"],
    "usage": "a count, not something that happened; the form `usage` adds them up",
}
USES = frozenset(ev.TYPES) - LEAVES.keys() | {"assistant_chunk", "thinking_chunk"}

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
    kind: ev.ToolKind | None = None
    action: str | None = None
    """What the tool does, in the word of `hansard.tools` that all agents share."""
    exit_code: int | None = None


Key = tuple[object, ...]


class Timeline(Projection[Row]):
    """Holds a row for everything that is open, and no more."""

    handled = USES
    skipped = skip_except(USES, LEAVES)
    leaves_unknown = None

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[Key, Row] = {}
        self._speaking: dict[Key, Row] = {}
        self._turns = 0

    def handle(self, event: ev.Event) -> Iterator[Row]:
        """The rows of what is over with this event."""
        match event:
            case ev.ControlRequest(payload=said) if said.request_id is None:  # it is told, and nobody answers
                yield _row(event, "control", said.method)
            case ev.TurnStart() | ev.ToolCall() | ev.PermissionRequest() | ev.Question() | ev.ControlRequest():
                yield from self._begin(event)
            case ev.TurnEnd(payload=end):
                yield self._end(event, _turn(event), "turn", end.status, "Turn")
            case ev.ToolResult():
                yield self._returned(event)
            case ev.PermissionResponse(payload=said):
                yield self._end(event, ("permission", said.request_id), "permission", said.decision, "Permission")
            case ev.PermissionCancelled(payload=void):
                what = "question" if ("permission", void.request_id) not in self._open else "permission"
                yield self._end(event, (what, void.request_id), what, "cancelled", void.reason)
            case ev.Answer(payload=said):
                yield self._end(event, ("question", said.request_id), "question", said.action or "answered", json_text(said.values))
            case ev.ControlResponse(payload=said):
                key = ("control", said.request_id, event.direction is None)
                yield self._end(event, key, "control", "ok" if said.ok else "failed", said.method or "Answer")
            case ev.AssistantChunk() | ev.ThinkingChunk():
                self._speak(event)
            case _:
                yield self._point(event)

    def finish(self) -> Iterator[Row]:
        """What is still open, in the order in which it began."""
        for row in [*self._open.values(), *self._speaking.values()]:
            row.status = OPEN
            yield row

    # ---- what begins and ends

    def _begin(self, event: ev.TurnStart | ev.ToolCall | ev.PermissionRequest | ev.Question | ev.ControlRequest) -> Iterator[Row]:
        """Remember it. What had the same name and did not end is told as it stands."""
        key, row = self._beginning(event)
        before = self._open.pop(key, None)
        if before is not None:
            before.status = OPEN
            yield before
        self._open[key] = row

    def _beginning(self, event: ev.TurnStart | ev.ToolCall | ev.PermissionRequest | ev.Question | ev.ControlRequest) -> tuple[Key, Row]:
        match event:
            case ev.TurnStart():
                return _turn(event), _row(event, "turn", self._turn_title(event))
            case ev.ToolCall(payload=call):
                row = _row(event, "tool", tool_title(call))
                row.tool_call_id, row.tool_name, row.kind, row.action = call.tool_call_id, call.tool_name, call.kind, tool_action(call)
                return _call(event, call.tool_call_id), row
            case ev.PermissionRequest(payload=asked):
                return ("permission", asked.request_id), self._permission_row(event)
            case ev.Question(payload=asked):
                row = _row(event, "question", asked.message or self._words(event))
                row.tool_call_id = asked.tool_call_id
                return ("question", asked.request_id), row
            case ev.ControlRequest(payload=asked):
                return ("control", asked.request_id, event.direction is not None), _row(event, "control", asked.method)

    def _turn_title(self, event: ev.TurnStart) -> str:
        if event.parent_tool_call_id is not None:
            return "Turn of a sub-agent"
        self._turns += 1
        return f"Turn {self._turns}"

    def _permission_row(self, event: ev.PermissionRequest) -> Row:
        """May it? In the words of the call it is about."""
        asked = event.payload
        call = self._open.get(_call(event, asked.tool_call_id or ""))
        kind = None if call is None else call.kind
        title = tool_title(ev.ToolCallPayload(asked.tool_call_id or "", asked.tool_name or "a tool", asked.input, kind, asked.description))
        row = _row(event, "permission", f"May it? {title}")
        row.tool_call_id, row.tool_name, row.kind = asked.tool_call_id, asked.tool_name, kind
        return row

    def _returned(self, event: ev.ToolResult) -> Row:
        got = event.payload
        failed = bool(got.is_error) or got.error is not None
        row = self._end(event, _call(event, got.tool_call_id), "tool", "failed" if failed else "ok", got.tool_name or "Result of a call")
        row.tool_call_id = got.tool_call_id
        row.tool_name = row.tool_name or got.tool_name
        row.exit_code = got.exit_code
        row.duration_ms = row.duration_ms if got.duration_ms is None else got.duration_ms
        return row

    def _end(self, event: ev.Event, key: Key, what: str, status: str, title: str) -> Row:
        """The row that an event ends. An end without a beginning is a row as well."""
        row = self._open.pop(key, None)
        if row is None:
            row = _row(event, what, title)
        else:
            _until(row, event)
        row.status = status
        return row

    # ---- what is said, and what is over at once

    def _speak(self, event: ev.AssistantChunk | ev.ThinkingChunk) -> None:
        """Only the first piece says something: when it began."""
        key = _speech(event)
        if key in self._speaking:
            self.skip(event, STREAMING[event.type])
        else:
            self._speaking[key] = _row(event, _WHOLE[event.type], event.payload.text)

    def _point(self, event: ev.Event) -> Row:
        row = _row(event, event.type, self._words(event))
        match event:
            case ev.AssistantDone(payload=done) | ev.ThinkingDone(payload=done):
                began = self._speaking.pop(_speech(event), None)
                if began is not None:
                    row.timestamp, row.seq = began.timestamp, began.seq
                    _until(row, event)
                row.status = "interrupted" if done.interrupted else None
                if isinstance(event, ev.ThinkingDone) and event.payload.duration_ms is not None:
                    row.duration_ms = event.payload.duration_ms
            case ev.AudioDone(payload=spoken) | ev.UserAudio(payload=spoken):
                row.duration_ms = spoken.duration_ms
            case ev.Error(payload=failed):
                row.status = failed.code
            case ev.Interrupt(payload=stopped):
                row.status = stopped.reason
            case ev.SessionLifecycle(payload=life):
                row.status = life.subtype
            case ev.StatusChange(payload=change):
                row.status = change.status
            case ev.McpStatus(payload=server):
                row.status = server.state
            case _:
                pass
        return row

    def _words(self, event: ev.Event) -> str:
        """What is said; for everything else the words of the transcript, or of the event itself."""
        match event:
            case ev.UserMessage() | ev.UserAudio() | ev.AssistantDone() | ev.ThinkingDone() | ev.ContentBlock() | ev.AudioDone():
                return text_of(event) or ""
            case ev.StatusChange(payload=change):
                return change.status
            case ev.PlanUpdate(payload=plan):
                return f"Plan: {', '.join(entry.content for entry in plan.entries)}"
            case ev.QueueUpdate(payload=queue):
                return f"{queue.action}: {queue.text}" if queue.text else queue.action
            case _:
                return _transcript_text(event) or getattr(event.payload, "subtype", event.type)


_MARKS = " ✗■?"


def _transcript_text(event: ev.Event) -> str:
    """The first line of what the transcript shows of this event alone."""
    transcript = Transcript(all=True)
    lines = [*transcript.lines(event), *transcript.expect(()), *transcript.finish()]
    return next((text for line in lines if (text := line.text.strip(_MARKS))), "")


_WHOLE = {"assistant_chunk": "assistant_done", "thinking_chunk": "thinking_done"}


def _row(event: ev.Event, what: str, title: str) -> Row:
    return Row(
        what=what,
        who=_who(event),
        timestamp=event.timestamp,
        title=preview(title),
        seq=event.seq or None,
        turn_id=event.turn_id,
        parent_tool_call_id=event.parent_tool_call_id,
    )


def _until(row: Row, event: ev.Event) -> None:
    """The row goes on to this event. Clocks that go back measure nothing, nor do two clocks: the wire's and a recording's."""
    row.last_seq = event.seq or None
    if event.timestamp >= row.timestamp >= 0 and (event.timestamp < ev.EARLIEST_CALENDAR_MS) == (row.timestamp < ev.EARLIEST_CALENDAR_MS):
        row.duration_ms = event.timestamp - row.timestamp


def _who(event: ev.Event) -> Who:
    match event:
        case ev.UserMessage(payload=said):
            return AUTHORS[said.author]
        case ev.UserAudio():
            return "user"
        case ev.Interrupt(payload=stopped) if stopped.reason == "user_cancel":
            return "user"
        case ev.TurnStart(payload=begun) if begun.trigger == "user" and event.parent_tool_call_id is None:
            return "user"
        case ev.AgentCallback():
            return "other agent"
        case ev.ControlRequest() | ev.ConfigurationChange() | ev.QueueUpdate() | ev.SessionLifecycle() | ev.StatusChange() if (
            event.direction == "out"
        ):
            return "host"
        case _ if event.parent_tool_call_id is not None:
            return "subagent"
        case _:
            return "hansard" if event.source is None else "agent"


def _turn(event: ev.Event) -> Key:
    return ("turn", event.stream, event.parent_tool_call_id, event.turn_id)


def _call(event: ev.Event, call_id: str) -> Key:
    return ("tool", event.parent_tool_call_id, call_id)


def _speech(event: ev.AssistantChunk | ev.ThinkingChunk | ev.AssistantDone | ev.ThinkingDone) -> Key:
    """A message that has an id is known by it: whose it is may be said only at its end."""
    lane = event.parent_tool_call_id if event.response_id is None else None
    return (_WHOLE.get(event.type, event.type), event.stream, lane, event.response_id, event.block_index)
