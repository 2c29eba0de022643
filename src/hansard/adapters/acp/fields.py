"""Readers that the files of this folder share: ids, optional fields, ``_meta``, usage."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from hansard.adapters.acp import wire
from hansard.adapters.fields import json_line
from hansard.adapters.usage import make_usage
from hansard.events import Event, Usage
from hansard.events.lenient import convert_lenient

NO_META = wire.Meta()


def as_synthetic(event: Event) -> Event:
    """Mark an event as one that no frame contains literally, and return it."""
    event.synthetic = True
    return event


def present(**fields: Any) -> dict[str, Any] | None:
    """Return the fields that have a value, or None if none has."""
    return {key: value for key, value in fields.items() if value is not None and value is not msgspec.UNSET} or None


def read_meta(value: Any) -> wire.Meta:
    """Return the fields of a ``_meta`` that we know. A field of another type is somebody else's."""
    if value is None:
        return NO_META
    try:
        return msgspec.convert(value, wire.Meta)
    except (ValueError, RecursionError):
        pass
    try:
        return convert_lenient(value, wire.Meta)[0]
    except (ValueError, RecursionError):
        return NO_META


def is_list(value: Any) -> bool:
    """Return whether a field that may be left out, or cleared, is a list."""
    return isinstance(value, list)


def request_id(value: Any) -> str:
    """Return a JSON-RPC id as text. A string that is also JSON keeps its quotes: 1, 1.0 and "1" are three ids."""
    if not isinstance(value, str):
        return json.dumps(value)
    return json.dumps(value) if _is_json(value) else value


def rpc_id(text: str) -> Any:
    """Return the JSON-RPC id that `request_id` turned into this text."""
    return json.loads(text) if _is_json(text) else text


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def rpc_line(**fields: Any) -> bytes:
    """Return a JSON-RPC message as a line."""
    return json_line(jsonrpc="2.0", **fields)


def usage_of(counted: wire.Counted | wire.TokenCount) -> Usage:
    """Return usage as ACP counts it."""
    cached = counted if isinstance(counted, wire.Counted) else wire.Counted()
    return make_usage(
        counted.input_tokens,
        counted.output_tokens,
        cache_creation=cached.cached_write_tokens,
        cache_read=cached.cached_read_tokens,
        reasoning=cached.thought_tokens,
    )
