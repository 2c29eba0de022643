"""Small helpers for whoever draws events: the blocks of an event, its text, the piece of a stream it brings, and a line for a list.

Only `preview` cuts, and what it cuts is a copy: the event, its blocks and its text are whole.
"""

from __future__ import annotations

from hansard import events as ev
from hansard.projections.block_json import result_content
from hansard.projections.text import block_text, callback_text, result_text

LINE = 120
"""So many characters a list has room for."""


def block_of(event: ev.Event) -> ev.AnyBlock | None:
    """The block of an agent's message that an event completes; None if it completes none."""
    match event:
        case ev.AssistantDone(payload=done):
            return ev.TextBlock(done.text, done.citations)
        case ev.ThinkingDone(payload=done):
            return ev.ThinkingBlock(done.text, done.signature, done.redacted)
        case ev.ContentBlock(payload=said):
            return said.block
        case ev.AudioDone(payload=done):
            return ev.AudioBlock(blob=done.audio, transcript=done.transcript, duration_ms=done.duration_ms)
        case ev.ToolCall(payload=call):
            return ev.ToolUseBlock(call.tool_call_id, call.tool_name, call.args)
        case _:
            return None


def display_items(event: ev.Event) -> list[ev.AnyBlock]:
    """What there is to draw of an event, as blocks, whole: what was said by anybody, calls and results. Of all other events nothing."""
    match event:
        case ev.UserMessage(payload=said):
            return _as_typed(said)
        case ev.UserAudio(payload=spoken):
            return [ev.AudioBlock(blob=spoken.audio, transcript=spoken.transcription, duration_ms=spoken.duration_ms)]
        case ev.AgentCallback(payload=callback):
            return [ev.TextBlock(callback_text(callback))]
        case ev.ToolResult(payload=result):
            return [ev.ToolResultBlock(result.tool_call_id, result_content(result), result.is_error)]
        case _:
            block = block_of(event)
            return [] if block is None else [block]


def _as_typed(said: ev.UserMessagePayload) -> list[ev.AnyBlock]:
    """The blocks of a prompt. A slash command is the text that a person typed, not what the program made of it."""
    blocks = said.content or [ev.TextBlock(said.text)]
    if said.author != "human" or not any(isinstance(block, ev.SlashCommandBlock) for block in blocks):
        return blocks
    return [ev.TextBlock(said.text), *(block for block in blocks if not isinstance(block, ev.TextBlock | ev.SlashCommandBlock))]


def text_of(event: ev.Event) -> str | None:
    """What an event says, in words, whole; None if it is no message and no result. Of a call, `tools.tool_title` tells."""
    match event:
        case ev.ToolCall():
            return None
        case ev.ToolResult(payload=result):
            return result_text(result)
        case _:
            items = display_items(event)
            return "\n".join(block_text(item) for item in items) if items else None


def delta_of(event: ev.Event) -> str | None:
    """The piece of a stream that an event brings, exactly as long as it came (a single space is one); None if it brings none."""
    match event:
        case ev.AssistantChunk(payload=piece) | ev.ThinkingChunk(payload=piece):
            return piece.text
        case ev.ToolInputChunk(payload=piece) | ev.ToolOutputChunk(payload=piece):
            return piece.chunk
        case _:
            return None


def preview(text: str, width: int = LINE) -> str:
    """The beginning of a text on one line; an ellipsis says that there is more."""
    words = " ".join(text[: 4 * width].split())
    if len(words) <= width and len(text) <= 4 * width:
        return words
    return words[: width - 1].rstrip() + "…"
