"""One file on its way into a log. What was read before is read again, without a word, so that the adapter knows what it knew."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from hansard.adapter import Adapter, Context
from hansard.adapters import adapter_for
from hansard.events import Event
from hansard.framing import Frame, Framer
from hansard.importing.position import Position, Replaced

READ_SIZE = 1024 * 1024


class Reading:
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
        return Position(self._adapter.frames, self._hash.hexdigest(), list(self.closed), self.offset, state)

    def go_on(self) -> Iterator[list[Event]]:
        """Read to the present end of the file: the events of every frame that the log does not have, frame by frame."""
        with Path(self.path).open("rb") as file:
            file.seek(self.offset)
            while chunk := file.read(self._next_size()):
                self.offset += len(chunk)
                yield from self._fresh(self._framer.feed(chunk))
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
        return min([READ_SIZE, *stops])

    def _fresh(self, frames: list[Frame]) -> Iterator[list[Event]]:
        feed = self._adapter.feed
        if (left := self.known.frames - self._adapter.frames) > 0:
            for frame in frames[:left]:
                feed(frame)  # the log has its events
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
        yield from self._fresh(self._framer.end())
        self.closed.append(self.offset)
        if events := self._adapter.finish():
            yield events

    def _check_end(self, file: BinaryIO) -> None:
        if file.seek(0, 2) < self.offset:
            raise Replaced(f"{self.path} became shorter while it was read; the log keeps what it has")
