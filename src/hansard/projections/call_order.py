"""The order in which a session is read: everything about a call follows the call."""

from __future__ import annotations

from collections.abc import Iterator

from hansard import events as ev
from hansard.projections.reading_levels import level_of

MAX_WAITING = 10_000
"""The number of events that are held back at most."""


class CallOrder:
    """Puts the events of a call together: its permission, its subagent's events, and its result follow the call directly.

    Calls run side by side, and their results come in any order. Events are held back while a call is open, at most to the end of the turn.
    """

    def __init__(self) -> None:
        self._waiting: list[ev.Event] = []
        self._open: set[str] = set()

    def feed(self, event: ev.Event) -> Iterator[ev.Event]:
        """Returns the events that are in order now."""
        if isinstance(event, ev.Interrupt) or (level_of(event) == "record" and not isinstance(event, ev.UsageEvent)):
            yield event  # an interrupt explains the results that come after it
            return
        self._waiting.append(event)
        match event:
            case ev.ToolCall(payload=call):
                self._open.add(call.tool_call_id)
            case ev.ToolResult(payload=result):
                self._open.discard(result.tool_call_id)
            case _:
                pass
        is_over = isinstance(event, ev.TurnEnd) and ev.is_main_agent(event)
        if not self._open or is_over or len(self._waiting) > MAX_WAITING:
            yield from self.finish()

    def finish(self) -> Iterator[ev.Event]:
        """Returns everything that is held back."""
        waiting, self._waiting = self._waiting, []
        self._open.clear()
        yield from _grouped(waiting)


def _grouped(events: list[ev.Event]) -> Iterator[ev.Event]:
    call_by_request: dict[str, str | None] = {}
    known = {event.payload.tool_call_id for event in events if isinstance(event, ev.ToolCall)}
    inside: dict[str, list[ev.Event]] = {}
    outside: list[ev.Event] = []
    for event in events:
        call = _call_of(event, call_by_request)
        (inside.setdefault(call, []) if call in known else outside).append(event)
    stack = outside[::-1]
    while stack or inside:
        if not stack:  # calls that claim to be inside each other
            stack = inside.pop(next(iter(inside)))[::-1]
        event = stack.pop()
        yield event
        if isinstance(event, ev.ToolCall):
            stack += inside.pop(event.payload.tool_call_id, [])[::-1]


def _call_of(event: ev.Event, call_by_request: dict[str, str | None]) -> str | None:
    """The call that an event belongs to; a call of a subagent belongs to the call that started the subagent."""
    match event:
        case ev.ToolResult(payload=result):
            return result.tool_call_id
        case ev.PermissionRequest(payload=asked) | ev.Question(payload=asked):
            call_by_request[asked.request_id] = asked.tool_call_id
            return asked.tool_call_id
        case ev.PermissionResponse(payload=answer) | ev.PermissionCancelled(payload=answer) | ev.Answer(payload=answer):
            return call_by_request.get(answer.request_id, answer.request_id)
        case _:
            return event.parent_tool_call_id
