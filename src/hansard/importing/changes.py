"""Waits for changes of files: by inotify on Linux, by looking again where there is none.

See inotify(7). Python has no module for it, so the four calls are made through the C library.
"""

from __future__ import annotations

import ctypes
import os
import select
import struct
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from hansard.importing.discovery import WAL, list_files

POLL_SECONDS = 2.0
"""How long a watcher that cannot be notified waits before it looks again."""
COLLECT_SECONDS = 0.2
"""How long changes are collected once one was noticed: an agent writes many lines at once."""
READ_BYTES = 64 * 1024

_EVENT = struct.Struct("iIII")
_MODIFY, _CLOSE_WRITE, _MOVED_TO, _CREATE, _ONLY_FOLDERS = 0x2, 0x8, 0x80, 0x100, 0x01000000
_OVERFLOW, _IGNORED, _IS_FOLDER = 0x4000, 0x8000, 0x40000000


class Changes(Protocol):
    """Where changes of files come from."""

    def wait(self, seconds: float) -> set[str] | None:
        """Waits until a file changes, or the time is over; returns the paths of files that did, or None if any may have."""
        ...


class Polling:
    """Changes below folders, and of files that were named, found by looking at them again. Without paths, any file may have changed."""

    def __init__(self, paths: Iterable[Path] = ()) -> None:
        self._paths = list(paths)
        self._marks = self._look()

    def wait(self, seconds: float) -> set[str] | None:
        """Waits a while; returns the paths of the files that have changed, or None if any may have."""
        time.sleep(min(seconds, POLL_SECONDS))
        if not self._paths:
            return None
        before, self._marks = self._marks, self._look()
        return {path for path, mark in self._marks.items() if before.get(path) != mark}

    def close(self) -> None:
        """Nothing is open."""

    def _look(self) -> dict[str, str]:
        return {file.path: file.mark for file in list_files(self._paths).files.values()}


class Inotify:
    """Changes of the files below folders, and of files that were named. Raises OSError if the system cannot watch them."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._library = ctypes.CDLL(None, use_errno=True)
        self._fd = self._call("inotify_init1", os.O_NONBLOCK | os.O_CLOEXEC)
        self._folders: dict[int, str] = {}
        self._files: set[str] = set()
        """The files that were named: of the others in their folders, nothing is reported."""
        self._roots: list[str] = []
        try:
            for path in map(os.path.abspath, paths):
                if os.path.isdir(path):
                    self._roots.append(path)
                    self._add_tree(path)
                else:
                    self._files.add(path)
                    self._add(os.path.dirname(path))
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Stops watching."""
        os.close(self._fd)

    def wait(self, seconds: float) -> set[str] | None:
        """Waits until a file changes, or the time is over; returns the paths of files that did, or None if any may have."""
        changed: set[str] = set()
        ready = select.poll()  # `select` knows no descriptor above 1023
        ready.register(self._fd, select.POLLIN)
        if not ready.poll(max(0.0, seconds) * 1000):
            return changed
        time.sleep(COLLECT_SECONDS)
        with suppress(BlockingIOError):
            while data := os.read(self._fd, READ_BYTES):
                if not self._take(data, changed):
                    return None
        return changed

    def _take(self, data: bytes, changed: set[str]) -> bool:
        """Adds the paths of some notifications; returns False if notifications were lost."""
        offset = 0
        while offset < len(data):
            watch, mask, _, length = _EVENT.unpack_from(data, offset)
            name = os.fsdecode(data[offset + _EVENT.size : offset + _EVENT.size + length].rstrip(b"\0"))
            offset += _EVENT.size + length
            if mask & _OVERFLOW:
                return False
            if mask & _IGNORED:
                self._folders.pop(watch, None)
                continue
            path = os.path.join(self._folders.get(watch, ""), name)
            if not mask & _IS_FOLDER:
                if self._is_wanted(path):
                    changed.add(path)
            elif self._is_below(path):
                with suppress(OSError):
                    changed.update(self._add_tree(path))
        return True

    def _add_tree(self, folder: str) -> list[str]:
        """Watches a folder and the folders in it; returns the files that are there by now."""
        found: list[str] = []
        self._add(folder)
        for parent, folders, names in os.walk(folder):
            folders[:] = [name for name in folders if not name.startswith(".")]
            for name in folders:
                with suppress(FileNotFoundError, NotADirectoryError):
                    self._add(os.path.join(parent, name))
            found += [os.path.join(parent, name) for name in names]
        return found

    def _add(self, folder: str) -> None:
        mask = _MODIFY | _CLOSE_WRITE | _MOVED_TO | _CREATE | _ONLY_FOLDERS
        self._folders[self._call("inotify_add_watch", self._fd, os.fsencode(folder), mask)] = folder

    def _is_wanted(self, path: str) -> bool:
        name = os.path.basename(path)
        return path in self._files or path.removesuffix(WAL) in self._files or (not name.startswith(".") and self._is_below(path))

    def _is_below(self, path: str) -> bool:
        return any(path.startswith(root + os.sep) for root in self._roots)

    def _call(self, name: str, *arguments: int | bytes) -> int:
        result = getattr(self._library, name)(*arguments)
        if result < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return result


class PlaceChanges:
    """Changes in places that may come and go. ``places`` returns those that are there."""

    def __init__(self, places: Callable[[], list[Path]]) -> None:
        self._places = places
        self._watched = places()
        self._changes = _watch_files(self._watched)

    def wait(self, seconds: float) -> set[str] | None:
        """Waits until a file changes, or the time is over; returns the paths of files that did, or None if any may have."""
        changed, now = self._changes.wait(seconds), self._places()
        if now == self._watched:
            return changed
        self._changes.close()
        self._watched, self._changes = now, _watch_files(now)
        return None


def _watch_files(paths: list[Path]) -> Inotify | Polling:
    """The best source of changes that the system has."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # the limit of watches is reached, or the C library has no inotify
            return Inotify(paths)
    return Polling(paths)
