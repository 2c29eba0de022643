"""A log made anew from its own originals: what the adapters of today understand of frames that were put on the record long ago.

The old log stays as it is. What hansard itself did (starts and ends of processes, the queue, what was chosen) is taken over; everything
that came of a frame is made again from its bytes, in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from hansard import events as ev
from hansard.adapters import adapter_for
from hansard.adapters.base import Adapter, Context, as_callback, fill_from_command, is_closing_event
from hansard.adapters.framing import Frame, Framer
from hansard.agents import agent_for
from hansard.agents.base import Agent
from hansard.errors import UsageError
from hansard.events.replays import is_conversation
from hansard.store import Store, lines
from hansard.store.transfer.copy import copy_blobs

SOME = 1000
"""How many events are written at once."""
LOGS_OWN = {"created", "checkpoint", "log_recovered", "store_degraded", "archived", "unarchived"}
"""What a log says about itself."""

Advance = Callable[[int], object]


def renormalize(store: Store, session_id: str, to: str | None = None, advance: Advance = lambda size: None) -> str:
    """Make the new log, and say its session. ``advance`` is told how many bytes of the old one were read.

    Raises `UsageError` for a session with several streams: linking them again is not supported yet.
    """
    header = _header(store, session_id)
    if store[session_id].has_streams():
        raise UsageError(
            f"{session_id} has several streams: they cannot be normalized again yet. Delete the session, and import its files again"
        )
    kept = {"format": header.format, "title": header.title, "path": header.path, "provider_session_id": header.provider_session_id}
    made = store.create(
        to,
        **{name: value for name, value in kept.items() if value},
        detail={"renormalizedFrom": {"sessionId": session_id, "logId": header.log_id}},
    )
    try:
        again = Again(store, session_id, header)
        block: list[ev.Event] = []
        for record in store[session_id].records():
            advance(len(record.line))
            copy_blobs(store, session_id, made.session_id, record.line)
            block += again.take(lines.decode_record(record))
            if len(block) >= SOME:
                store[made.session_id].append(block)
                block = []
        store[made.session_id].append([*block, *again.over()])
    except BaseException:
        store.delete(made.session_id)
        raise
    store[made.session_id].release()
    return made.session_id


def _header(store: Store, session_id: str) -> ev.SessionLifecyclePayload:
    first = next(store[session_id].read(limit=1), None)
    if not isinstance(first, ev.SessionLifecycle) or first.payload.subtype != "created":
        raise UsageError(f"the log of {session_id} does not begin with its header; `hansard verify {session_id}` says what is wrong")
    return first.payload


class Again:
    """The events of an old log in, those of the new one out."""

    def __init__(self, store: Store, session_id: str, header: ev.SessionLifecyclePayload) -> None:
        self._store = store
        self._old = session_id
        self._format = header.format
        self._agent: Agent | None = None
        self._resumed = False
        """Whether the agent continues a session of its own."""
        self._wires: dict[str | None, Wire] = {}
        self._frames = 0
        self._run: list[ev.Event] = []
        """The events of the frame that is being read."""
        self._turns: dict[str | None, str] = {}
        """What the turns of the old log are called in the new one."""
        self._recorded = False
        """Whether the new log has a conversation: an agent that replays one then repeats it."""

    def take(self, event: ev.Event) -> list[ev.Event]:
        """What becomes of the next event."""
        if event.frame is not None and event.original is None:
            self._run.append(event)
            return []
        if isinstance(event, ev.SessionLifecycle) and event.source is None and event.payload.subtype in LOGS_OWN:
            return []  # it may stand between the events of one frame
        events = self._done()
        if event.frame is not None:
            self._run = [event]
        else:
            events += self._own(event)
        return events

    def over(self) -> list[ev.Event]:
        """What is left when the old log is over."""
        return self._done() + [event for wire in self._wires.values() for event in wire.rest()]

    def _done(self) -> list[ev.Event]:
        """What came of the frame that was read last, or closed what was open."""
        run, self._run = self._run, []
        if not run:
            return []
        wire = self._wire(run[0])
        events: list[ev.Event] = []
        if run[0].original is not None:
            events += wire.again(self._store[self._old].original(run[0]), run)
        if _was_closed(run, wire.adapter):
            events += wire.close(run)
        self._frames = max(self._frames, wire.adapter.frames)
        self._turns |= dict(zip(_turns(run), _turns(events), strict=False))
        self._recorded = self._recorded or any(map(is_conversation, events))
        return events

    def _own(self, event: ev.Event) -> list[ev.Event]:
        """Something that no frame says: it stays, unless it is damage, which the old log alone has."""
        match event:
            case ev.SessionLifecycle(payload=ev.SessionLifecyclePayload(subtype="launched")):
                self._launched(event.payload)
            case ev.SessionLifecycle(payload=ev.SessionLifecyclePayload(subtype="closed")):
                self._agent = None
            case ev.Interrupt() if None in self._wires:  # of an agent whose wire has no message for it
                self._wires[None].adapter.note_interrupt(event)
            case _:
                pass
        if isinstance(event, ev.RawEvent) and event.seq == 0:
            return []
        event.session_id, event.seq, event.turn_id = "", 0, self._turns.get(event.turn_id, event.turn_id)
        return [event]

    def _launched(self, launch: ev.SessionLifecyclePayload) -> None:
        """Another process begins to speak; but those of a one-shot agent speak as one, as long as its session is open."""
        launched = msgspec.convert(launch.detail, _Launch)
        agent = agent_for(launched.agent)
        if not (agent.capabilities.one_shot and agent is self._agent):
            self._wires.pop(None, None)
        self._agent, self._resumed = agent, launched.options.get("resume") is not None

    def _wire(self, event: ev.Event) -> Wire:
        found = self._wires.get(event.stream)
        if found is None:
            found = self._wires[event.stream] = self._opened(event)
        return found

    def _opened(self, event: ev.Event) -> Wire:
        agent = self._agent if event.stream is None else None
        format = self._format if agent is None else agent.format
        if format is None:
            raise UsageError(f"the log of {self._old} does not say what its frames are")
        name = self._old if event.stream is None else f"{self._old}/{event.stream}"
        frames = self._frames if agent is not None else 0
        parent = event.parent_tool_call_id if event.stream is not None else None
        composed = agent is not None and agent.composes
        context = Context(
            source=name,
            stream=event.stream,
            frames=frames,
            parent_tool_call_id=parent,
            resumed=agent is not None and self._resumed,
            recorded=self._recorded,
            composed=composed,
        )
        adapter = adapter_for(format)(context)
        return Wire(adapter, adapter.framer() if agent is None else agent.framer())


class _Launch(msgspec.Struct):
    agent: str
    options: dict[str, Any] = {}


class Wire:
    """One stream of frames, read again."""

    def __init__(self, adapter: Adapter, framer: Framer) -> None:
        self.adapter = adapter
        self._framer = framer

    def again(self, data: bytes, before: list[ev.Event]) -> list[ev.Event]:
        """The events of a frame; ``before``: those that it gave when it was read first."""
        first = before[0]
        eol = "\n" if first.eol is None else first.eol
        if all(event.direction == "out" for event in before):
            events = self.adapter.feed(Frame(data, eol=eol, out=True, time=_time(before)))
            return _completed(events, before)
        status, retry_after_ms = _answered(before)
        frames = self._framer.feed(data + eol.encode())
        if status is not None and eol == "":
            frames += self._framer.end()  # it was the whole answer of an HTTP API
        for frame in frames:
            frame.time, frame.status, frame.retry_after_ms = _time(before), status, retry_after_ms
        return self._read(frames)

    def rest(self) -> list[ev.Event]:
        """The events of what had no line end: nothing more came."""
        return self._read(self._framer.end())

    def _read(self, frames: list[Frame]) -> list[ev.Event]:
        return [event for frame in frames for event in self.adapter.feed(frame)]

    def close(self, before: list[ev.Event]) -> list[ev.Event]:
        """What closes whatever is open, in the words of then."""
        events = self.rest()
        ends = [event.payload for event in before if isinstance(event, ev.TurnEnd) and event.synthetic]
        status, error = (ends[-1].status, ends[-1].error) if ends else ("lost", None)
        closing = self.adapter.finish(_reason(before), status, error)
        for event in closing:
            event.timestamp = before[-1].timestamp
        return events + closing


def _turns(events: list[ev.Event]) -> list[str]:
    return [event.id for event in events if isinstance(event, ev.TurnStart)]


def _was_closed(run: list[ev.Event], adapter: Adapter) -> bool:
    """Whether what was open was closed then, because nothing more came: after a process ended, at the end of a file or of an answer."""
    ended = any(isinstance(event, ev.TurnEnd) and event.synthetic for event in run)
    return run[0].original is None or any(map(is_closing_event, run)) or (ended and adapter.turn is not None)


def _completed(events: list[ev.Event], before: list[ev.Event]) -> list[ev.Event]:
    """With what our side knew beside the frame, when it sent it."""
    first_of_each = {type(event): event for event in reversed(before) if not isinstance(event, ev.TurnStart | ev.TurnEnd)}
    for command in first_of_each.values():
        if isinstance(command, ev.AgentCallback):
            events = [as_callback(event, command) for event in events]
        fill_from_command(events, command)
    return events


def _reason(before: list[ev.Event]) -> str:
    for event in before:
        if isinstance(event, ev.PermissionCancelled):
            return event.payload.reason
        if isinstance(event, ev.ToolResult) and event.synthetic and event.payload.error:
            return event.payload.error
    return "the stream ended"


def _time(before: list[ev.Event]) -> int | None:
    """When a frame arrived; None if all times are the wire's own."""
    arrived = next((event.received_at for event in before if event.received_at is not None), None)
    times = {event.timestamp for event in before}
    return arrived if arrived is not None else times.pop() if len(times) == 1 else None


def _answered(before: list[ev.Event]) -> tuple[int | None, int | None]:
    """With which status a request was answered, and when to ask again: that stood beside the bytes, and only the events say it."""
    failed = next((event.payload for event in before if isinstance(event, ev.Error) and event.payload.status is not None), None)
    return (failed.status, failed.retry_after_ms) if failed is not None else (None, None)
