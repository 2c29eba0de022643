"""The PostgreSQL engine: `Store` and `Log`, each method a few statements."""

from __future__ import annotations

import asyncio
import threading
from bisect import bisect_left
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, aclosing
from functools import partial
from itertools import chain, islice
from operator import attrgetter
from typing import Any
from weakref import WeakKeyDictionary

import psycopg

from hansard.errors import Fenced, LogDeleted, SessionExists, UnknownSession
from hansard.events import Event
from hansard.events.codec import decode_known
from hansard.store import lines
from hansard.store.batch import WriterOptions, header_event
from hansard.store.ids import TimeOrderedIds, check_session_id, now_ms
from hansard.store.interface import MAX_INLINE_BYTES, Candidates, Log, Mailbox, Notes, Search, Store
from hansard.store.postgres import blobs, catalog, reader, schema
from hansard.store.postgres.blobs import delete_session
from hansard.store.postgres.catalog import search_sessions
from hansard.store.postgres.connection import Pool, connect, parse_address, store_error
from hansard.store.postgres.follow import Listener, follow, writer_channel
from hansard.store.postgres.lease import Lease, acquire, own_lock_error
from hansard.store.postgres.mailbox import PostgresMailbox
from hansard.store.postgres.reader import BEYOND_END, FILTERED_PAGE_ROWS, PAGE_BYTES, PAGE_ROWS, LogPosition, Span, read_lines
from hansard.store.postgres.transfer import ingest, verify
from hansard.store.postgres.writer import Writer
from hansard.store.records import Cursor, Finding, Head, Record, SessionChanges, SessionInfo, resolve_cursor

_BLOCK_BYTES = 64 * 1024
"""How much is decoded at once when events are read."""


class PostgresStore(Store):
    """A `Store` in a database, for as many processes and machines as can reach it."""

    def __init__(self, address: str, *, inline_limit: int = MAX_INLINE_BYTES, clock: Callable[[], int] = now_ms) -> None:
        self.address = parse_address(address)
        self._ids = TimeOrderedIds(clock)
        self._pool = Pool(self.address)
        self._lease = Lease(self._pool)
        self._writers = PostgresWriters(self._pool, self._lease, WriterOptions(True, inline_limit, clock))
        self._listeners: WeakKeyDictionary[asyncio.AbstractEventLoop, Listener] = WeakKeyDictionary()
        self.search: Search | None = PostgresSearch(self._pool)
        self.mailbox: Mailbox | None = PostgresMailbox(self._pool, self._lease, self._listener, self._writers.sessions)
        self.notes: Notes | None = PostgresNotes(self._pool)

    def __getitem__(self, session_id: str) -> PostgresLog:
        """Returns the log of a session, without reading anything."""
        return PostgresLog(self._pool, self._writers, self._listener, session_id)

    def create(self, session_id: str | None = None, **header: Any) -> Head:
        """Creates a log. ``header`` are fields of its first event: ``format``, ``title``, ``parent_session_id``, …"""
        session_id = self._ids.next() if session_id is None else check_session_id(session_id)
        header_event(session_id, "", header)  # raises for an unknown field before anything is written
        self._writers.create(session_id, header)
        return self[session_id].head()

    def sessions(self) -> list[SessionInfo]:
        """Returns every session, the one that changed last first."""
        return catalog.sessions(self._pool)

    def changes(self, mark: Any = None) -> SessionChanges:
        """Returns the sessions that changed since a look at the list, which an index knows."""
        return catalog.changes(self._pool, mark)

    def session(self, session_id: str) -> SessionInfo:
        """Returns one session of the list, without looking at the others."""
        found = catalog.sessions(self._pool, check_session_id(session_id))
        if not found:
            raise UnknownSession(session_id)
        return found[0]

    def delete(self, session_id: str, at: Cursor | None = None) -> None:
        """Deletes a session and everything that belongs to it; with ``at`` only if that is still its head, else raises `LogReset`."""
        self._writers.release(session_id)
        delete_session(self._pool, self._lease, session_id, at)

    def abandoned(self) -> list[str]:
        """Returns the sessions whose writer was killed before it released them."""
        return catalog.abandoned(self._pool)

    def close(self) -> None:
        """Stops writing all sessions, and closes the connections."""
        with ExitStack() as each:  # one that fails does not keep the others
            each.callback(self._pool.close)
            each.callback(self._lease.stop)
            for session_id in self._writers.sessions():
                each.callback(self._writers.release, session_id)

    def _listener(self) -> Listener:
        loop = asyncio.get_running_loop()
        listener = self._listeners.get(loop)
        if listener is None:
            listener = self._listeners[loop] = Listener(self.address, writer_channel(self.address.schema, self._lease.id))
        return listener


