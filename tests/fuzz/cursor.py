"""Cursors: any text as a place in a log, in a header and in a message of the socket. It is that place, or it is refused."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec

from hansard.errors import UnknownCursor
from hansard.events import assistant_chunk
from hansard.server.protocol import AnyHeard, Subscribe
from hansard.server.sse import cursor
from hansard.store import Cursor, JsonlStore
from hansard.store.files.reader import LogFiles

LAST = 7
asked: msgspec.json.Decoder[AnyHeard] = msgspec.json.Decoder(AnyHeard)


@cache
def log() -> LogFiles:
    """A log of seven records: its beginning, five pieces, and the checkpoint that closes it."""
    folder = Path(tempfile.mkdtemp())
    with JsonlStore(folder) as store:
        store.create("s")
        store["s"].append([assistant_chunk(text=str(number)) for number in range(5)])
    return LogFiles(folder / "s")


def check(data: bytes) -> None:
    text = data.decode("latin-1").replace("LOG", log().log_id())
    for given in (text, data.decode("utf-8", "replace").replace("LOG", log().log_id())):
        try:
            place = cursor(given)
            if place is not None:
                look(place)
        except UnknownCursor:
            pass
    try:
        wanted = asked.decode(text.encode("latin-1"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    if isinstance(wanted, Subscribe) and wanted.after is not None:
        try:
            look(Cursor(wanted.after.log_id, wanted.after.seq))
        except UnknownCursor:
            pass


def look(place: Cursor) -> None:
    seq = log().seq_of(place)
    assert place.log_id == log().log_id() and 0 <= seq <= LAST


def seeds() -> Iterator[bytes]:
    yield from (b"LOG:3", b"LOG:0", b"LOG:8", b"LOG:-1", b"other:3", b":", b"LOG:1e3", "LOG:\u0663".encode())
    yield b'{"type":"subscribe","id":"a","session":"s","after":{"logId":"LOG","seq":3},"types":["raw"],"originals":true}'
    yield b'{"type":"subscribe","id":"a","session":"s","after":{"logId":"LOG","seq":1.0}}'
