"""What went over the streams of a process, counted and hashed: told when it ends, and found again in the log by whoever verifies it."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Literal

from hansard.events import LIVE_STREAM, Event, Process, StreamSum
from hansard.events.originals import unwrap

StreamName = Literal["in", "out", "stderr"]
"""What the agent said, what it was told, and what it complained of."""


class StreamSums:
    """The bytes of each stream so far."""

    def __init__(self) -> None:
        self._hashes = {"in": sha256(), "out": sha256(), "stderr": sha256()}
        self._sizes = dict.fromkeys(self._hashes, 0)

    def add(self, stream: StreamName, data: bytes) -> None:
        """So much more."""
        self._hashes[stream].update(data)
        self._sizes[stream] += len(data)

    def add_event(self, event: Event, blob: Callable[[str], bytes]) -> None:
        """Add what an event of a log holds of them. ``blob`` fetches large frames."""
        if isinstance(event, Process):
            if event.payload.event == "stderr":
                text = (event.payload.text or "").encode("utf-8", "surrogatepass")
                self.add("stderr", text if event.original is None else unwrap(event.original, blob))
        elif event.original is not None and event.frame is not None and event.stream in (None, LIVE_STREAM):
            end = "\n" if event.eol is None else event.eol
            self.add("out" if event.direction else "in", unwrap(event.original, blob) + end.encode())

    def totals(self) -> dict[str, StreamSum]:
        """Length and hash of each."""
        return {name: StreamSum(bytes=self._sizes[name], sha256=found.hexdigest()) for name, found in self._hashes.items()}
