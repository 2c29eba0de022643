"""A compressed file of a log: zstd frames of half a megabyte and a table of them, so that any place costs unpacking one frame.

``zstdcat`` reads it. The table stands at the end, in a frame that zstd skips: the seekable format of zstd, version 0.1.0
(contrib/seekable_format/zstd_seekable_compression_format.md). A frame that is damaged reads as NUL, so everything else keeps its place.
"""

from __future__ import annotations

import io
import os
import struct
import sys
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any, BinaryIO, NamedTuple, cast

from hansard.errors import UsageError
from hansard.store.files import paths

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

FRAME_BYTES = 512 * 1024
"""What a frame holds; the last one may hold less."""
LEVEL = 9
_OPTIONS: dict[int, int] = {zstd.CompressionParameter.compression_level: LEVEL, zstd.CompressionParameter.checksum_flag: 1}
FREE_BYTES = 64 * 1024 * 1024
MAX_RATIO = 1000
"""So much is unpacked of any file, and beyond that so many times its own size."""
_MAX_CACHED_FRAMES = 4  # bisection and reading on come back to the same few frames
_FRAME_MAGIC = b"\x28\xb5\x2f\xfd"  # RFC 8878, section 3.1.1
_SKIPPED = struct.Struct("<II")  # how a frame begins that zstd skips, and its length
_SKIPPABLE = 0x184D2A5E
_ENTRY = struct.Struct("<II")
_FOOTER = struct.Struct("<IBI")
_SEEKABLE = 0x8F92EAB1


class ZstdFrame(NamedTuple):
    """Where a frame stands in the file, and how much it holds."""

    offset: int
    length: int
    size: int


