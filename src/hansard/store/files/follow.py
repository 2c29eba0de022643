"""Follows a log: replay first, then new records, both read by the same reader. A follower is a position and a change notifier.

Changes are noticed with inotify where it exists, and by polling elsewhere.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import struct
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Protocol, Self
from weakref import WeakKeyDictionary

from hansard.store.files.reader import LogFiles, Reader
from hansard.store.order import RecordOrder
from hansard.store.records import Record

POLL_SECONDS = 0.025

# <sys/inotify.h>
_MODIFY, _MOVED, _CREATE, _DELETE, _SELF = 0x2, 0xC0, 0x100, 0x200, 0xC00
_ONLY_FOLDERS, _NO_LINKS = 0x0100_0000, 0x0200_0000
_MASK = _MODIFY | _MOVED | _CREATE | _DELETE | _SELF | _ONLY_FOLDERS | _NO_LINKS
_HEADER = struct.Struct("iIII")


class ChangeNotifier(Protocol):
    """Rings when a folder may have changed, until the `with` block ends.

    It is a class, not a generator: an abandoned follower is collected on any thread, and only the event loop may run its `__exit__`.
    """

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    async def wait(self) -> None:
        """Return at the next change, or at once if there was one since the last call."""
        ...


def watch(folder: Path) -> ChangeNotifier:
    """A notifier for a folder. It misses nothing that changes from here on."""
    inotify = _shared_inotify()
    wd = inotify.add(folder) if inotify else None
    if inotify is None or wd is None:
        return _PollingNotifier()
    return _InotifyNotifier(inotify, wd)


class _PollingNotifier:
    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    async def wait(self) -> None:
        await asyncio.sleep(POLL_SECONDS)


class _InotifyNotifier:
    def __init__(self, inotify: _Inotify, wd: int) -> None:
        self.rung = asyncio.Event()
        self._inotify = inotify
        self._wd = wd
        inotify.bells.setdefault(wd, set()).add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        bells = self._inotify.bells[self._wd]
        bells.discard(self)
        if not bells:
            self._inotify.remove(self._wd)

    async def wait(self) -> None:
        await self.rung.wait()
        self.rung.clear()


class _Inotify:
    """One inotify instance for all watches of an event loop: a user may only have 128 of them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = int(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        self.bells: dict[int, set[_InotifyNotifier]] = {}
        loop.add_reader(self._fd, self._ring)

    def add(self, folder: Path) -> int | None:
        """The number of a watch, or None when the system has no more."""
        wd = int(self._libc.inotify_add_watch(self._fd, os.fsencode(folder), _MASK))
        return wd if wd >= 0 else None

    def remove(self, wd: int) -> None:
        """End a watch, and with the last one the instance."""
        del self.bells[wd]
        self._libc.inotify_rm_watch(self._fd, wd)
        if not self.bells:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            del _instances[self._loop]

    def _ring(self) -> None:
        data = os.read(self._fd, 64 * 1024)
        changed: set[int] = set()
        offset = 0
        while offset < len(data):
            wd, _, _, length = _HEADER.unpack_from(data, offset)
            changed.add(wd)
            offset += _HEADER.size + length
        overflow = -1 in changed  # events were lost: anything may have changed
        for wd, bells in self.bells.items():
            if overflow or wd in changed:
                for bell in bells:
                    bell.rung.set()


_instances: WeakKeyDictionary[asyncio.AbstractEventLoop, _Inotify] = WeakKeyDictionary()


def _shared_inotify() -> _Inotify | None:
    if sys.platform != "linux":
        return None
    loop = asyncio.get_running_loop()
    found = _instances.get(loop)
    if found is None:
        try:
            found = _instances[loop] = _Inotify(loop)
        except OSError:
            return None
    return found


async def follow(folder: Path, after: int) -> AsyncGenerator[Record]:
    """Every record after a seq, each once, for ever. Ends with `LogReset` or `LogDeleted` when the file is no longer the same."""
    with watch(folder) as alarm, LogFiles(folder) as log:  # the watch comes first: what is written from now on rings
        reader, order = Reader(log, after), RecordOrder(log, after)
        while True:
            while found := reader.next():
                for record in order.push(found):
                    yield record
                await asyncio.sleep(0)  # a long replay must not keep others waiting
            if reader.check() or log.open_next():
                continue
            for record in order.flush():
                yield record
            await alarm.wait()
