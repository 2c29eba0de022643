"""From plain to compressed and back, so that a log is whole at every moment, whenever the power goes or the process is killed.

A file gets its name when it is on the disk and its bytes were compared; only then the other form goes. While both are there they are
equal, and the plain one counts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from hansard.errors import LogRefused, StoreError, UnknownSession
from hansard.store.files import paths
from hansard.store.files.compressed import FRAME_BYTES, CompressedSegment, write_compressed
from hansard.store.files.lock import WriterLock
from hansard.store.files.segment import PlainSegment, SegmentFile, open_segment, read


class CompressionResult(Struct, frozen=True):
    """What became of a log: its length as text, what it takes on the disk now, and whether anything was done."""

    bytes: int
    stored: int
    changed: bool


def compress(folder: Path) -> CompressionResult:
    """Compress every file of a log that nobody is writing; `LogLocked` if somebody is."""
    return _change(folder, _compress_segment)


def expand(folder: Path) -> CompressionResult:
    """The same backwards."""
    return _change(folder, decompress_segment)


def _change(folder: Path, change: Callable[[Path, int], bool]) -> CompressionResult:
    if not paths.has_log(folder):
        raise UnknownSession(folder.name)
    lock = WriterLock(folder, announce=False)
    try:
        numbers = list(_numbers(folder))
        changed = [change(folder, number) for number in numbers]
        sizes = [_sizes(folder, number) for number in numbers]
    except OSError as problem:
        raise StoreError(f"cannot change session {folder.name!r}: {problem.strerror}", folder) from problem
    finally:
        lock.release()
    return CompressionResult(sum(text for text, _ in sizes), sum(stored for _, stored in sizes), any(changed))


def _numbers(folder: Path) -> Iterator[int]:
    number = 1
    while paths.has_segment(folder, number):
        yield number
        number += 1


def _sizes(folder: Path, number: int) -> tuple[int, int]:
    with closing(open_segment(folder, number)) as file:
        return file.size, file.stat().st_size


def _compress_segment(folder: Path, number: int) -> bool:
    name = paths.segment_name(number)
    if not os.path.lexists(folder / name):
        return False
    with closing(PlainSegment(paths.open_file(folder, name, paths.READ))) as source:
        _write(folder, source, paths.compressed_name(number), write_compressed, CompressedSegment)
    _remove(folder, name)
    return True


def decompress_segment(folder: Path, number: int) -> bool:
    """Make the nth file of a log plain, for whoever holds the lock; true if it was not."""
    name, plain = paths.compressed_name(number), paths.segment_name(number)
    if not os.path.lexists(folder / name):
        return False
    if not os.path.lexists(folder / plain):  # else somebody was stopped between the two
        with closing(CompressedSegment(paths.open_file(folder, name, paths.READ))) as source:
            _write(folder, source, plain, _write_blocks, PlainSegment)
    _remove(folder, name)
    return True


def _write(
    folder: Path, source: SegmentFile, name: str, write: Callable[[Iterator[bytes], int], None], form: Callable[[int], SegmentFile]
) -> None:
    """The other form of a file: it gets its name when it is on the disk, and reads as the same bytes."""
    unfinished = folder / f"{name}.unfinished"
    unfinished.unlink(missing_ok=True)
    try:
        made = form(_write_file(unfinished, source, write))
        with closing(made):
            same = _digest(_blocks(made)) == _digest(_blocks(source))
        if not same or source.problems:
            raise LogRefused(f"a log in {folder} is damaged, or changed while it was read; it is left as it is", folder)
        os.rename(unfinished, folder / name)
        paths.sync_folder(folder)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise


def _write_file(path: Path, source: SegmentFile, write: Callable[[Iterator[bytes], int], None]) -> int:
    """A new file on the disk, with the time of the old one: when a session was last written is not changed by its form."""
    fd = paths.open_file(path.parent, path.name, paths.CREATE)
    try:
        write(_blocks(source), fd)
        status = source.stat()
        os.utime(fd, ns=(status.st_atime_ns, status.st_mtime_ns))
        os.fsync(fd)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _write_blocks(blocks: Iterator[bytes], fd: int) -> None:
    for block in blocks:
        paths.write_all(fd, block)


def _remove(folder: Path, name: str) -> None:
    (folder / name).unlink()
    paths.sync_folder(folder)


def _blocks(file: SegmentFile) -> Iterator[bytes]:
    return (read(file, offset, offset + FRAME_BYTES) for offset in range(0, file.size, FRAME_BYTES))


def _digest(blocks: Iterator[bytes]) -> bytes:
    found = sha256()
    for block in blocks:
        found.update(block)
    return found.digest()
