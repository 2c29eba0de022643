"""The pieces of a projection as the bytes of a file, piece by piece."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from hansard.events.lenient import encode, encode_indented
from hansard.projections.base import EXTENSION_KEY, Shape

_encoder = msgspec.json.Encoder()
_encode_lines = _encoder.encode_lines


def written(pieces: Iterable[Any], shape: Shape) -> Iterator[bytes]:
    """The file, in parts. Nothing is held back but the piece itself."""
    return written_blocks(([piece] for piece in pieces), shape)


def written_blocks(blocks: Iterable[Sequence[Any]], shape: Shape) -> Iterator[bytes]:
    """The same of blocks of pieces, each in one part."""
    match shape:
        case "array":
            yield from _array(blocks)
        case "lines":
            yield from map(_lines, blocks)
        case "document":
            yield from (encode_indented(piece) + b"\n" for block in blocks for piece in block)
        case "text":
            yield from ("".join(block).encode("utf-8", "backslashreplace") for block in blocks)  # half an emoji has no bytes
        case "bytes":
            yield from map(b"".join, blocks)
        case "sse":
            yield from map(_sent, blocks)
        case "sse-done":
            yield from map(_sent, blocks)
            yield b"data: [DONE]\n\n"


def _array(blocks: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    before = b"[\n"
    for block in filter(None, blocks):
        yield before + b",\n".join(map(encode, block))
        before = b",\n"
    yield b"[]\n" if before == b"[\n" else b"\n]\n"


def _lines(block: Sequence[Any]) -> bytes:
    try:
        return _encode_lines(block)
    except UnicodeEncodeError:
        return b"".join([encode(piece) + b"\n" for piece in block])


def _sent(block: Sequence[Any]) -> bytes:
    """Server-sent events."""
    lines = _lines(block).split(b"\n")
    return b"".join([b"%bdata: %b\n\n" % (_id(piece), line) for piece, line in zip(block, lines, strict=False)])


def _id(piece: Any) -> bytes:
    """The id is the seq where the piece names one, so that a reader can say how far it has got."""
    about = piece.get("metadata")
    seq = about[EXTENSION_KEY].get("seq") if about and EXTENSION_KEY in about else None
    return b"" if seq is None else b"id: %d\n" % seq
