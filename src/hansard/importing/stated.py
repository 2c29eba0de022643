"""What is written anew instead of appended to (documents, rows of a database), on its way into a log.

Each look at it gives all of its frames; those that the log does not have are new. What the log has is read from the log, so that the
adapter knows what it knew: the source may have forgotten it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256

from hansard.adapter import Adapter, Context, was_finish
from hansard.adapters import adapter_for
from hansard.events import Event
from hansard.framing import Frame
from hansard.importing.position import Position
from hansard.store import Store


class Stated:
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

    def recall(self, store: Store, session_id: str) -> None:
        """Take in what the log has of it."""
        for event in store.read(session_id):
            if event.stream != self._stream or event.frame is None:
                continue
            if event.original is not None:
                self._feed(Frame(store.original(session_id, event), eol="\n" if event.eol is None else event.eol))
            elif was_finish(event) and self.offset not in self.closed:
                self._finish()

    def go_on(self) -> Iterator[list[Event]]:
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
