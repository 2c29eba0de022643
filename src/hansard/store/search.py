"""Where something was said: the logs are read. Where the store has an index, it is part of the log's own rows and never behind them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from time import monotonic

from msgspec import Struct

from hansard.errors import HansardError, UsageError
from hansard.events.codec import decode
from hansard.events.replays import mark
from hansard.store import Record, SessionInfo, Store
from hansard.store.search_text import SEARCHED_TYPES, search_text

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
    """Every event that says all the words, the session that changed last first. Case does not matter; "several words" are one.

    Iterate over it once. ``complete`` is false if the patience, in seconds, was over before every log was read.
    """

    def __init__(
        self,
        store: Store,
        query: str,
        sessions: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        patience: float = inf,
    ) -> None:
        self.complete = True
        self.advance: Callable[[int], object] = lambda size: None
        """Told how many bytes of logs are done with, if somebody wants to know."""
        self._store = store
        self._words = _words(query)
        self._hints = [hint for word in self._words if (hint := _byte_pattern(word)) is not None]
        self._types = SEARCHED_TYPES if types is None else frozenset(types)
        self._until = monotonic() + patience
        if not self._types <= SEARCHED_TYPES:
            silent = ", ".join(sorted(self._types - SEARCHED_TYPES))
            raise UsageError(f"nothing is said by {silent}; search looks at {', '.join(sorted(SEARCHED_TYPES))}")
        self._searched: dict[str, str] = {}
        """The log ids of the sessions that are searched."""
        self._sessions = None if sessions is None else {store[session].head().session_id for session in sessions}

    def __iter__(self) -> Iterator[SearchHit]:
        search = self._store.search
        matching = None if search is None else search.sessions(self._words, self._types)
        infos = self._store.sessions()
        self._searched = {info.id: info.log_id for info in infos if self._sessions is None or info.id in self._sessions}
        for info in infos:
            if (self._sessions is None or info.id in self._sessions) and (matching is None or info.id in matching):
                try:
                    yield from self._in(info)
                except HansardError:
                    if info.problem is None:  # a log that cannot be read is told in the list of sessions
                        raise
            if not self.complete:
                return
            self.advance(info.bytes)

    def _in(self, info: SessionInfo) -> Iterator[SearchHit]:
        unmarked: Sequence[range] | None = None  # not looked for in a log that has no hit
        lineage = info.copies_of(self._searched)
        for number, record in enumerate(self._candidates(info.id)):
            if number % 1000 == 0 and monotonic() > self._until:
                self.complete = False
                return
            if lineage is not None and lineage.is_copied(record.seq):
                continue  # it is found in the parent
            if not all(hint.search(record.line) for hint in self._hints):
                continue
            event = decode(record.line)
            text = search_text(event)
            folded = text.lower()
            if all(word in folded for word in self._words):
                unmarked = self._store[info.id].unmarked_replays() if unmarked is None else unmarked
                if mark(event, unmarked).replay:
                    continue
                around = _excerpt(text, folded.find(self._words[0]))
                yield SearchHit(info.id, record.seq, record.type, event.timestamp, around, info.title)

    def _candidates(self, session_id: str) -> Iterator[Record]:
        """Yields the records that may match: from the index where the store has one, else all of the searched types."""
        if self._store.search is None:
            return self._store[session_id].records(types=self._types)
        return self._store.search.records(session_id, self._words, self._types)


def _words(query: str) -> list[str]:
    try:
        words = [word.lower() for word in shlex.split(query)]
    except ValueError:
        words = query.lower().split()  # a quotation mark that is never closed, or an apostrophe
    words = [word for word in words if word]
    if not words:
        raise UsageError("say what to search for: one word or more")
    return words


def _byte_pattern(word: str) -> re.Pattern[bytes] | None:
    """What a line must have in it if its event has the word: letters that JSON spells in only one way. None if there are none."""
    spelled = max(re.findall(r"[0-9a-z ._:-]+", word), key=len, default="")
    return re.compile(re.escape(spelled.encode()), re.IGNORECASE) if spelled else None


def _excerpt(text: str, place: int) -> str:
    begin, end = max(0, place - CONTEXT_CHARS), place + 2 * CONTEXT_CHARS
    shown = " ".join(text[begin:end].split())
    return f"{'…' if begin else ''}{shown}{'…' if end < len(text) else ''}"
