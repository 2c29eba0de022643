"""Content blocks of ACP as blocks of events, and the other way round. An unknown block is kept as it is."""

from __future__ import annotations

from typing import Any

from hansard import events as ev
from hansard.adapters.acp import wire
from hansard.adapters.acp.fields import present
from hansard.adapters.blocks import raw_block
from hansard.errors import CannotEncode
from hansard.events.lenient import as_list, as_object, read


def text_in(value: Any) -> str | None:
    """Return the text of a content block that is text, which most are."""
    fields = as_object(value)
    text = fields.get("text") if fields.get("type") == "text" else None
    return text if isinstance(text, str) else None


def to_block(value: Any) -> ev.AnyBlock:
    """Return a content block as a block of an event."""
    if (text := text_in(value)) is not None:
        return ev.TextBlock(text)
    try:
        block = read(value, wire.Content)
    except (ValueError, RecursionError):
        return raw_block(value)
    match block:
        case wire.TextContent():
            return ev.TextBlock(text=block.text)
        case wire.ImageContent():
            return ev.ImageBlock(media_type=block.mime_type, data=block.data, url=block.uri)
        case wire.AudioContent():
            return ev.AudioBlock(media_type=block.mime_type, data=block.data)
        case wire.EmbeddedResource(resource=resource):
            return ev.ResourceBlock(uri=resource.uri, text=resource.text, data=resource.blob, media_type=resource.mime_type)
        case _:
            return ev.ResourceBlock(
                uri=block.uri,
                name=block.name,
                title=block.title,
                description=block.description,
                media_type=block.mime_type,
                size=block.size,
            )


def to_blocks(content: Any) -> list[ev.AnyBlock]:
    """Our blocks for a list of content blocks, or for a single one."""
    if isinstance(content, list):
        return [to_block(item) for item in as_list(content)]
    return [to_block(content)]


def tool_blocks(content: Any) -> list[ev.AnyBlock]:
    """Our blocks for the content of a tool call."""
    found: list[ev.AnyBlock] = []
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
    return [block.terminal_id for block in tool_blocks(items) if isinstance(block, ev.TerminalBlock)] if items else []


def _tool_item(value: Any) -> list[ev.AnyBlock]:
    """A diff or a terminal."""
    try:
        item = read(value, wire.ToolContent)
    except (ValueError, RecursionError):
        return [raw_block(value)]
    match item:
        case wire.TerminalItem():
            return [ev.TerminalBlock(terminal_id=item.terminal_id)]
        case wire.DiffItem(path=str(path)):
            return [ev.DiffBlock(path=path, old_text=item.old_text, new_text=item.new_text)]
        case _:
            return _changes(item) or [raw_block(value)]


def _changes(item: wire.DiffItem) -> list[ev.AnyBlock]:
    """Return the blocks of a version 2 diff, one per file. The patch covers all of them and is in the first."""
    patch = None if item.patch is None else item.patch.text
    return [ev.DiffBlock(path=change.path, diff=patch if index == 0 else None) for index, change in enumerate(item.changes or [])]


def from_block(block: ev.AnyBlock) -> Any:
    """Their block for one of ours, to be sent."""
    match block:
        case ev.TextBlock():
            return {"type": "text", "text": block.text}
        case ev.ImageBlock(data=str()):
            return {"type": "image", "mimeType": block.media_type, "data": block.data, **({"uri": block.url} if block.url else {})}
        case ev.AudioBlock(data=str()):
            return {"type": "audio", "mimeType": block.media_type, "data": block.data}
        case ev.ResourceBlock(text=str()) | ev.ResourceBlock(data=str()):
            return {"type": "resource", "resource": present(uri=block.uri, mimeType=block.media_type, text=block.text, blob=block.data)}
        case ev.ResourceBlock():
            link = present(
                uri=block.uri,
                name=block.name if block.name is not None else block.uri,
                title=block.title,
                description=block.description,
                mimeType=block.media_type,
                size=block.size,
            )
            return {"type": "resource_link", **(link or {})}
        case ev.RawBlock():
            return block.raw
        case _:
            raise CannotEncode(f"ACP takes no {type(block).__name__} in a prompt")
