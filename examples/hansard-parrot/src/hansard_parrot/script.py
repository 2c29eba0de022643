"""A session as the script of a play: who says what, and what they do. For people."""

from __future__ import annotations

from collections.abc import Iterator

from hansard import Projection
from hansard.events import TYPES, AssistantDone, Event, ToolCall, UserMessage


class Script(Projection[str]):
    """A line for everything that is said or done."""

    output = "text"
    handled = frozenset({"user_message", "assistant_done", "tool_call"})
    skipped = dict.fromkeys(TYPES.keys() - handled, "not for the stage")

    def handle(self, event: Event) -> Iterator[str]:
        match event:
            case UserMessage():
                yield f"KEEPER: {event.payload.text}\n"
            case AssistantDone():
                yield f"PARROT: {event.payload.text}\n"
            case ToolCall():
                yield f"        (It wants to {event.payload.tool_name}.)\n"
            case _:
                pass
