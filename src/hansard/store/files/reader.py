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
from hansard.store.files.segment import SegmentFile, open_name, open_segment, read
from hansard.store.records import Head, Record, resolve_cursor

BLOCK_BYTES = 128 * 1024
_WINDOW_BYTES = 16 * 1024  # where bisection stops and reading on is cheaper
_PROBE_BYTES = 2 * 1024


class Segment(NamedTuple):
    """A file of a log, and the seq from which on it is the one that counts."""

    number: int
    file: SegmentFile
    first: int


class LogFiles:
    """A log, opened for reading: its files, in order. A later file overrules the ones before from its first record on."""

    def __init__(self, folder: Path) -> None:
        self.session_id = folder.name
        self.folder = folder
        self.segments: list[Segment] = []
        try:
            self.segments.append(Segment(1, open_segment(folder, 1), 1))
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
            self.segments.pop().file.close()

    def open_next(self) -> bool:
        """Open the file after the last one, if it has appeared by now."""
        number = len(self.segments) + 1
        try:
            file = open_segment(self.folder, number)
        except FileNotFoundError:
            return False
        first = next((record.seq for record in read_forward(file, 0, number) if record.seq), None)
        if first is None:
            file.close()
            return False
        self.segments.append(Segment(number, file, first))
        return True

    def switch_form(self, index: int) -> bool:
        """Go on in the other form of a file, if it was compressed or unpacked meanwhile: the bytes and their offsets are the same."""
        number, file, first = self.segments[index]
        try:
            other = open_segment(self.folder, number)
        except (FileNotFoundError, LogRefused):
            return False
        known = min(BLOCK_BYTES, file.size)
        if open_name(other, number) == open_name(file, number) or other.size < file.size or other.pread(known, 0) != file.pread(known, 0):
            other.close()
            return False
        file.close()
        self.segments[index] = Segment(number, other, first)
        return True

    def head(self) -> Head:
        """How far it has got."""
        return Head(self.session_id, self.log_id(), last_seq(self.segments[-1].file), self.size)

    @property
    def size(self) -> int:
        """How many bytes of text its files hold."""
        return sum(segment.file.size for segment in self.segments)

    def log_id(self) -> str:
        """The log's own id, from its first event; empty when that cannot be read."""
        first = self.first_event()
        return "" if first is None else first.payload.log_id or ""

    def first_event(self) -> SessionLifecycle | None:
        """The event that created the log, if it is still there."""
        start = islice(read_forward(self.segments[0].file, 0, step=_PROBE_BYTES), 3)  # before it there may be a torn attempt to write it
        first = next((record for record in start if record.seq == 1), None)
        return None if first is None else lines.decode_header(first)

    def beginning(self) -> bytes:
        """The first few bytes."""
        return self.segments[0].file.pread(16, 0)

    def seq_of(self, cursor: object) -> int:
        """The seq of a cursor that belongs to this log; `UnknownCursor` for any other."""
        return resolve_cursor(self.head(), cursor)


