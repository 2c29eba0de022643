"""Small translations that the files of this folder share: ids, usage, lines, hashes, times."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from hansard.adapters.acp import wire
from hansard.events import Event, Usage


def told(event: Event) -> Event:
    """The event, marked as one that no frame says literally."""
    event.synthetic = True
    return event


def present(**fields: Any) -> dict[str, Any] | None:
    """The fields that have a value, or nothing."""
    return {key: value for key, value in fields.items() if value is not None and value is not msgspec.UNSET} or None


def is_list(value: Any) -> bool:
    """Whether a field that may be left out, or cleared, is a list."""
    return isinstance(value, list)


def request_id(value: Any) -> str:
    """A JSON-RPC id as text. A string that reads like JSON keeps its quotes: 1, 1.0 and "1" are three ids."""
    if not isinstance(value, str):
        return json.dumps(value)
    return json.dumps(value) if _is_json(value) else value


def rpc_id(text: str) -> Any:
    """The JSON-RPC id that `request_id` made this text of."""
    return json.loads(text) if _is_json(text) else text


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def line(**fields: Any) -> bytes:
    """A frame."""
    message = {"jsonrpc": "2.0", **fields}
    try:
        return msgspec.json.encode(message) + b"\n"
    except UnicodeEncodeError:  # half an emoji: JSON can say it as an escape, UTF-8 cannot
        return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def usage_of(counted: wire.Counted | wire.TokenCount) -> Usage:
    """Usage in our words."""
    read, written = counted.input_tokens, counted.output_tokens
    cached = counted if isinstance(counted, wire.Counted) else wire.Counted()
    return Usage(
        input_tokens=read,
        output_tokens=written,
        total_tokens=None if read is None or written is None else read + written,
        cache_creation_input_tokens=cached.cached_write_tokens,
        cache_read_input_tokens=cached.cached_read_tokens,
        reasoning_tokens=cached.thought_tokens,
    )


def minus(now: Usage, before: Usage) -> Usage:
    """What was used since."""
    difference = Usage()
    for name in Usage.__struct_fields__:
        if name == "service_tier":
            continue
        count, known = getattr(now, name), getattr(before, name)
        setattr(difference, name, count if count is None or known is None else count - known)
    return difference