class PostgresLog(Log):
    """The log of a session in a database."""

    def __init__(self, pool: Pool, writers: PostgresWriters, listener: Callable[[], Listener], session_id: str) -> None:
        self.session_id = session_id
        self._pool = pool
        self._writers = writers
        self._listener = listener

    def head(self) -> Head:
        """Returns the end of the log."""
        return reader.head(self._pool, check_session_id(self.session_id))

    def append(self, events: Iterable[Event]) -> list[Event]:
        """Writes all of the events or none, and returns them as they are in the log: with id, seq, time and session."""
        writer = self._writers.get(self.session_id)
        try:
            return writer.append(events)
        except (LogDeleted, Fenced):
            self._writers.forget(writer)
            raise

    def ingest(self, lines: Iterable[Record]) -> Head:
        """Appends the lines of another store's log unchanged, in batches, each written completely or not at all."""
        self._writers.ingest(self.session_id, lines)
        return self.head()

    def release(self) -> None:
        """Stops writing this session, so that another process can."""
        self._writers.release(self.session_id)

    def decode_blocks(self, size: int) -> Iterator[tuple[list[Event], int]]:
        """Like `read_blocks`, but yields the events as they are written."""
        head, now = reader.require_head(self._pool, check_session_id(self.session_id))
        rows = max(PAGE_ROWS, 2 * size * head.seq // max(1, head.bytes))  # by its average line: few rows are read in vain
        span = Span(head, rows=rows, bytes=max(PAGE_BYTES, size))
        for found in reader.read_pages(self._pool, LogPosition(0), span, now):
            for block in split_blocks(found, size):
                yield _events(block, self.session_id), block[-1].end - block[0].offset

    def records(
        self, after: int | Cursor = 0, limit: int | None = None, before: int | None = None, types: Iterable[str] | None = None
    ) -> Iterator[Record]:
        """Like `read`, but yields the lines."""
        found = self._pages(after, limit, before, types)
        return islice((_readable(record, self.session_id) for page in found for record in page), limit)

    def decode(
        self, after: int | Cursor = 0, limit: int | None = None, before: int | None = None, types: Iterable[str] | None = None
    ) -> Iterator[Event]:
        """Like `read`, but yields the events as they are written."""
        found = self._pages(after, limit, before, types)
        read = (_events(block, self.session_id) for page in found for block in split_blocks(page, _BLOCK_BYTES))
        return islice(chain.from_iterable(read), limit)

    def _pages(self, after: int | Cursor, limit: int | None, before: int | None, types: Iterable[str] | None) -> Iterator[Sequence[Record]]:
        """Yields the wanted lines page by page; the first page comes with the state of the log."""
        pool, session_id = self._pool, check_session_id(self.session_id)
        if types is not None:
            head, now = reader.require_head(pool, session_id)
            span = Span(head, before, list(types), rows=FILTERED_PAGE_ROWS)
            return reader.read_pages(pool, LogPosition(resolve_cursor(head, after)), span, now)
        rows = PAGE_ROWS if limit is None else max(1, min(PAGE_ROWS, limit))
        seq = _cursor_seq(after)
        log = reader.open_log(pool, session_id, seq, min(seq + rows, BEYOND_END if before is None else before - 1))
        span, position = Span(log.head, before, rows=rows), LogPosition(resolve_cursor(log.head, after))
        return reader.read_pages(pool, position, span, log.now, log.first)

    def follow_records(self, after: int | Cursor = 0) -> AsyncGenerator[Record]:
        """Like `follow`, but yields the lines."""
        head = self.head()
        return self._follow(head, reader.position_after(self._pool, head, resolve_cursor(head, after)))

    async def _follow(self, head: Head, position: LogPosition) -> AsyncGenerator[Record]:
        async with aclosing(follow(self._pool, self._listener(), head, position)) as records:
            async for record in records:
                yield record

    def verify(self) -> list[Finding]:
        """Returns everything that is wrong with the log."""
        return verify(self._pool, check_session_id(self.session_id))

    def put_blob(self, data: bytes) -> str:
        """Stores bytes next to the log and returns their name, the SHA-256."""
        self.head()
        return blobs.put_blob(self._pool, self.session_id, data)

    def get_blob(self, sha256: str) -> bytes:
        """Returns the bytes of that name; raises `BlobDamaged` if they are missing or changed."""
        self.head()
        return blobs.get_blob(self._pool, self.session_id, sha256)


class PostgresWriters:
    """The writers of a store: one for each session that it writes."""

    def __init__(self, pool: Pool, lease: Lease, options: WriterOptions) -> None:
        self._pool = pool
        self._lease = lease
        self._options = options
        self._by_session: dict[str, Writer] = {}
        self._guard = threading.RLock()

    def sessions(self) -> list[str]:
        """Returns the sessions that this store writes."""
        return list(self._by_session)

    def get(self, session_id: str) -> Writer:
        """Returns the writer of a session; the first time it acquires the session, and creates the log if there is none."""
        return self._by_session.get(session_id) or self._open(check_session_id(session_id))

    def create(self, session_id: str, header: dict[str, Any]) -> None:
        """Creates a log; raises `SessionExists` if there is one."""
        with self._guard:
            if session_id in self._by_session or not self._create(session_id, header):
                raise SessionExists(session_id)

    def ingest(self, session_id: str, lines: Iterable[Record]) -> None:
        """Appends the lines of another store's log to a session that this store does not write."""
        with self._guard:
            if check_session_id(session_id) in self._by_session:
                raise own_lock_error(session_id)
        ingest(self._pool, self._lease, session_id, lines, self._options.clock)

    def release(self, session_id: str) -> None:
        """Closes the writer of a session, if there is one."""
        with self._guard:
            writer = self._by_session.pop(check_session_id(session_id), None)
        if writer is not None:
            writer.close()

    def forget(self, writer: Writer) -> None:
        """Drops a writer whose session belongs to another process now, or is gone."""
        with self._guard:
            writer.forget()
            if self._by_session.get(writer.session_id) is writer:
                del self._by_session[writer.session_id]

    def _open(self, session_id: str) -> Writer:
        with self._guard:
            while session_id not in self._by_session:
                ownership = acquire(self._pool, self._lease, session_id)
                if ownership is not None:
                    self._by_session[session_id] = Writer(self._pool, self._lease, session_id, self._options, ownership)
                else:
                    self._create(session_id, {})
            return self._by_session[session_id]

    def _create(self, session_id: str, header: dict[str, Any]) -> bool:
        """Creates a log and becomes its writer; returns False if it exists."""
        self._lease.start()
        writer = Writer(self._pool, self._lease, session_id, self._options, None)
        try:
            if not writer.create(header):
                return False
        except BaseException:
            self._lease.release(session_id, 1)  # if it was created after all
            raise
        self._by_session[session_id] = writer
        return True


class PostgresSearch:
    """Search by the index over the search text of events."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def candidates(self, words: Sequence[str], types: Iterable[str]) -> Candidates:
        """Returns the sessions in which an event of these types contains all the words, each with a function that yields such records."""
        wanted = list(types)
        return Candidates({name: partial(self._records, name, words, wanted) for name in search_sessions(self._pool, words, wanted)})

    def _records(self, session_id: str, words: Sequence[str], types: list[str]) -> Iterator[Record]:
        head = reader.head(self._pool, session_id)
        return read_lines(self._pool, LogPosition(0), Span(head, types=types, words=list(words), rows=FILTERED_PAGE_ROWS))


class PostgresNotes:
    """Notes as rows next to a log."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def put(self, session_id: str, name: str, data: bytes) -> None:
        """Keeps a note, and replaces the one of that name."""
        reader.head(self._pool, check_session_id(session_id))
        blobs.put_note(self._pool, session_id, name, data)

    def get(self, session_id: str, name: str) -> bytes | None:
        """Returns the note of that name, if there is one."""
        reader.head(self._pool, check_session_id(session_id))
        return blobs.get_note(self._pool, session_id, name)


def migrate_store(text: str) -> tuple[int, int]:
    """Bring the tables up to this version; the version they had, and the one they have."""
    address = parse_address(text)
    with connect(address) as connection:
        try:
            return schema.version(connection, address), schema.migrate(connection, address)
        except psycopg.Error as problem:
            raise store_error(problem, address) from problem


def _cursor_seq(after: object) -> int:
    """The seq that a cursor names, before it is known whether it belongs to the log."""
    seq = after.seq if isinstance(after, Cursor) else after
    return seq if type(seq) is int and 0 <= seq < BEYOND_END else 0


def split_blocks(found: Sequence[Record], size: int) -> Iterator[Sequence[Record]]:
    """Lines that stand together, in blocks of about so many bytes."""
    begin = 0
    while begin < len(found):
        end = bisect_left(found, found[begin].offset + size, lo=begin, key=_end) + 1
        yield found[begin:end]
        begin = end


_end, _damage = attrgetter("end"), attrgetter("damage")


def _events(block: Sequence[Record], session_id: str) -> list[Event]:
    """The events of lines; many at once, where none is damaged or of a newer version."""
    sound = None if any(map(_damage, block)) else decode_known([record.line for record in block])
    return [lines.decode_record(_readable(record, session_id)) for record in block] if sound is None else sound


def _readable(one: Record, session_id: str) -> Record:
    """A damaged line as an event that says so."""
    return one if one.damage is None else lines.damage_event(one, session_id)
