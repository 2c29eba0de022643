"""Bringing the lines of another store's log along, as they are: nothing is stamped, added or left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy

from hansard.errors import Fenced, StoreAway, StoreError, UnknownSession
from hansard.events import Event
from hansard.store import lines
from hansard.store.bringing import batches, missing
from hansard.store.interface import Head, Record
from hansard.store.postgres.lease import Lease
from hansard.store.postgres.pool import Pool
from hansard.store.postgres.reader import Place, Span, head, stored
from hansard.store.postgres.rows import End, Rows, write
from hansard.store.postgres.spending import Spending
from hansard.store.postgres.taking import Taken, held_by, take

_TRIES = 3


def transfer(pool: Pool, lease: Lease, session_id: str, given: Iterable[Record], clock: Callable[[], int]) -> None:
    """Hold the session for as long as it takes, and add what is missing."""
    taken = take(pool, lease, session_id, copying=True)
    bringing = _Bringing(pool, lease, session_id, taken, clock)
    try:
        for some in batches(missing(session_id, given, bringing.end.seq, bringing.there)):
            bringing.add(some)
    finally:
        if not bringing.new:
            lease.let_go(session_id, bringing.epoch)


class _Bringing:
    """A session that lines are brought to."""

    def __init__(self, pool: Pool, lease: Lease, session_id: str, taken: Taken | None, clock: Callable[[], int]) -> None:
        self._pool = pool
        self._lease = lease
        self._session_id = session_id
        self._clock = clock
        self.new = taken is None
        self.epoch = 1 if taken is None else taken.epoch
        self.end = End() if taken is None else taken.end
        self._spending = Spending(lambda types: (lines.event(one) for one in self.there(0) if one.type in types))

    def there(self, seq: int) -> Iterator[Record]:
        """The lines that are there, from behind a seq on."""
        if self.new:
            return iter(())
        log = Head(self._session_id, self.end.log_id, self.end.seq, self.end.bytes)
        found = stored(self._pool, Place(seq), Span(log))
        return (one if one.damage is None else lines.as_event(one, self._session_id) for one in found)

    def add(self, some: list[Record]) -> None:
        """Add lines, all or none."""
        rows = self._rows(some)
        for number in range(1, _TRIES + 1):
            try:
                with self._pool.connection() as connection:
                    done = write(connection, self._session_id, rows, self._lease.id, self.epoch, self._clock(), new=self.new, copying=True)
            except StoreAway:
                if number == _TRIES:
                    raise
                continue
            if done or self._stands(rows):
                self.end, self.new = rows.end, False
                self._spending.written()
                self._lease.wrote(self._session_id)
                return
            by = held_by(self._pool, self._session_id)
            raise Fenced(f"session {self._session_id!r} was taken over by {by}; nothing was written")
        raise StoreError(f"cannot write session {self._session_id!r}")

    def _rows(self, some: list[Record]) -> Rows:
        end = copy(self.end)
        end.summary = copy(end.summary)
        rows = Rows(self.end, end)
        events: list[Event] = []
        whole: list[Record] = []
        for record in some:
            if record.damage is None and record.seq > (whole[-1].seq if whole else end.seq):
                whole.append(record)
            else:  # a record whose turn is over stands where it stands, and is none of the log's
                events += _add(rows, whole)
                whole = []
                rows.scraps.append(end.add_damaged(lines.raw(record), record.damage or "noise"))
        events += _add(rows, whole)
        rows.usage = self._spending.count(events)
        return rows

    def _stands(self, rows: Rows) -> bool:
        """Whether the batch was written before the connection broke: nobody else can have made the log just that long."""
        try:
            now = head(self._pool, self._session_id)
        except UnknownSession:
            return False
        return (now.log_id, now.seq, now.bytes) == (rows.end.log_id, rows.end.seq, rows.end.bytes)


def _add(rows: Rows, records: list[Record]) -> list[Event]:
    """Put records that come next to the rows; their events."""
    events = [lines.event(record) for record in records]
    rows.end.add(
        rows.lines, events, [record.line for record in records], [record.seq for record in records], [record.type for record in records]
    )
    return events
