"""The order of a conversation. A log is in the order in which it was written; what another stream added later may belong further up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hansard.events.lineage import is_parent_recorded
from hansard.events.types import Event


class ConversationOrder:
    """Puts late events, those with `Event.after`, directly behind the events that they follow. Feed it the whole log.

    An event whose predecessor is not in the log keeps its place. Where the parent of a fork was recorded again, because both had more in
    common later, all of these events follow the end of what both have now.
    """

    def __init__(self, late: Iterable[Event]) -> None:
        self._followers: dict[str, list[Event]] = {}
        events = list(late)
        fork_point = next((event.after for event in reversed(events) if is_parent_recorded(event)), None)
        for event in events:
            self._followers.setdefault((fork_point if is_parent_recorded(event) else event.after) or "", []).append(event)
        self._given: set[str] = set()

    def feed(self, event: Event) -> Iterator[Event]:
        """Yields the event and those that follow it, but nothing twice."""
        waiting = [event]
        while waiting:
            event = waiting.pop()
            if event.after is not None:
                if event.id in self._given:
                    continue
                self._given.add(event.id)
            yield event
            waiting += reversed(self._followers.pop(event.id, ()))


def in_conversation_order(events: list[Event]) -> Iterator[Event]:
    """Yields the events of a log in the order of the conversation."""
    order = ConversationOrder(event for event in events if event.after is not None)
    for event in events:
        yield from order.feed(event)