def write_compressed(blocks: Iterable[bytes], fd: int) -> None:
    """Write blocks of `SIZE` as frames, and the table."""
    table = bytearray()
    for block in blocks:
        frame = zstd.compress(block, options=_OPTIONS)
        paths.write_all(fd, frame)
        table += _ENTRY.pack(len(frame), len(block))
    table += _FOOTER.pack(len(table) // _ENTRY.size, 0, _SEEKABLE)
    paths.write_all(fd, _SKIPPED.pack(_SKIPPABLE, len(table)) + table)


class CompressedSegment:
    """A compressed file, read as if it were not."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.problems: list[str] = []
        """What was found damaged so far."""
        self._recent: OrderedDict[int, bytes] = OrderedDict()
        frames = self._by_table()
        if frames is None:
            self.problems.append("the table of frames of the compressed log is damaged; it was read without")
            frames = list(self._by_search())
        self._frames = frames
        self._starts = [0, *accumulate(frame.size for frame in frames)]

    def pread(self, size: int, offset: int) -> bytes:
        """Bytes of the log from an offset on; fewer where it ends."""
        parts: list[bytes] = []
        end = min(offset + size, self.size)
        while offset < end:
            index = bisect_right(self._starts, offset) - 1
            start = self._starts[index]
            piece = self._unpacked(index)[offset - start : end - start]
            parts.append(piece)
            offset += len(piece)
        return b"".join(parts)

    @property
    def size(self) -> int:
        """How long the log is when it is unpacked."""
        return self._starts[-1]

    def stat(self) -> os.stat_result:
        """What the system knows of the file."""
        return os.fstat(self._fd)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._fd)

    def _unpacked(self, index: int) -> bytes:
        if index in self._recent:
            self._recent.move_to_end(index)
            return self._recent[index]
        frame = self._frames[index]
        text = _decompress(paths.read(self._fd, frame.offset, frame.offset + frame.length), frame.size)
        if text is None:
            self.problems.append(f"frame {index + 1} of the compressed log is damaged: {frame.length} bytes at {frame.offset} of the file")
            text = bytes(frame.size)
        self._recent[index] = text
        if len(self._recent) > _MAX_CACHED_FRAMES:
            self._recent.popitem(last=False)
        return text

    def _by_table(self) -> list[ZstdFrame] | None:
        """The frames as the table has them; None if anything in it cannot be: then it is not believed at all."""
        end = os.fstat(self._fd).st_size
        footer = paths.read(self._fd, max(0, end - _FOOTER.size), end)
        if len(footer) < _FOOTER.size:
            return None
        number, descriptor, magic = _FOOTER.unpack(footer)
        length = number * _ENTRY.size + _FOOTER.size
        start = end - length - _SKIPPED.size
        if magic != _SEEKABLE or descriptor or start < 0:
            return None
        table = paths.read(self._fd, start, end)
        if table[: _SKIPPED.size] != _SKIPPED.pack(_SKIPPABLE, length):
            return None
        frames: list[ZstdFrame] = []
        offset = 0
        for length, size in _ENTRY.iter_unpack(table[_SKIPPED.size : -_FOOTER.size]):
            frames.append(ZstdFrame(offset, length, size))
            offset += length
        return frames if offset == start and self._are_plausible(frames) else None

    def _are_plausible(self, frames: list[ZstdFrame]) -> bool:
        """Whether the sizes are those that we write: the last frame says its own."""
        if not frames:
            return True
        *others, last = frames
        try:
            says = zstd.get_frame_info(paths.read(self._fd, last.offset, last.offset + min(last.length, 32))).decompressed_size
        except zstd.ZstdError:
            says = last.size  # it is the frame that is damaged
        return all(frame.size == FRAME_BYTES for frame in others) and 0 < last.size <= FRAME_BYTES and says == last.size

    def _by_search(self) -> Iterator[ZstdFrame]:
        """The frames as they begin. What lies between two of them was one; how much it held is a guess."""
        data = paths.read(self._fd, 0, os.fstat(self._fd).st_size)
        at = done = 0
        while (at := data.find(_FRAME_MAGIC, at)) >= 0:
            found = _read_frame(data, at)
            if found is None:
                at += 1
                continue
            if done < at:
                yield ZstdFrame(done, at - done, FRAME_BYTES)
            yield found
            at = done = at + found.length
        if data[done : done + 4] != _SKIPPED.pack(_SKIPPABLE, 0)[:4] and done < len(data):
            yield ZstdFrame(done, len(data) - done, FRAME_BYTES)


def decompress_stream(file: BinaryIO) -> BinaryIO:
    """A file that somebody named, unpacked while it is read if it is compressed. It may come from anywhere: see `Unpacking`."""
    peek = getattr(file, "peek", None)  # a pipe cannot go back
    return cast("BinaryIO", io.BufferedReader(DecompressingReader(file))) if peek is not None and peek(4)[:4] == _FRAME_MAGIC else file


class DecompressingReader(io.RawIOBase):
    """What a compressed file holds, as long as that is in proportion to its size: no log is made of one byte a thousand times over."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = CountingReader(file)
        self._text = zstd.ZstdFile(cast("BinaryIO", self._file))
        self._given = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Some more of the text."""
        data = self._text.read(len(buffer))
        buffer[: len(data)] = data
        self._given += len(data)
        if self._given > FREE_BYTES and self._given > MAX_RATIO * self._file.taken:
            raise UsageError(f"this file unpacks to more than {MAX_RATIO:,} times its size; that is no log")
        return len(data)

    def close(self) -> None:
        """Let go of it."""
        self._text.close()
        super().close()


class CountingReader:
    """A file, and how much of it was read: a pipe does not know where it is."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.taken = 0

    def read(self, size: int = -1) -> bytes:
        """Some more of it."""
        data = self._file.read(size)
        self.taken += len(data)
        return data


def _decompress(data: bytes, size: int) -> bytes | None:
    unpacking = zstd.ZstdDecompressor()
    try:
        text = unpacking.decompress(data, size + 1)
    except zstd.ZstdError:
        return None
    return text if unpacking.eof and len(text) == size and not unpacking.unused_data else None


def _read_frame(data: bytes, at: int) -> ZstdFrame | None:
    unpacking = zstd.ZstdDecompressor()
    rest = data[at : at + 2 * FRAME_BYTES]  # a frame of noise is a little longer than the noise
    try:
        text = unpacking.decompress(rest, FRAME_BYTES + 1)
    except zstd.ZstdError:
        return None
    return ZstdFrame(at, len(rest) - len(unpacking.unused_data), len(text)) if unpacking.eof and len(text) <= FRAME_BYTES else None
