"""One file of a log, opened for reading: as it is written, or compressed. Who reads need not know which."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from hansard.store.files import paths


class SegmentFile(Protocol):
    """Bytes at offsets. The offsets are those of the text, also where it is kept compressed."""

    problems: list[str]

    def pread(self, size: int, offset: int) -> bytes:
        """Bytes from an offset on; fewer where the file ends."""
        ...

    @property
    def size(self) -> int:
        """How long the text is now."""
        ...

    def stat(self) -> os.stat_result:
        """What the system knows of the file."""
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...


class PlainSegment:
    """A file as it is written."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.problems: list[str] = []

    def pread(self, size: int, offset: int) -> bytes:
        """Bytes from an offset on; fewer where the file ends."""
        return os.pread(self._fd, size, offset)

    @property
    def size(self) -> int:
        """How long it is now."""
        return os.fstat(self._fd).st_size

    def stat(self) -> os.stat_result:
        """What the system knows of the file."""
        return os.fstat(self._fd)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._fd)


def open_segment(folder: Path, number: int) -> SegmentFile:
    """The nth file of a log. Where it is there in both forms the plain one counts: the other is about to go."""
    name = paths.segment_name(number)
    try:
        return PlainSegment(paths.open_file(folder, name, paths.READ))
    except FileNotFoundError:
        pass
    try:
        fd = paths.open_file(folder, paths.compressed_name(number), paths.READ)
    except FileNotFoundError:  # perhaps it was unpacked just now
        return PlainSegment(paths.open_file(folder, name, paths.READ))
    from hansard.store.files.compressed import CompressedSegment

    return CompressedSegment(fd)


def open_name(file: SegmentFile, number: int) -> str:
    """The name of the file, in the form it is open in."""
    return paths.segment_name(number) if isinstance(file, PlainSegment) else paths.compressed_name(number)


def read(file: SegmentFile, start: int, end: int) -> bytes:
    """The bytes from start to end; fewer if the file ends before."""
    parts: list[bytes] = []
    while start < end and (data := file.pread(end - start, start)):
        parts.append(data)
        start += len(data)
    return b"".join(parts)
