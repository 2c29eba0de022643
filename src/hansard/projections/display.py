"""Small helpers for whoever draws events: the blocks of an event, its text, the piece of a stream it brings, and a line for a list.

Only `line` cuts, and what it cuts is a copy: the event, its blocks and its text are whole.
"""

from __future__ import annotations

from hansard.content import AnyBlock, AudioBlock, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from hansard.events import (
    AgentCallback,
    AssistantChunk,
    AssistantDone,
    AudioDone,
    ContentBlock,
    Event,
    ThinkingChunk,
    ThinkingDone,
    ToolCall,
    ToolInputChunk,
    ToolOutputChunk,
    ToolResult,
    UserAudio,
    UserMessage,
)
from hansard.projections.blocks import result_content
from hansard.projections.words import block_text, callback_words, result_text

LINE = 120
"""So many characters a list has room for."""


def block_of(event: Event) -> AnyBlock | None:
    """The block of an agent's message that an event completes; None if it completes none."""
    match event:
        case AssistantDone(payload=done):
            return TextBlock(done.text, done.citations)
        case ThinkingDone(payload=done):
            return ThinkingBlock(done.text, done.signature, done.redacted)
        case ContentBlock(payload=said):
            return said.block
        case AudioDone(payload=done):
            return AudioBlock(blob=done.audio, transcript=done.transcript, duration_ms=done.duration_ms)
        case ToolCall(payload=call):
            return ToolUseBlock(call.tool_call_id, call.tool_name, call.args)
        case _:
            return None


def display_items(event: Event) -> list[AnyBlock]:
    """What there is to draw of an event, as blocks, whole: what was said by anybody, calls and results. Of all other events nothing."""
    match event:
        case UserMessage(payload=said):
            return said.content or [TextBlock(said.text)]
        case UserAudio(payload=spoken):
            return [AudioBlock(blob=spoken.audio, transcript=spoken.transcription, duration_ms=spoken.duration_ms)]
        case AgentCallback(payload=callback):
            return [TextBlock(callback_words(callback))]
        case ToolResult(payload=result):
            return [ToolResultBlock(result.tool_call_id, result_content(result), result.is_error)]
        case _:
            block = block_of(event)
            return [] if block is None else [block]


def text_of(event: Event) -> str | None:
    """What an event says, in words, whole; None if it is no message and no result. Of a call, `tools.tool_title` tells."""
    match event:
        case ToolCall():
            return None
        case ToolResult(payload=result):
            return result_text(result)
        case _:
            items = display_items(event)
            return "\n".join(block_text(item) for item in items) if items else None


def delta_of(event: Event) -> str | None:
    """The piece of a stream that an event brings, exactly as long as it came (a single space is one); None if it brings none."""
    match event:
        case AssistantChunk(payload=piece) | ThinkingChunk(payload=piece):
            return piece.text
        case ToolInputChunk(payload=piece) | ToolOutputChunk(payload=piece):
            return piece.chunk
        case _:
            return None


def line(text: str, width: int = LINE) -> str:
    """The beginning of a text on one line; an ellipsis says that there is more."""
    words = " ".join(text[: 4 * width].split())
    if len(words) <= width and len(text) <= 4 * width:
        return words
    return words[: width - 1].rstrip() + "…"
