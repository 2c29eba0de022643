"""Writing a log in the database: stamp, one statement per batch, and know what became of it when the connection breaks.

A batch whose fate is unknown is kept. Before anything else is written it is looked for; if it is there it is not written again.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from functools import partial
from typing import Any

from msgspec import Struct

from hansard.errors import AppendFailed, Fenced, LogDeleted, StoreError, StoreUnavailable
from hansard.events import Event
from hansard.events.codec import decode
from hansard.store.batch import Batch, WriterOptions, header_event
from hansard.store.checkpoint import Chain
from hansard.store.files.recovery import LogTail, add_line, recovery_event
from hansard.store.ids import TimeOrderedIds
from hansard.store.lines import decode_record as line_event
from hansard.store.postgres.blobs import put_blob
from hansard.store.postgres.catalog import RowUsage
from hansard.store.postgres.connection import Pool
from hansard.store.postgres.lease import INCOMPLETE, Lease, Ownership, describe_holder
from hansard.store.postgres.reader import FILTERED_PAGE_ROWS, LogPosition, Span, read_lines
from hansard.store.postgres.rows import LogEnd, Rows, clean, write
from hansard.store.records import Head

_MAX_TRIES = 3
_STATE = """
SELECT log_id, holder, epoch, (SELECT line FROM event e WHERE e.session_id = s.id AND e.seq = %s) FROM session s WHERE id = %s
"""


class Attempt(Struct):
    """A batch on its way: what was given, what it became, and what the log's hash goes on with."""

    given: list[Event]
    stamped: list[Event]
    rows: Rows
    chain: Chain
    unhashed: bytes
    open: int


