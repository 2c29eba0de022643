"""`parse_message_content`: any bytes, text or JSON as the content of a message. Blocks come out, and they are JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator

from hansard.projections.message_content import parse_message_content
from tests.recorded import streams


def check(data: bytes) -> None:
    for given in (data, data.decode("utf-8", "surrogateescape")):
        blocks = parse_message_content(given)
        assert all(isinstance(block.get("type"), str) for block in blocks)
        json.dumps(blocks, allow_nan=False)
        if not isinstance(given, bytes) and given[:1] not in ("{", "[", " ", "\t", "\r", "\n"):
            assert [block.get("text") for block in blocks] == [given]


def seeds() -> Iterator[bytes]:
    """Lines of some recordings."""
    for stream in streams()[::40]:
        yield from (line[:4000] for line in stream.data.split(b"\n")[:30:5])
