"""Bringing the lines of another store's log into a folder, as they are: nothing is stamped, added or left out."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from hansard.errors import AppendFailed, LogForked
from hansard.store import lines
from hansard.store.files import paths
from hansard.store.files.compression import decompress_segment
from hansard.store.files.lock import WriterLock
from hansard.store.files.reader import LogFiles, Reader
from hansard.store.ingest import batch_lines, missing_lines
from hansard.store.order import read_records
from hansard.store.records import Record


def ingest(folder: Path, given: Iterable[Record]) -> None:
    """Hold the log for as long as it takes, and add what is missing. It does not look like a killed writer's if it is killed."""
    lock = WriterLock(folder, announce=False)
    try:
        with closing(_missing_batches(folder, given)) as wanted:
            _write(folder, wanted)
    except OSError as problem:
        raise AppendFailed(f"cannot write session {folder.name!r}: {problem.strerror}", folder) from problem
    finally:
        lock.release()


def _missing_batches(folder: Path, given: Iterable[Record]) -> Generator[list[Record]]:
    if not paths.has_log(folder):
        yield from batch_lines(missing_lines(folder.name, given, 0, lambda _: iter(())))
        return
    with LogFiles(folder) as log:
        head = log.head().seq
        yield from batch_lines(missing_lines(folder.name, given, head, lambda seq: read_records(log, seq)))


def _write(folder: Path, wanted: Iterator[list[Record]]) -> None:
    first = next(wanted, None)
    if first is None:
        _repair_end(folder, None)
        return
    with _open_for_append(folder, lines.raw_line(first[0])) as fd:
        while first is not None:
            _add(fd, b"".join([lines.raw_line(record) + b"\n" for record in first]))
            first = next(wanted, None)


@contextmanager
def _open_for_append(folder: Path, upcoming: bytes) -> Generator[int]:
    """The file to go on in; ``upcoming`` is the line that comes first."""
    if paths.has_log(folder):
        number = _repair_end(folder, upcoming)
        fd = paths.open_file(folder, paths.segment_name(number), paths.APPEND)
    else:
        fd = paths.open_file(folder, paths.LOG, paths.CREATE)
        paths.sync_folder(folder)
    try:
        yield fd
    finally:
        os.close(fd)


def _repair_end(folder: Path, upcoming: bytes | None) -> int:
    """The number of the last file. If its last line is the beginning of ``upcoming``, somebody was killed who brought it; it is cut off."""
    if not paths.has_log(folder):
        return 1
    with LogFiles(folder) as log:
        number = len(log.segments)
        reader = Reader(log, log.head().seq)
        while reader.next():
            pass
        rest = log.segments[-1].file.pread(len(upcoming or b"") + 1, reader.offset)
        is_record = any(record.damage is None for record in reader.unterminated())
    if rest and (is_record or upcoming is not None):
        decompress_segment(folder, number)
        _end_last_line(folder, number, None if is_record else reader.offset, (upcoming or b"").startswith(rest.rstrip(b"\0")))
    elif upcoming is not None:
        decompress_segment(folder, number)
    return number


def _end_last_line(folder: Path, number: int, at: int | None, is_ours: bool) -> None:
    """End the last line, or cut it off."""
    fd = paths.open_file(folder, paths.segment_name(number), paths.APPEND)
    try:
        if at is None:
            paths.write_all(fd, b"\n")
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
        paths.write_all(fd, data)
        os.fdatasync(fd)
    except BaseException:
        with suppress(OSError):
            os.ftruncate(fd, size)
        raise
