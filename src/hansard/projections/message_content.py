"""MessageContent: any JSON, text or bytes as typed blocks. Nothing raises, nothing is lost: what is unknown is a raw block, untouched."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any, cast

from hansard.events.codec import fraction, integer

Block = dict[str, Any]

ENVELOPES = frozenset({"assistant", "user", "system", "tool", "message", "developer"})
"""Words in ``type`` or ``role`` that say: this is a message, and its content is what matters."""


def parse_message_content(raw: Any) -> list[Block]:
    """The blocks of a message, whatever form it has: text, thinking, tool_use, tool_result, image, file, raw.

    A message's own fields (ids, usage, model) are not its content and are not repeated; everything in its content is.
    """
    match raw:
        case bytes() | bytearray():
            return _of_bytes(bytes(raw))
        case str():
            return _of_text(raw)
        case list():
            return [_block(item) for item in cast("list[Any]", raw)]
        case dict():
            return _of_object(cast("Block", raw))
        case _:
            return [_raw({"value": raw})]


def _of_bytes(data: bytes) -> list[Block]:
    try:
        return _of_text(data.decode())
    except UnicodeDecodeError:
        return [_raw({"base64": base64.b64encode(data).decode()})]


def _of_text(text: str) -> list[Block]:
    """JSON objects and arrays are read; any other text is what was said, also when it looks like a number or has quotes around it."""
    if text.lstrip(" \t\r\n")[:1] not in ("{", "["):
        return [_text(text)]
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_float=fraction, parse_int=integer, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return [_text(text)]
    return parse_message_content(value)


def _of_object(fields: Block) -> list[Block]:
    content = _content(fields)
    if content is None:
        return [_block(fields)]
    return [_text(content)] if isinstance(content, str) else [_block(item) for item in content]


def _content(fields: Block) -> list[Any] | str | None:
    """The content of a message, or of the message in an envelope; None if this is neither."""
    if not ENVELOPES.intersection(word for word in (fields.get("type"), fields.get("role")) if isinstance(word, str)):
        return None
    inner = fields.get("message", fields)
    content = cast("Block", inner).get("content") if isinstance(inner, dict) else None
    return cast("list[Any] | str", content) if isinstance(content, list | str) else None


def _block(item: Any) -> Block:
    """A block as it came if it has the shape of its type, else raw."""
    if isinstance(item, str):
        return _text(item)
    if not isinstance(item, dict):
        return _raw({"value": item})
    fields = cast("Block", item)
    kind = fields.get("type")
    fits = SHAPES.get(kind) if isinstance(kind, str) else None
    return fields if fits is not None and fits(fields) else _raw(fields)


def _has(**types: type[Any] | tuple[type[Any], ...]) -> Callable[[Block], bool]:
    return lambda block: all(isinstance(block.get(name), kind) for name, kind in types.items())


def _is_tool_result(block: Block) -> bool:
    return isinstance(block.get("tool_use_id"), str) and "content" in block and isinstance(block.get("is_error", False), bool)


def _is_image(block: Block) -> bool:
    source = block.get("source")
    return isinstance(source, dict) and all(isinstance(cast("Block", source).get(name), str) for name in ("type", "media_type", "data"))


def _is_file(block: Block) -> bool:
    return _has(filename=str, mimeType=str, size=(int, float), storagePath=str)(block) and not isinstance(block["size"], bool)


SHAPES: dict[str, Callable[[Block], bool]] = {
    "text": _has(text=str),
    "thinking": _has(thinking=str),
    "tool_use": lambda block: _has(id=str, name=str)(block) and "input" in block,
    "tool_result": _is_tool_result,
    "image": _is_image,
    "file": _is_file,
    "raw": _has(raw=dict),
}
"""The types of blocks, and whether a block of that name is one."""


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _raw(fields: Block) -> Block:
    return {"type": "raw", "raw": fields}


def _once(pairs: list[tuple[str, Any]]) -> Block:
    """An object that says a name twice means something else to every reader: it stays text."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a name comes twice")
    return fields


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")
