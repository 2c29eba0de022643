"""Bringing the lines of another store's log into a folder, as they are: nothing is stamped, added or left out."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from hansard.errors import AppendFailed, LogForked
from hansard.store import files, lines
from hansard.store.bringing import batches, missing
from hansard.store.interface import Record
from hansard.store.lock import WriterLock
from hansard.store.order import shown
from hansard.store.packing import unpack
from hansard.store.reader import Log, Reader


def transfer(folder: Path, given: Iterable[Record]) -> None:
    """Hold the log for as long as it takes, and add what is missing. It does not look like a killed writer's if it is killed."""
    lock = WriterLock(folder, told=False)
    try:
        with closing(_missing(folder, given)) as wanted:
            _write(folder, wanted)
    except OSError as problem:
        raise AppendFailed(f"cannot write session {folder.name!r}: {problem.strerror}", folder) from problem
    finally:
        lock.release()


def _missing(folder: Path, given: Iterable[Record]) -> Generator[list[Record]]:
    if not files.has_log(folder):
        yield from batches(missing(folder.name, given, 0, lambda _: iter(())))
        return
    with Log(folder) as log:
        head = log.head().seq
        yield from batches(missing(folder.name, given, head, lambda seq: shown(log, seq)))


def _write(folder: Path, wanted: Iterator[list[Record]]) -> None:
    first = next(wanted, None)
    if first is None:
        _mended(folder, None)
        return
    with _opened(folder, lines.raw(first[0])) as fd:
        while first is not None:
            _add(fd, b"".join([lines.raw(record) + b"\n" for record in first]))
            first = next(wanted, None)


@contextmanager
def _opened(folder: Path, upcoming: bytes) -> Generator[int]:
    """The file to go on in; ``upcoming`` is the line that comes first."""
    if files.has_log(folder):
        number = _mended(folder, upcoming)
        fd = files.open_file(folder, files.segment_name(number), files.APPEND)
    else:
        fd = files.open_file(folder, files.LOG, files.CREATE)
        files.sync_folder(folder)
    try:
        yield fd
    finally:
        os.close(fd)


def _mended(folder: Path, upcoming: bytes | None) -> int:
    """The number of the last file. If its last line is the beginning of ``upcoming``, somebody was killed who brought it; it is cut off."""
    if not files.has_log(folder):
        return 1
    with Log(folder) as log:
        number = len(log.segments)
        reader = Reader(log, log.head().seq)
        while reader.next():
            pass
        rest = log.segments[-1].part.pread(len(upcoming or b"") + 1, reader.offset)
        is_record = any(record.damage is None for record in reader.rest())
    if rest and (is_record or upcoming is not None):
        unpack(folder, number)
        _cut(folder, number, None if is_record else reader.offset, (upcoming or b"").startswith(rest.rstrip(b"\0")))
    elif upcoming is not None:
        unpack(folder, number)
    return number


def _cut(folder: Path, number: int, at: int | None, is_ours: bool) -> None:
    """End the last line, or cut it off."""
    fd = files.open_file(folder, files.segment_name(number), files.APPEND)
    try:
        if at is None:
            files.write_all(fd, b"\n")
        elif is_ours:
            os.ftruncate(fd, at)
        else:
            raise LogForked(f"the last line of session {folder.name!r} is torn, and it is not the one that comes next", folder)
        os.fsync(fd)
    finally:
        os.close(fd)


def _add(fd: int, data: bytes) -> None:
    size = os.fstat(fd).st_size
    try:
        files.write_all(fd, data)
        os.fdatasync(fd)
    except BaseException:
        with suppress(OSError):
            os.ftruncate(fd, size)
        raise
