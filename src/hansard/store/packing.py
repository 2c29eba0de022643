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
from hansard.store import files
from hansard.store.lock import WriterLock
from hansard.store.packed import SIZE, Packed, pack
from hansard.store.part import Part, Plain, open_part, read


class Packing(Struct, frozen=True):
    """What became of a log: its length as text, what it takes on the disk now, and whether anything was done."""

    bytes: int
    stored: int
    changed: bool


def compress(folder: Path) -> Packing:
    """Compress every file of a log that nobody is writing; `LogLocked` if somebody is."""
    return _change(folder, _pack)


def expand(folder: Path) -> Packing:
    """The same backwards."""
    return _change(folder, unpack)


def _change(folder: Path, change: Callable[[Path, int], bool]) -> Packing:
    if not files.has_log(folder):
        raise UnknownSession(folder.name)
    lock = WriterLock(folder, told=False)
    try:
        numbers = list(_numbers(folder))
        changed = [change(folder, number) for number in numbers]
        sizes = [_sizes(folder, number) for number in numbers]
    except OSError as problem:
        raise StoreError(f"cannot change session {folder.name!r}: {problem.strerror}", folder) from problem
    finally:
        lock.release()
    return Packing(sum(text for text, _ in sizes), sum(stored for _, stored in sizes), any(changed))


def _numbers(folder: Path) -> Iterator[int]:
    number = 1
    while files.has_part(folder, number):
        yield number
        number += 1


def _sizes(folder: Path, number: int) -> tuple[int, int]:
    with closing(open_part(folder, number)) as part:
        return part.size, part.stat().st_size


def _pack(folder: Path, number: int) -> bool:
    name = files.segment_name(number)
    if not os.path.lexists(folder / name):
        return False
    with closing(Plain(files.open_file(folder, name, files.READ))) as source:
        _write(folder, source, files.packed_name(number), pack, Packed)
    _remove(folder, name)
    return True


def unpack(folder: Path, number: int) -> bool:
    """Make the nth file of a log plain, for whoever holds the lock; true if it was not."""
    name, plain = files.packed_name(number), files.segment_name(number)
    if not os.path.lexists(folder / name):
        return False
    if not os.path.lexists(folder / plain):  # else somebody was stopped between the two
        with closing(Packed(files.open_file(folder, name, files.READ))) as source:
            _write(folder, source, plain, _write_blocks, Plain)
    _remove(folder, name)
    return True


def _write(folder: Path, source: Part, name: str, write: Callable[[Iterator[bytes], int], None], form: Callable[[int], Part]) -> None:
    """The other form of a file: it gets its name when it is on the disk, and reads as the same bytes."""
    unfinished = folder / f"{name}.unfinished"
    unfinished.unlink(missing_ok=True)
    try:
        made = form(_written(unfinished, source, write))
        with closing(made):
            same = _digest(_blocks(made)) == _digest(_blocks(source))
        if not same or source.problems:
            raise LogRefused(f"a log in {folder} is damaged, or changed while it was read; it is left as it is", folder)
        os.rename(unfinished, folder / name)
        files.sync_folder(folder)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise


def _written(path: Path, source: Part, write: Callable[[Iterator[bytes], int], None]) -> int:
    """A new file on the disk, with the time of the old one: when a session was last written is not changed by its form."""
    fd = files.open_file(path.parent, path.name, files.CREATE)
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
        files.write_all(fd, block)


def _remove(folder: Path, name: str) -> None:
    (folder / name).unlink()
    files.sync_folder(folder)


def _blocks(part: Part) -> Iterator[bytes]:
    return (read(part, offset, offset + SIZE) for offset in range(0, part.size, SIZE))


def _digest(blocks: Iterator[bytes]) -> bytes:
    found = sha256()
    for block in blocks:
        found.update(block)
    return found.digest()
