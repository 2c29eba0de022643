"""Being woken when a log grows: one connection listens for all followers of an event loop, and looks by itself once a second.

It is an alarm and no more. Whatever it misses, because the connection was lost or the word of it, the look finds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, cast

import psycopg
from psycopg import AsyncConnection, sql

from hansard.store.interface import Head
from hansard.store.postgres.address import Address
from hansard.store.postgres.channels import channel
from hansard.store.postgres.pool import settings

LOOK = 1.0
"""Seconds between two looks."""
_LONGEST = 2.0
"""Seconds between two attempts to reach a database that is away."""


class Bell:
    """Rings when a log may have changed."""

    def __init__(self, log: Head) -> None:
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
        self._bells: dict[str, set[Bell]] = {}
        self._heard: set[str] = set()
        self._stir = asyncio.Event()
        self._is_new = False
        """Whether somebody came whose channel is perhaps not heard yet."""
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def watch(self, log: Head) -> Generator[Bell]:
        """A bell for a log. What changes after this is not missed."""
        bell = Bell(log)
        self._bells.setdefault(log.session_id, set()).add(bell)
        self._begin()
        try:
            yield bell
        finally:
            bells = self._bells[log.session_id]
            bells.discard(bell)
            if not bells:
                del self._bells[log.session_id]
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
        return bool(self._bells or self._doors) and not (task is not None and task.cancelling())

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
        return doors | {channel(self._address.schema, session_id) for session_id in self._bells}

    async def _look(self, connection: AsyncConnection[Any]) -> None:
        """Ring for every log that is not as its followers saw it."""
        for knocked in self._doors:
            knocked.set()
        if not self._bells:
            return
        text = "SELECT id, log_id, bytes FROM session WHERE id = ANY(%s)"
        rows = await (await connection.execute(text, [list(self._bells)])).fetchall()
        there = {name: (log_id, size) for name, log_id, size in cast("list[tuple[str, str, int]]", rows)}
        for name, bells in self._bells.items():
            for bell in bells:
                if there.get(name) != (bell.log_id, bell.seen):
                    bell.rung.set()

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
            for bell in self._bells.get(name, ()):
                bell.rung.set()
