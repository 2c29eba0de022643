"""Reading a log from the database: page by page, each bounded by lines and by bytes, and no connection is held between two of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from msgspec import Struct
from psycopg import Connection, sql

from hansard.errors import LogDeleted, LogReset, UnknownSession
from hansard.store.postgres.catalog import search_condition, search_patterns
from hansard.store.postgres.connection import Pool
from hansard.store.records import Head, Record

PAGE_ROWS = 1_000
PAGE_BYTES = 1024 * 1024
FILTERED_PAGE_ROWS = 20 * PAGE_ROWS
"""Where only some types are wanted, so many lines are looked at for a page."""

# The range of seqs is what keeps a page small, whatever the planner knows of the table. `start` grows with it.
_PAGE = """
SELECT seq, type, start, line FROM event
WHERE session_id = %(session)s AND seq > %(after)s AND seq <= %(upto)s
  AND start < coalesce((SELECT start FROM event WHERE session_id = %(session)s AND seq = %(after)s + 1) + %(bytes)s, %(far)s)
  AND EXISTS (SELECT 1 FROM session WHERE id = %(session)s AND log_id = %(log)s)
ORDER BY seq
"""
# How the log stands, as a row with the seq 0, and its first page: one statement, so that they are of one moment and one round trip.
_OPEN = """
SELECT 0::int8 AS seq, log_id AS type, bytes AS start, CASE WHEN damaged > 0 THEN ''::bytea END AS line, seq AS head
FROM session WHERE id = %(session)s
UNION ALL
SELECT seq, type, start, line, NULL FROM event
WHERE session_id = %(session)s AND seq > %(after)s AND seq <= %(upto)s
  AND start < coalesce((SELECT start FROM event WHERE session_id = %(session)s AND seq = %(after)s + 1) + %(bytes)s, %(far)s)
