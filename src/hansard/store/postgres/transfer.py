"""Copies lines from another store's log unchanged, and verifies that the rows of a log agree with its lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy

from msgspec.structs import replace

from hansard.errors import Fenced, StoreError, StoreUnavailable, UnknownSession
from hansard.events import Event
from hansard.store import lines
from hansard.store.checks import LogChecker
from hansard.store.ingest import batch_lines, missing_lines
from hansard.store.postgres.blobs import get_blob
from hansard.store.postgres.catalog import RowUsage
from hansard.store.postgres.connection import Pool
from hansard.store.postgres.lease import Lease, Ownership, acquire, describe_holder, is_held
from hansard.store.postgres.reader import LogPosition, Span, head, read_lines
from hansard.store.postgres.rows import LogEnd, Rows, write
from hansard.store.records import Finding, Head, Record

_MAX_TRIES = 3


def ingest(pool: Pool, lease: Lease, session_id: str, given: Iterable[Record], clock: Callable[[], int]) -> None:
    """Hold the session for as long as it takes, and add what is missing."""
    taken = acquire(pool, lease, session_id, copying=True)
    ingest_ = _Ingest(pool, lease, session_id, taken, clock)
    try:
        for some in batch_lines(missing_lines(session_id, given, ingest_.end.seq, ingest_.existing)):
            ingest_.add(some)
    finally:
        if not ingest_.new:
            lease.release(session_id, ingest_.epoch)


class _Ingest:
    """A session that lines are brought to."""

    def __init__(self, pool: Pool, lease: Lease, session_id: str, taken: Ownership | None, clock: Callable[[], int]) -> None:
        self._pool = pool
        self._lease = lease
        self._session_id = session_id
        self._clock = clock
        self.new = taken is None
        self.epoch = 1 if taken is None else taken.epoch
        self.end = LogEnd() if taken is None else taken.end
        self._usage = RowUsage(lambda types: (lines.decode_record(one) for one in self.existing(0) if one.type in types))

    def existing(self, seq: int) -> Iterator[Record]:
        """The lines that are there, from behind a seq on."""
        if self.new:
            return iter(())
        log = Head(self._session_id, self.end.log_id, self.end.seq, self.end.bytes)
        found = read_lines(self._pool, LogPosition(seq), Span(log))
        return (one if one.damage is None else lines.damage_event(one, self._session_id) for one in found)

    def add(self, some: list[Record]) -> None:
        """Add lines, all or none."""
        rows = self._rows(some)
        for number in range(1, _MAX_TRIES + 1):
            try:
                with self._pool.connection() as connection:
                    done = write(connection, self._session_id, rows, self._lease.id, self.epoch, self._clock(), new=self.new, copying=True)
            except StoreUnavailable:
                if number == _MAX_TRIES:
                    raise
                continue
            if done or self._is_written(rows):
                self.end, self.new = rows.end, False
                self._usage.commit()
                self._lease.notify(self._session_id)
                return
            by = describe_holder(self._pool, self._session_id)
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
                rows.damaged.append(end.add_damaged(lines.raw_line(record), record.damage or "noise"))
        events += _add(rows, whole)
        rows.usage = self._usage.add(events)
        return rows

    def _is_written(self, rows: Rows) -> bool:
        """Whether the batch was written before the connection broke: nobody else can have made the log just that long."""
        try:
            now = head(self._pool, self._session_id)
        except UnknownSession:
            return False
        return (now.log_id, now.seq, now.bytes) == (rows.end.log_id, rows.end.seq, rows.end.bytes)


def _add(rows: Rows, records: list[Record]) -> list[Event]:
    """Put records that come next to the rows; their events."""
    events = [lines.decode_record(record) for record in records]
    rows.end.add(
        rows.lines, events, [record.line for record in records], [record.seq for record in records], [record.type for record in records]
    )
    return events


class _RowSource:
    """A log in the database."""

    def __init__(self, pool: Pool, log: Head) -> None:
        self._pool = pool
        self._log = log
        self._end = 0
        self._misplaced: list[Finding] = []

    def lines(self) -> Iterator[Record]:
        """All lines from the beginning on."""
        self._end = 0
        self._misplaced = []
        for record in read_lines(self._pool, LogPosition(0), Span(self._log)):
            if record.offset != self._end:
                message = f"line at offset {record.offset} should be at {self._end}: what stood there was removed, or is another"
                self._misplaced.append(Finding("order", message, record.offset, record.seq or None))
            self._end = record.end
            yield record if record.damage is not None else self._as_it_says(record)

    def _as_it_says(self, record: Record) -> Record:
        """What the line itself says it is, where it stands. Its row must say the same."""
        [parsed] = lines.parse_records(record.line, 1, 1) or [Record(0, "raw", record.line, 0, 0, 1, "noise")]
        if (parsed.seq, parsed.type) != (record.seq, record.type) and parsed.damage is None:
            message = f"the row of record {record.seq} ({record.type}) holds record {parsed.seq} ({parsed.type})"
            self._misplaced.append(Finding("order", message, record.offset, record.seq))
        return replace(parsed, offset=record.offset, end=record.end)

    def earlier(self, record: Record) -> Record | None:
        """There is only one row of each seq."""
        return None

    def blob(self, name: str) -> bytes:
        """The bytes of that name, checked."""
        return get_blob(self._pool, self._log.session_id, name)

    def has_blob(self, name: str) -> bool:
        """Whether there is a row of that name."""
        text = "SELECT 1 FROM blob WHERE session_id = %s AND sha256 = %s"
        return self._pool.query(lambda connection: connection.execute(text, [self._log.session_id, name]).fetchone()) is not None

    def is_held(self) -> bool:
        """Whether somebody is writing it."""
        return is_held(self._pool, self._log.session_id)

    def problems(self) -> list[Finding]:
        """Rows that are missing or do not stand where they should, and an end that is not where the session's row says."""
        end = self._log.bytes
        if self._end < end:
            self._misplaced.append(Finding("gap", f"the lines end at offset {self._end}, the log at {end}: the last ones were removed"))
        return self._misplaced


def verify(pool: Pool, session_id: str) -> list[Finding]:
    """Everything that is wrong with a log, in its order."""
    kept = _RowSource(pool, head(pool, session_id))
    check = LogChecker(kept)
    for record in kept.lines():
        check.line(record)
    check.end()
    return check.findings
