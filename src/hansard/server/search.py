"""The response to a search, sent while the search runs: a reader sees the first matches at once, and stops it by disconnecting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from time import monotonic

from hansard.projections.output import encode
from hansard.server.protocol import Matches
from hansard.store.search import PAUSE_SECONDS, SearchHit, SearchQuery

MAX_MATCHES = 100
"""How many matches are sent at most."""


def match_lines(query: SearchQuery, captured: Iterable[SearchHit | None] = ()) -> Iterator[bytes]:
    """Yields the lines of the answer, each with what was found since the line before. ``captured``: what is searched last."""
    found: list[SearchHit] = []
    count, read = 0, 0

    def advance(size: int) -> None:
        nonlocal read
        read += size

    query.advance = advance
    sent = monotonic()
    for hit in chain(query.stream(), captured):
        if hit is not None:
            if count == MAX_MATCHES:
                yield encode(Matches(found, read, query.bytes, complete=False)) + b"\n"
                return
            found.append(hit)
            count += 1
        if hit is None or monotonic() > sent + PAUSE_SECONDS:
            yield encode(Matches(found, read, query.bytes)) + b"\n"
            found, sent = [], monotonic()
    yield encode(Matches(found, read, query.bytes, complete=True)) + b"\n"
