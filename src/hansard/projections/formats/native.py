"""What was on the wire: the agent's own bytes back, or both sides of a talk as a recording.

Frames that lie in blobs must be put back into their events first (`originals.embed`): a projection reads events and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Generic, Literal, TypeVar

from msgspec import Struct

from hansard.errors import UsageError
from hansard.events import TYPES, Event
from hansard.events.originals import unwrap
from hansard.projections.base import Projection

Direction = Literal["in", "out", "both"]
T = TypeVar("T")


class Frames(Projection[T], Generic[T]):
    """The frames of one stream, the session's own or the one that is named, that one side said or both."""

    handled = frozenset(TYPES)
    skipped: ClassVar[Mapping[str, str]] = {}
    leaves_unknown = None
    uses_frames = whole_originals = carries_replays = True

    def __init__(self, stream: str | None = None, direction: Direction = "both") -> None:
        super().__init__()
        self._stream = stream
        self._direction = direction
        self._frame: int | None = None
        """The last frame whose bytes were there."""

    def handle(self, event: Event) -> tuple[T, ...]:
        """The frame that this event is the first of."""
        reason = self._left_out(event)
        if reason is None:
            if event.original is None:
                return ()
            self._frame = event.frame
            try:
                return (self.frame(event, unwrap(event.original)),)
            except UsageError as problem:
                reason = str(problem)
        self.skip(event, reason)
        return ()

    def frame(self, event: Event, data: bytes) -> T:
        """How this frame looks."""
        raise NotImplementedError

    def _left_out(self, event: Event) -> str | None:
        """Why this event is not of this stream or this side, if it is not."""
        if event.frame is None:
            return "hansard's own: no frame says it"
        if self._direction not in ("both", event.direction or "in"):
            return "our side sent it" if event.direction else "the agent said it"
        if event.stream != self._stream:
            return f"of the stream {event.stream}" if event.stream else "of the session's own stream"
        if event.original is not None:
            return None
        if event.synthetic:
            return "no frame says it in so many words"
        return None if event.frame == self._frame else "the bytes of its frame are not in the log"


class Native(Frames[bytes]):
    """Frames of one side, joined with their line ends: byte for byte what it said."""

    output = "bytes"
    options = frozenset({"stream", "direction"})

    def __init__(self, stream: str | None = None, direction: Direction = "in") -> None:
        super().__init__(stream, direction)

    def frame(self, event: Event, data: bytes) -> bytes:
        """The frame and its line end."""
        return data + (b"\n" if event.eol is None else event.eol.encode())


class RecordedFrame(Struct):
    """A line of the two-way recording form; ``recv`` is what the agent said. Bytes that are no UTF-8 are U+DC80 to U+DCFF."""

    t: int
    dir: Literal["recv", "send"]
    line: str


class Recording(Frames[RecordedFrame]):
    """Frames of both sides, in the order they were said."""

    output = "lines"
    options = frozenset({"stream"})

    def frame(self, event: Event, data: bytes) -> RecordedFrame:
        """The frame without its line end, and when it came."""
        time = event.timestamp if event.received_at is None else event.received_at
        return RecordedFrame(time, "send" if event.direction else "recv", data.decode("utf-8", "surrogateescape"))
