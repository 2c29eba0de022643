"""The interfaces of a store: a `Store` has sessions, and `store[session_id]` is the `Log` of one.

An engine implements the abstract methods of both; everything else follows from them. `Search`, `Tallies`, `SeenFiles`, `Mailbox` and
`Notes` and `Captures` are optional capabilities: attributes of the store, None where the engine does not have them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import aclosing
from math import inf
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from hansard.errors import HansardError, UnknownSession, UsageError
from hansard.events import Event, SessionLifecycle
from hansard.events.ledger import SessionUsage
from hansard.events.order import ConversationOrder
from hansard.events.originals import unwrap
from hansard.events.replays import BOUNDARY_TYPES, REPEATED_TYPES, find_unmarked, has_marks, mark, without_replays
from hansard.events.summary import LINEAGE, STREAMS, is_checkpoint, session_changes
from hansard.store import lines
from hansard.store.captures import Captures
from hansard.store.checkpoint import MAX_OPEN_RECORDS
from hansard.store.records import Cursor, Finding, Head, MailboxMessage, Record, SeenFile, SessionChanges, SessionInfo

if TYPE_CHECKING:
    from sqlite3 import Connection

    from hansard.store.table_query import Rows

MAX_INLINE_BYTES = 1024 * 1024
"""A larger original becomes a blob."""
_MAY_BE_LATE = {STREAMS, LINEAGE}
"""What is recorded late: the events of other streams, and the parent of the session."""


class Log(ABC):
    """The append-only log of one session, with one writer at a time. Iterate over it to get its events.

    Making one reads nothing; a method raises `UnknownSession` if there is no such session. ``after`` is a seq or a `Cursor`; one that does
    not belong to the log is an error.
    """

    __slots__ = ("session_id",)
    session_id: str

    # ---- what an engine implements

    @abstractmethod
    def head(self) -> Head:
        """Returns the end of the log."""

    @abstractmethod
    def append(self, events: Iterable[Event]) -> list[Event]:
        """Writes all of the events or none, and returns them as they are in the log: with id, seq, time and session.

        The session is created if it does not exist, and this store keeps writing it until `release`. `AppendFailed` means that nothing was
        written. After `StoreUnavailable` the events may be in the log: append the same events again, and they are there once.
        """

    @abstractmethod
    def ingest(self, lines: Iterable[Record]) -> Head:
        """Appends the lines of another store's log unchanged, in batches, each written completely or not at all.

        ``lines`` are what `records` of the other log gives, damaged ones included. They create the session if it does not exist; otherwise
        they begin with a line that the log has, or with the next one. A line that the log has with the same bytes is skipped; other bytes
        are `LogForked`. Nothing else is added to the log: no checkpoint, no notice. No one else can write the session during the call, and
        it is free again after it. Blobs are not copied: put those of a line before the line, once the session exists.
        """

    @abstractmethod
    def release(self) -> None:
        """Stops writing this session, so that another process can."""

    @abstractmethod
    def records(
        self, after: int | Cursor = 0, limit: int | None = None, before: int | None = None, types: Iterable[str] | None = None
    ) -> Iterator[Record]:
        """Like `read`, but yields the lines."""

    @abstractmethod
    def follow_records(self, after: int | Cursor = 0) -> AsyncGenerator[Record]:
        """Like `follow`, but yields the lines."""

    @abstractmethod
    def verify(self) -> list[Finding]:
        """Returns everything that is wrong with the log."""

    @abstractmethod
    def put_blob(self, data: bytes) -> str:
        """Stores bytes next to the log and returns their name, the SHA-256."""

    @abstractmethod
    def get_blob(self, sha256: str) -> bytes:
        """Returns the bytes of that name; raises `BlobDamaged` if they are missing or changed."""

    # ---- what follows from it

    def read(
        self, after: int | Cursor = 0, limit: int | None = None, before: int | None = None, types: Iterable[str] | None = None
    ) -> Iterator[Event]:
        """Yields events in order of ``seq``, in constant memory. A damaged line is a ``raw`` event with ``seq`` 0.

        Repetitions by an agent that resumed the session are marked (`Event.replay`), also in a log of version 0.1.
        """
        wanted = None if types is None else frozenset(types)
        events = self.decode(after, limit, before, wanted)
        unmarked = () if wanted is not None and REPEATED_TYPES.isdisjoint(wanted) else self.unmarked_replays()
        return (mark(event, unmarked) for event in events) if unmarked else events

    def read_blocks(self, size: int) -> Iterator[tuple[list[Event], int]]:
        """Yields all events in blocks of about ``size`` bytes, each with its number of bytes: the fastest way to read a whole log."""
        unmarked = self.unmarked_replays()
        for block, bytes_read in self.decode_blocks(size):
            yield [mark(event, unmarked) for event in block] if unmarked else block, bytes_read

    def conversation(self) -> Iterator[Event]:
        """Yields all events in the order of the conversation: an event that was recorded late has its place."""
        late = self.late_events()
        if not late:
            return self.read()
        order = ConversationOrder(late)
        return (event for given in self.read() for event in order.feed(given))

    def conversation_blocks(self, size: int) -> Iterator[tuple[list[Event], int]]:
        """Like `conversation`, in blocks as of `read_blocks`."""
        order = ConversationOrder(self.late_events())
        for block, bytes_read in self.read_blocks(size):
            yield [event for given in block for event in order.feed(given)], bytes_read

    def late_events(self) -> list[Event]:
        """Returns the events that were recorded later than their place in the conversation."""
        return [event for event in self.read() if event.after is not None] if self._changes(_MAY_BE_LATE) else []

    def has_streams(self) -> bool:
        """Whether a stream was added to the session's first one, as the last checkpoint says."""
        return self._changes({STREAMS})

    def _changes(self, names: Set[str]) -> bool:
        """Whether an event has changed one of these things about the session, as the last checkpoint says."""
        for size in (1, MAX_OPEN_RECORDS + 1):
            for event in reversed(self.tail(size)):
                if isinstance(event, SessionLifecycle) and not names.isdisjoint(session_changes(event)):
                    return True
                if isinstance(event, SessionLifecycle) and is_checkpoint(event):
                    return False
        events = self.read(types=("session_lifecycle",))
        return any(isinstance(event, SessionLifecycle) and not names.isdisjoint(session_changes(event)) for event in events)

    def unmarked_replays(self) -> Sequence[range]:
        """Returns the seqs of what agents repeated, if the log is of version 0.1: there, the events themselves are not marked."""
        if has_marks(next(self.decode(limit=1), None)):
            return ()
        return find_unmarked(map(lines.decode_record, self.records(types=BOUNDARY_TYPES)))

    def decode(
        self, after: int | Cursor = 0, limit: int | None = None, before: int | None = None, types: Iterable[str] | None = None
    ) -> Iterator[Event]:
        """Like `read`, but yields the events as they are written. An engine may have a faster way than this."""
        return map(lines.decode_record, self.records(after, limit, before, types))

    def decode_blocks(self, size: int) -> Iterator[tuple[list[Event], int]]:
        """Like `read_blocks`, but yields the events as they are written. An engine may have a faster way than this."""
        block: list[Event] = []
        bytes_read = 0
        for record in self.records():
            block.append(lines.decode_record(record))
            bytes_read += record.end - record.offset
            if bytes_read >= size:
                yield block, bytes_read
                block, bytes_read = [], 0
        if block:
            yield block, bytes_read

    def tail(self, n: int, before: int | None = None) -> list[Event]:
        """Returns the last ``n`` events, or the last ``n`` before a seq."""
        end = self.head().seq + 1
        if before is not None:
            end = min(end, before)
        return list(self.read(max(0, end - 1 - n), before=end))

    def follow(self, after: int | Cursor = 0) -> AsyncGenerator[Event]:
        """Yields everything after the cursor, then every new event as it is written, without a gap or a repeat. It does not end."""
        return _decode_records(self.follow_records(after), self.unmarked_replays())

    def original(self, event: Event) -> bytes:
        """Returns the bytes of the wire frame that an event came from."""
        if event.original is None:
            raise UsageError("this event has no original: the frame's bytes are on the first event that came of it")
        return unwrap(event.original, self.get_blob)

    def __iter__(self) -> Iterator[Event]:
        return self.read()

    def __repr__(self) -> str:
        try:
            events = f": {self.head().seq} events"
        except HansardError:
            events = ""
        return f"<session {self.session_id}{events}>"

    def _repr_html_(self) -> str:
        from hansard.store.notebook import SHOWN_TYPES, session_html

        return session_html(
            self.session_id, without_replays(event for event in self.conversation() if event.type in SHOWN_TYPES), self.head().seq
        )


