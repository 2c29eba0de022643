"""One writer per log: an flock that dies with its holder, and the holder's pid for whoever comes second."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Literal

from hansard.errors import LogLocked
from hansard.store.files import paths

_WAIT_SECONDS = 0.05
"""How long a writer waits for another one that may be about to let go."""
_WAIT_FOR_READERS_SECONDS = 5.0
"""How long a writer waits for `writer_state`, which takes the lock for a moment. On a busy machine the moment may be a long one."""


class WriterLock:
    """The right to write one log, held until `release`."""

    def __init__(self, folder: Path, announce: bool = True) -> None:
        """``told``: the file says who holds it. Who writes no event does not say so, and leaves there what a killed writer has left."""
        self._fd = _lock(folder)
        self._announce = announce
        if announce:
            self._write_pid(b"%d\n" % os.getpid())

    def release(self, done: bool = True) -> None:
        """Let the next writer in; not ``done``: as if this one were killed, so that somebody looks at what it had to leave open."""
        if self._announce and done:
            self._write_pid(b"")
        fcntl.flock(self._fd, fcntl.LOCK_UN)  # a process that is just being started has a copy of the descriptor until it runs
        os.close(self._fd)

    def _write_pid(self, text: bytes) -> None:
        """Say who holds the lock. On a full disk it holds all the same."""
        with suppress(OSError):
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, text, 0)


def writer_state(folder: Path) -> Literal["live", "gone"] | None:
    """Whether somebody is writing this log now, or is gone without having let go of it: killed, or the machine went down."""
    try:
        fd = paths.open_file(folder, paths.LOCK, paths.READ)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None if _holder(fd) is None else "gone"
    except BlockingIOError:
        return "live"
    finally:
        os.close(fd)


def is_held(folder: Path) -> bool:
    """Whether somebody is writing this log now."""
    return writer_state(folder) == "live"


def _lock(folder: Path) -> int:
    began = time.monotonic()
    while True:
        fd = paths.open_file(folder, paths.LOCK, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = _holder(fd)
            patience = _WAIT_FOR_READERS_SECONDS if _is_only_read(fd) else _WAIT_SECONDS
            os.close(fd)
            if time.monotonic() > began + patience:
                by = "another process" if pid is None else f"process {pid}"
                raise LogLocked(f"{folder.name!r} is being written by {by}", folder, pid) from None
            time.sleep(0.002)
            continue
        except OSError:
            os.close(fd)
            raise
        if _is_current(folder, fd):
            return fd
        os.close(fd)  # the session was deleted while we waited


def _is_only_read(fd: int) -> bool:
    """Whether no writer holds the lock: only `writer_state` shares it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_current(folder: Path, fd: int) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.stat(folder / paths.LOCK), os.fstat(fd))
    return False


def _holder(fd: int) -> int | None:
    text = os.pread(fd, 32, 0).strip()
    return int(text) if text.isdigit() else None
