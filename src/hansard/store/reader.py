"""Reading a log: find a place by bisection, then go forward, block by block, in constant memory.

A reader needs no lock and no index: ``seq`` grows with the byte offset, so a binary search over the file finds any record.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from hansard.errors import LogDeleted, LogRefused, LogReset, UnknownSession
from hansard.events import SessionLifecycle
from hansard.store import lines
from hansard.store.cursors import seq_of
from hansard.store.interface import Head, Record
from hansard.store.part import Part, form, open_part, read

BLOCK = 128 * 1024
_WINDOW = 16 * 1024  # where bisection stops and reading on is cheaper
_PROBE = 2 * 1024


class Segment(NamedTuple):
    """A file of a log, and the seq from which on it is the one that counts."""

    number: int
    part: Part
    first: int


class Log:
    """A log, opened for reading: its files, in order. A later file overrules the ones before from its first record on."""

    def __init__(self, folder: Path) -> None:
        self.session_id = folder.name
        self.folder = folder
        self.segments: list[Segment] = []
        try:
            self.segments.append(Segment(1, open_part(folder, 1), 1))
        except FileNotFoundError:
            raise UnknownSession(folder.name) from None
        while self.open_next():
            pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the files."""
        while self.segments:
            self.segments.pop().part.close()

    def open_next(self) -> bool:
        """Open the file after the last one, if it has appeared by now."""
        number = len(self.segments) + 1
        try:
            part = open_part(self.folder, number)
        except FileNotFoundError:
            return False
        first = next((record.seq for record in forward(part, 0, number) if record.seq), None)
        if first is None:
            part.close()
            return False
        self.segments.append(Segment(number, part, first))
        return True

    def changed_form(self, index: int) -> bool:
        """Go on in the other form of a file, if it was compressed or unpacked meanwhile: the bytes and their offsets are the same."""
        number, part, first = self.segments[index]
        try:
            other = open_part(self.folder, number)
        except (FileNotFoundError, LogRefused):
            return False
        known = min(BLOCK, part.size)
        if form(other, number) == form(part, number) or other.size < part.size or other.pread(known, 0) != part.pread(known, 0):
            other.close()
            return False
        part.close()
        self.segments[index] = Segment(number, other, first)
        return True

    def head(self) -> Head:
        """How far it has got."""
        return Head(self.session_id, self.log_id(), last_seq(self.segments[-1].part), self.size)

    @property
    def size(self) -> int:
        """How many bytes of text its files hold."""
        return sum(segment.part.size for segment in self.segments)

    def log_id(self) -> str:
        """The log's own id, from its first event; empty when that cannot be read."""
        first = self.first_event()
        return "" if first is None else first.payload.log_id or ""

    def first_event(self) -> SessionLifecycle | None:
        """The event that created the log, if it is still there."""
        start = islice(forward(self.segments[0].part, 0, step=_PROBE), 3)  # before it there may be a torn attempt to write it
        first = next((record for record in start if record.seq == 1), None)
        return None if first is None else lines.created(first)

    def beginning(self) -> bytes:
        """The first few bytes."""
        return self.segments[0].part.pread(16, 0)

    def seq_of(self, cursor: object) -> int:
        """The seq of a cursor that belongs to this log; `UnknownCursor` for any other."""
        return seq_of(self.head(), cursor)


