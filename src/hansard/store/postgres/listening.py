"""Being woken when a log grows: one connection listens for all followers of an event loop, and looks by itself once a second.

It is an alarm and no more. Whatever it misses, because the connection was lost or the word of it, the look finds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, cast

import psycopg
from msgspec import Struct
from msgspec.structs import replace
from psycopg import AsyncConnection, sql

from hansard.store.interface import Head, Record
from hansard.store.postgres.address import Address
from hansard.store.postgres.channels import channel
from hansard.store.postgres.pool import Pool, settings
from hansard.store.postgres.reader import Place, Span, look, page

LOOK = 1.0
"""Seconds between two looks."""
_KEPT = 4
_LONGEST = 2.0
"""Seconds between two attempts to reach a database that is away."""


class Glance(Struct, frozen=True):
    """What one follower found behind a place: the others that stand there need not look."""

    rings: int
    found: list[Record]
    end: Place
    is_last: bool
    bytes: int


def _glance(pool: Pool, span: Span, place: Place, rings: int) -> Glance:
    """Look behind a place, which moves on."""
    now = look(pool, span.log)
    found, is_last = pool.ask(partial(page, span=span, place=place, now=now))
    return Glance(rings, found, place, is_last, now.bytes)


class Watched:
    """A session that is followed: the bells of its followers, how often they rang, and what was found lately."""

    def __init__(self) -> None:
        self.bells: set[Bell] = set()
        self.rings = 0
        self._looking = asyncio.Lock()
        self._glances: dict[tuple[str, int, int], Glance] = {}

    def ring(self) -> None:
        """For all of them."""
        self.rings += 1
        for bell in self.bells:
            bell.rung.set()

    async def look(self, pool: Pool, span: Span, place: Place) -> Glance:
        """What stands behind a place, as one of them has found it since the last ring, or as it is.

        It is read while the event loop does something else: the database may be slow, or hang.
        """
        async with self._looking:
            return await self._look(pool, span, place)

    async def _look(self, pool: Pool, span: Span, place: Place) -> Glance:
        key = (span.log.log_id, place.seq, place.number)
        known = self._glances.get(key)
        if known is not None and known.rings == self.rings:
            return known
        if known is not None and known.found:  # lines never change, but there may be more by now
            return replace(known, is_last=False)
        rings, end = self.rings, replace(place)
        glance = await asyncio.to_thread(_glance, pool, span, end, rings)
        if len(self.bells) > 1:
            self._glances[key] = glance
            for old in list(self._glances)[:-_KEPT]:
                del self._glances[old]
        return glance


class Bell:
    """Rings when a log may have changed."""

    def __init__(self, log: Head, watched: Watched) -> None:
        self.watched = watched
        self.log_id = log.log_id
        self.seen = -1
        """So many bytes of the log were seen."""
        self.rung = asyncio.Event()

    async def wait(self) -> None:
        """Return at the next ring, or at once if there was one since the last call."""
        await self.rung.wait()
        self.rung.clear()


class Listening:
    """The alarm of one event loop."""

    def __init__(self, address: Address, door: str) -> None:
        self._address = address
        self._door = door
        self._doors: set[asyncio.Event] = set()
        self._watched: dict[str, Watched] = {}
        self._heard: set[str] = set()
        self._stir = asyncio.Event()
        self._is_new = False
        """Whether somebody came whose channel is perhaps not heard yet."""
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def watch(self, log: Head) -> Generator[Bell]:
        """A bell for a log. What changes after this is not missed."""
        watched = self._watched.setdefault(log.session_id, Watched())
        bell = Bell(log, watched)
        watched.bells.add(bell)
        self._begin()
        try:
            yield bell
        finally:
            watched.bells.discard(bell)
            if not watched.bells:
                del self._watched[log.session_id]
            self._stir.set()  # without bells the task ends by itself

    @contextmanager
    def door(self) -> Generator[asyncio.Event]:
        """Is set when somebody knocks at the door of this process, and now and then."""
        knocked = asyncio.Event()
        self._doors.add(knocked)
        self._begin()
        try:
            yield knocked
        finally:
            self._doors.discard(knocked)
            self._stir.set()

    def _begin(self) -> None:
        self._is_new = True
        self._stir.set()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="hansard-listening")

    def _is_wanted(self) -> bool:
        """Whether to go on. A cancellation is looked for, because `asyncio.wait_for` of Python 3.11, which psycopg uses, may swallow it."""
        task = asyncio.current_task()
        return bool(self._watched or self._doors) and not (task is not None and task.cancelling())

    async def _run(self) -> None:
        pause = 0.05
        while self._is_wanted():
            with suppress(psycopg.Error, OSError):
                connection = await AsyncConnection.connect(autocommit=True, **self._address.conninfo)  # pyright: ignore[reportArgumentType]
                try:
                    await connection.execute(settings(self._address))
                    self._heard = set()
                    pause = 0.05
                    await self._listen(connection)
                finally:
                    await connection.close()
            if self._is_wanted():
                await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST)

    async def _listen(self, connection: AsyncConnection[Any]) -> None:
        connection.add_notify_handler(self._heard_of)
        while self._is_wanted():
            self._stir.clear()
            self._is_new = False
            for name in self._channels() - self._heard:
                await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(name)))
                self._heard.add(name)
            await self._look(connection)
            await self._wait(connection)

    def _channels(self) -> set[str]:
        doors = {self._door} if self._doors else set[str]()
        return doors | {channel(self._address.schema, session_id) for session_id in self._watched}

    async def _look(self, connection: AsyncConnection[Any]) -> None:
        """Ring for every log that is not as its followers saw it."""
        for knocked in self._doors:
            knocked.set()
        if not self._watched:
            return
        text = "SELECT id, log_id, bytes FROM session WHERE id = ANY(%s)"
        rows = await (await connection.execute(text, [list(self._watched)])).fetchall()
        there = {name: (log_id, size) for name, log_id, size in cast("list[tuple[str, str, int]]", rows)}
        for name, watched in self._watched.items():
            if any(there.get(name) != (bell.log_id, bell.seen) for bell in watched.bells):
                watched.ring()

    async def _wait(self, connection: AsyncConnection[Any]) -> None:
        """Hear what is said until it is time to look, or somebody new wants to listen."""
        loop = asyncio.get_running_loop()
        end = loop.time() + LOOK
        loop.add_reader(connection.fileno(), self._stir.set)
        try:
            while loop.time() < end and self._is_wanted():
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(end):
                        await self._stir.wait()
                self._stir.clear()
                connection.pgconn.consume_input()
                while (news := connection.pgconn.notifies()) is not None:
                    self._ring(news.relname.decode(), news.extra.decode())
                if self._is_new and not self._channels() <= self._heard:
                    return
                self._is_new = False
        finally:
            loop.remove_reader(connection.fileno())

    def _heard_of(self, news: psycopg.Notify) -> None:
        self._ring(news.channel, news.payload)

    def _ring(self, where: str, names: str) -> None:
        if where == self._door:
            for knocked in self._doors:
                knocked.set()
        for name in names.split():
            if name in self._watched:
                self._watched[name].ring()