class Reader:
    """A place in a log, and the way forward from it. The order is that of the file; damage and duplicates are included."""

    def __init__(self, log: LogFiles, after: int = 0) -> None:
        self._log = log
        self._index = max(index for index, segment in enumerate(log.segments) if index == 0 or segment.first <= after + 1)
        self._highest = after
        self._move(seek(self._segment.file, after))

    @property
    def _segment(self) -> Segment:
        return self._log.segments[self._index]

    def next(self) -> list[Record]:
        """The records and the damage of the next block; empty when there is no further whole line."""
        while True:
            block, self._searched = _whole_lines(self._segment.file, self.offset, self._searched, BLOCK_BYTES)
            if block:
                found = lines.parse_records(block, self.offset, self._segment.number)
                self._move(self.offset + len(block))
                if kept := self._without_overruled(found):
                    self._highest = max(self._highest, max(record.seq for record in kept))
                    return kept
            elif self._index + 1 < len(self._log.segments):
                self._index += 1
                self._move(seek(self._segment.file, self._highest))
            else:
                return []

    def peek(self, step: int) -> bytes:
        """The next whole lines, about ``step`` bytes of them, which are still to be read; none if a later file may overrule them."""
        if self._index + 1 < len(self._log.segments):
            return b""
        block, self._searched = _whole_lines(self._segment.file, self.offset, self._searched, step)
        return block

    def skip(self, block: bytes, highest: int) -> None:
        """These lines, which were `ahead`, are read; ``highest`` is the last seq of them."""
        self._move(self.offset + len(block))
        self._highest = highest

    def unterminated(self) -> list[Record]:
        """What stands after the last line end: at most one record, or a torn one."""
        data = read(self._segment.file, self.offset, self._segment.file.size)
        return lines.parse_records(data, self.offset, self._segment.number)

    @property
    def is_at_end(self) -> bool:
        """Whether nothing stands after the last line end."""
        return self.offset >= self._segment.file.size

    def check(self) -> bool:
        """Raise when the file was cut, replaced or removed since it was opened. True if it goes on in its other form."""
        file = self._segment.file
        path = self._log.folder / open_name(file, self._segment.number)
        try:
            there = os.stat(path, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            if not self._log.switch_form(self._index):
                raise LogDeleted(f"{path} was removed", path) from None
            return True
        if not os.path.samestat(file.stat(), there):
            raise LogReset(f"another file took the place of {path}; read it again from the start", path)
        if file.size < self.offset:
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
                self._move(self._segment.file.size)
                return found[:index]
        return found


class RepeatFinder:
    """Finds what was there before, when a record turns up whose turn is over."""

    def __init__(self, log: LogFiles) -> None:
        self._log = log
        self._broken_at: dict[int, int] = {}
        self._ahead: Iterator[Record] = iter(())

    def earlier(self, record: Record) -> Record | None:
        """The record of the same seq further up. What is in front of the first break is in order, so bisection finds it."""
        file = self._log.segments[record.segment - 1].file
        end = self._broken_at.setdefault(record.segment, record.offset)
        found = next(self._ahead, None)  # a copy of many lines: the next one is the next one
        if found is None or found.seq != record.seq:
            self._ahead = read_forward(file, seek(file, record.seq - 1, end), record.segment, end)
            found = next((other for other in self._ahead if other.seq >= record.seq), None)
        return found if found is not None and found.seq == record.seq else None


def read_forward(file: SegmentFile, offset: int, segment: int = 1, end: int | None = None, step: int = BLOCK_BYTES) -> Iterator[Record]:
    """The records and the damage of one file, from a line's beginning on, up to those that begin at ``end``."""
    while block := _whole_lines(file, offset, offset, step)[0]:
        for record in lines.parse_records(block, offset, segment):
            if end is not None and record.offset >= end:
                return
            yield record
        offset += len(block)


def seek(file: SegmentFile, after: int, end: int | None = None) -> int:
    """The offset just behind the records up to ``after``. Damage in front of the next record is still ahead."""
    if after == 0:
        return 0
    low, high = 0, file.size if end is None else end
    while high - low > _WINDOW_BYTES:
        middle = (low + high) // 2
        found = next((record for record in read_forward(file, _next_line(file, middle), 1, high, _PROBE_BYTES) if record.seq), None)
        if found is None or found.seq > after:
            high = middle
        else:
            low = found.end
    for record in read_forward(file, low, 1, end, _WINDOW_BYTES):
        if record.seq > after:
            break
        if record.seq:
            low = record.end
    return low


def last_seq(file: SegmentFile) -> int:
    """The highest seq near the end of a file; 0 when it holds no record."""
    return max((record.seq for record in read_last(file)), default=0)


def read_last(file: SegmentFile, size: int = _WINDOW_BYTES) -> list[Record]:
    """The last lines of a file, about ``size`` bytes of them, or as many more as it takes to meet a record."""
    end = file.size
    while True:
        start = max(0, end - size)
        start = _next_line(file, start) if start else 0
        found = lines.parse_records(read(file, start, end), start, 1)
        if start == 0 or any(record.seq for record in found):
            return found
        size *= 8


def _whole_lines(file: SegmentFile, offset: int, searched: int, step: int) -> tuple[bytes, int]:
    """Whole lines from ``offset`` on, about ``step`` bytes or one longer line, and how far was searched in vain for a line end.

    An unfinished line is left alone. Its end is looked for where the last search stopped, not from its beginning again.
    """
    while data := file.pread(step, searched):
        cut = data.rfind(b"\n") + 1
        if cut:
            return read(file, offset, searched) + data[:cut], searched
        searched += len(data)
        step = min(2 * step, 64 * BLOCK_BYTES)
    return b"", searched


def _next_line(file: SegmentFile, offset: int) -> int:
    """Where the first line begins that begins behind ``offset``."""
    while data := file.pread(_PROBE_BYTES, offset):
        cut = data.find(b"\n") + 1
        if cut:
            return offset + cut
        offset += len(data)
    return offset
