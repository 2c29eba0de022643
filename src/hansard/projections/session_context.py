"""What was said of a session earlier and is true of what comes: its agent, its ids, its model, and the frame that events came in."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from hansard.events import ConfigurationChange, Event, SessionInit
from hansard.events.codec import to_builtins


class EventContext:
    """Show it every event in order."""

    def __init__(self) -> None:
        self.agent: str | None = None
        self.agent_version: str | None = None
        self.provider_session_id: str | None = None
        self.model: str | None = None
        self._frames: dict[tuple[str | None, str | None], tuple[int | None, Raw]] = {}
        """The last frame of each stream, in either direction."""

    def see(self, event: Event) -> None:
        """Remember what this event says of those to come."""
        self.agent = event.source or self.agent
        if event.original is not None:
            self._frames[event.stream, event.direction] = (event.frame, event.original)
        if not isinstance(event, SessionInit | ConfigurationChange):
            return
        match event:
            case SessionInit(payload=init) if event.parent_tool_call_id is None:
                self.agent_version = init.agent_version or self.agent_version
                self.provider_session_id = init.provider_session_id or self.provider_session_id
                self.model = init.model or self.model
            case ConfigurationChange(payload=change) if event.parent_tool_call_id is None:
                self.model = change.model or self.model
            case _:
                pass

    def session_id(self, event: Event) -> str | None:
        """The session's id: ours, or the provider's where nothing was stored."""
        return event.session_id or self.provider_session_id

    def with_original(self, event: Event) -> Event:
        """The event with the frame it came in, which in a log only the first event of a frame has."""
        frame, original = self._frames.get((event.stream, event.direction), (None, None))
        if event.original is not None or original is None or frame is None or frame != event.frame:
            return event
        return msgspec.structs.replace(event, original=original)


def with_frames_once(events: list[Event]) -> list[dict[str, Any]]:
    """Events as they are in a log, each frame once."""
    fields = [to_builtins(event) for event in events]
    for before, after in zip(events, fields[1:], strict=False):
        if before.frame is not None and after.get("frame") == before.frame and after.get("stream") == before.stream:
            after.pop("original", None)
    return fields
