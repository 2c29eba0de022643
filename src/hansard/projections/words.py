"""Small words that projections share."""

from __future__ import annotations

import re
from typing import Any, cast

import msgspec

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
from hansard.events import ToolResultPayload
from hansard.projections.projection import Report
from hansard.projections.writing import encode

_HALF = re.compile("[\ud800-\udfff]")


def whole(value: Any, report: Report) -> Any:
    """Any JSON with half characters replaced: few readers take them."""
    match value:
        case str():
            if value.isascii() or not _HALF.search(value):
                return value
            report.note("half a character is replaced")
            return _HALF.sub("\ufffd", value)
        case dict():
            return {whole(key, report): whole(item, report) for key, item in cast("dict[str, Any]", value).items()}
        case list():
            return [whole(item, report) for item in cast("list[Any]", value)]
        case _:
            return value


def as_text(value: Any) -> str:
    """Any JSON as text: a string as it is, everything else as JSON."""
    return value if isinstance(value, str) else encode(value).decode()


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
