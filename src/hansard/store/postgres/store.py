"""The engine on PostgreSQL: the words of `Store`, each of them a few statements."""

from __future__ import annotations

import asyncio
import threading
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain, islice
from operator import attrgetter
from typing import Any
from weakref import WeakKeyDictionary

import psycopg

from hansard.codec import decode_known
from hansard.errors import Fenced, LogDeleted, SessionExists
from hansard.events import Event
from hansard.store import lines
from hansard.store.base import INLINE_LIMIT, Engine
from hansard.store.batch import Options, created
from hansard.store.cursors import seq_of
from hansard.store.ids import TimeOrderedIds, check_session_id, now_ms
from hansard.store.interface import Asked, Cursor, Finding, Head, Record, SessionInfo
from hansard.store.postgres import blobs, listing, problems, reader, schema
from hansard.store.postgres.address import parse
from hansard.store.postgres.channels import door
from hansard.store.postgres.follow import follow
from hansard.store.postgres.lease import Lease
from hansard.store.postgres.listening import Listening
from hansard.store.postgres.mailbox import Mailbox
from hansard.store.postgres.pool import Pool, connected
from hansard.store.postgres.reader import BYTES, CHOSEN_ROWS, FAR, ROWS, Place, Span, stored
from hansard.store.postgres.removing import remove
from hansard.store.postgres.searching import saying
from hansard.store.postgres.taking import held_here, take
from hansard.store.postgres.transfer import transfer
from hansard.store.postgres.verify import verify
from hansard.store.postgres.writer import Writer

_AT_ONCE = 64 * 1024
"""Bytes of events that are decoded together."""