ORDER BY seq
"""
_FILTERED_PAGE = """
SELECT seq, type, start, line FROM (
    SELECT seq, type, start, line, sum(octet_length(line)) OVER (ORDER BY seq) - octet_length(line) AS ahead FROM event
    WHERE session_id = %(session)s AND seq > %(after)s AND seq <= %(upto)s AND type = ANY(%(types)s)
      AND ({says})
      AND EXISTS (SELECT 1 FROM session WHERE id = %(session)s AND log_id = %(log)s)
) AS chosen WHERE ahead < %(bytes)s ORDER BY seq
"""
_DAMAGED = """
SELECT after, number, start, reason, line FROM damaged
WHERE session_id = %(session)s AND (after, number) > (%(after)s, %(number)s) AND after <= %(upto)s
ORDER BY after, number
"""
BEYOND_END = 2**62
"""Beyond the end of any log."""


class LogPosition(Struct):
    """A place in a log: behind a record, and behind so many damaged lines that follow it."""

    seq: int
    number: int = 0


class LogState(Struct, frozen=True):
    """How a log stands now."""

    seq: int
    bytes: int
    damaged: bool


class Span(Struct, frozen=True):
    """What is wanted of a log, and how much at once: of so many seqs, and about so many bytes."""

    log: Head
    before: int | None = None
    types: Sequence[str] | None = None
    words: Sequence[str] = ()
    """Only what says all of these, if types are chosen."""
    rows: int = PAGE_ROWS
    bytes: int = PAGE_BYTES

    def end(self, now: LogState) -> int:
        """The last seq that is wanted and there."""
        return now.seq if self.before is None else min(now.seq, self.before - 1)


def head(pool: Pool, session_id: str) -> Head:
    """How far a log has got."""
    return require_head(pool, session_id)[0]


def require_head(pool: Pool, session_id: str) -> tuple[Head, LogState]:
    """The same, to begin reading with."""
    text = "SELECT log_id, seq, bytes, damaged > 0 FROM session WHERE id = %s"
    row = pool.query(lambda connection: connection.execute(text, [session_id]).fetchone())
    if row is None:
        raise UnknownSession(session_id)
    return Head(session_id, *row[:3]), LogState(*row[1:])


class OpenLog(Struct, frozen=True):
    """A log that is about to be read: how it stands, and its first lines, if they are to be had by themselves."""

    head: Head
    now: LogState
    first: list[Record] = []


def open_log(pool: Pool, session_id: str, after: int, upto: int) -> OpenLog:
    """How a log stands, and what comes behind a place up to another."""
    values = {"session": session_id, "after": after, "upto": upto, "bytes": PAGE_BYTES, "far": BEYOND_END}
    rows = pool.query(lambda connection: connection.cursor(binary=True).execute(_OPEN, values).fetchall())
    if not rows:
        raise UnknownSession(session_id)
    _, log_id, size, damaged, newest = rows[0]
    head, now = Head(session_id, log_id, newest, size), LogState(newest, size, damaged is not None)
    if now.damaged:  # there may be other lines between these
        return OpenLog(head, now)
    return OpenLog(head, now, [Record(seq, kind, line, start, start + len(line) + 1, 1) for seq, kind, start, line, _ in rows[1:]])


def check_head(pool: Pool, log: Head) -> LogState:
    """Raises `LogDeleted` or `LogReset` if the log is gone, or is another one by now."""
    text = "SELECT log_id, seq, bytes, damaged > 0 FROM session WHERE id = %s"
    found = pool.query(lambda connection: connection.execute(text, [log.session_id]).fetchone())
    if found is None:
        raise LogDeleted(f"the log of session {log.session_id!r} was removed")
    if found[0] != log.log_id:
        raise LogReset(f"another log took the place of that of session {log.session_id!r}; read it again from the start")
    return LogState(*found[1:])


def read_lines(pool: Pool, place: LogPosition, span: Span) -> Iterator[Record]:
    """The lines behind a place, damaged ones as they are. Ends with `LogDeleted` or `LogReset` if the log goes meanwhile."""
    for one in read_pages(pool, place, span):
        yield from one


def read_pages(
    pool: Pool, place: LogPosition, span: Span, now: LogState | None = None, first: Sequence[Record] | None = None
) -> Iterator[Sequence[Record]]:
    """The same, page by page. ``now``, ``first``: how the log stood a moment ago and its first page, if known; each saves a round trip."""
    now = now or check_head(pool, span.log)
    if now.damaged:
        place = position_after(pool, span.log, place.seq)
    while True:
        if first:
            some, first = first, None
            place.seq = some[-1].seq
            is_last = place.seq >= span.end(now)
        else:
            some, is_last = pool.query(partial(read_page, span=span, place=place, now=now))
        yield some
        if is_last:
            before, now = now, check_head(pool, span.log)
            if now.bytes == before.bytes:  # nothing was written meanwhile
                return


def position_after(pool: Pool, log: Head, seq: int) -> LogPosition:
    """Behind the last record up to a seq: where that one is missing, the damaged line that stands in its place is still ahead."""
    text = "SELECT coalesce(max(seq), 0) FROM event WHERE session_id = %s AND seq <= %s"
    found = pool.query(lambda connection: connection.execute(text, [log.session_id, seq]).fetchone())
    return LogPosition(found[0] if found else 0)


def _page_query(span: Span) -> sql.SQL | sql.Composed:
    if span.types is None:
        return sql.SQL(_PAGE)
    return sql.SQL(_FILTERED_PAGE).format(says=search_condition(span.words) if span.words else sql.SQL("true"))


def read_page(connection: Connection[Any], span: Span, place: LogPosition, now: LogState) -> tuple[list[Record], bool]:
    """The next lines, and whether they were the last, as the log stood when it was looked at. The place moves on behind them."""
    end = span.end(now)  # what came since then may have damaged lines between
    values: dict[str, Any] = {
        "session": span.log.session_id,
        "log": span.log.log_id,
        "after": place.seq,
        "upto": min(place.seq + span.rows, end),
        "types": span.types,
        "bytes": span.bytes,
        "far": BEYOND_END,
        **search_patterns(span.words),
    }
    rows = connection.cursor(binary=True).execute(_page_query(span), values).fetchall()
    found = [Record(seq, kind, line, start, start + len(line) + 1, 1) for seq, kind, start, line in rows]
    passed = values["upto"]
    if found and (span.types is None or sum(len(record.line) for record in found) >= span.bytes):
        passed = found[-1].seq
    seq, number = max(passed, place.seq), place.number if passed <= place.seq else 0
    if now.damaged and (span.types is None or "raw" in span.types):
        values |= {"number": place.number, "upto": min(seq, end)}
        scraps = connection.cursor(binary=True).execute(_DAMAGED, values).fetchall()
        number = max((number for after, number, *_ in scraps if after == seq), default=number)
        found += [Record(0, "raw", line, start, start + len(line) + 1, 1, reason) for _, _, start, reason, line in scraps]
        found.sort(key=attrgetter("offset"))
    place.seq, place.number = seq, number
    return found, seq >= end
