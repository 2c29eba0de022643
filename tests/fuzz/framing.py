"""Framing: any bytes, cut anywhere, through every framer. The frames are the same, and joined they are the bytes."""

from __future__ import annotations

from collections.abc import Iterator

from hansard.adapters import formats
from hansard.adapters.framing import (
    DetectingFramer,
    Document,
    DocumentOrLines,
    Framer,
    HttpBodyFramer,
    Lines,
    ServerSentEvents,
    TwoWay,
    frames,
)
from hansard.adapters.opencode.framers import EventStream, Export
from tests.recorded import streams

FRAMERS: list[type[Framer]] = [
    Lines,
    TwoWay,
    ServerSentEvents,
    Document,
    DocumentOrLines,
    DetectingFramer,
    HttpBodyFramer,
    EventStream,
    Export,
]


def check(data: bytes) -> None:
    """The first byte says where the rest is cut."""
    place, data = (data[0] * len(data) // 256, data[1:]) if data else (0, b"")
    for kind in FRAMERS:
        framer = kind()
        whole = list(frames([data], framer))
        assert list(frames([data[:place], b"", data[place:]], kind())) == whole, f"{kind.__name__} cut at {place}"
        if not is_recording(framer):
            assert b"".join(frame.verbatim for frame in whole) == data, kind.__name__


def is_recording(framer: Framer) -> bool:
    """Whether it found a two-way recording, of which the envelopes are not kept."""
    inner = getattr(framer, "_framer", None)
    return bool(getattr(framer, "recorded", False)) or (inner is not None and is_recording(inner))


def seeds() -> Iterator[bytes]:
    """How some recordings of each format begin and end, and what the standard of server-sent events is about."""
    for format in formats():
        for stream in [stream for stream in streams() if stream.format == format][::20]:
            yield b"\x80" + stream.data[:2000]
            yield b"\x40" + stream.data[-500:]
    yield b"\x80\xef\xbb\xbf: hi\r\rid: 1\0\r\nevent:e\rdata\r\n\ndata:  x\ndata: y\r\r\nretry"
