"""Small words that projections share."""

from __future__ import annotations

import re
from copy import copy
from typing import Any, cast

import msgspec

from hansard import events as ev
from hansard.events.codec import plain, to_builtins
from hansard.events.prices import CACHE_BESIDE_INPUT
from hansard.projections.base import Report
from hansard.projections.output import encode

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


def event_json(event: ev.Event) -> dict[str, Any]:
    """All an event says, for forms that have no word for it. The verbatim frame stays in the log, unless nothing else says it."""
    return to_builtins(without_frame(event))


def whole_payload(event: ev.Event) -> Any:
    """All that the payload of an event says."""
    return plain(event.payload) if event.extra is None else to_builtins(without_frame(event))["payload"]


def without_frame(event: ev.Event) -> ev.Event:
    """The event without its verbatim frame, unless nothing else says what is in it."""
    if event.original is None or isinstance(event, ev.RawEvent | ev.Unknown):
        return event
    bare = copy(event)
    bare.original = bare.eol = None
    return bare


def present_fields(**fields: Any) -> dict[str, Any]:
    """The fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def prompt_tokens(usage: ev.Usage, source: str | None) -> int | None:
    """Every token of the prompt, those from the cache and those put into it included."""
    cached = (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
    counted_in = source not in CACHE_BESIDE_INPUT and cached <= (usage.input_tokens or 0)  # a part is not larger than the whole
    if usage.input_tokens is None or counted_in:
        return usage.input_tokens
    return usage.input_tokens + cached


def image_url(block: ev.ImageBlock) -> str | None:
    """Where a picture is, or the picture itself as an address."""
    return block.url or (None if block.data is None else f"data:{block.media_type or 'image/png'};base64,{block.data}")


def json_text(value: Any) -> str:
    """Any JSON as text: a string as it is, everything else as JSON."""
    return value if isinstance(value, str) else encode(value).decode()


def callback_text(answered: ev.AgentCallbackPayload) -> str:
    """What an agent is told when another one has answered it."""
    told = f"[Callback from {answered.from_agent_id or answered.message_id}]: "
    if answered.error is None:
        return told + json_text(answered.result)
    so_far = "" if answered.result is None else f"\n\nBefore that it said:\n\n{json_text(answered.result)}"
    return f"{told}no answer: {answered.error}{so_far}"


def result_text(payload: ev.ToolResultPayload) -> str:
    """What a tool gave back, as text: its own text where it has one, else its JSON."""
    if payload.content:
        return "\n".join(block_text(block) for block in payload.content)
    return json_text(payload.result) if payload.result is not None else payload.error or ""


def block_text(block: ev.AnyBlock) -> str:
    """A block in words, for formats that know only text. What has no words is named."""
    match block:
        case ev.TextBlock(text=text) | ev.ThinkingBlock(text=text):
            return text
        case ev.RefusalBlock():
            return block.text or block.explanation or "[refused]"
        case ev.CodeBlock():
            return f"```{block.language or ''}\n{block.code}\n```"
        case ev.DiffBlock():
            return block.diff or f"--- {block.path}\n{block.old_text or ''}\n+++ {block.path}\n{block.new_text or ''}"
        case ev.TerminalBlock():
            return block.output or f"[terminal {block.terminal_id}]"
        case ev.SlashCommandBlock():
            return " ".join(filter(None, [f"/{block.name.removeprefix('/')}", block.args, block.output]))
        case ev.AudioBlock():
            return block.transcript or "[audio]"
        case ev.DocumentBlock():
            return block.text or f"[document {block.title or block.media_type or ''}]"
        case ev.ResourceBlock():
            return block.text or f"[{block.uri}]"
        case ev.ImageBlock():
            return f"[image {block.path or block.url or block.media_type or ''}]"
        case ev.FileBlock():
            return f"[file {block.name or block.path or ''}]"
        case _:
            return json_text(msgspec.to_builtins(block))
