"""Folders and files of a store, opened so that nothing but a regular file of ours is ever read or written.

A log is a folder with ``events.jsonl``. After a failed sync it goes on in ``events.2.jsonl`` and so on; see docs/decisions. Each may be
compressed, and then has ``.zst`` behind its name.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from hansard.errors import LogRefused, StoreError

LOG = "events.jsonl"
LOCK = "lock"
BLOBS = "blobs"

_SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC  # non-blocking: opening a FIFO must not wait for its other end
READ = os.O_RDONLY
APPEND = os.O_RDWR | os.O_APPEND
CREATE = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL


def segment_name(number: int) -> str:
    """The file of the nth part of a log; nearly every log has only the first."""
    return LOG if number == 1 else f"events.{number}.jsonl"


def compressed_name(number: int) -> str:
    """The same file, compressed."""
    return f"{segment_name(number)}.zst"


def has_segment(folder: Path, number: int) -> bool:
    """Whether there is an nth part of a log, in whichever form."""
    return os.path.lexists(folder / segment_name(number)) or os.path.lexists(folder / compressed_name(number))


def has_log(folder: Path) -> bool:
    """Whether a folder holds a log, or something that stands in its place."""
    return has_segment(folder, 1)


def make_folder(path: Path) -> None:
    """A folder that only we can enter, and its entry in the folder above made durable."""
    try:
        path.mkdir(0o700)
    except FileExistsError:
        return
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    with open_folder(path) as fd:
        os.fsync(fd)


@contextmanager
def open_folder(path: Path) -> Generator[int]:
    """A folder as a descriptor; `LogRefused` when the path is something else, or a link."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _SAFE)
    except OSError as problem:
        if problem.errno in (errno.ELOOP, errno.ENOTDIR):
            raise LogRefused(f"{path} is not a folder of a store", path) from problem
        raise
    try:
        yield fd
    finally:
        os.close(fd)


def open_file(folder: Path, name: str, flags: int) -> int:
    """A regular file in a folder; `LogRefused` for a link, FIFO, socket, device or folder, without ever waiting for one."""
    try:
        with open_folder(folder) as folder_fd:
            fd = os.open(name, flags | _SAFE, 0o600, dir_fd=folder_fd)
    except (FileNotFoundError, FileExistsError):
        raise
    except OSError as problem:
        path = folder / name
        if problem.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.EMLINK):
            raise LogRefused(f"{path} is not a regular file", path) from problem
        raise StoreError(f"cannot open {path}: {problem.strerror}", path) from problem
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise LogRefused(f"{folder / name} is not a regular file", folder / name)
    return fd


def restrict_permissions(fd: int) -> None:
    """Close a file to others that was opened to them by somebody else's hand."""
    if os.fstat(fd).st_mode & 0o077:
        with suppress(PermissionError):
            os.fchmod(fd, 0o600)


def read(fd: int, start: int, end: int) -> bytes:
    """The bytes from start to end; fewer if the file ends before."""
    parts: list[bytes] = []
    while start < end and (data := os.pread(fd, end - start, start)):
        parts.append(data)
        start += len(data)
    return b"".join(parts)


def write_all(fd: int, data: bytes) -> None:
    """One write, and further ones only where the kernel took a part; the one after a short write names the reason."""
    written = os.write(fd, data)
    while written < len(data):
        count = os.write(fd, memoryview(data)[written:])
        if count == 0:
            raise OSError(errno.EIO, "the file takes no more bytes")
        written += count


def put_note(folder: Path, name: str, data: bytes) -> None:
    """Keep a note beside a log. It is not made durable: what it says can be found out again. Several processes may do so at once."""
    unfinished = folder / f"{name}.{os.getpid()}.unfinished"
    fd = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with open(fd, "wb") as file:
        file.write(data)
    unfinished.replace(folder / name)


def get_note(folder: Path, name: str) -> bytes | None:
    """The note of that name; None if there is none that can be read."""
    try:
        return (folder / name).read_bytes()
    except OSError:
        return None
