"""A log made anew from its own originals: what the adapters of today understand of frames that were put on the record long ago.

The old log stays as it is. What hansard itself did (starts and ends of processes, the queue, what was chosen) is taken over; everything
that came of a frame is made again from its bytes, in the same order. Streams are merged again, each time that one of them
was read: a run of frames of one stream is what an import added.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from hansard import events as ev
from hansard.adapters import adapter_for, layout_of
from hansard.adapters.base import Adapter, Context, as_callback, fill_from_command, is_closing_event, is_imported
from hansard.adapters.framing import Frame, Framer
from hansard.adapters.layout import relative_time
from hansard.adapters.linking import Linker, is_linked
from hansard.agents import agent_for
from hansard.agents.base import Agent
from hansard.errors import UsageError
from hansard.events.handoffs import Handoffs
from hansard.events.lenient import as_object
from hansard.events.lineage import PARENT_FOUND, PARENT_UPDATED
from hansard.events.replays import is_conversation
from hansard.events.summary import Summary, is_stream_added
from hansard.store import Store, lines
from hansard.store.lineage import find_parents
from hansard.store.transfer.copy import copy_blobs

SOME = 1000
"""How many events are written at once."""
LOGS_OWN = {"created", "checkpoint", "log_recovered", "store_degraded", "archived", "unarchived", PARENT_FOUND, PARENT_UPDATED}
"""What a log says about itself. Which events are copies of a parent's is found again, because the new log has other seqs."""

Advance = Callable[[int], object]


def renormalize(store: Store, session_id: str, to: str | None = None, advance: Advance = lambda size: None) -> str:
    """Make the new log, and say its session. ``advance`` is told how many bytes of the old one were read."""
    header = _header(store, session_id)
    names = ("format", "title", "path", "provider_session_id", "parent_session_id", "parent_seq")
    kept = {name: getattr(header, name) for name in names}
    made = store.create(
        to,
        **{name: value for name, value in kept.items() if value},
        detail={"renormalizedFrom": {"sessionId": session_id, "logId": header.log_id}},
    )
    try:
        again = Again(store, session_id, made.session_id, header)
        for record in store[session_id].records():
            advance(len(record.line))
            copy_blobs(store, session_id, made.session_id, record.line)
            again.take(lines.decode_record(record))
        again.finish()
    except BaseException:
        store.delete(made.session_id)
        raise
    store[made.session_id].release()
    find_parents(store, {made.session_id})
    return made.session_id


def _header(store: Store, session_id: str) -> ev.SessionLifecyclePayload:
    first = next(store[session_id].read(limit=1), None)
    if not isinstance(first, ev.SessionLifecycle) or first.payload.subtype != "created":
        raise UsageError(f"the log of {session_id} does not begin with its header; `hansard verify {session_id}` says what is wrong")
    return first.payload


