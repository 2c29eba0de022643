"""Feed adapters, and look at what they make of it."""

from __future__ import annotations

import json
from typing import Any

from hansard.adapters import adapter_for
from hansard.adapters.base import Adapter
from hansard.adapters.framing import Frame, frames
from hansard.events import Event


def read(format: str, data: bytes) -> list[Event]:
    """Every event of a stream, the closing ones included."""
    adapter = adapter_for(format)()
    events = [event for frame in frames([data], adapter.framer()) for event in adapter.feed(frame)]
    return events + adapter.finish()


def say(adapter: Adapter, *messages: dict[str, Any], out: bool = False) -> list[Event]:
    """The events of these messages."""
    return [event for message in messages for event in adapter.feed(Frame(json.dumps(message).encode(), out=out))]


def only(events: list[Event], kind: str) -> list[Any]:
    """The payloads of the events of one type."""
    return [event.payload for event in events if event.type == kind]
