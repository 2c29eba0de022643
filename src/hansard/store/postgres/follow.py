"""Follows logs in the database. One connection per event loop listens for notifications, and polls once a second.

A notification only says when to look. A lost one, or a lost connection, costs at most a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Self, cast
from uuid import UUID
from zlib import crc32

import psycopg
from msgspec import Struct
from msgspec.structs import replace
from psycopg import AsyncConnection, sql

from hansard.errors import StoreUnavailable
from hansard.store import lines
from hansard.store.postgres.connection import Address, Pool, session_settings
from hansard.store.postgres.reader import LogPosition, Span, check_head, read_page
from hansard.store.records import Head, Record

CHANNELS = 64
_MAX_PAYLOAD_BYTES = 7_000  # a notification holds less than 8,000 bytes


def session_channel(schema: str, session_id: str) -> str:
    """Where news of a session are told."""
    return f"{schema}_{crc32(session_id.encode()) % CHANNELS}"


def writer_channel(schema: str, writer: UUID) -> str:
    """Where a process is told that there is something for it."""
    return f"{schema}_{writer.hex[:16]}"


def group_by_channel(schema: str, sessions: Iterable[str]) -> Iterator[tuple[str, str]]:
    """What to say on which channel: ids with a blank between them."""
    words: dict[str, list[str]] = {}
    for session_id in sorted(sessions):
        words.setdefault(session_channel(schema, session_id), []).append(session_id)
    for name, ids in words.items():
        at_once = _MAX_PAYLOAD_BYTES // 65
        for begin in range(0, len(ids), at_once):
            yield name, " ".join(ids[begin : begin + at_once])


POLL_SECONDS = 1.0
"""Seconds between two looks."""
_MAX_RECENT_POLLS = 4
_MAX_RETRY_SECONDS = 2.0
"""Seconds between two attempts to reach a database that is away."""


class PollResult(Struct, frozen=True):
    """What one follower found behind a place: the others that stand there need not look."""

    version: int
    found: list[Record]
    end: LogPosition
    is_last: bool
    bytes: int


def _poll(pool: Pool, span: Span, place: LogPosition, version: int) -> PollResult:
    """Look behind a place, which moves on."""
    now = check_head(pool, span.log)
    found, is_last = pool.query(partial(read_page, span=span, place=place, now=now))
    return PollResult(version, found, place, is_last, now.bytes)


class WatchedSession:
    """A session that is followed: the bells of its followers, how often they rang, and what was found lately."""

    def __init__(self) -> None:
        self.wakeups: set[Wakeup] = set()
        self.version = 0
        self._polling = asyncio.Lock()
        self._recent: dict[tuple[str, int, int], PollResult] = {}

    def wake(self) -> None:
        """For all of them."""
        self.version += 1
        for wakeup in self.wakeups:
            wakeup.event.set()

    async def look(self, pool: Pool, span: Span, place: LogPosition) -> PollResult:
        """What stands behind a place, as one of them has found it since the last ring, or as it is.

        It is read while the event loop does something else: the database may be slow, or hang.
        """
        async with self._polling:
            return await self._look(pool, span, place)

    async def _look(self, pool: Pool, span: Span, place: LogPosition) -> PollResult:
        key = (span.log.log_id, place.seq, place.number)
        known = self._recent.get(key)
        if known is not None and known.version == self.version:
            return known
        if known is not None and known.found:  # lines never change, but there may be more by now
            return replace(known, is_last=False)
        version, end = self.version, replace(place)
        result = await asyncio.to_thread(_poll, pool, span, end, version)
        if len(self.wakeups) > 1:
            self._recent[key] = result
            for old in list(self._recent)[:-_MAX_RECENT_POLLS]:
                del self._recent[old]
        return result


class Wakeup:
    """Rings when a log may have changed, until the `with` block ends.

    It is a class, not a generator: an abandoned follower is collected on any thread, and only the event loop may run its `__exit__`.
    """

    def __init__(self, listener: Listener, log: Head, watched: WatchedSession) -> None:
        self.watched = watched
        self.session_id = log.session_id
        self.log_id = log.log_id
        self.seen = -1
        """So many bytes of the log were seen."""
        self.event = asyncio.Event()
        self._listener = listener
        watched.wakeups.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.unwatch(self)

    async def wait(self) -> None:
        """Return at the next ring, or at once if there was one since the last call."""
        await self.event.wait()
        self.event.clear()


class Listener:
    """The alarm of one event loop."""

    def __init__(self, address: Address, door: str) -> None:
        self._address = address
        self._writer_channel = door
        self._message_events: set[asyncio.Event] = set()
        self._watched: dict[str, WatchedSession] = {}
        self._channels_listened: set[str] = set()
        self._wakeup = asyncio.Event()
        self._is_new = False
        """Whether somebody came whose channel is perhaps not heard yet."""
        self._task: asyncio.Task[None] | None = None

    def watch(self, log: Head) -> Wakeup:
        """A bell for a log, until its `with` block ends. What changes after this is not missed."""
        wakeup = Wakeup(self, log, self._watched.setdefault(log.session_id, WatchedSession()))
        self._begin()
        return wakeup

    def unwatch(self, wakeup: Wakeup) -> None:
        """End a watch. The task ends with the last one."""
        wakeup.watched.wakeups.discard(wakeup)
        if not wakeup.watched.wakeups:
            del self._watched[wakeup.session_id]
        self._wakeup.set()

    @contextmanager
    def watch_messages(self) -> Generator[asyncio.Event]:
        """Is set when somebody knocks at the door of this process, and now and then."""
        knocked = asyncio.Event()
        self._message_events.add(knocked)
        self._begin()
        try:
            yield knocked
        finally:
            self._message_events.discard(knocked)
            self._wakeup.set()

    def _begin(self) -> None:
        self._is_new = True
        self._wakeup.set()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="hansard-listening")

    def _is_wanted(self) -> bool:
        """Whether to go on. A cancellation is looked for, because `asyncio.wait_for` of Python 3.11, which psycopg uses, may swallow it."""
        task = asyncio.current_task()
        return bool(self._watched or self._message_events) and not (task is not None and task.cancelling())

    async def _run(self) -> None:
        pause = 0.05
        while self._is_wanted():
            with suppress(psycopg.Error, OSError):
                connection = await AsyncConnection.connect(autocommit=True, **self._address.conninfo)  # pyright: ignore[reportArgumentType]
                try:
                    await connection.execute(session_settings(self._address))
                    self._channels_listened = set()
                    pause = 0.05
                    await self._listen(connection)
                finally:
                    await connection.close()
            if self._is_wanted():
                await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_RETRY_SECONDS)

    async def _listen(self, connection: AsyncConnection[Any]) -> None:
        connection.add_notify_handler(self._on_notification)
        while self._is_wanted():
            self._wakeup.clear()
            self._is_new = False
            for name in self._channels() - self._channels_listened:
                await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(name)))
                self._channels_listened.add(name)
            await self._look(connection)
            await self._wait(connection)

    def _channels(self) -> set[str]:
        doors = {self._writer_channel} if self._message_events else set[str]()
        return doors | {session_channel(self._address.schema, session_id) for session_id in self._watched}

    async def _look(self, connection: AsyncConnection[Any]) -> None:
        """Ring for every log that is not as its followers saw it."""
        for knocked in self._message_events:
            knocked.set()
        if not self._watched:
            return
        text = "SELECT id, log_id, bytes FROM session WHERE id = ANY(%s)"
        rows = await (await connection.execute(text, [list(self._watched)])).fetchall()
        there = {name: (log_id, size) for name, log_id, size in cast("list[tuple[str, str, int]]", rows)}
        for name, watched in self._watched.items():
            if any(there.get(name) != (wakeup.log_id, wakeup.seen) for wakeup in watched.wakeups):
                watched.wake()

    async def _wait(self, connection: AsyncConnection[Any]) -> None:
        """Hear what is said until it is time to look, or somebody new wants to listen."""
        loop = asyncio.get_running_loop()
        end = loop.time() + POLL_SECONDS
        loop.add_reader(connection.fileno(), self._wakeup.set)
        try:
            while loop.time() < end and self._is_wanted():
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(end):
                        await self._wakeup.wait()
                self._wakeup.clear()
                connection.pgconn.consume_input()
                while (news := connection.pgconn.notifies()) is not None:
                    self._wake(news.relname.decode(), news.extra.decode())
                if self._is_new and not self._channels() <= self._channels_listened:
                    return
                self._is_new = False
        finally:
            loop.remove_reader(connection.fileno())

    def _on_notification(self, news: psycopg.Notify) -> None:
        self._wake(news.channel, news.payload)

    def _wake(self, where: str, names: str) -> None:
        if where == self._writer_channel:
            for knocked in self._message_events:
                knocked.set()
        for name in names.split():
            if name in self._watched:
                self._watched[name].wake()


_RETRY_SECONDS = 0.2


async def follow(pool: Pool, listener: Listener, log: Head, place: LogPosition) -> AsyncGenerator[Record]:
    """Every line behind a place, each once, for ever, also while the database comes and goes. Ends with `LogReset` or `LogDeleted`."""
    span = Span(log)
    with listener.watch(log) as wakeup:
        while True:
            try:
                result = await wakeup.watched.look(pool, span, place)
            except StoreUnavailable:
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            place = result.end
            for record in result.found:
                yield record if record.damage is None else lines.damage_event(record, log.session_id)
            if result.is_last:
                wakeup.seen = result.bytes
                await wakeup.wait()
            else:
                await asyncio.sleep(0)  # a long replay must not keep others waiting
