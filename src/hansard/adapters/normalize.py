"""A wire in, events out: framing and an adapter put together. Pure; nothing is stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from hansard.adapters import adapter_for
from hansard.adapters.base import Context
from hansard.adapters.framing import Lines, frames
from hansard.events import Event, raw
from hansard.events.codec import decode
from hansard.events.originals import wrap
from hansard.events.replays import mark_all

READ_SIZE = 256 * 1024
OWN_LOG = b'{"type":"session_lifecycle",'
"""How a log of ours begins."""


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


def events_of_log(data: Iterable[bytes]) -> Iterator[Event]:
    """The events of a log that stands somewhere by itself, with its replays marked. A line that is none is shown as ``raw``."""
    return mark_all(_decoded(data))


def _decoded(data: Iterable[bytes]) -> Iterator[Event]:
    for frame in frames(data, Lines()):
        if not frame.data.strip():
            continue
        try:
            yield decode(frame.data)
        except (ValueError, RecursionError):
            damaged = raw(reason="invalid_json", kind="damaged line")
            damaged.original = wrap(frame.data)
            yield damaged


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
