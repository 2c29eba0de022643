"""The text of events, in which people search."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping

from hansard.events import AgentMessage, Error, Event, PlanUpdate, ToolCall
from hansard.events.replays import without_handoff
from hansard.projections.display import text_of

SEARCHED_TYPES = frozenset(
    {
        "user_message",
        "user_audio",
        "assistant_done",
        "thinking_done",
        "content_block",
        "tool_call",
        "tool_result",
        "agent_message",
        "agent_callback",
        "audio_done",
        "error",
        "plan_update",
    }
)
"""The types that are looked at: each says something whole. Pieces are not, because what they are pieces of is."""
SCOPES: Mapping[str, frozenset[str]] = {
    "said": frozenset({"user_message", "user_audio", "assistant_done", "content_block", "agent_message", "agent_callback", "audio_done"}),
    "tools": frozenset({"tool_call"}),
    "output": frozenset({"tool_result"}),
    "thinking": frozenset({"thinking_done"}),
    "edits": frozenset({"tool_call"}),
}
"""The types in which each part of the sessions is searched. Of the calls, `edits` are those that change files."""


def is_in_scope(event: Event, scopes: Collection[str]) -> bool:
    """Returns whether an event belongs to one of the scopes; to all, if there are none."""
    if not scopes:
        return True
    is_other_call = isinstance(event, ToolCall) and event.payload.kind != "edit"
    return any(event.type in SCOPES[scope] and not (scope == "edits" and is_other_call) for scope in scopes)


def search_text(event: Event) -> str:
    """What an event says, with the arguments of a call, the words of an error and the steps of a plan."""
    match event:
        case ToolCall(payload=call):
            args = call.args if isinstance(call.args, str) else json.dumps(call.args, ensure_ascii=False)
            return f"{call.title or call.tool_name} {args}"
        case AgentMessage(payload=sent):
            return sent.message
        case Error(payload=problem):
            return f"{problem.code} {problem.message}"
        case PlanUpdate(payload=plan):
            return "\n".join(entry.content for entry in plan.entries)
        case _:
            return text_of(without_handoff(event)) or ""


def byte_hints(words: Iterable[str]) -> list[bytes]:
    """Returns what the lower case of a line has if its event has all these words: letters that JSON spells in only one way."""
    longest = (max(re.findall(r"[0-9a-z ._:-]+", word), key=len, default="") for word in words)
    return [spelled.encode() for spelled in longest if spelled]