class Writer:
    """The one who writes a log."""

    def __init__(self, pool: Pool, lease: Lease, session_id: str, options: WriterOptions, taken: Ownership | None) -> None:
        self.session_id = session_id
        self._pool = pool
        self._lease = lease
        self._options = options
        self._ids = TimeOrderedIds(options.clock)
        self._guard = threading.RLock()
        self._new = self._ready = taken is None
        self._epoch = 1 if taken is None else taken.epoch
        self._end = LogEnd() if taken is None else taken.end
        self._chain = Chain()
        self._pending: Attempt | None = None
        self._usage = RowUsage(self._read_types)
        self._append_failed = False
        """Whether the last thing that was to be written was not."""
        self._closed = False

    # ---- the public side

    def create(self, header: dict[str, Any]) -> bool:
        """Write the first event; false if the session is there already."""
        with self._guard, self._append_errors():
            return self._append([header_event(self.session_id, self._ids.next(), header)]) is not None

    def append(self, events: Iterable[Event]) -> list[Event]:
        """Write all of the events or none."""
        given = list(events)
        with self._guard:
            if self._closed:
                raise StoreError(f"session {self.session_id!r} was released while it was being written")
            self._append_failed = True
            with self._append_errors():
                self._prepare()
                stamped = self._append(given) or []
            self._append_failed = False
            return stamped

    def close(self) -> None:
        """Cover what was written with a checkpoint, and let the next writer in."""
        with self._guard:
            if not self._closed:
                self._closed = True
                with suppress(StoreError):  # then the log is as whole as that of a killed writer
                    if not self._new and self._chain.is_open:
                        self._append([], checkpoint=True)
                self._lease.release(self.session_id, self._epoch, INCOMPLETE if self._append_failed else None)

    def forget(self) -> None:
        """Write no more, and leave everything as it is: it is somebody else's now, or gone."""
        self._closed = True

    @contextmanager
    def _append_errors(self) -> Generator[None]:
        """Turns an error of the database into `AppendFailed`: nothing was written. After `StoreUnavailable` that is not known."""
        try:
            yield
        except StoreError as problem:
            if type(problem) is StoreError:
                raise AppendFailed(f"cannot write session {self.session_id!r}: {problem}") from problem
            raise

    # ---- opening

    def _prepare(self) -> None:
        """Before the first batch: hash what follows the last checkpoint, and say what was damaged at the end of a log from elsewhere."""
        if self._ready:
            return
        end = self._end
        state = LogTail(Chain(), 1)
        log = Head(self.session_id, end.log_id, end.seq, end.bytes)
        for record in read_lines(self._pool, LogPosition(max(0, end.checkpoint - 1)), Span(log)):
            add_line(state, record)
        self._chain = state.chain
        self._ids.start_above(end.last_id)
        repair = [] if end.seq else [header_event(self.session_id, self._ids.next(), {})]
        if state.torn is not None:
            repair.append(recovery_event(state.torn))
        self._append(repair)
        self._ready = True

    # ---- writing

    def _append(self, given: list[Event], checkpoint: bool = False) -> list[Event] | None:
        """What the events became; None if a new log could not be made because there is one of that name."""
        for number in range(1, _MAX_TRIES + 1):
            was = self._pending
            again = was is not None and _is_same_batch(was.given, given)
            if was is not None and self._is_written(was):
                self._adopt(was)
                if again:
                    return was.stamped
                again = False
            attempt = was if was is not None and again else self._build(given, checkpoint)
            if not attempt.rows.lines.seqs:
                return attempt.stamped
            try:
                done = self._write(attempt)
            except StoreUnavailable:
                self._pending = attempt
                if number == _MAX_TRIES:
                    raise
                continue  # perhaps only this connection broke: look, and try again
            if done:
                self._adopt(attempt)
                return attempt.stamped
            if self._new:
                if was is None or not self._is_written(was):
                    return None
                continue  # it was still on its way
            self._check_ownership()
        raise StoreError(f"the log of session {self.session_id!r} changed while it was being written")

    def _build(self, given: list[Event], checkpoint: bool) -> Attempt:
        end = copy(self._end)
        end.summary = copy(end.summary)
        batch = Batch(self.session_id, partial(put_blob, self._pool, self.session_id), self._options, self._ids, end.seq, self._chain)
        stamped = self._stamp(batch, given)
        if checkpoint:
            batch.add_checkpoint()
        rows = Rows(self._end, end)
        events, unhashed = batch.events, b"".join(batch.unhashed)
        lines = b"".join([*batch.hashed, unhashed]).split(b"\n")[:-1]
        end.add(rows.lines, events, lines, [event.seq for event in events], [event.type for event in events])
        rows.usage = self._usage.add(events)
        return Attempt(given, stamped, rows, batch.chain, unhashed, batch.open)

    def _stamp(self, batch: Batch, given: list[Event]) -> list[Event]:
        """Put events into a batch, but for those that are in the log already or twice among them: those are as they were the first time."""
        ids = {event.id for event in given if event.id}
        if not ids:
            return batch.add(given)
        known: dict[str | int, Event] = {**self._existing(ids)}
        new: dict[str | int, Event] = {}
        for place, event in enumerate(given):
            if event.id not in known:
                new.setdefault(event.id or place, event)
        known |= zip(new, batch.add(list(new.values())), strict=True)
        return [known[event.id or place] for place, event in enumerate(given)]

    def _read_types(self, types: frozenset[str]) -> Iterator[Event]:
        log = Head(self.session_id, self._end.log_id, self._end.seq, self._end.bytes)
        found = read_lines(self._pool, LogPosition(0), Span(log, types=list(types), rows=FILTERED_PAGE_ROWS)) if not self._new else ()
        return (line_event(record) for record in found)

    def _existing(self, ids: set[str]) -> dict[str, Event]:
        """Those of the events that are in the log already."""
        if not ids or self._new:
            return {}
        text = "SELECT id, line FROM event WHERE session_id = %s AND id = ANY(%s) ORDER BY seq DESC"
        wanted = [clean(name) for name in ids]
        rows = self._pool.query(lambda connection: connection.cursor(binary=True).execute(text, [self.session_id, wanted]).fetchall())
        return {name: decode(line) for name, line in rows}

    def _write(self, attempt: Attempt) -> bool:
        with self._pool.connection() as connection:
            return write(connection, self.session_id, attempt.rows, self._lease.id, self._epoch, self._options.clock(), new=self._new)

    def _adopt(self, attempt: Attempt) -> None:
        self._end, self._chain = attempt.rows.end, attempt.chain
        self._chain.add(attempt.unhashed, attempt.open)
        self._pending, self._new = None, False
        self._usage.commit()
        self._lease.notify(self.session_id)

    def _is_written(self, attempt: Attempt) -> bool:
        """Whether a batch was written after all. If it was not, it may still be on its way; then the fence stops what comes next."""
        rows = attempt.rows
        row = self._read_state(rows.lines.seqs[-1])
        return row is not None and row[0] == rows.end.log_id and row[3] == rows.lines.lines[-1]

    def _read_state(self, seq: int) -> tuple[Any, ...] | None:
        return self._pool.query(lambda connection: connection.cursor(binary=True).execute(_STATE, [seq, self.session_id]).fetchone())

    def _check_ownership(self) -> None:
        """Raise if the session is somebody else's by now, or gone."""
        row = self._read_state(0)
        if row is None or row[0] != self._end.log_id:
            raise LogDeleted(f"the log of session {self.session_id!r} was removed while it was being written")
        if (row[1], row[2]) != (self._lease.id, self._epoch):
            raise Fenced(
                f"session {self.session_id!r} was taken over by {describe_holder(self._pool, self.session_id)}; nothing was written"
            )


def _is_same_batch(one: list[Event], other: list[Event]) -> bool:
    """Whether a batch is given again."""
    return len(one) == len(other) and all(a is b or a == b for a, b in zip(one, other, strict=True))
