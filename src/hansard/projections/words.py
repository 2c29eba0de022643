"""Small words that projections share."""

from __future__ import annotations

import re
from copy import copy
from typing import Any, cast

import msgspec

from hansard.codec import plain, to_builtins
from hansard.content import (
    AnyBlock,
    AudioBlock,
    CodeBlock,
    DiffBlock,
    DocumentBlock,
    FileBlock,
    ImageBlock,
    RefusalBlock,
    ResourceBlock,
    SlashCommandBlock,
    TerminalBlock,
    TextBlock,
    ThinkingBlock,
)
from hansard.events import AgentCallbackPayload, Event, RawEvent, ToolResultPayload, Unknown, Usage
from hansard.projections.projection import Report
from hansard.projections.writing import encode

APART = frozenset({"acp", "agent_sdk", "anthropic", "claude", "opencode"})
"""Sources that count cached tokens beside the input tokens; all others count them in."""
_encode = msgspec.json.Encoder().encode
_HALF = re.compile("[\ud800-\udfff]")


def whole_characters(value: Any, report: Report) -> Any:
    """Any JSON with half characters replaced: few readers take them."""
    try:
        _encode(value)
    except UnicodeEncodeError:
        return _replaced(value, report)
    return value


def _replaced(value: Any, report: Report) -> Any:
    match value:
        case str():
            if value.isascii() or not _HALF.search(value):
                return value
            report.note("half a character is replaced")
            return _HALF.sub("\ufffd", value)
        case dict():
            fields = cast("dict[str, Any]", value)
            return {_replaced(key, report): _replaced(item, report) for key, item in fields.items()}
        case list():
            return [_replaced(item, report) for item in cast("list[Any]", value)]
        case _:
            return value


def whole(event: Event) -> dict[str, Any]:
    """All an event says, for forms that have no word for it. The verbatim frame stays in the log, unless nothing else says it."""
    return to_builtins(without_frame(event))


def whole_payload(event: Event) -> Any:
    """All that the payload of an event says."""
    return plain(event.payload) if event.extra is None else to_builtins(without_frame(event))["payload"]


def without_frame(event: Event) -> Event:
    """The event without its verbatim frame, unless nothing else says what is in it."""
    if event.original is None or isinstance(event, RawEvent | Unknown):
        return event
    bare = copy(event)
    bare.original = bare.eol = None
    return bare


def given(**fields: Any) -> dict[str, Any]:
    """The fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def prompt_tokens(usage: Usage, source: str | None) -> int | None:
    """Every token of the prompt, those from the cache and those put into it included."""
    cached = (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
    if usage.input_tokens is None or (source not in APART and cached <= usage.input_tokens):  # a part is not larger than the whole
        return usage.input_tokens
    return usage.input_tokens + cached


def image_url(block: ImageBlock) -> str | None:
    """Where a picture is, or the picture itself as an address."""
    return block.url or (None if block.data is None else f"data:{block.media_type or 'image/png'};base64,{block.data}")


def as_text(value: Any) -> str:
    """Any JSON as text: a string as it is, everything else as JSON."""
    return value if isinstance(value, str) else encode(value).decode()


def callback_words(answered: AgentCallbackPayload) -> str:
    """What an agent is told when another one has answered it."""
    told = f"[Callback from {answered.from_agent_id or answered.message_id}]: "
    if answered.error is None:
        return told + as_text(answered.result)
    so_far = "" if answered.result is None else f"\n\nBefore that it said:\n\n{as_text(answered.result)}"
    return f"{told}no answer: {answered.error}{so_far}"


def result_text(payload: ToolResultPayload) -> str:
    """What a tool gave back, as text: its own text where it has one, else its JSON."""
    if payload.content:
        return "\n".join(block_text(block) for block in payload.content)
    return as_text(payload.result) if payload.result is not None else payload.error or ""


def block_text(block: AnyBlock) -> str:
    """A block in words, for formats that know only text. What has no words is named."""
    match block:
        case TextBlock(text=text) | ThinkingBlock(text=text):
            return text
        case RefusalBlock():
            return block.text or block.explanation or "[refused]"
        case CodeBlock():
            return f"```{block.language or ''}\n{block.code}\n```"
        case DiffBlock():
            return block.diff or f"--- {block.path}\n{block.old_text or ''}\n+++ {block.path}\n{block.new_text or ''}"
        case TerminalBlock():
            return block.output or f"[terminal {block.terminal_id}]"
        case SlashCommandBlock():
            return " ".join(filter(None, [f"/{block.name.removeprefix('/')}", block.args, block.output]))
        case AudioBlock():
            return block.transcript or "[audio]"
        case DocumentBlock():
            return block.text or f"[document {block.title or block.media_type or ''}]"
        case ResourceBlock():
            return block.text or f"[{block.uri}]"
        case ImageBlock():
            return f"[image {block.path or block.url or block.media_type or ''}]"
        case FileBlock():
            return f"[file {block.name or block.path or ''}]"
        case _:
            return as_text(msgspec.to_builtins(block))
