"""The final text of a turn."""

from __future__ import annotations

from collections.abc import Iterable

from hansard.events.replays import without_replays
from hansard.events.types import AssistantDone, Event, Result, ToolCall, ToolResult


def final_text(events: Iterable[Event]) -> str:
    """Returns the last text of an agent in a turn: the text of its own report, or the texts after the last tool call.

    The report of a turn that was cut off or failed is about the turn, and so is a text in which the agent reports an error. Then the texts
    before it count.
    """
    said: list[str] = []
    after_tool = False
    for event in without_replays(events):
        if event.parent_tool_call_id is not None:
            continue
        match event:
            case ToolCall() | ToolResult():
                after_tool = True
            case AssistantDone() if event.payload.phase != "error":
                said = [event.payload.text] if after_tool else [*said, event.payload.text]
                after_tool = False
            case Result(payload=result) if result.text and result.status not in ("interrupted", "error", "lost"):
                said = [result.text]
            case _:
                pass
    return "\n\n".join(said)
