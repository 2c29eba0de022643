"""A session in another form, as bytes, piece by piece: the way from a store to a projection that the command line and the server share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from hansard.events import Event, RawEvent, Unknown
from hansard.originals import BLOB, embed
from hansard.projections import Projection
from hansard.projections.writing import written_blocks
from hansard.redaction import Redacted
from hansard.store import Store

_ONLY_FRAMES = (RawEvent, Unknown)
Advance = Callable[[int], object]
Blocks = Iterator[Sequence[Event]]

LARGE = 64 * 1024
"""So many bytes are read before what they say is written: many events at once are less work than each alone, and need little memory."""


def exported(store: Store, session: str, projection: Projection[Any], redacted: Redacted | None) -> Iterator[bytes]:
    """The file, in parts. ``redacted`` masks what is secret."""
    blocks = fitted(of_session(store, session, projection, lambda size: None), projection, partial(store.get_blob, session))
    return written_blocks(projection.blocks(blocks if redacted is None else redacted.blocks(blocks)), projection.shape)


def of_session(store: Store, session: str, projection: Projection[Any], advance: Advance) -> Blocks:
    """The events of a session, but for those that the projection leaves out: they are only counted."""
    for block, size in store.read_blocks(session, LARGE):
        advance(size)
        yield projection.sift(block)


def fitted(blocks: Blocks, projection: Projection[Any], blob: Callable[[str], bytes]) -> Blocks:
    """Events that were just read and are nobody else's, so that they can be changed in place: with the verbatim frames that the form wants.

    ``blob`` fetches a frame by its SHA-256.
    """
    if projection.whole_originals:
        return (some for block in blocks for some in _embedded(block, blob))
    return blocks if projection.uses_frames else map(_bare, blocks)


def _embedded(block: Sequence[Event], blob: Callable[[str], bytes]) -> Blocks:
    """Every frame in its place, also those that lie in blobs. These are large, so that a block ends behind each."""
    start = 0
    for index, event in enumerate(block):
        if event.original is not None and bytes(event.original).startswith(BLOB):
            event.original = embed(event.original, blob)
            yield block[start : index + 1]
            start = index + 1
    yield block[start:]


def _bare(block: Sequence[Event]) -> Sequence[Event]:
    """No frames, but where nothing else says what is in them."""
    for event in block:
        if event.original is not None and type(event) not in _ONLY_FRAMES:
            event.original = event.eol = None
    return block
