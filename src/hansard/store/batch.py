"""Events on their way into a log: stamped and as lines. Nothing here is written but blobs, which harm nobody if the batch fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from msgspec import Struct

from hansard._version import __version__
from hansard.codec import encode_lines
from hansard.errors import ForeignEvent, UsageError
from hansard.events import (
    SCHEMA_VERSION,
    ConfigurationChange,
    Event,
    PermissionRequest,
    PermissionResponse,
    Process,
    SessionLifecycle,
    TurnEnd,
    UserMessage,
    session_lifecycle,
)
from hansard.originals import refer, unwrap
from hansard.store.checkpoint import Chain, about, seal
from hansard.store.ids import TimeOrderedIds

_ALWAYS_SYNCED = frozenset({UserMessage, PermissionRequest, PermissionResponse, ConfigurationChange, TurnEnd})
_WATCHED = _ALWAYS_SYNCED | {Process, SessionLifecycle}
_copy: Callable[[Event], Event] = getattr(Event, "__copy__")  # noqa: B009 (msgspec does not declare it); `copy.copy` takes twice as long
_ENDS_A_RUN = frozenset({TurnEnd, SessionLifecycle})
_RUN = 256 * 1024
"""So many bytes of originals end a run, too: what stands behind a checkpoint that falls due among them is encoded again."""


class Options(Struct, frozen=True):
    """How a store writes."""

    strict: bool
    inline_limit: int
    clock: Callable[[], int]


def created(session_id: str, log_id: str, header: dict[str, Any]) -> Event:
    """The first event of a log."""
    fields: dict[str, Any] = header | {"schema_version": SCHEMA_VERSION, "writer_version": __version__, "log_id": log_id}
    event = session_lifecycle(subtype="created", **fields)
    event.session_id = session_id
    return event


def must_be_synced(event: Event) -> bool:
    """Whether this event is on the disk before it is acknowledged."""
    kind = type(event)
    if kind is Process:
        return event.payload.event in ("exited", "killed")
    if kind is SessionLifecycle:
        return event.payload.subtype in ("created", "closed")
    return kind in _ALWAYS_SYNCED


class Batch:
    """Events on their way into the log: stamped, as lines, with the checkpoints that fall due among them.

    They are encoded in runs, which takes a third of the time. What brings a checkpoint, or changes what the next one says, ends a run.
    """

    def __init__(
        self, session_id: str, put_blob: Callable[[bytes], str], options: Options, ids: TimeOrderedIds, seq: int, chain: Chain
    ) -> None:
        self._session_id = session_id
        self._put_blob = put_blob
        self._options = options
        self._ids = ids
        self.seq = seq
        self.chain: Chain = chain  # the writer's own; it is copied before it is changed, because the write may fail
        self.events: list[Event] = []
        """Of all lines, the checkpoints' too."""
        self.hashed: list[bytes] = []
        """The lines that a checkpoint of this batch covers, each with its LF, some of them together."""
        self.unhashed: list[bytes] = []
        """Those that follow the last checkpoint."""
        self.open = 0
        """So many lines these are."""
        self._size = 0
        self.durable = False

    def add(self, events: Sequence[Event]) -> list[Event]:
        """Stamp events and put them at the end."""
        stamped = self._stamped(events)
        begin = 0
        while begin < len(stamped):
            run = self._run(stamped, begin)
            begin += len(run)
            last = run[-1]
            if type(last) is SessionLifecycle and about(last):
                self.chain = self.chain.copy()
                self.chain.saw(last)
            if type(last) is TurnEnd or self.chain.is_due(self.open, self._size):
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

    def _stamped(self, events: Sequence[Event]) -> list[Event]:
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

    def _run(self, stamped: list[Event], begin: int) -> list[Event]:
        """Number some events and put them at the end: up to one that ends a run, or until a checkpoint is due."""
        run: list[Event] = []
        size = 0
        for seq, event in enumerate(stamped[begin : begin + self.chain.room(self.open)], self.seq + 1):
            event.seq = seq
            run.append(event)
            size += 0 if event.original is None else len(event.original)
            if type(event) in _WATCHED:
                self.durable = self.durable or must_be_synced(event)
            if type(event) in _ENDS_A_RUN or size > _RUN:
                break
        return self._put(run)

    def _put(self, run: list[Event]) -> list[Event]:
        """Put numbered events at the end; fewer if a checkpoint is due among them. Those that were put."""
        lines = encode_lines(run)
        if lines.count(b"\n") != len(run):
            raise UsageError("an event's original holds a line end; wrap it with hansard.originals.wrap")
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