class PostgresStore(Engine):
    """A `Store` in a database, for as many processes and machines as reach it."""

    def __init__(self, address: str, *, inline_limit: int = INLINE_LIMIT, clock: Callable[[], int] = now_ms) -> None:
        self.address = parse(address)
        self._options = Options(True, inline_limit, clock)
        self._ids = TimeOrderedIds(clock)
        self._pool = Pool(self.address)
        self._lease = Lease(self._pool)
        self._writers: dict[str, Writer] = {}
        self._guard = threading.RLock()
        self._mailbox = Mailbox(self._pool, self._lease, lambda: list(self._writers))
        self._listening: WeakKeyDictionary[asyncio.AbstractEventLoop, Listening] = WeakKeyDictionary()

    # ---- writing

    def create(self, session_id: str | None = None, **header: Any) -> Head:
        """A new log. ``header`` are fields of its first event: ``format``, ``title``, ``parent_session_id``, …"""
        session_id = self._ids.next() if session_id is None else check_session_id(session_id)
        created(session_id, "", header)  # a field that does not exist is noticed before anything is written
        with self._guard:
            if session_id in self._writers or not self._create(session_id, header):
                raise SessionExists(session_id)
        return self.head(session_id)

    def append(self, session_id: str, events: Iterable[Event]) -> list[Event]:
        """Write all of the events or none, and return them as they are in the log: with id, seq, time and session."""
        writer = self._writers.get(session_id) or self._writer(check_session_id(session_id))
        try:
            return writer.append(events)
        except (LogDeleted, Fenced):
            with self._guard:
                writer.forget()
                if self._writers.get(session_id) is writer:
                    del self._writers[session_id]
            raise

    def transfer(self, session_id: str, lines: Iterable[Record]) -> Head:
        """Append lines of another store's log as they stand there, byte for byte, in batches, each of them all or nothing."""
        with self._guard:
            if check_session_id(session_id) in self._writers:
                raise held_here(session_id)
        transfer(self._pool, self._lease, session_id, lines, self._options.clock)
        return self.head(session_id)

    def release(self, session_id: str) -> None:
        """Stop writing this session, so that somebody else may."""
        with self._guard:
            writer = self._writers.pop(check_session_id(session_id), None)
        if writer is not None:
            writer.close()

    def close(self) -> None:
        """Stop writing all sessions, and hang up."""
        with ExitStack() as each:  # one that fails does not keep the others
            each.callback(self._pool.close)
            each.callback(self._lease.stop)
            for session_id in list(self._writers):
                each.callback(self.release, session_id)

    def delete(self, session_id: str, at: Cursor | None = None) -> None:
        """Remove a session with everything that belongs to it; with ``at`` only if its head is still there, else `LogReset`."""
        check_session_id(session_id)
        self.release(session_id)
        remove(self._pool, self._lease, session_id, at)

    # ---- reading

    def head(self, session_id: str) -> Head:
        """How far the log has got."""
        return reader.head(self._pool, check_session_id(session_id))

    def read_blocks(self, session_id: str, size: int) -> Iterator[tuple[list[Event], int]]:
        """All of a log's events in blocks of about ``size`` bytes, and how many bytes each is: the fastest way to read everything."""
        head, now = reader.found(self._pool, check_session_id(session_id))
        rows = max(ROWS, 2 * size * head.seq // max(1, head.bytes))  # by its average line: not many are looked at in vain
        span = Span(head, rows=rows, bytes=max(BYTES, size))
        for found in reader.pages(self._pool, Place(0), span, now):
            for block in blocks(found, size):
                yield _events(block, session_id), block[-1].end - block[0].offset

    def records(
        self,
        session_id: str,
        after: int | Cursor = 0,
        limit: int | None = None,
        before: int | None = None,
        types: Iterable[str] | None = None,
    ) -> Iterator[Record]:
        """Like `read`, but as lines, for sending on."""
        found = self._pages(session_id, after, limit, before, types)
        return islice((_shown(record, session_id) for page in found for record in page), limit)

    def read(
        self,
        session_id: str,
        after: int | Cursor = 0,
        limit: int | None = None,
        before: int | None = None,
        types: Iterable[str] | None = None,
    ) -> Iterator[Event]:
        """Events in order of ``seq``, in constant memory. A damaged line comes as a ``raw`` event with ``seq`` 0."""
        found = self._pages(session_id, after, limit, before, types)
        read = (_events(block, session_id) for page in found for block in blocks(page, _AT_ONCE))
        return islice(chain.from_iterable(read), limit)

    def _pages(
        self, session_id: str, after: int | Cursor, limit: int | None, before: int | None, types: Iterable[str] | None
    ) -> Iterator[Sequence[Record]]:
        """What is wanted of a log, page by page; the first one comes with how it stands."""
        check_session_id(session_id)
        if types is not None:
            head, now = reader.found(self._pool, session_id)
            return reader.pages(self._pool, Place(seq_of(head, after)), Span(head, before, list(types), rows=CHOSEN_ROWS), now)
        rows = ROWS if limit is None else max(1, min(ROWS, limit))
        seq = _named(after)
        opened = reader.opened(self._pool, session_id, seq, min(seq + rows, FAR if before is None else before - 1))
        span, place = Span(opened.head, before, rows=rows), Place(seq_of(opened.head, after))
        return reader.pages(self._pool, place, span, opened.now, opened.first)

    def saying(self, words: Sequence[str], types: Iterable[str]) -> frozenset[str] | None:
        """The sessions in which an event of these types says all the words, which are in small letters."""
        return saying(self._pool, words, types)

    def said(self, session_id: str, words: Sequence[str], types: Iterable[str]) -> Iterator[Record]:
        """The records of these types that say all the words, which are in small letters."""
        return stored(self._pool, Place(0), Span(self.head(session_id), types=list(types), words=list(words), rows=CHOSEN_ROWS))

    def follow_records(self, session_id: str, after: int | Cursor = 0) -> AsyncIterator[Record]:
        """Like `follow`, but as lines."""
        head = self.head(session_id)
        return self._follow(head, reader.begin(self._pool, head, seq_of(head, after)))

    async def _follow(self, head: Head, place: Place) -> AsyncIterator[Record]:
        async for record in follow(self._pool, self._listening_here(), head, place):
            yield record

    def _listening_here(self) -> Listening:
        loop = asyncio.get_running_loop()
        listening = self._listening.get(loop)
        if listening is None:
            listening = self._listening[loop] = Listening(self.address, door(self.address.schema, self._lease.id))
        return listening

    def sessions(self) -> list[SessionInfo]:
        """Every session, the one that changed last first."""
        return listing.sessions(self._pool)

    def abandoned(self) -> list[str]:
        """The sessions whose last writer is gone and did not let go of them: it was killed."""
        return listing.abandoned(self._pool)

    def verify(self, session_id: str) -> list[Finding]:
        """Everything that is wrong with a log."""
        return verify(self._pool, check_session_id(session_id))

    # ---- other processes

    async def ask(self, session_id: str, name: str, words: bytes) -> bytes | None:
        """Leave words for whoever writes the session, and wait for the answer; None if nobody writes it, or this store itself."""
        return await self._mailbox.ask(self._listening_here(), Asked(check_session_id(session_id), name, words))

    def asked(self) -> AsyncIterator[Asked]:
        """What others ask of the sessions that are written here, as it comes; each is to be answered. No end."""
        return self._mailbox.asked(self._listening_here())

    def answer(self, asked: Asked, words: bytes | None) -> None:
        """Answer it. None: it was not done because the session is somebody else's by now, who will be asked instead."""
        self._mailbox.answer(asked, words)

    # ---- large things

    def put_blob(self, session_id: str, data: bytes) -> str:
        """Store bytes beside the log; they are named by their SHA-256."""
        self.head(session_id)
        return blobs.put_blob(self._pool, session_id, data)

    def get_blob(self, session_id: str, sha256: str) -> bytes:
        """The bytes of that name, checked."""
        self.head(session_id)
        return blobs.get_blob(self._pool, session_id, sha256)

    def put_note(self, session_id: str, name: str, data: bytes) -> None:
        """Keep a note beside the log, in the place of the one of that name. It may be lost: it says what the log says, only sooner."""
        self.head(session_id)
        blobs.put_note(self._pool, session_id, name, data)

    def get_note(self, session_id: str, name: str) -> bytes | None:
        """The note of that name, if there is one."""
        self.head(session_id)
        return blobs.get_note(self._pool, session_id, name)

    # ---- within

    def _writer(self, session_id: str) -> Writer:
        with self._guard:
            while session_id not in self._writers:
                taken = take(self._pool, self._lease, session_id)
                if taken is not None:
                    self._writers[session_id] = Writer(self._pool, self._lease, session_id, self._options, taken)
                else:
                    self._create(session_id, {})
            return self._writers[session_id]

    def _create(self, session_id: str, header: dict[str, Any]) -> bool:
        """Make a log and be its writer; false if there is one already."""
        self._lease.begin()
        writer = Writer(self._pool, self._lease, session_id, self._options, None)
        try:
            if not writer.create(header):
                return False
        except BaseException:
            self._lease.let_go(session_id, 1)  # if it was made after all
            raise
        self._writers[session_id] = writer
        return True


def migrate_store(text: str) -> tuple[int, int]:
    """Bring the tables up to this version; the version they had, and the one they have."""
    address = parse(text)
    with connected(address) as connection:
        try:
            return schema.version(connection, address), schema.migrate(connection, address)
        except psycopg.Error as problem:
            raise problems.told(problem, address) from problem


def _named(after: object) -> int:
    """The seq that a cursor names, before it is known whether it belongs to the log."""
    seq = after.seq if isinstance(after, Cursor) else after
    return seq if type(seq) is int and 0 <= seq < FAR else 0


def blocks(found: Sequence[Record], size: int) -> Iterator[Sequence[Record]]:
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
    return [lines.event(_shown(record, session_id)) for record in block] if sound is None else sound


def _shown(one: Record, session_id: str) -> Record:
    """A damaged line as an event that says so."""
    return one if one.damage is None else lines.as_event(one, session_id)
