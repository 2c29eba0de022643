"""Recognising a format by the first messages of a stream. Pure: whoever has the bytes asks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from hansard.adapters import formats
from hansard.adapters.base import Adapter
from hansard.adapters.framing import Framer

HEAD = 1024 * 1024
"""How much of a stream is looked at."""

MESSAGES = 50
"""How many of its messages."""

BEGINNING = 64 * 1024
"""How much is looked at of a message that goes on after the head: a document tells by its first keys what it is."""

DEPTH = 8
"""How deep into such a message."""

_MARK = re.compile(rb'"(?:[^"\\]++|\\.)*+"|([{}\[\],"])', re.DOTALL)
_CLOSING = {b"{": b"}", b"[": b"]"}


def detect(head: bytes) -> str | None:
    """The format of the stream that begins with these bytes, or None if no adapter claims one of its first messages."""
    adapters = list(dict.fromkeys(formats().values()))
    framers = dict.fromkeys(adapter.framer for adapter in adapters)
    streams = {framer: messages(head, framer()) for framer in framers}
    sure = {adapter: adapter.detects for adapter in adapters}
    perhaps = {adapter: adapter.may_detect for adapter in adapters}
    for claims in (sure, perhaps):
        for position in range(MESSAGES):
            for adapter, claim in claims.items():
                told = streams[adapter.framer]
                if position < len(told) and claim(told[position]):
                    return format_of(adapter)
    return None


def format_of(adapter: type[Adapter]) -> str:
    """The first name of a format."""
    return adapter.formats[0]


def messages(head: bytes, framer: Framer) -> list[dict[str, Any]]:
    """The first messages of a stream that are JSON objects; of the last one, which may go on, what is there."""
    found: list[dict[str, Any]] = []
    for message in _documents(head, framer):
        batch = cast("list[Any]", message) if isinstance(message, list) else [message]
        found += [cast("dict[str, Any]", one) for one in batch if isinstance(one, dict)]
        if len(found) >= MESSAGES:
            break
    return found


def _documents(head: bytes, framer: Framer) -> Iterator[Any]:
    for frame in framer.feed(head):
        yield _decoded(frame.data)
    for frame in framer.end():
        whole = _decoded(frame.data)
        yield _decoded(close_prefix(frame.data[:BEGINNING])) if whole is None else whole


def _decoded(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (ValueError, RecursionError):
        return None


def close_prefix(data: bytes) -> bytes:
    """The beginning of a JSON document as a document: up to the last value that is whole and not too deep, with everything closed."""
    open_now: list[bytes] = []
    end, closing = 0, b""
    for match in _MARK.finditer(data):
        mark = match.group(1)
        if mark is None:  # a whole string
            continue
        if mark in _CLOSING:
            open_now.append(_CLOSING[mark])
        elif mark == b"," or (open_now and mark == open_now.pop()):
            if len(open_now) <= DEPTH:
                end, closing = match.start() if mark == b"," else match.end(), b"".join(reversed(open_now))
        else:  # a string that goes on, or no JSON
            break
    return data[:end] + closing
