"""The short way: updates that come all the time, read from JSON at once.

What has another field, one of another type, or a time of its own is a `wire.Message`, with everything that there is to it.
"""

from __future__ import annotations

from typing import Any, Literal

from hansard.adapter import Wire, decoder
from hansard.adapters.acp import wire
from hansard.loose import as_object
from hansard.structs import prepare


class Text(Wire, forbid_unknown_fields=True):
    """Text, with nothing about it. No tag: a struct that stands alone is read without one, too."""

    type: Literal["text"]
    text: str


class AgentMessageChunk(wire.AgentMessageChunk, tag="agent_message_chunk", forbid_unknown_fields=True):
    """What the agent says."""

    content: Text


class AgentThoughtChunk(wire.AgentThoughtChunk, tag="agent_thought_chunk", forbid_unknown_fields=True):
    """What the agent thinks."""

    content: Text


class ToolCall(wire.ToolCall, tag="tool_call", forbid_unknown_fields=True):
    """The first sight of a call."""


class ToolCallUpdate(wire.ToolCallUpdate, tag="tool_call_update", forbid_unknown_fields=True):
    """More of a call."""


class UsageUpdate(wire.UsageUpdate, tag="usage_update", forbid_unknown_fields=True):
    """How full the context is."""


class SessionUpdate(wire.SessionUpdate, forbid_unknown_fields=True):
    """The parameters of session/update."""

    update: AgentMessageChunk | AgentThoughtChunk | ToolCall | ToolCallUpdate | UsageUpdate


class Message(Wire, forbid_unknown_fields=True):
    """A message with one of these updates."""

    method: Literal["session/update"]
    params: SessionUpdate
    jsonrpc: Any = None


_decode = decoder(Message).decode
_decode_any = decoder(wire.Message).decode


def decode(data: bytes) -> Message | wire.Message:
    """A message from the agent."""
    try:
        message = _decode(data)
    except (ValueError, RecursionError):
        return _decode_any(data)
    meta = message.params.update.meta
    return message if meta is None or "timestamp" not in as_object(meta) else _decode_any(data)


prepare(globals())
