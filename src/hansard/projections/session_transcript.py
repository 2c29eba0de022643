"""A whole session as the lines of its conversation, subagents included."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import tzinfo
from itertools import chain, islice, takewhile

from hansard import events as ev
from hansard.projections.reading_order import ReadingOrder
from hansard.projections.transcript import Line, Transcript

INTRODUCTION_EVENTS = 500
"""How many events are searched for the introduction of the agent."""


def session_transcript(
    read: Callable[[], Iterable[ev.Event]], fold: int, zone: tzinfo, all: bool = False, once: bool = False
) -> Iterator[Line]:
    """Yields the lines of a session. What a subagent wrote in a file of its own follows the call that started it.

    ``read`` gives all events in the order of the conversation; with ``once`` it can be called only once, and all events are of one file.
    """
    shown, order = Transcript(fold, zone, all), ReadingOrder()
    beside: dict[str | None, list[Line]] = {} if once else _streams(read(), fold, all)
    events = (event for event in read() if once or ev.is_main_stream(event.stream))
    first = list(islice(events, INTRODUCTION_EVENTS))
    yield from shown.expect(_before_the_answer(first))
    for event in chain(chain.from_iterable(map(order.feed, chain(first, events))), order.finish()):
        yield from shown.lines(event)
        if isinstance(event, ev.ToolCall) and event.payload.tool_call_id in beside:
            yield from shown.flush()
            yield from beside.pop(event.payload.tool_call_id)
    yield from shown.finish()
    for lines in beside.values():
        yield from lines


def _before_the_answer(events: list[ev.Event]) -> Iterable[ev.Event]:
    """The events before the agent's first answer or call: in them, the agent introduces itself."""
    return takewhile(lambda event: not isinstance(event, ev.AssistantDone | ev.ThinkingDone | ev.ToolCall), events)


def _streams(events: Iterable[ev.Event], fold: int, all: bool) -> dict[str | None, list[Line]]:
    """What subagents wrote in files of their own, by the call that started them."""
    speakers: dict[str, Transcript] = {}
    beside: dict[str | None, list[Line]] = {}
    for event in events:
        if event.stream is not None and not ev.is_main_stream(event.stream):
            speaker = speakers.setdefault(event.stream, Transcript(fold, all=all))
            beside.setdefault(event.parent_tool_call_id, []).extend(speaker.lines(event))
    return beside
