"""What both engines say in the same words: everything of a `Store` that follows from its lines, its head and its blobs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Iterator
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self

from hansard.errors import UsageError
from hansard.events import Event
from hansard.originals import unwrap
from hansard.store import lines
from hansard.store.interface import Cursor, Head, Record, SessionInfo

if TYPE_CHECKING:
    from hansard.store.notebook import Recorded

INLINE_LIMIT = 1024 * 1024
"""An original above this size becomes a blob."""


class Engine(ABC):
    """A store that can be a context, and that reads events where it reads lines."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Stop writing all sessions."""

    @abstractmethod
    def head(self, session_id: str) -> Head:
        """How far the log has got."""

    @abstractmethod
    def sessions(self) -> list[SessionInfo]:
        """Every session, the one that changed last first."""

    @abstractmethod
    def records(
        self,
        session_id: str,
        after: int | Cursor = 0,
        limit: int | None = None,
        before: int | None = None,
        types: Iterable[str] | None = None,
    ) -> Iterator[Record]:
        """Like `read`, but as lines, for sending on."""

    @abstractmethod
    def follow_records(self, session_id: str, after: int | Cursor = 0) -> AsyncIterator[Record]:
        """Like `follow`, but as lines."""

    @abstractmethod
    def get_blob(self, session_id: str, sha256: str) -> bytes:
        """The bytes of that name, checked."""

    def __getitem__(self, session_id: str) -> Recorded:
        """A session, to iterate over, and as a notebook shows it."""
        from hansard.store.notebook import Recorded

        return Recorded(self, session_id)

    def _repr_html_(self) -> str:
        from hansard.store.notebook import listing

        return listing(self.sessions())

    def read(
        self,
        session_id: str,
        after: int | Cursor = 0,
        limit: int | None = None,
        before: int | None = None,
        types: Iterable[str] | None = None,
    ) -> Iterator[Event]:
        """Events in order of ``seq``, in constant memory. A damaged line comes as a ``raw`` event with ``seq`` 0."""
        return (lines.event(record) for record in self.records(session_id, after, limit, before, types))

    def tail(self, session_id: str, n: int, before: int | None = None) -> list[Event]:
        """The last ``n`` events, or the last ``n`` before a seq."""
        end = self.head(session_id).seq + 1
        if before is not None:
            end = min(end, before)
        return list(self.read(session_id, max(0, end - 1 - n), before=end))

    def follow(self, session_id: str, after: int | Cursor = 0) -> AsyncIterator[Event]:
        """Everything after the cursor, then everything as it is written. No gap, no repeat, no end."""
        records = self.follow_records(session_id, after)
        return (lines.event(record) async for record in records)

    def original(self, session_id: str, event: Event) -> bytes:
        """The bytes of the wire frame an event came from."""
        if event.original is None:
            raise UsageError("this event has no original: the frame's bytes are on the first event that came of it")
        return unwrap(event.original, partial(self.get_blob, session_id))
