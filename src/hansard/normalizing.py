"""A wire in, events out: framing and an adapter put together. Pure; nothing is stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from hansard.adapter import Context
from hansard.adapters import adapter_for
from hansard.events import Event
from hansard.framing import frames

READ_SIZE = 256 * 1024


def normalize(source: bytes | BinaryIO | Iterable[bytes], format: str, context: Context | None = None) -> Iterator[Event]:
    """The events of a stream, in order, each with `seq`. The same bytes give the same events, however they are cut."""
    adapter = adapter_for(format)(context)
    seq = 0
    for frame in frames(chunks(source), adapter.framer()):
        for event in adapter.feed(frame):
            seq += 1
            event.seq = seq
            yield event
    for event in adapter.finish():
        seq += 1
        event.seq = seq
        yield event


def chunks(source: bytes | BinaryIO | Iterable[bytes]) -> Iterator[bytes]:
    """Reads of a comfortable size from bytes, a binary file, or whatever gives bytes."""
    if isinstance(source, bytes):
        yield source
        return
    read = getattr(source, "read", None)
    if read is None:
        yield from source
        return
    while chunk := read(READ_SIZE):
        yield chunk
