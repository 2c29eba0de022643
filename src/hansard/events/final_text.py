"""What an agent said in the end."""

from __future__ import annotations

from collections.abc import Iterable

from hansard.events.types import AssistantDone, Event, Result, ToolCall, ToolResult


def final_text(events: Iterable[Event]) -> str:
    """What an agent said last in a turn: in its own summing-up, or since a tool came between."""
    said: list[str] = []
    interrupted = False
    for event in events:
        if event.parent_tool_call_id is not None:
            continue
        match event:
            case ToolCall() | ToolResult():
                interrupted = True
            case AssistantDone():
                said = [event.payload.text] if interrupted else [*said, event.payload.text]
                interrupted = False
            case Result() if event.payload.text:
                said = [event.payload.text]
            case _:
                pass
    return "\n\n".join(said)
