"""Recognising a format by the first messages of a stream. Pure: whoever has the bytes asks."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from hansard.adapter import Adapter
from hansard.adapters import formats
from hansard.framing import Framer

HEAD = 1024 * 1024
"""How much of a stream is looked at."""

MESSAGES = 50
"""How many of its messages."""


def recognise(head: bytes) -> str | None:
    """The format of the stream that begins with these bytes, or None if no adapter claims one of its first messages."""
    adapters = list(dict.fromkeys(formats().values()))
    framers = dict.fromkeys(adapter.framer for adapter in adapters)
    streams = {framer: messages(head, framer()) for framer in framers}
    for position in range(MESSAGES):
        for adapter in adapters:
            told = streams[adapter.framer]
            if position < len(told) and adapter.recognises(told[position]):
                return format_of(adapter)
    return None


def format_of(adapter: type[Adapter]) -> str:
    """The first name of a format."""
    return adapter.formats[0]


def messages(head: bytes, framer: Framer) -> list[dict[str, Any]]:
    """The first messages of a stream that are JSON objects."""
    found: list[dict[str, Any]] = []
    for frame in [*framer.feed(head), *framer.end()]:
        try:
            message = msgspec.json.decode(frame.data)
        except (ValueError, RecursionError):
            continue
        batch = cast("list[Any]", message) if isinstance(message, list) else [message]
        found += [cast("dict[str, Any]", one) for one in batch if isinstance(one, dict)]
        if len(found) >= MESSAGES:
            break
    return found
