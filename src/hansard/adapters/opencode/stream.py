"""A running OpenCode server: its event stream, and the requests of our side. Wire notes: README.md."""

from __future__ import annotations

from typing import Any

from hansard.adapters.opencode import wire
from hansard.adapters.opencode.base import OpenCode
from hansard.adapters.opencode.framers import EventStream
from hansard.adapters.opencode.requests import NextRequests, Requests


class OpenCodeEvents(OpenCode):
    """``/event``."""

    formats = ("opencode-sse",)
    framer = EventStream
    sent_wire = wire.HttpRequest
    api = Requests

    @classmethod
    def detects(cls, message: dict[str, Any]) -> bool:
        """Return whether this is an event with its data under ``properties``."""
        return _is_event(message) and "properties" in message


class OpenCodeNextEvents(OpenCode):
    """``/api/event``, and the requests that go with it."""

    formats = ("opencode-sse-v2",)
    framer = EventStream
    sent_wire = wire.HttpRequest
    api = NextRequests

    @classmethod
    def detects(cls, message: dict[str, Any]) -> bool:
        """Return whether this is an event with its data under ``data``."""
        return _is_event(message) and "data" in message


def _is_event(message: dict[str, Any]) -> bool:
    kind, name = message.get("type"), message.get("id")
    known = isinstance(kind, str) and (kind in wire.EVENTS or kind in wire.NOTICES)
    return known and (name is None or (isinstance(name, str) and name.startswith("evt_")))
