"""Lines of another store's log, put into a folder as they stand there: nothing is stamped, added or left out.

Who was killed while a line was being written has left the beginning of it. The same line comes again, and only its rest is written.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from hansard.errors import AppendFailed, LogForked
from hansard.store import files
from hansard.store.interface import Head, Record
from hansard.store.lines import raw
from hansard.store.lock import WriterLock
from hansard.store.order import Order, shown
from hansard.store.packing import unpack
from hansard.store.part import read
from hansard.store.reader import Log, Reader

BATCH = 4 * 1024 * 1024


def transfer(folder: Path, lines: Iterable[Record]) -> Head:
    """Append what is not there yet, in batches, each on the disk before the next one. Nobody else writes meanwhile."""
    lock = WriterLock(folder, told=False)  # who is killed here has left nothing open that somebody should close
    try:
        if not files.has_log(folder):
            os.close(files.open_file(folder, files.LOG, files.CREATE))
            files.sync_folder(folder)
        with Log(folder) as log:
            _write(folder, len(log.segments), _new(log, lines))
        with Log(folder) as log:
            return log.head()
    except OSError as problem:
        raise AppendFailed(f"cannot write session {folder.name!r}: {problem.strerror}", folder) from problem
    finally:
        lock.release()


def _new(log: Log, lines: Iterable[Record]) -> Iterator[bytes]:
    """The bytes to append: line by line, and of a torn one the rest."""
    head = log.head().seq
    known, torn, line_end = _ending(log, head)
    for damaged, line in _with_damage(lines):
        if line is not None and line.seq <= head:
            if line.line != _there(log, line.seq):
                raise _forked(log, line.seq)
            if line.seq == head and line_end:
                yield line_end
                line_end = b""
            continue
        for data in damaged if line is None else (*damaged, line.line):
            if known:
                if known.pop(0) != data:
                    raise _forked(log, head + 1)
            elif data.startswith(torn):
                yield line_end + data[len(torn) :] + b"\n"
                torn = line_end = b""
            else:
                raise _forked(log, head + 1)
        head = head if line is None else line.seq


def _with_damage(lines: Iterable[Record]) -> Iterator[tuple[list[bytes], Record | None]]:
    """Each record with the damaged lines in front of it, and those at the end."""
    damaged: list[bytes] = []
    for line in lines:
        if line.damage is None:
            yield damaged, line
            damaged = []
        else:
            damaged.append(raw(line))
    if damaged:
        yield damaged, None


def _ending(log: Log, head: int) -> tuple[list[bytes], bytes, bytes]:
    """What stands behind the last record: damaged lines, the beginning of one that was not finished, and the line end that is missing."""
    reader, order = Reader(log, head), Order(log, head)
    damage: list[bytes] = []
    while found := reader.next():
        damage += [raw(record) for record in order.take(found)]
    part = log.segments[-1].part
    rest = read(part, reader.offset, part.size)
    is_whole = any(record.seq for record in reader.rest())
    return damage, b"" if is_whole else rest, b"\n" if is_whole else b""


def _there(log: Log, seq: int) -> bytes | None:
    return next((record.line for record in shown(log, seq - 1) if record.seq == seq), None)


def _forked(log: Log, seq: int) -> LogForked:
    return LogForked(
        f"the log of {log.session_id!r} that is there has gone another way before record {seq}; nothing was changed", log.folder
    )


def _write(folder: Path, segment: int, pieces: Iterator[bytes]) -> None:
    fd = -1
    try:
        for data in _batches(pieces):
            if fd < 0:
                unpack(folder, segment)
                fd = files.open_file(folder, files.segment_name(segment), files.APPEND)
                files.tighten(fd)
            size = os.fstat(fd).st_size
            try:
                files.write_all(fd, data)
                os.fdatasync(fd)
            except BaseException:
                with suppress(OSError):
                    os.ftruncate(fd, size)
                raise
    finally:
        if fd >= 0:
            os.close(fd)


def _batches(pieces: Iterator[bytes]) -> Iterator[bytes]:
    batch: list[bytes] = []
    size = 0
    for piece in pieces:
        batch.append(piece)
        size += len(piece)
        if size >= BATCH:
            yield b"".join(batch)
            batch, size = [], 0
    if batch:
        yield b"".join(batch)
