"""Reading a log from the database: page by page, each bounded by lines and by bytes, and no connection is held between two of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

from msgspec import Struct
from psycopg import Connection

from hansard.errors import LogDeleted, LogReset, UnknownSession
from hansard.store.interface import Head, Record
from hansard.store.postgres.pool import Pool

ROWS = 1_000
BYTES = 1024 * 1024

_PAGE = """
SELECT seq, type, start, line FROM (
    SELECT seq, type, start, line, sum(octet_length(line)) OVER (ORDER BY seq) - octet_length(line) AS ahead
    FROM (SELECT seq, type, start, line FROM event
          WHERE session_id = %(session)s AND seq > %(after)s AND (%(before)s::int8 IS NULL OR seq < %(before)s)
          AND (%(types)s::text[] IS NULL OR type = ANY(%(types)s))
          AND EXISTS (SELECT 1 FROM session WHERE id = %(session)s AND log_id = %(log)s)
          ORDER BY seq LIMIT %(rows)s) AS lines
) AS page WHERE ahead < %(bytes)s ORDER BY seq
"""
_DAMAGED = """
SELECT after, number, start, reason, line FROM damaged
WHERE session_id = %(session)s AND (after, number) > (%(after)s, %(number)s) AND after <= %(upto)s
ORDER BY after, number
"""
_FURTHEST = 2**62


class Place(Struct):
    """A place in a log: behind a record, and behind so many damaged lines that follow it."""

    seq: int
    number: int = 0


class Span(Struct, frozen=True):
    """What is wanted of a log."""

    log: Head
    before: int | None = None
    types: Sequence[str] | None = None
    rows: int = ROWS
    bytes: int = BYTES


def head(pool: Pool, session_id: str) -> Head:
    """How far a log has got."""
    text = "SELECT log_id, seq, bytes FROM session WHERE id = %s"
    found = pool.ask(lambda connection: connection.execute(text, [session_id]).fetchone())
    if found is None:
        raise UnknownSession(session_id)
    return Head(session_id, *found)


def stored(pool: Pool, place: Place, span: Span) -> Iterator[Record]:
    """The lines behind a place, damaged ones as they are. Ends with `LogDeleted` or `LogReset` if the log goes meanwhile."""
    for found in pages(pool, place, span):
        yield from found


def pages(pool: Pool, place: Place, span: Span) -> Iterator[list[Record]]:
    """The same, page by page."""
    size, damaged = look(pool, span.log)
    if damaged:
        place.seq = _record_at(pool, span.log, place.seq)
    while True:
        found, is_last = pool.ask(lambda connection: page(connection, span, place, damaged))  # noqa: B023 - called at once
        yield found
        if is_last:
            before = size
            size, damaged = look(pool, span.log)
            if size == before:  # nothing was written meanwhile
                return


def _record_at(pool: Pool, log: Head, seq: int) -> int:
    """The last record up to a seq: where it is missing, the damaged line that stands there in its place is still ahead."""
    text = "SELECT coalesce(max(seq), 0) FROM event WHERE session_id = %s AND seq <= %s"
    found = pool.ask(lambda connection: connection.execute(text, [log.session_id, seq]).fetchone())
    return found[0] if found else 0


def look(pool: Pool, log: Head) -> tuple[int, bool]:
    """How many bytes it has now, and whether some lines are no records. Raises if the log is gone, or is another one by now."""
    text = "SELECT log_id, bytes, damaged > 0 FROM session WHERE id = %s"
    found = pool.ask(lambda connection: connection.execute(text, [log.session_id]).fetchone())
    if found is None:
        raise LogDeleted(f"the log of session {log.session_id!r} was removed")
    if found[0] != log.log_id:
        raise LogReset(f"another log took the place of that of session {log.session_id!r}; read it again from the start")
    return found[1], found[2]


def page(connection: Connection[Any], span: Span, place: Place, damaged: bool) -> tuple[list[Record], bool]:
    """The next lines, and whether there were no more just now. The place moves on behind them."""
    values: dict[str, Any] = {
        "session": span.log.session_id,
        "log": span.log.log_id,
        "after": place.seq,
        "before": span.before,
        "types": span.types,
        "rows": span.rows,
        "bytes": span.bytes,
    }
    rows = connection.cursor(binary=True).execute(_PAGE, values).fetchall()
    found = [Record(seq, kind, line, start, start + len(line) + 1, 1) for seq, kind, start, line in rows]
    is_last = len(found) < span.rows and sum(len(record.line) for record in found) < span.bytes
    highest = found[-1].seq if found else place.seq
    number = place.number if highest == place.seq else 0
    if damaged and (span.types is None or "raw" in span.types):
        # What follows a record that came just now is for the next page. Where only some types are wanted, that record may be none of them.
        upto = _FURTHEST if is_last and span.types is not None else highest
        if span.before is not None:
            upto = min(upto, span.before - 1)
        scraps = connection.cursor(binary=True).execute(_DAMAGED, values | {"number": place.number, "upto": upto}).fetchall()
        number = max((number for after, number, *_ in scraps if after == highest), default=number)
        found += [Record(0, "raw", line, start, start + len(line) + 1, 1, reason) for _, _, start, reason, line in scraps]
        found.sort(key=attrgetter("offset"))
    place.seq, place.number = highest, number
    return found, is_last
