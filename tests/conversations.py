"""What was said and done in a session, whichever wire told it: to compare a live wire with the file of the same run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hansard.adapters.normalize import normalize
from hansard.events import Event
from tests.recorded import read

Conversation = dict[str, list[Any]]


def read_conversation(paths: Iterable[Path], format: str) -> Conversation:
    """The conversation of one session, told by several processes one after the other."""
    return conversation([event for path in in_order(paths) for event in normalize(read(path), format)])


def in_order(paths: Iterable[Path]) -> list[Path]:
    """The files of one recording: stdout.jsonl, stdout-2.jsonl, …"""
    return sorted(paths, key=lambda path: (len(path.name), path.name))


def conversation(events: list[Event]) -> Conversation:
    """Everything that every wire can tell. What a sub-agent did is under the call that started it; errors said as text are no speech."""
    found: Conversation = {kind: [] for kind in ("prompts", "texts", "thinking", "calls", "results", "plans", "ends")}
    for event in events:
        said: Any = event.payload
        under = event.parent_tool_call_id
        match event.type:
            case "user_message" if said.author != "harness":
                found["prompts"].append((under, said.text))
            case "assistant_done" if said.phase != "error":
                found["texts"].append((under, said.text))
            case "thinking_done":
                found["thinking"].append((under, said.text))
            case "tool_call":
                found["calls"].append((under, said.tool_call_id, said.tool_name, said.args))
            case "tool_result":
                found["results"].append((under, said.tool_call_id, said.is_error))
            case "plan_update":
                found["plans"].append([(entry.content, entry.status) for entry in said.entries])
            case "turn_end":
                found["ends"].append((said.status, None if said.error is None else said.error.code))
            case _:
                pass
    return found


def differing(one: Conversation, other: Conversation) -> set[str]:
    """The kinds in which two tellings of a conversation are not the same."""
    return {kind for kind in one if one[kind] != other[kind]}
