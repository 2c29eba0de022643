"""Which frames of an agent's file hansard itself wrote, when it handed off a conversation: they repeat what the log has."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

from hansard.events.agent_family import agent_family
from hansard.events.lenient import as_object
from hansard.events.structs import prepare
from hansard.events.summary import is_handoff, is_launch
from hansard.events.types import Event, SessionInit, SessionLifecycle


class Handoffs(Struct):
    """The hand-offs of a session, by the agent's own id of the session that takes over. `note` its events in order."""

    frames: dict[str, int] = field(default_factory=dict[str, int])
    """How many frames hansard wrote."""
    since: dict[str, int] = field(default_factory=dict[str, int])
    """When the agent was started. Version 0.1 did not record the file; what is older in it, hansard wrote."""
    families: set[str] = field(default_factory=set[str])
    """The agents that worked in the session so far."""
    sessions: set[str] = field(default_factory=set[str])
    """The sessions that they named."""

    def note(self, event: Event) -> None:
        """Note what an event says about hand-offs."""
        if isinstance(event, SessionInit):
            self.families.add(agent_family(event.payload.agent_id or event.source or ""))
            if event.payload.provider_session_id is not None:
                self.sessions.add(event.payload.provider_session_id)
        elif isinstance(event, SessionLifecycle) and is_handoff(event) and event.payload.provider_session_id is not None:
            frames = as_object(event.payload.detail).get("frames")
            self.frames[event.payload.provider_session_id] = frames if isinstance(frames, int) else 0
        elif isinstance(event, SessionLifecycle) and is_launch(event):
            launch = as_object(event.payload.detail)
            family, resumed = agent_family(str(launch.get("agent"))), as_object(launch.get("options")).get("resume")
            if isinstance(resumed, str) and resumed not in self.sessions | self.frames.keys() and self.families - {family}:
                self.since.setdefault(resumed, event.timestamp)
            self.families.add(family)

    def mark(self, session: str | None, events: Iterable[Event]) -> None:
        """Marks the events that hansard wrote into the file of an agent's session."""
        written, since = self.frames.get(session or "", 0), self.since.get(session or "")
        for event in events:
            if since is not None and event.timestamp >= since:
                break
            event.replay = event.replay or since is not None or 0 < (event.frame or 0) <= written


prepare(globals())
