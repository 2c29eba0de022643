"""Blocks and payloads as plain JSON for people's programs: the shapes of Anthropic's API where it has one, snake_case everywhere."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import msgspec
from msgspec import Struct

from hansard.events import ToolResultPayload
from hansard.events.content import AnyBlock, FileBlock, ImageBlock, RawBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock

Json = dict[str, Any]


def plain(block: AnyBlock) -> Json:
    """A block as JSON; nothing of it is lost."""
    match block:
        case ThinkingBlock():
            return renamed(spelled(block), text="thinking") | {"thinking": block.text}
        case ToolUseBlock():
            return spelled(block) | {"input": block.input}  # null is what was said
        case ToolResultBlock():
            return spelled(block) | {"content": block.content}
        case ImageBlock():
            return {"type": "image", "source": _source(block)}
        case FileBlock():
            return _file(block)
        case RawBlock(raw=dict()):
            return spelled(block)
        case RawBlock():
            return spelled(block) | {"raw": {"value": block.raw}}
        case _:
            return spelled(block)


def result_content(payload: ToolResultPayload) -> Any:
    """What a tool gave back, its structure kept: text alone as a string, else blocks, else any JSON."""
    blocks = [plain(block) for block in payload.content or []]
    if [block["type"] for block in blocks] == ["text"]:
        return blocks[0]["text"]
    if blocks:
        return blocks
    return payload.error if payload.result is None else payload.result


def result_block(payload: ToolResultPayload) -> Json:
    """What a tool gave back, as a block of a message."""
    block: Json = {"type": "tool_result", "tool_use_id": payload.tool_call_id, "content": result_content(payload)}
    return block if payload.is_error is None else block | {"is_error": payload.is_error}


def spelled(value: Any) -> Any:
    """A struct of ours as JSON with the names it has here, what is absent left out. Any other JSON as it is."""
    if isinstance(value, Struct):
        fields: Json = {"type": tag} if (tag := value.__struct_config__.tag) is not None else {}
        for name, default in _fields(type(value)):
            item = getattr(value, name)
            if item != default:  # a field without a default differs from everything
                fields[name] = spelled(item) if isinstance(item, Struct | list) else item
        return fields
    if isinstance(value, list):
        return [spelled(item) for item in cast("list[Any]", value)]
    return value


def renamed(fields: Json, **names: str) -> Json:
    """With other names for some of the fields, in the same order."""
    if fields.keys().isdisjoint(names):
        return fields
    return {names.get(name, name): value for name, value in fields.items()}


@cache
def _fields(kind: type[Struct]) -> list[tuple[str, Any]]:
    return [(field.name, field.default) for field in msgspec.structs.fields(kind)]


def _source(image: ImageBlock) -> Json:
    """Where a picture is: the first place it has is its kind, the others stand beside it."""
    places = {"base64": "data", "url": "url", "file": "file_id", "path": "path", "blob": "blob"}
    kind = next((kind for kind, name in places.items() if getattr(image, name) is not None), "unknown")
    return {"type": kind} | {name: value for name, value in spelled(image).items() if name != "type"}


def _file(file: FileBlock) -> Json:
    """A file that is stored has a path; the rest keep the names they have here."""
    fields = renamed(spelled(file), name="filename", media_type="mimeType")
    place = next((name for name in ("path", "blob", "url", "file_id") if name in fields), None)
    return fields if place is None else renamed(fields, **{place: "storagePath"})
