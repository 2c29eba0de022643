"""Finds where something was said. An index of the store says what to read; every hit is verified in the log."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from time import monotonic

from msgspec import Struct

from hansard.errors import HansardError, LogDeleted, UnknownSession, UsageError
from hansard.events.replays import mark
from hansard.store import Candidates, Record, SessionInfo, Store, lines
from hansard.store.filters import EVERY_SESSION, SessionFilter, select_sessions
from hansard.store.query import parse_pattern, parse_query
from hansard.store.search_text import SCOPES, SEARCHED_TYPES, byte_hints, is_in_scope, search_text

CONTEXT_CHARS = 60
"""So many characters are shown before the first word that was found, and twice as many after it."""
PAUSE_SECONDS = 0.25
"""After so long without a hit, a stream says that it is still searching."""


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
    regular expression, and all logs are read; ``find`` looks for it in a text, if that must be done elsewhere. ``scopes`` are names of
    `SCOPES`; ``wanted`` chooses the sessions.

    Iterate over it once; it reads only as far as you do.
    """

    def __init__(
        self,
        store: Store,
        query: str,
        sessions: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        regex: bool = False,
        find: Callable[[str], int] | None = None,
        *,
        scopes: Collection[str] = (),
        wanted: SessionFilter = EVERY_SESSION,
    ) -> None:
        self.advance: Callable[[int], object] = lambda size: None
        """Called with how many bytes of logs are done with."""
        self.bytes = 0
        """The bytes of all logs that are searched, as soon as the search has begun."""
        self._store = store
        parsed = parse_pattern(query) if regex else parse_query(query)
        self._find = find or parsed.find
        self._words = parsed.words
        self._hints = byte_hints(self._words)
        self._types = SEARCHED_TYPES if types is None else frozenset(types)
        if not self._types <= SEARCHED_TYPES:
            silent = ", ".join(sorted(self._types - SEARCHED_TYPES))
            raise UsageError(f"nothing is said by {silent}; search looks at {', '.join(sorted(SEARCHED_TYPES))}")
        if unknown := sorted(set(scopes) - SCOPES.keys()):
            raise UsageError(f"there is no {unknown[0]!r} to search in; there are {', '.join(SCOPES)}")
        self._scopes = scopes
        self._types &= frozenset().union(*(SCOPES[scope] for scope in scopes)) if scopes else SEARCHED_TYPES
        self._wanted = wanted
        self._searched: dict[str, str] = {}
        """The log ids of the sessions that are searched."""
        self._sessions = None if sessions is None else {store[session].head().session_id for session in sessions}
        self._yielded = monotonic()

    def __iter__(self) -> Iterator[SearchHit]:
        infos, candidates = self._begin()
        if candidates.unread:
            self._store.update_index()
            candidates = self._candidates()
        return (hit for hit in self._in_all(infos, candidates) if hit is not None)

    def stream(self) -> Iterator[SearchHit | None]:
        """Yields the hits as they are found: first where the index knows them, then in what it has not read yet.

        Yields None if there was no hit for a while, so that a reader can stop.
        """
        infos, candidates = self._begin()
        late = {info.id for info in infos if info.id in candidates.unread}
        yield from self._in_all([info for info in infos if info.id not in late], candidates)
        if late:
            yield from self._update_index()
            yield from self._in_all([info for info in infos if info.id in late], self._candidates())

    def _begin(self) -> tuple[list[SessionInfo], Candidates]:
        infos = [info for info in select_sessions(self._store, self._wanted) if self._sessions is None or info.id in self._sessions]
        self._searched, self.bytes = {info.id: info.log_id for info in infos}, sum(info.bytes for info in infos)
        return infos, self._candidates()

    def _candidates(self) -> Candidates:
        if self._store.search is not None:
            return self._store.search.candidates(self._words, self._types)
        return Candidates({name: partial(self._store[name].records, types=self._types) for name in self._searched})

    def _update_index(self) -> Iterator[None]:
        """Brings the index up to the logs, until it is or cannot be written."""
        read = -1
        while read:
            sizes: list[int] = []
            if self._store.update_index(PAUSE_SECONDS, sizes.append):
                return
            read = sum(sizes)
            yield self._pause()

    def _in_all(self, infos: Iterable[SessionInfo], candidates: Candidates) -> Iterator[SearchHit | None]:
        for info in infos:
            if info.id in candidates.sessions:
                try:
                    yield from self._in(info, candidates.sessions[info.id]())
                except (UnknownSession, LogDeleted):
                    pass  # meanwhile
                except HansardError:
                    if info.problem is None:  # a log that cannot be read is told in the list of sessions
                        raise
            self.advance(info.bytes)
            if self._is_silent():
                yield self._pause()

    def _in(self, info: SessionInfo, records: Iterator[Record]) -> Iterator[SearchHit | None]:
        unmarked: Sequence[range] | None = None  # not looked for in a log that has no hit
        lineage = info.copies_of(self._searched)
        for number, record in enumerate(records):
            if number % 100 == 0 and self._is_silent():
                yield self._pause()
            if lineage is not None and lineage.is_copied(record.seq):
                continue  # it is found in the parent
            line = record.line.lower()
            if not all(hint in line for hint in self._hints):
                continue
            event = lines.decode_record(record)
            if not is_in_scope(event, self._scopes):
                continue
            text = search_text(event)
            if (place := self._find(text)) >= 0:
                unmarked = self._store[info.id].unmarked_replays() if unmarked is None else unmarked
                if mark(event, unmarked).replay:
                    continue
                around = excerpt(text, place)
                self._yielded = monotonic()
                yield SearchHit(info.id, record.seq, record.type, event.timestamp, around, info.title)

    def _is_silent(self) -> bool:
        return monotonic() > self._yielded + PAUSE_SECONDS

    def _pause(self) -> None:
        self._yielded = monotonic()


def excerpt(text: str, place: int) -> str:
    """Returns the text around a place, on one line."""
    begin, end = max(0, place - CONTEXT_CHARS), place + 2 * CONTEXT_CHARS
    shown = " ".join(text[begin:end].split())
    return f"{'…' if begin else ''}{shown}{'…' if end < len(text) else ''}"