class Candidates(NamedTuple):
    """The sessions that may contain some words, each with a function that yields the records that may."""

    sessions: Mapping[str, Callable[[], Iterator[Record]]]
    unread: Collection[str] = ()
    """Those of the sessions that the index does not know to their ends: all of the log is read for them."""


class Search(Protocol):
    """Finds records by their search text, with an index. Words are lowercase."""

    def candidates(self, words: Sequence[str], types: Iterable[str]) -> Candidates:
        """Returns where records of these types may be that contain all the words.

        A session that was listed before and is not among them has no such record.
        """
        ...


class Tallies(Protocol):
    """What the sessions used, counted when their logs were written."""

    def used(self, session_id: str) -> SessionUsage | None:
        """Returns what a session used, if its log is counted to its end."""
        ...


class SeenFiles(Protocol):
    """The files that imports looked at. It may be lost: then they are looked at again."""

    def seen(self) -> dict[str, list[SeenFile]]:
        """Returns the files, by path; those whose session is gone are left out."""
        ...

    def note(self, files: Iterable[SeenFile]) -> None:
        """Notes files, in the place of what was known of them."""
        ...


class Mailbox(Protocol):
    """Messages between the processes that share a store, each for the process that writes a session."""

    async def send(self, session_id: str, name: str, data: bytes) -> bytes | None:
        """Sends a message to the process that writes the session, and returns its reply; None if no process writes it, or this one.

        A name is one message with one reply, however often and by whomever it is sent. If the writer ends before it has replied, the next
        one gets the message. Raises `LogLocked` if the writer is alive and does not receive messages.
        """
        ...

    def receive(self) -> AsyncIterator[MailboxMessage]:
        """Yields the messages for the sessions that this store writes; each needs a reply. It does not end."""
        ...

    def reply(self, message: MailboxMessage, data: bytes | None) -> None:
        """Replies to a message. None returns it: another process writes the session by now, and gets the message."""
        ...


