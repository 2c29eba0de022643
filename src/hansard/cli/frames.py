"""The verbatim frames of events that are exported: there or not, as the form wants them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from hansard.events import Event, RawEvent, Unknown
from hansard.originals import embed
from hansard.projections import Projection


def fitted(blocks: Iterator[list[Event]], projection: Projection[Any], blob: Callable[[str], bytes]) -> Iterator[list[Event]]:
    """Events that were just read and are nobody else's, so that they can be changed in place. ``blob`` fetches a frame by its SHA-256."""
    if projection.whole_originals:
        return (some for block in blocks for some in _embedded(block, blob))
    return blocks if projection.uses_frames else map(_bare, blocks)


def _embedded(block: list[Event], blob: Callable[[str], bytes]) -> Iterator[list[Event]]:
    """Every frame in its place, also those that lie in blobs. These are large, so that a block ends behind each."""
    start = 0
    for index, event in enumerate(block):
        if event.original is None:
            continue
        whole = embed(event.original, blob)
        if whole is not event.original:
            event.original = whole
            yield block[start : index + 1]
            start = index + 1
    yield block[start:]


def _bare(block: list[Event]) -> list[Event]:
    """No frames, but where nothing else says what is in them."""
    for event in block:
        if event.original is not None and not isinstance(event, RawEvent | Unknown):
            event.original = event.eol = None
    return block
