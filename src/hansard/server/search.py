"""The response to a search, sent while the search runs: a reader sees the first matches at once, and stops it by disconnecting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from time import monotonic

from hansard.importing.capture import search_captured
from hansard.projections.output import encode
from hansard.server.patterns import PatternTooSlow, pattern_process
from hansard.server.protocol import Matches
from hansard.store import Store
from hansard.store.filters import EVERY_SESSION, SessionFilter
from hansard.store.search import PAUSE_SECONDS, SearchHit, SearchQuery

MAX_MATCHES = 100
"""How many matches are sent at most."""


def search_lines(
    store: Store,
    words: str,
    sessions: Sequence[str] | None,
    types: Iterable[str] | None,
    regex: bool,
    scopes: Sequence[str] = (),
    wanted: SessionFilter = EVERY_SESSION,
) -> Iterator[bytes]:
    """Yields the lines of the answer to a search. The last one says that it is not complete if a regular expression was too slow."""
    with pattern_process(words) if regex else nullcontext() as pattern:
        find = None if pattern is None else pattern.find
        query = SearchQuery(store, words, sessions, types, regex, find, scopes=scopes, wanted=wanted)
        captured = search_captured(store, query.stream(), words, sessions, types, regex, find, scopes=scopes, wanted=wanted)
        has_begun = False
        try:
            for line in match_lines(query, captured):
                yield line
                has_begun = True
        except PatternTooSlow:
            if not has_begun:
                raise
            yield encode(Matches([], 0, query.bytes, complete=False)) + b"\n"


def match_lines(query: SearchQuery, hits: Iterable[SearchHit | None]) -> Iterator[bytes]:
    """Yields the lines of the answer, each with what was found since the line before."""
    found: list[SearchHit] = []
    count, read = 0, 0

    def advance(size: int) -> None:
        nonlocal read
        read += size

    query.advance = advance
    sent = monotonic()
    for hit in hits:
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