class Again:
    """Takes the events of an old log, and writes those of the new one."""

    def __init__(self, store: Store, old: str, new: str, header: ev.SessionLifecyclePayload) -> None:
        self._store = store
        self._old = old
        self._new = new
        self._agent: Agent | None = None
        self._resumed = False
        """Whether the agent continues a session of its own."""
        self._wires: dict[tuple[bool, str | None], Wire] = {}
        """By whether hansard ran the agent, and the name of the stream."""
        self._frames = 0
        self._run: list[ev.Event] = []
        """The events of the frame that is being read."""
        self._turns: dict[str | None, str] = {}
        """What the turns of the old log are called in the new one."""
        self._recorded = False
        """Whether the new log has a conversation: an agent that replays one then repeats it."""
        self._streams = _Streams(header)
        self._added: list[ev.Event] = []
        """The events that an import added, until they are compared with the new log."""
        self._block: list[ev.Event] = []
        """The events to be written."""
        self._known: list[ev.Event] | None = None
        """The events of the new log, once streams are compared with them."""

    def take(self, event: ev.Event) -> None:
        """Take the next event."""
        if event.frame is not None:
            self._streams.note(event)
        if event.frame is not None and event.original is None:
            self._run.append(event)
            return
        if isinstance(event, ev.SessionLifecycle) and event.source is None and event.payload.subtype in LOGS_OWN:
            return  # it may stand between the events of one frame
        self._end_frame()
        if event.frame is None:
            self._merge()
            self._streams.note(event)
            self._put(self._own(event))
            return
        if self._added and (event.stream != self._added[0].stream or self._streams.is_live(event)):
            self._merge()
        self._run = [event]

    def finish(self) -> None:
        """Write what is left when the old log is over."""
        self._end_frame()
        self._merge()
        self._put([event for wire in self._wires.values() for event in wire.rest()])
        self._write()

    def _end_frame(self) -> None:
        """Take what came of the frame that was read last, or closed what was open."""
        run, self._run = self._run, []
        if not run:
            return
        wire = self._wire(run[0])
        events: list[ev.Event] = []
        if run[0].original is not None:
            events += wire.again(self._store[self._old].original(run[0]), run)
        if _was_closed(run, wire.adapter):
            events += wire.close(run)
        self._frames = max(self._frames, wire.adapter.frames)
        self._turns |= dict(zip(_turns(run), _turns(events), strict=False))
        self._recorded = self._recorded or any(map(is_conversation, events))
        if not self._streams.is_live(run[0]) and self._streams.is_linked(run[0].stream):
            self._added += events
        else:
            self._streams.read(run[0])
            self._put(events)

    def _merge(self) -> None:
        """Compare what an import added with the new log, as the import did."""
        added, self._added = self._added, []
        if not added:
            return
        self._write()
        if self._known is None:
            self._known = list(self._store[self._new].read())
        stream = added[0].stream
        self._streams.mark_handoff(stream, added)
        self._streams.linker(self._known, stream).place(added)
        self._streams.read(added[0])
        self._put(added)

    def _put(self, events: list[ev.Event]) -> None:
        self._block += events
        if len(self._block) >= SOME:
            self._write()

    def _write(self) -> None:
        block, self._block = self._block, []
        if block:
            written = self._store[self._new].append(block)
            if self._known is not None:
                self._known += written

    def _own(self, event: ev.Event) -> list[ev.Event]:
        """Something that no frame says: it stays, unless it is damage, which the old log alone has."""
        match event:
            case ev.SessionLifecycle(payload=ev.SessionLifecyclePayload(subtype="launched")):
                self._launched(event.payload)
            case ev.SessionLifecycle(payload=ev.SessionLifecyclePayload(subtype="closed")):
                self._agent = None
            case ev.Interrupt() if (wire := self._live_wire()) is not None:  # of an agent whose wire has no message for it
                wire.adapter.note_interrupt(event)
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
            self._wires = {key: wire for key, wire in self._wires.items() if not key[0]}
        self._agent, self._resumed = agent, launched.options.get("resume") is not None

    def _wire(self, event: ev.Event) -> Wire:
        key = (self._streams.is_live(event), event.stream)
        found = self._wires.get(key)
        if found is None:
            found = self._wires[key] = self._opened(event)
        return found

    def _live_wire(self) -> Wire | None:
        return next((wire for (live, _), wire in self._wires.items() if live), None)

    def _opened(self, event: ev.Event) -> Wire:
        live = self._streams.is_live(event)
        agent = self._agent if live else None
        format = self._streams.format(event.stream) if agent is None else agent.format
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
            recorded=self._recorded and (live or (event.stream is not None and layout_of(format) is None)),
            composed=composed,
            epoch=0 if live else self._epoch(event),
        )
        adapter = adapter_for(format)(context)
        return Wire(adapter, adapter.framer() if agent is None else agent.framer(), is_live=agent is not None)

    def _epoch(self, event: ev.Event) -> int:
        """Returns when a recording began, by its first line; 0 if its lines have no times of that kind."""
        since = relative_time(self._store[self._old].original(event)) if event.original is not None else None
        return 0 if since is None else (event.timestamp if event.received_at is None else event.received_at) - since


