"""Reads one source of a session into events: a file that grows, or one that is rewritten as a whole.

What the log already has is read again without output, so that the adapter reaches the same state.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from hansard.adapters import adapter_for
from hansard.adapters.base import Adapter, Context, is_closing_event, is_imported
from hansard.adapters.framing import Frame, Framer
from hansard.adapters.layout import relative_time
from hansard.events import Event
from hansard.importing.position import Position, Replaced
from hansard.store import Store

TAIL_BYTES = 256 * 1024
"""How much of a file is read to find its last line."""


def start_time(path: str, imported: Callable[[], int | None]) -> int:
    """When it began, in ms since the epoch; 0 if its lines have no such times.

    ``imported``: the time that the log has for its first line, if it has it. What was said once stays, whatever becomes of the file's time.
    """
    first, last = _first_and_last_time(path)
    if first is None or last is None:
        return 0
    known = imported()
    return known - first if known is not None else os.stat(path).st_mtime_ns // 1_000_000 - last


def _first_and_last_time(path: str) -> tuple[int | None, int | None]:
    """The times of the first and of the last whole line."""
    with Path(path).open("rb") as file:
        first = relative_time(file.readline(TAIL_BYTES))
        if first is None:
            return None, None
        file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
        times = map(relative_time, reversed(file.read().split(b"\n")))
        return first, next((time for time in times if time is not None), first)


READ_BYTES = 1024 * 1024


class StreamReader:
    """A file and everything that was understood of it so far. ``known`` is what the log has already."""

    def __init__(self, path: str, format: str, context: Context, known: Position) -> None:
        self.path = path
        self.known = known
        self.offset = 0
        self.closed: list[int] = []
        self._adapter: Adapter = adapter_for(format)(context)
        self._framer: Framer = self._adapter.framer()
        self._hash = sha256()

    @property
    def is_closed(self) -> bool:
        """Whether everything open was closed at the present end of the file."""
        return self.offset in self.closed

    def position(self, state: tuple[int, int]) -> Position:
        """How far it has got, to be remembered."""
        known = self.known.closed_after
        return Position(self._adapter.frames, self._hash.hexdigest(), list(self.closed), list(known), self.offset, state)

    def resume(self) -> Iterator[list[Event]]:
        """Read to the present end of the file: the events of every frame that the log does not have, frame by frame."""
        with Path(self.path).open("rb") as file:
            file.seek(self.offset)
            while chunk := file.read(self._next_size()):
                self.offset += len(chunk)
                yield from self._feed_new(self._framer.feed(chunk))
                if self.offset in self.known.closed:
                    for _ in self._close():
                        pass  # the log has these
            if self._adapter.frames < self.known.frames:
                raise Replaced(f"{self.path} is shorter than it was when it was imported; the log keeps what it has")
            self._check_end(file)

    def close(self) -> Iterator[list[Event]]:
        """Nothing more will come: the events of an unfinished last line, and those that close whatever is open."""
        if not self.is_closed:
            yield from self._close()

    def _next_size(self) -> int:
        """Up to the next place where the stream was closed before, so that it is closed there again."""
        stops = [stop - self.offset for stop in self.known.closed if stop > self.offset]
        return min([READ_BYTES, *stops])

    def _feed_new(self, frames: list[Frame]) -> Iterator[list[Event]]:
        feed = self._adapter.feed
        if (left := self.known.frames - self._adapter.frames) > 0:
            for frame in frames[:left]:  # the log has its events
                feed(frame)
                if self._adapter.frames in self.known.closed_after:
                    self._adapter.finish()
            self._hash_all(frames[:left])
            if self._adapter.frames == self.known.frames and self._hash.hexdigest() != self.known.sha256:
                raise Replaced(f"{self.path} is not the file that was imported before; the log keeps what it has")
            frames = frames[left:]
        self._hash_all(frames)
        yield from map(feed, frames)

    def _hash_all(self, frames: list[Frame]) -> None:
        """Take in the bytes of frames. Many at once are less work than each alone."""
        self._hash.update(b"".join([frame.verbatim for frame in frames]))

    def _close(self) -> Iterator[list[Event]]:
        yield from self._feed_new(self._framer.end())
        self.closed.append(self.offset)
        if events := self._adapter.finish():
            yield events

    def _check_end(self, file: BinaryIO) -> None:
        if file.seek(0, 2) < self.offset:
            raise Replaced(f"{self.path} became shorter while it was read; the log keeps what it has")


class SnapshotReader:
    """A source that states everything each time, and everything that was understood of it so far."""

    def __init__(self, look: Callable[[], Iterable[Frame]], format: str, context: Context, known: Position) -> None:
        self.known = known
        self.offset = 0
        self.closed: list[int] = []
        self._look = look
        self._adapter: Adapter = adapter_for(format)(context)
        self._stream = context.stream
        self._seen: set[bytes] = set()

    def position(self, state: tuple[int, int]) -> Position:
        """How far it has got, to be remembered."""
        return Position(frames=self._adapter.frames, closed=list(self.closed), offset=self.offset, state=state)

    def restore(self, store: Store, session_id: str) -> None:
        """Take in what the log has of it."""
        for event in store[session_id].read():
            if event.stream != self._stream or event.frame is None or not is_imported(event):
                continue
            if event.original is not None:
                self._feed(Frame(store[session_id].original(event), eol="\n" if event.eol is None else event.eol))
            elif is_closing_event(event) and self.offset not in self.closed:
                self._finish()

    def resume(self) -> Iterator[list[Event]]:
        """The events of every frame that the log does not have."""
        for frame in self._look():
            if sha256(frame.verbatim).digest() not in self._seen:
                yield self._feed(frame)

    def close(self) -> Iterator[list[Event]]:
        """Nothing more will come: the events that close whatever is open."""
        if self.offset not in self.closed and (events := self._finish()):
            yield events

    def _feed(self, frame: Frame) -> list[Event]:
        self.offset += len(frame.verbatim)
        self._seen.add(sha256(frame.verbatim).digest())
        return self._adapter.feed(frame)

    def _finish(self) -> list[Event]:
        self.closed.append(self.offset)
        return self._adapter.finish()
