"""A session in another form, as bytes, piece by piece: the way from a store to a projection that the command line and the server share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hansard.events import Event, RawEvent, Unknown
from hansard.events.originals import BLOB, embed
from hansard.projections import Projection
from hansard.projections.output import written_blocks
from hansard.projections.redaction.redact import Redacted
from hansard.store import Store

_ORIGINAL_ONLY = (RawEvent, Unknown)
Advance = Callable[[int], object]
Blocks = Iterator[Sequence[Event]]

READ_BYTES = 64 * 1024
"""So many bytes are read before what they say is written: many events at once are less work than each alone, and need little memory."""


def export_session(store: Store, session: str, projection: Projection[Any], redacted: Redacted | None) -> Iterator[bytes]:
    """The file, in parts. ``redacted`` masks what is secret."""
    blocks = with_originals(read_session(store, session, projection, lambda size: None), projection, store[session].get_blob)
    return written_blocks(projection.blocks(blocks if redacted is None else redacted.blocks(blocks)), projection.output)


def read_session(store: Store, session: str, projection: Projection[Any], advance: Advance) -> Blocks:
    """The events of a session, but for those that the projection leaves out: they are only counted.

    A projection of the log itself gets them as they are written, any other in the order of the conversation.
    """
    log = store[session]
    for block, size in log.read_blocks(READ_BYTES) if projection.carries_replays else log.conversation_blocks(READ_BYTES):
        advance(size)
        yield projection.filter_block(block)


def with_originals(blocks: Blocks, projection: Projection[Any], blob: Callable[[str], bytes]) -> Blocks:
    """Events that were just read and are nobody else's, so that they can be changed in place: with the verbatim frames that the form wants.

    ``blob`` fetches a frame by its SHA-256.
    """
    if projection.whole_originals:
        return (some for block in blocks for some in _embed_originals(block, blob))
    return blocks if projection.uses_frames else map(_drop_originals, blocks)


def _embed_originals(block: Sequence[Event], blob: Callable[[str], bytes]) -> Blocks:
    """Every frame in its place, also those that lie in blobs. These are large, so that a block ends behind each."""
    start = 0
    for index, event in enumerate(block):
        if event.original is not None and bytes(event.original).startswith(BLOB):
            event.original = embed(event.original, blob)
            yield block[start : index + 1]
            start = index + 1
    yield block[start:]


def _drop_originals(block: Sequence[Event]) -> Sequence[Event]:
    """No frames, but where nothing else says what is in them."""
    for event in block:
        if event.original is not None and type(event) not in _ORIGINAL_ONLY:
            event.original = event.eol = None
    return block
