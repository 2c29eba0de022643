"""Checkpoints: now and then a record says what all lines since the one before hash to.

A checkpoint hashes from the previous checkpoint's line on, that line with its hash included. So the hashes are a chain over the whole
log, and going on after a restart takes hashing only what follows the last one.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Self

from hansard.events import Event, SessionInit, SessionLifecycle, session_lifecycle
from hansard.events.codec import encode
from hansard.events.lenient import as_object
from hansard.events.summary import CHANGE_FIELDS, is_checkpoint, merge_changes

MAX_OPEN_RECORDS = 1000
MAX_OPEN_BYTES = 8 * 1024 * 1024


class Chain:
    """The hash of the lines since the last checkpoint, and what a list of sessions must know wherever it was said."""

    def __init__(self) -> None:
        self.changes: dict[str, Any] = {}
        self._hash = sha256()
        self._since = 0
        self._records = 0
        self._bytes = 0

    def copy(self) -> Self:
        """The same, to go on from in case of success."""
        other = type(self)()
        other.changes = self.changes
        other._hash, other._since, other._records, other._bytes = self._hash.copy(), self._since, self._records, self._bytes
        return other

    def add(self, data: bytes, records: int = 1) -> None:
        """Count a line, or several, with their LF."""
        self._hash.update(data)
        self._records += records
        self._bytes += len(data)

    def restart(self, seq: int) -> None:
        """Begin anew with the line of a checkpoint, which is to be added next."""
        self._hash = sha256()
        self._since = seq
        self._records = self._bytes = 0

    def room(self, records: int) -> int:
        """How many records may follow until it is time for a checkpoint, with so many more."""
        return max(1, MAX_OPEN_RECORDS - self._records - records)

    def is_due(self, records: int, size: int) -> bool:
        """Whether it is time for a checkpoint, with so many records more."""
        return self._records + records >= MAX_OPEN_RECORDS or self._bytes + size >= MAX_OPEN_BYTES

    @property
    def is_open(self) -> bool:
        """Whether there are lines that no checkpoint covers; the last checkpoint's own line vouches for itself."""
        return self._records > (1 if self._since else 0)

    def apply(self, event: SessionLifecycle | SessionInit) -> None:
        """Remember what a list of sessions shows: every checkpoint repeats it."""
        self.changes = merge_changes(self.changes, event)

    def event(self) -> Event:
        """The checkpoint to write now."""
        return session_lifecycle(subtype="checkpoint", detail={"sha256": self._hash.hexdigest(), "since": self._since, **self.changes})

    def matches(self, checkpoint: SessionLifecycle) -> bool:
        """Whether the lines are still what they were when this checkpoint was written."""
        detail = as_object(checkpoint.payload.detail)
        return detail.get("sha256") == self._hash.hexdigest() and detail.get("since") == self._since


def seal(checkpoint: Event) -> Event:
    """A stamped checkpoint with the hash of its own line, so that the last line of a log is covered too."""
    payload: Any = checkpoint.payload
    payload.detail = {**payload.detail, "own": sha256(encode(checkpoint)).hexdigest()}
    return checkpoint


def is_sealed(checkpoint: SessionLifecycle, line: bytes) -> bool:
    """Whether a checkpoint's own line is as it was written. The first ones of this format did not say."""
    detail = as_object(checkpoint.payload.detail)
    if "own" not in detail:
        return detail.keys() <= {"sha256", "since", *CHANGE_FIELDS}
    own = b',"own":"%s"' % str(detail["own"]).encode()
    return line.count(own) == 1 and sha256(line.replace(own, b"")).hexdigest() == detail["own"]


def as_checkpoint(event: Event) -> SessionLifecycle | None:
    """Returns the event if it is a checkpoint of the log."""
    return event if isinstance(event, SessionLifecycle) and is_checkpoint(event) else None
