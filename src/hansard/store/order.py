"""The records of a log as they are shown: in order of ``seq``, each once, damage where it stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hansard.events import Event
from hansard.store import lines
from hansard.store.files import lock
from hansard.store.files.reader import LogFiles, Reader, RepeatFinder
from hansard.store.records import Record

MAX_EARLY_RECORDS = 64
"""How many records may stand in front of their turn before the missing one is given up."""


class RecordOrder:
    """Puts records back where they belong. In an undamaged log there is nothing to do."""

    def __init__(self, log: LogFiles, after: int) -> None:
        self._log = log
        self._after = after
        self._next = after + 1
        self._early: dict[int, Record] = {}
        self._gap_explained = False
        self._repeats = RepeatFinder(log)

    def push(self, found: Iterable[Record]) -> Iterator[Record]:
        """Give back what can be shown now."""
        for record in found:
            if record.seq == self._next:
                yield self._emit(record)
                while self._early and (early := self._early.pop(self._next, None)):
                    yield self._emit(early)
            elif record.damage is not None:
                yield from self.flush()
                yield lines.damage_event(record, self._log.session_id)
                self._gap_explained = True
            elif record.seq > self._next:
                yield from self._emit_or_wait(record)
            elif record.seq > self._after and not self._is_repeated(record):
                yield record

    def push_block(self, block: bytes) -> list[Event] | None:
        """The events of whole lines if there is nothing to put in order; else nothing has happened."""
        found = None if self._early else lines.decode_block(block, self._next)
        if found:
            self._next += len(found)
            self._gap_explained = False
        return found

    def flush(self) -> Iterator[Record]:
        """Show what waits for a record that does not come."""
        for seq in sorted(self._early):
            yield self._emit(self._early.pop(seq))

    def _emit(self, record: Record) -> Record:
        self._next = record.seq + 1
        self._gap_explained = False
        return record

    def _emit_or_wait(self, record: Record) -> Iterator[Record]:
        if self._gap_explained:
            yield from self.flush()
            yield self._emit(record)
        elif (same := self._early.get(record.seq)) is not None:
            if same.line != record.line:
                yield record
        else:
            self._early[record.seq] = record
            if len(self._early) > MAX_EARLY_RECORDS:
                yield from self.flush()

    def _is_repeated(self, record: Record) -> bool:
        earlier = self._repeats.earlier(record)
        return earlier is not None and earlier.line == record.line


def read_event_blocks(log: LogFiles, size: int, after: int = 0) -> Iterator[tuple[list[Event], int]]:
    """All events after a seq that are in the log now, in blocks of about ``size`` bytes, and how many bytes each is.

    Nearly always nothing is damaged, repeated or of a newer version. Then a block is decoded at once, in half the time.
    """
    reader, order = Reader(log, after), RecordOrder(log, after)
    while True:
        block = reader.peek(size)
        if events := block and order.push_block(block):
            reader.skip(block, events[-1].seq)
            yield events, len(block)
        elif found := reader.next():
            yield _decode(order.push(found))
        else:
            break
    yield _decode(_read_end(log, reader, order))


def _decode(records: Iterable[Record]) -> tuple[list[Event], int]:
    found = list(records)
    return [lines.decode_record(record) for record in found], sum(record.end - record.offset for record in found)


def read_records(log: LogFiles, after: int) -> Iterator[Record]:
    """Everything after a seq that is in the log now."""
    reader, order = Reader(log, after), RecordOrder(log, after)
    while found := reader.next():
        yield from order.push(found)
    yield from _read_end(log, reader, order)


def _read_end(log: LogFiles, reader: Reader, order: RecordOrder) -> Iterator[Record]:
    """What stands after the last line end, and what waited for a record that does not come."""
    for record in reader.unterminated():
        if record.damage is None or not lock.is_held(log.folder):  # else somebody is just writing it
            yield from order.push([record])
    yield from order.flush()
