"""The pieces of a projection as the bytes of a file, piece by piece."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from hansard.projections.projection import OURS, Shape


def written(pieces: Iterable[Any], shape: Shape) -> Iterator[bytes]:
    """The file, in parts. Nothing is held back but the piece itself."""
    match shape:
        case "array":
            yield from _array(pieces)
        case "lines":
            yield from (encode(piece) + b"\n" for piece in pieces)
        case "document":
            yield from (msgspec.json.format(encode(piece), indent=2) + b"\n" for piece in pieces)
        case "text":
            yield from (piece.encode("utf-8", "backslashreplace") for piece in pieces)  # half an emoji has no bytes
        case "bytes":
            yield from pieces
        case "sse":
            yield from (_sent(piece) for piece in pieces)
        case "sse-done":
            yield from (_sent(piece) for piece in pieces)
            yield b"data: [DONE]\n\n"


def _array(pieces: Iterable[Any]) -> Iterator[bytes]:
    before = b"[\n"
    for piece in pieces:
        yield before + encode(piece)
        before = b",\n"
    yield b"[]\n" if before == b"[\n" else b"\n]\n"


def _sent(piece: Any) -> bytes:
    """A server-sent event. Its id is the seq where the piece names one, so that a reader can say how far it has got."""
    seq = piece.get("metadata", {}).get(OURS, {}).get("seq")
    return (b"" if seq is None else b"id: %d\n" % seq) + b"data: " + encode(piece) + b"\n\n"


def encode(value: Any) -> bytes:
    """JSON. Half an emoji, which JSON can say and UTF-8 cannot, is escaped."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        import json

        return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode()
