"""The order in which a session is read: everything about a call follows the call, and texts are in the order in which they began."""

from __future__ import annotations

from collections.abc import Iterator

from hansard import events as ev
from hansard.projections.reading_levels import level_of

MAX_WAITING = 10_000
"""The number of events that are held back at most."""


Text = tuple[str | None, int | None] | int
"""The block of a text, or a number for a text that came in one piece."""


class ReadingOrder:
    """Puts the events of a call together: its permission, its subagent's events, and its result follow the call directly.

    Calls run side by side, and their results come in any order. A text may be completed before an earlier one: Codex writes a plan
    within the message that introduces it. Events are held back while a call or a text is open, at most to the end of the turn.
    """

    def __init__(self) -> None:
        self._waiting: list[ev.Event] = []
        self._open: set[str] = set()
        self._texts: dict[Text, ev.Event | None] = {}
        """The texts of the main agent in the order in which they began, with their events as far as they are complete."""

    def begin(self, piece: ev.AssistantChunk) -> None:
        """Notes that a text has begun, for a reader that is not fed with pieces."""
        if ev.is_main_agent(piece):
            self._texts.setdefault((piece.response_id, piece.block_index), None)

    def feed(self, event: ev.Event) -> Iterator[ev.Event]:
        """Returns the events that are in order now."""
        if isinstance(event, ev.AssistantChunk):
            self.begin(event)
        if isinstance(event, ev.Interrupt) or (level_of(event) == "record" and not isinstance(event, ev.UsageEvent)):
            yield event  # an interrupt explains the results that come after it
            return
        self._waiting.append(event)
        match event:
            case ev.ToolCall(payload=call):
                self._open.add(call.tool_call_id)
            case ev.ToolResult(payload=result):
                self._open.discard(result.tool_call_id)
            case ev.AssistantDone() if ev.is_main_agent(event):
                block = (event.response_id, event.block_index)
                self._texts[block if self._texts.get(block, event) is None else len(self._texts)] = event
            case _:
                pass
        is_over = isinstance(event, ev.TurnEnd) and ev.is_main_agent(event)
        is_whole = not self._open and None not in self._texts.values()
        if is_whole or is_over or len(self._waiting) > MAX_WAITING:
            yield from self.finish()

    def finish(self) -> Iterator[ev.Event]:
        """Returns everything that is held back."""
        waiting, self._waiting = self._waiting, []
        texts = [event for event in self._texts.values() if event is not None]
        places = [number for number, event in enumerate(waiting) if isinstance(event, ev.AssistantDone) and ev.is_main_agent(event)]
        for number, event in zip(places, texts, strict=True):
            waiting[number] = event
        self._open.clear()
        self._texts.clear()
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
