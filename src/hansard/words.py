"""Small words that adapters share: where an event stands in a message, times as milliseconds, what a permission answer is bound to."""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256
from typing import Any

import msgspec

from hansard.events import Event


def at(event: Event, response_id: str | None, block_index: int | None = None) -> Event:
    """The event, placed in a message."""
    event.response_id, event.block_index = response_id, block_index
    return event


def milliseconds(text: str | None) -> int | None:
    """An ISO time as ms since the epoch; None if it is none."""
    if text is None:
        return None
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        return None


def whole(number: float | None) -> int | None:
    """Milliseconds without a fraction."""
    return None if number is None else round(number)


def input_hash(value: Any) -> str:
    """Binds a permission answer to the input that was shown: SHA-256 of its JSON with sorted keys."""
    try:
        data = msgspec.json.encode(value, order="sorted")
    except UnicodeEncodeError:
        data = repr(value).encode("utf-8", "backslashreplace")
    return sha256(data).hexdigest()
