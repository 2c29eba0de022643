"""Verifying a log in the database: the same check of the same lines, and that the rows agree with them."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from hansard.store import lines
from hansard.store.checking import Check
from hansard.store.interface import Finding, Head, Record
from hansard.store.postgres.blobs import get_blob
from hansard.store.postgres.pool import Pool
from hansard.store.postgres.reader import Place, Span, head, stored
from hansard.store.postgres.taking import is_held


class _Rows:
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
        for record in stored(self._pool, Place(0), Span(self._log)):
            if record.offset != self._end:
                message = f"line at offset {record.offset} should be at {self._end}: what stood there was removed, or is another"
                self._misplaced.append(Finding("order", message, record.offset, record.seq or None))
            self._end = record.end
            yield record if record.damage is not None else self._as_it_says(record)

    def _as_it_says(self, record: Record) -> Record:
        """What the line itself says it is, where it stands. Its row must say the same."""
        [said] = lines.records(record.line, 1, 1) or [Record(0, "raw", record.line, 0, 0, 1, "noise")]
        if (said.seq, said.type) != (record.seq, record.type) and said.damage is None:
            message = f"the row of record {record.seq} ({record.type}) holds record {said.seq} ({said.type})"
            self._misplaced.append(Finding("order", message, record.offset, record.seq))
        return replace(said, offset=record.offset, end=record.end)

    def earlier(self, record: Record) -> Record | None:
        """There is only one row of each seq."""
        return None

    def blob(self, name: str) -> bytes:
        """The bytes of that name, checked."""
        return get_blob(self._pool, self._log.session_id, name)

    def has_blob(self, name: str) -> bool:
        """Whether there is a row of that name."""
        text = "SELECT 1 FROM blob WHERE session_id = %s AND sha256 = %s"
        return self._pool.ask(lambda connection: connection.execute(text, [self._log.session_id, name]).fetchone()) is not None

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
    kept = _Rows(pool, head(pool, session_id))
    check = Check(kept)
    for record in kept.lines():
        check.line(record)
    check.end()
    return check.findings