class _Streams:
    """The streams of a session: of which format and of whose session each is, and which of them are compared with the others."""

    def __init__(self, header: ev.SessionLifecyclePayload) -> None:
        self._header = header
        self._added: dict[str, ev.SessionLifecyclePayload] = {}
        """How each stream was named that was added later."""
        self._imported: set[str] = set()
        self._accounts: set[str] = set()
        """The streams that report the session itself."""
        self._handoffs = Handoffs()
        self._merged = False
        self._summary = Summary()

    def note(self, event: ev.Event) -> None:
        """Note what an event says about streams."""
        self._handoffs.note(event)
        if event.frame is not None or not isinstance(event, ev.SessionLifecycle):
            return
        self._summary.apply(event)
        detail = as_object(event.payload.detail)
        if is_stream_added(event) and isinstance(name := detail.get("stream"), str):
            self._added[name] = event.payload
            self._merged = self._merged or (name != ev.LIVE_STREAM and ev.is_main_stream(name))

    def is_live(self, event: ev.Event) -> bool:
        """Returns whether a frame came from an agent that hansard ran. In a log of 0.1, neither its stream nor a file has a name."""
        if event.stream is None:
            return self._header.path is None or not is_imported(event)
        return event.stream == ev.LIVE_STREAM

    def read(self, event: ev.Event) -> None:
        """Note the stream of a frame."""
        live = self.is_live(event)
        if ev.is_main_stream(event.stream):
            self._accounts.add(ev.LIVE_STREAM if live else event.stream or "")
        if not live:
            self._imported.add(event.stream or "")

    def is_linked(self, stream: str | None) -> bool:
        """Returns whether what is read of a stream is compared with the log."""
        merged = self._merged or len(self._accounts) > 1
        exists = bool(self._imported or self._accounts) or self._header.path is None
        return exists and is_linked(stream, self._imported, self._header.path is not None, merged)

    def format(self, stream: str | None) -> str | None:
        """Returns the format of a stream."""
        added = self._added.get(stream or "")
        return added.format if added is not None else self._header.format

    def linker(self, known: list[ev.Event], stream: str | None) -> Linker:
        """Returns what compares a stream with the events of the log."""
        added, format = self._added.get(stream or ""), self.format(stream)
        named = None if added is None else as_object(added.detail).get("agent")
        for event in known if named is None and added is None else ():
            if isinstance(event, ev.SessionInit):
                self._summary.apply(event)
        own = next(iter(self._summary.agent_sessions), None) if added is None else None
        family = named if isinstance(named, str) else "" if own is None else own.family
        return Linker(known, stream, family, format or "", layout_of(format) is not None)

    def mark_handoff(self, stream: str | None, events: list[ev.Event]) -> None:
        """Marks what hansard itself wrote into the file of a hand-off."""
        added = self._added.get(stream or "")
        id = self._header.provider_session_id if added is None else added.provider_session_id
        self._handoffs.mark(id, events)


class _Launch(msgspec.Struct):
    agent: str
    options: dict[str, Any] = {}


class Wire:
    """One stream of frames, read again."""

    def __init__(self, adapter: Adapter, framer: Framer, is_live: bool) -> None:
        self.adapter = adapter
        self._framer = framer
        self._is_live = is_live
        """Whether hansard ran the agent that spoke."""

    def again(self, data: bytes, before: list[ev.Event]) -> list[ev.Event]:
        """The events of a frame; ``before``: those that it gave when it was read first."""
        first = before[0]
        eol = "\n" if first.eol is None else first.eol
        if all(event.direction == "out" for event in before):
            events = self.adapter.feed(Frame(data, eol=eol, out=True, time=_time(before)))
            return _completed(events, before)
        status, retry_after_ms = _answered(before)
        frames = self._framer.feed(data + eol.encode())
        if eol == "" and (status is not None or self._is_live):
            frames += self._framer.end()  # it was the whole answer of an HTTP API, or the program was stopped in the middle of a line
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
        times = [event.timestamp for event in before if is_closing_event(event)]
        for index, event in enumerate(closing):
            event.timestamp = times[index] if len(times) == len(closing) else before[-1].timestamp
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
    times = {event.timestamp for event in before if not event.synthetic} or {event.timestamp for event in before}
    return arrived if arrived is not None else times.pop() if len(times) == 1 else None


def _answered(before: list[ev.Event]) -> tuple[int | None, int | None]:
    """With which status a request was answered, and when to ask again: that stood beside the bytes, and only the events say it."""
    failed = next((event.payload for event in before if isinstance(event, ev.Error) and event.payload.status is not None), None)
    return (failed.status, failed.retry_after_ms) if failed is not None else (None, None)
