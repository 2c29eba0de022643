"""Events on their way into a log: stamped and as lines. Nothing here is written but blobs, which harm nobody if the batch fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from msgspec import Struct

from hansard import events as ev
from hansard._version import __version__
from hansard.errors import ForeignEvent, UsageError
from hansard.events.codec import encode_lines
from hansard.events.originals import refer, unwrap
from hansard.events.summary import session_changes
from hansard.store.checkpoint import Chain, seal
from hansard.store.ids import TimeOrderedIds

_ALWAYS_SYNCED = frozenset({ev.UserMessage, ev.PermissionRequest, ev.PermissionResponse, ev.ConfigurationChange, ev.TurnEnd})
_MAYBE_SYNCED = _ALWAYS_SYNCED | {ev.Process, ev.SessionLifecycle}
_copy: Callable[[ev.Event], ev.Event] = getattr(ev.Event, "__copy__")  # noqa: B009 (msgspec does not declare it); `copy.copy` takes twice as long
_RUN_ENDS = frozenset({ev.TurnEnd, ev.SessionLifecycle, ev.SessionInit})
_MAX_RUN_BYTES = 256 * 1024
"""So many bytes of originals end a run, too: what stands behind a checkpoint that falls due among them is encoded again."""


class WriterOptions(Struct, frozen=True):
    """How a store writes."""

    strict: bool
    inline_limit: int
    clock: Callable[[], int]


def header_event(session_id: str, log_id: str, header: dict[str, Any]) -> ev.Event:
    """The first event of a log."""
    fields: dict[str, Any] = header | {"schema_version": ev.SCHEMA_VERSION, "writer_version": __version__, "log_id": log_id}
    event = ev.session_lifecycle(subtype="created", **fields)
    event.session_id = session_id
    return event


def needs_sync(event: ev.Event) -> bool:
    """Whether this event is on the disk before it is acknowledged."""
    kind = type(event)
    if kind is ev.Process:
        return event.payload.event in ("exited", "killed")
    if kind is ev.SessionLifecycle:
        return event.payload.subtype in ("created", "closed")
    return kind in _ALWAYS_SYNCED


class Batch:
    """Events on their way into the log: stamped, as lines, with the checkpoints that fall due among them.

    They are encoded in runs, which takes a third of the time. What brings a checkpoint, or changes what the next one says, ends a run.
    """

    def __init__(
        self, session_id: str, put_blob: Callable[[bytes], str], options: WriterOptions, ids: TimeOrderedIds, seq: int, chain: Chain
    ) -> None:
        self._session_id = session_id
        self._put_blob = put_blob
        self._options = options
        self._ids = ids
        self.seq = seq
        self.chain: Chain = chain  # the writer's own; it is copied before it is changed, because the write may fail
        self.events: list[ev.Event] = []
        """Of all lines, the checkpoints' too."""
        self.hashed: list[bytes] = []
        """The lines that a checkpoint of this batch covers, each with its LF, some of them together."""
        self.unhashed: list[bytes] = []
        """Those that follow the last checkpoint."""
        self.open = 0
        """So many lines these are."""
        self._size = 0
        self.durable = False

    def add(self, events: Sequence[ev.Event]) -> list[ev.Event]:
        """Stamp events and put them at the end."""
        stamped = self._stamped(events)
        begin = 0
        while begin < len(stamped):
            run = self._run(stamped, begin)
            begin += len(run)
            last = run[-1]
            if isinstance(last, ev.SessionLifecycle | ev.SessionInit) and session_changes(last):
                self.chain = self.chain.copy()
                self.chain.apply(last)
            if type(last) is ev.TurnEnd or self.chain.is_due(self.open, self._size):
                self.add_checkpoint()
        return stamped

    def add_checkpoint(self) -> None:
        """Put a checkpoint at the end, over everything since the one before."""
        self.chain = self.chain.copy()
        self.chain.add(b"".join(self.unhashed), self.open)
        self.hashed += self.unhashed
        self.unhashed, self.open, self._size = [], 0, 0
        [checkpoint] = self._stamped([self.chain.event()])
        checkpoint.seq = self.seq + 1
        self.chain.restart(checkpoint.seq)
        self._put([seal(checkpoint)])

    def _stamped(self, events: Sequence[ev.Event]) -> list[ev.Event]:
        """Copies, with all that the store says of them but their seq. They are all of this moment."""
        now = self._options.clock()
        ids = iter(self._ids.some([event.id for event in events].count("")))
        stamped = list(map(_copy, events))
        for event in stamped:
            if event.session_id not in ("", self._session_id):
                raise ForeignEvent(self._session_id, event.session_id)
            event.session_id = self._session_id
            if not event.id:
                event.id = next(ids)
            if event.timestamp == -1:
                event.timestamp = now
            if event.original is not None and len(event.original) > self._options.inline_limit:
                data = unwrap(event.original)
                event.original = refer(self._put_blob(data), data)
        return stamped

    def _run(self, stamped: list[ev.Event], begin: int) -> list[ev.Event]:
        """Number some events and put them at the end: up to one that ends a run, or until a checkpoint is due."""
        run: list[ev.Event] = []
        size = 0
        for seq, event in enumerate(stamped[begin : begin + self.chain.room(self.open)], self.seq + 1):
            event.seq = seq
            run.append(event)
            size += 0 if event.original is None else len(event.original)
            if type(event) in _MAYBE_SYNCED:
                self.durable = self.durable or needs_sync(event)
            if type(event) in _RUN_ENDS or size > _MAX_RUN_BYTES:
                break
        return self._put(run)

    def _put(self, run: list[ev.Event]) -> list[ev.Event]:
        """Put numbered events at the end; fewer if a checkpoint is due among them. Those that were put."""
        lines = encode_lines(run)
        if lines.count(b"\n") != len(run):
            raise UsageError("an event's original holds a line end; wrap it with hansard.events.originals.wrap")
        if self.chain.is_due(0, self._size + len(lines)):
            ends = list(accumulate(len(line) + 1 for line in lines.split(b"\n")))
            fit = next(number for number, end in enumerate(ends, 1) if self.chain.is_due(0, self._size + end))
            run, lines = run[:fit], lines[: ends[fit - 1]]
        self.events += run
        self.unhashed.append(lines)
        self.open += len(run)
        self._size += len(lines)
        self.seq += len(run)
        return run
