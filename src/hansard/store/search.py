"""Finds where something was said. An index of the store says what to read; every hit is verified in the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from time import monotonic

from msgspec import Struct

from hansard.errors import HansardError, UsageError
from hansard.events.replays import mark
from hansard.store import Record, SessionInfo, Store, lines
from hansard.store.query import parse_pattern, parse_query
from hansard.store.search_text import SEARCHED_TYPES, byte_hints, search_text

CONTEXT_CHARS = 60
"""So many characters are shown before the first word that was found, and twice as many after it."""


class SearchHit(Struct, frozen=True, rename="camel"):
    """A place where all the words were said. ``text`` is what stands around the first of them."""

    session_id: str
    seq: int
    type: str
    timestamp: int
    text: str
    title: str | None = None


class SearchQuery:
    """Every event that says all the words, the session that changed last first. Case does not matter.

    "Several words" are a phrase, ``pars*`` is the beginning of a word, and ``-word`` must not be there. With ``regex``, the query is a
    regular expression, and all logs are read.

    Iterate over it once; it reads only as far as you do. ``complete`` is false if the patience, in seconds, was over before every log was
    read.
    """

    def __init__(
        self,
        store: Store,
        query: str,
        sessions: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        patience: float = inf,
        regex: bool = False,
    ) -> None:
        self.complete = True
        self.advance: Callable[[int], object] = lambda size: None
        """Told how many bytes of logs are done with, if somebody wants to know."""
        self._store = store
        self._query = parse_pattern(query) if regex else parse_query(query)
        self._words = self._query.words
        self._hints = byte_hints(self._words)
        self._types = SEARCHED_TYPES if types is None else frozenset(types)
        self._until = monotonic() + patience
        if not self._types <= SEARCHED_TYPES:
            silent = ", ".join(sorted(self._types - SEARCHED_TYPES))
            raise UsageError(f"nothing is said by {silent}; search looks at {', '.join(sorted(SEARCHED_TYPES))}")
        self._searched: dict[str, str] = {}
        """The log ids of the sessions that are searched."""
        self._sessions = None if sessions is None else {store[session].head().session_id for session in sessions}

    def __iter__(self) -> Iterator[SearchHit]:
        infos, search = self._store.sessions(), self._store.search
        candidates = None if search is None else search.candidates(self._words, self._types)
        self._searched = {info.id: info.log_id for info in infos if self._sessions is None or info.id in self._sessions}
        for info in infos:
            if info.id in self._searched and (candidates is None or info.id in candidates):
                try:
                    found = self._store[info.id].records(types=self._types) if candidates is None else candidates[info.id]()
                    yield from self._in(info, found)
                except HansardError:
                    if info.problem is None:  # a log that cannot be read is told in the list of sessions
                        raise
            if not self.complete:
                return
            self.advance(info.bytes)

    def _in(self, info: SessionInfo, records: Iterator[Record]) -> Iterator[SearchHit]:
        unmarked: Sequence[range] | None = None  # not looked for in a log that has no hit
        lineage = info.copies_of(self._searched)
        for number, record in enumerate(records):
            if number % 1000 == 0 and monotonic() > self._until:
                self.complete = False
                return
            if lineage is not None and lineage.is_copied(record.seq):
                continue  # it is found in the parent
            line = record.line.lower()
            if not all(hint in line for hint in self._hints):
                continue
            event = lines.decode_record(record)
            text = search_text(event)
            if (place := self._query.find(text)) >= 0:
                unmarked = self._store[info.id].unmarked_replays() if unmarked is None else unmarked
                if mark(event, unmarked).replay:
                    continue
                around = _excerpt(text, place)
                yield SearchHit(info.id, record.seq, record.type, event.timestamp, around, info.title)


def _excerpt(text: str, place: int) -> str:
    begin, end = max(0, place - CONTEXT_CHARS), place + 2 * CONTEXT_CHARS
    shown = " ".join(text[begin:end].split())
    return f"{'…' if begin else ''}{shown}{'…' if end < len(text) else ''}"
