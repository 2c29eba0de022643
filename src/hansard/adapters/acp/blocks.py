"""Content blocks of ACP as ours, and ours as theirs. What is none of them is kept whole."""

from __future__ import annotations

from typing import Any

from hansard.adapters.acp import wire
from hansard.content import (
    AnyBlock,
    AudioBlock,
    DiffBlock,
    ImageBlock,
    RawBlock,
    ResourceBlock,
    TerminalBlock,
    TextBlock,
)
from hansard.errors import CannotEncode
from hansard.loose import as_list, as_object, read


def to_block(value: Any) -> AnyBlock:
    """One of our blocks for a content block: most are text."""
    fields = as_object(value)
    if fields.get("type") == "text" and isinstance(text := fields.get("text"), str):
        return TextBlock(text)
    try:
        block = read(value, wire.Content)
    except (ValueError, RecursionError):
        return _raw(value)
    match block:
        case wire.TextContent():
            return TextBlock(text=block.text)
        case wire.ImageContent():
            return ImageBlock(media_type=block.mime_type, data=block.data, url=block.uri)
        case wire.AudioContent():
            return AudioBlock(media_type=block.mime_type, data=block.data)
        case wire.EmbeddedResource(resource=resource):
            return ResourceBlock(uri=resource.uri, text=resource.text, data=resource.blob, media_type=resource.mime_type)
        case _:
            return ResourceBlock(
                uri=block.uri,
                name=block.name,
                title=block.title,
                description=block.description,
                media_type=block.mime_type,
                size=block.size,
            )


def to_blocks(content: Any) -> list[AnyBlock]:
    """Our blocks for a list of content blocks, or for a single one."""
    if isinstance(content, list):
        return [to_block(item) for item in as_list(content)]
    return [to_block(content)]


def tool_blocks(content: Any) -> list[AnyBlock]:
    """Our blocks for the content of a tool call."""
    found: list[AnyBlock] = []
    for item in as_list(content) if content else ():
        fields = as_object(item)
        if fields.get("type") == "content" and "content" in fields:
            found.append(to_block(fields["content"]))
        else:
            found += _tool_item(item)
    return found


def terminals(content: Any) -> list[str]:
    """The terminals that the content of a tool call shows."""
    items = [item for item in as_list(content) if as_object(item).get("type") == "terminal"]
    return [block.terminal_id for block in tool_blocks(items) if isinstance(block, TerminalBlock)] if items else []


def _tool_item(value: Any) -> list[AnyBlock]:
    """A diff or a terminal."""
    try:
        item = read(value, wire.ToolContent)
    except (ValueError, RecursionError):
        return [_raw(value)]
    match item:
        case wire.TerminalItem():
            return [TerminalBlock(terminal_id=item.terminal_id)]
        case wire.DiffItem(path=str(path)):
            return [DiffBlock(path=path, old_text=item.old_text, new_text=item.new_text)]
        case _:
            return _changes(item) or [_raw(value)]


def _changes(item: wire.DiffItem) -> list[AnyBlock]:
    """A version 2 diff: a block per file; the patch, which speaks of all of them, is with the first."""
    patch = None if item.patch is None else item.patch.text
    return [DiffBlock(path=change.path, diff=patch if index == 0 else None) for index, change in enumerate(item.changes or [])]


def _raw(value: Any) -> RawBlock:
    kind = as_object(value).get("type")
    return RawBlock(raw=value, raw_type=kind if isinstance(kind, str) else None)


def text_of(blocks: list[AnyBlock]) -> str:
    """The words of a message."""
    return "\n".join([block.text for block in blocks if isinstance(block, TextBlock)])


def only_text(blocks: list[AnyBlock]) -> bool:
    """Whether there is nothing but text."""
    return all(isinstance(block, TextBlock) for block in blocks)


def from_block(block: AnyBlock) -> Any:
    """Their block for one of ours, to be sent."""
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case ImageBlock(data=str()):
            return {"type": "image", "mimeType": block.media_type, "data": block.data, **({"uri": block.url} if block.url else {})}
        case AudioBlock(data=str()):
            return {"type": "audio", "mimeType": block.media_type, "data": block.data}
        case ResourceBlock(text=str()) | ResourceBlock(data=str()):
            return {"type": "resource", "resource": _given(uri=block.uri, mimeType=block.media_type, text=block.text, blob=block.data)}
        case ResourceBlock():
            link = _given(
                uri=block.uri,
                name=block.name if block.name is not None else block.uri,
                title=block.title,
                description=block.description,
                mimeType=block.media_type,
                size=block.size,
            )
            return {"type": "resource_link", **link}
        case RawBlock():
            return block.raw
        case _:
            raise CannotEncode(f"ACP takes no {type(block).__name__} in a prompt")


def _given(**fields: Any) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}