class Reader:
    """A place in a log, and the way forward from it. The order is that of the file; damage and duplicates are included."""

    def __init__(self, log: Log, after: int = 0) -> None:
        self._log = log
        self._index = max(index for index, segment in enumerate(log.segments) if index == 0 or segment.first <= after + 1)
        self._highest = after
        self._move(seek(self._segment.part, after))

    @property
    def _segment(self) -> Segment:
        return self._log.segments[self._index]

    def next(self) -> list[Record]:
        """The records and the damage of the next block; empty when there is no further whole line."""
        while True:
            block, self._searched = _whole_lines(self._segment.part, self.offset, self._searched, BLOCK)
            if block:
                found = lines.records(block, self.offset, self._segment.number)
                self._move(self.offset + len(block))
                if kept := self._without_overruled(found):
                    self._highest = max(self._highest, max(record.seq for record in kept))
                    return kept
            elif self._index + 1 < len(self._log.segments):
                self._index += 1
                self._move(seek(self._segment.part, self._highest))
            else:
                return []

    def ahead(self, step: int) -> bytes:
        """The next whole lines, about ``step`` bytes of them, which are still to be read; none if a later file may overrule them."""
        if self._index + 1 < len(self._log.segments):
            return b""
        block, self._searched = _whole_lines(self._segment.part, self.offset, self._searched, step)
        return block

    def go_past(self, block: bytes, highest: int) -> None:
        """These lines, which were `ahead`, are read; ``highest`` is the last seq of them."""
        self._move(self.offset + len(block))
        self._highest = highest

    def rest(self) -> list[Record]:
        """What stands after the last line end: at most one record, or a torn one."""
        data = read(self._segment.part, self.offset, self._segment.part.size)
        return lines.records(data, self.offset, self._segment.number)

    @property
    def is_at_end(self) -> bool:
        """Whether nothing stands after the last line end."""
        return self.offset >= self._segment.part.size

    def check(self) -> bool:
        """Raise when the file was cut, replaced or removed since it was opened. True if it goes on in its other form."""
        part = self._segment.part
        path = self._log.folder / form(part, self._segment.number)
        try:
            there = os.stat(path, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            if not self._log.changed_form(self._index):
                raise LogDeleted(f"{path} was removed", path) from None
            return True
        if not os.path.samestat(part.stat(), there):
            raise LogReset(f"another file took the place of {path}; read it again from the start", path)
        if part.size < self.offset:
            raise LogReset(f"{path} became shorter than what was read of it; read it again from the start", path)
        return False

    def _move(self, offset: int) -> None:
        self.offset = self._searched = offset

    def _without_overruled(self, found: list[Record]) -> list[Record]:
        """Up to the first record that the next file says again; what follows it here may be damaged and does not count."""
        if self._index + 1 == len(self._log.segments):
            return found
        end = self._log.segments[self._index + 1].first
        for index, record in enumerate(found):
            if record.seq >= end:
                self._move(self._segment.part.size)
                return found[:index]
        return found


class Repeats:
    """Finds what was there before, when a record turns up whose turn is over."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._broken_at: dict[int, int] = {}
        self._ahead: Iterator[Record] = iter(())

    def earlier(self, record: Record) -> Record | None:
        """The record of the same seq further up. What is in front of the first break is in order, so bisection finds it."""
        part = self._log.segments[record.segment - 1].part
        end = self._broken_at.setdefault(record.segment, record.offset)
        found = next(self._ahead, None)  # a copy of many lines: the next one is the next one
        if found is None or found.seq != record.seq:
            self._ahead = forward(part, seek(part, record.seq - 1, end), record.segment, end)
            found = next((other for other in self._ahead if other.seq >= record.seq), None)
        return found if found is not None and found.seq == record.seq else None


def forward(part: Part, offset: int, segment: int = 1, end: int | None = None, step: int = BLOCK) -> Iterator[Record]:
    """The records and the damage of one file, from a line's beginning on, up to those that begin at ``end``."""
    while block := _whole_lines(part, offset, offset, step)[0]:
        for record in lines.records(block, offset, segment):
            if end is not None and record.offset >= end:
                return
            yield record
        offset += len(block)


def seek(part: Part, after: int, end: int | None = None) -> int:
    """The offset just behind the records up to ``after``. Damage in front of the next record is still ahead."""
    if after == 0:
        return 0
    low, high = 0, part.size if end is None else end
    while high - low > _WINDOW:
        middle = (low + high) // 2
        found = next((record for record in forward(part, _next_line(part, middle), 1, high, _PROBE) if record.seq), None)
        if found is None or found.seq > after:
            high = middle
        else:
            low = found.end
    for record in forward(part, low, 1, end, _WINDOW):
        if record.seq > after:
            break
        if record.seq:
            low = record.end
    return low


def last_seq(part: Part) -> int:
    """The highest seq near the end of a file; 0 when it holds no record."""
    return max((record.seq for record in ending(part)), default=0)


def ending(part: Part, size: int = _WINDOW) -> list[Record]:
    """The last lines of a file, about ``size`` bytes of them, or as many more as it takes to meet a record."""
    end = part.size
    while True:
        start = max(0, end - size)
        start = _next_line(part, start) if start else 0
        found = lines.records(read(part, start, end), start, 1)
        if start == 0 or any(record.seq for record in found):
            return found
        size *= 8


def _whole_lines(part: Part, offset: int, searched: int, step: int) -> tuple[bytes, int]:
    """Whole lines from ``offset`` on, about ``step`` bytes or one longer line, and how far was searched in vain for a line end.

    An unfinished line is left alone. Its end is looked for where the last search stopped, not from its beginning again.
    """
    while data := part.pread(step, searched):
        cut = data.rfind(b"\n") + 1
        if cut:
            return read(part, offset, searched) + data[:cut], searched
        searched += len(data)
        step = min(2 * step, 64 * BLOCK)
    return b"", searched


def _next_line(part: Part, offset: int) -> int:
    """Where the first line begins that begins behind ``offset``."""
    while data := part.pread(_PROBE, offset):
        cut = data.find(b"\n") + 1
        if cut:
            return offset + cut
        offset += len(data)
    return offset
