"""Adapters: any bytes as a stream of any format. Nothing raises, every byte is kept, and nothing stays open."""

from __future__ import annotations

from collections.abc import Iterator

from hansard.adapters import formats
from hansard.adapters.normalize import normalize
from hansard.events.codec import encode
from hansard.testing import check_closed, check_frames, check_json, check_order, check_originals, check_turns
from tests.recorded import streams

FORMATS = sorted(formats())


def check(data: bytes) -> None:
    """The first byte says of which format it is, the second where it is cut."""
    if len(data) < 2:
        return
    format, place, data = FORMATS[data[0] % len(FORMATS)], data[1] * len(data) // 256, data[2:]
    events = list(normalize(data, format))
    check_originals(format, data, events)
    check_frames(events)
    check_order(events)
    check_turns(events)
    check_closed(events)
    check_json(events)
    again = normalize([data[:place], data[place:]], format)
    assert [encode(event) for event in again] == [encode(event) for event in events], f"{format} cut at {place}"


def seeds() -> Iterator[bytes]:
    """Small recordings of each format."""
    for number, format in enumerate(FORMATS):
        small = sorted((stream.data for stream in streams() if stream.format == format), key=len)
        yield from (bytes([number, 128]) + data[:6000] for data in small[:: max(1, len(small) // 6)])