class Notes(Protocol):
    """Small files next to a log. A note may be lost: it only repeats what the log says."""

    def put(self, session_id: str, name: str, data: bytes) -> None:
        """Keeps a note, and replaces the one of that name."""
        ...

    def get(self, session_id: str, name: str) -> bytes | None:
        """Returns the note of that name, if there is one."""
        ...


class Store(ABC):
    """Sessions, each an append-only `Log`. Use it as a context manager, so that it releases the sessions it writes."""

    search: Search | None = None
    tallies: Tallies | None = None
    files: SeenFiles | None = None
    mailbox: Mailbox | None = None
    notes: Notes | None = None
    captures: Captures | None = None

    @abstractmethod
    def __getitem__(self, session_id: str) -> Log:
        """Returns the log of a session, without reading anything."""

    @abstractmethod
    def create(self, session_id: str | None = None, **header: Any) -> Head:
        """Creates a log. ``header`` are fields of its first event: ``format``, ``title``, ``parent_session_id``, …"""

    @abstractmethod
    def sessions(self) -> list[SessionInfo]:
        """Returns every session, the one that changed last first."""

    @abstractmethod
    def delete(self, session_id: str, at: Cursor | None = None) -> None:
        """Deletes a session and everything that belongs to it; with ``at`` only if that is still its head, else raises `LogReset`."""

    @abstractmethod
    def abandoned(self) -> list[str]:
        """Returns the sessions whose writer was killed before it released them."""

    @abstractmethod
    def close(self) -> None:
        """Stops writing all sessions."""

    def session(self, session_id: str) -> SessionInfo:
        """Returns one session of the list. An engine may have a faster way than this."""
        found = next((info for info in self.sessions() if info.id == session_id), None)
        if found is None:
            raise UnknownSession(session_id)
        return found

    def changes(self, mark: Any = None) -> SessionChanges:
        """Returns the sessions that changed since a look at the list; ``mark`` is from that look. An engine may return all of them."""
        return SessionChanges(self.sessions())

    def captured(self) -> list[SessionInfo]:
        """Returns the sessions that are not in the list yet, because their files were only copied so far, the newest first."""
        return [] if self.captures is None else self.captures.sessions()

    def update_index(self, seconds: float = inf, advance: Callable[[int], object] | None = None, from_scratch: bool = False) -> bool:
        """Brings the index of an engine up to the logs, where its writers do not do that; returns False if the time was over.

        The index is what search, the usage of the sessions, and the ledger need. ``advance`` is called with the size of each log that was
        read.
        """
        return True

    def connect_tables(self) -> Connection | None:
        """Opens the tables that an engine keeps of all sessions, up to date and only for reading; None if it keeps none.

        They are those of `hansard.store.catalog_rows`.
        """
        return None

    def query(self, question: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> Rows:
        """Answers a question in SQL to all sessions. Iterate over the rows, or use `Rows.to_pandas` and its neighbors.

        The tables are `sessions`, `turns`, `tool_calls`, `edits`, `requests`, `usage`, `files`, and `events`.
        """
        from hansard.store.table_query import query  # it knows stores

        return query(self, question, parameters)

    def find(self, name: str) -> str | None:
        """Returns the session with this id, or this id of the agent's, or the only one whose id begins so; None if there is none.

        Raises `AmbiguousSession` if several are meant.
        """
        from hansard.store.lookup import find_session  # it knows stores

        return find_session([*self.sessions(), *self.captured()], name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        import asyncio  # whoever gets here has imported it

        await asyncio.to_thread(self.close)

    def _repr_html_(self) -> str:
        from hansard.store.notebook import sessions_html

        return sessions_html(self.sessions())


async def _decode_records(records: AsyncGenerator[Record], unmarked: Sequence[range]) -> AsyncGenerator[Event]:
    async with aclosing(records):
        async for record in records:
            yield mark(lines.decode_record(record), unmarked)
