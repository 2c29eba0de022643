"""Lines of another store's log on their way into this one: what is there already is compared and skipped, the rest comes in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from hansard.errors import LogForked, UsageError
from hansard.store import lines
from hansard.store.records import Record

MAX_BATCH_LINES = 1_000
MAX_BATCH_BYTES = 1024 * 1024


def missing_lines(session_id: str, given: Iterable[Record], head: int, there: Callable[[int], Iterator[Record]]) -> Iterator[Record]:
    """Those of the lines that are not there yet. ``there(seq)`` are the lines of this log from behind a seq on, as `Store.records` says."""
    first, front, rest = _split_at_first_record(given)
    if first > head + 1 and len(front) == 1 and head:
        raise UsageError(f"session {session_id!r} ends at {head}, so the lines to be added must begin there or before, not at {first}")
    ours = there(min(first - 1, head)) if first else there(head)
    given = chain(front, rest)
    for record in given:
        same = next(ours, None)
        if same is None:
            yield record
            yield from given
            return
        if same.seq != record.seq or lines.raw_line(same) != lines.raw_line(record):
            raise LogForked(
                f"line {record.seq or same.seq} of session {session_id!r} is not the same in both logs; nothing was overwritten"
            )


def batch_lines(given: Iterable[Record]) -> Iterator[list[Record]]:
    """The same, some at a time."""
    some: list[Record] = []
    size = 0
    for record in given:
        some.append(record)
        size += len(record.line)
        if len(some) >= MAX_BATCH_LINES or size >= MAX_BATCH_BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some


def _split_at_first_record(given: Iterable[Record]) -> tuple[int, list[Record], Iterator[Record]]:
    """The seq of the first record, 0 if there is none; the lines up to it, because damaged ones may stand in front; and the rest."""
    rest = iter(given)
    front: list[Record] = []
    for record in rest:
        front.append(record)
        if record.damage is None:
            return record.seq, front, rest
    return 0, front, rest
