"""Events on their way into a log: stamped and as lines. Nothing here is written but blobs, which harm nobody if the batch fails."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

from msgspec import Struct

from hansard._version import __version__
from hansard.codec import encode
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
    """Events on their way into the log: stamped, as lines, with the checkpoints that fall due among them."""

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
        self.unhashed: list[bytes] = []
        self._size = 0
        self.durable = False

    def add(self, event: Event) -> Event:
        """Stamp an event and put it at the end."""
        stamped = self._stamp(event)
        self._add_line(stamped)
        if type(stamped) is SessionLifecycle and about(stamped):
            self.chain = self.chain.copy()
            self.chain.saw(stamped)
        self.durable = self.durable or must_be_synced(stamped)
        if type(stamped) is TurnEnd or self.chain.is_due(len(self.unhashed), self._size):
            self.add_checkpoint()
        return stamped

    def _add_line(self, event: Event) -> None:
        line = encode(event)
        if 10 in line:
            raise UsageError("an event's original holds a line end; wrap it with hansard.originals.wrap")
        self.events.append(event)
        self.unhashed.append(line + b"\n")
        self._size += len(line) + 1

    def add_checkpoint(self) -> None:
        """Put a checkpoint at the end, over everything since the one before."""
        self.chain = self.chain.copy()
        self.chain.add(b"".join(self.unhashed), len(self.unhashed))
        self.hashed += self.unhashed
        self.unhashed.clear()
        self._size = 0
        checkpoint = self._stamp(self.chain.event())
        self.chain.restart(checkpoint.seq)
        self._add_line(seal(checkpoint))

    def _stamp(self, event: Event) -> Event:
        if event.session_id not in ("", self._session_id):
            raise ForeignEvent(self._session_id, event.session_id)
        stamped = copy(event)
        self.seq += 1
        stamped.seq = self.seq
        stamped.session_id = self._session_id
        if not event.id:
            stamped.id = self._ids.next()
        if event.timestamp == -1:
            stamped.timestamp = self._options.clock()
        if event.original is not None and memoryview(event.original).nbytes > self._options.inline_limit:
            data = unwrap(event.original)
            stamped.original = refer(self._put_blob(data), data)
        return stamped
