"""Connections to the database. They are lent, and given back; one that broke is thrown away.

A database that is away is not asked again for a second: nobody who waits for an answer, and no event loop, is held up by every call.
"""

from __future__ import annotations

import select
import threading
import time
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg import Connection, IsolationLevel, sql

from hansard.errors import StoreAway, StoreError
from hansard.store.postgres import problems, schema
from hansard.store.postgres.address import Address

T = TypeVar("T")

IDLE = 8
"""So many connections are kept while nobody needs them."""
PAUSE = 1.0
"""Seconds in which a database that could not be reached is not asked again."""
_LOCK_MS = 5_000
_IDLE_MS = 10_000


class Pool:
    """Connections that nobody uses right now."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._guard = threading.Lock()
        self._idle: list[Connection[Any]] = []
        weakref.finalize(self, _hang_up, self._idle)  # a store that only reads need not be closed
        self._prepared = False
        self._away: tuple[float, StoreError] | None = None

    @contextmanager
    def connection(self) -> Generator[Connection[Any]]:
        """A connection in autocommit. What the database complains of is a `StoreError`, `StoreAway` if it is gone."""
        connection = self._take()
        try:
            yield connection
        except psycopg.Error as problem:
            raise self.told(problem) from problem
        finally:
            self._give_back(connection)

    def ask(self, question: Callable[[Connection[Any]], T]) -> T:
        """The answer to a question that changes nothing, so that it can be asked again if the connection broke."""
        try:
            with self.connection() as connection:
                return question(connection)
        except StoreAway:
            self._check_pause()
        with self.connection() as connection:
            return question(connection)

    def told(self, problem: psycopg.Error) -> StoreError:
        """The same problem, in our words."""
        return problems.told(problem, self.address)

    def connect(self) -> Connection[Any]:
        """A connection of one's own."""
        self._check_pause()
        try:
            connection = _connect(self.address)
            try:
                with self._guard:
                    if not self._prepared:
                        schema.prepare(connection, self.address)
                        self._prepared = True
            except BaseException:
                connection.close()
                raise
        except psycopg.Error as problem:
            told = self.told(problem)
            self._away = time.monotonic() + PAUSE, told
            raise told from problem
        self._away = None
        return connection

    def close(self) -> None:
        """Close what nobody uses."""
        _hang_up(self._idle)

    def _check_pause(self) -> None:
        away = self._away
        if away is not None and time.monotonic() < away[0]:
            raise type(away[1])(str(away[1]))

    def _take(self) -> Connection[Any]:
        while True:
            with self._guard:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self.connect()
            if not _is_over(connection):
                return connection
            connection.close()

    def _give_back(self, connection: Connection[Any]) -> None:
        if not connection.closed and connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
            with self._guard:
                if len(self._idle) < IDLE:
                    self._idle.append(connection)
                    return
        connection.close()


def _hang_up(connections: list[Connection[Any]]) -> None:
    while connections:
        connections.pop().close()


def connected(address: Address) -> Connection[Any]:
    """A connection, whatever the tables are: for those who change them."""
    try:
        return _connect(address)
    except psycopg.Error as problem:
        raise problems.told(problem, address) from problem


def settings(address: Address) -> sql.Composed:
    """What every connection is told first."""
    text = "SET search_path TO {}, public; SET lock_timeout = {}; SET idle_in_transaction_session_timeout = {}; SET timezone = 'UTC'"
    return sql.SQL(text).format(sql.Identifier(address.schema), sql.Literal(_LOCK_MS), sql.Literal(_IDLE_MS))


def _connect(address: Address) -> Connection[Any]:
    connection = Connection.connect(autocommit=True, **address.conninfo)  # pyright: ignore[reportArgumentType]
    try:
        connection.isolation_level = IsolationLevel.READ_COMMITTED
        connection.execute(settings(address))
    except BaseException:
        connection.close()
        raise
    return connection


def _is_over(connection: Connection[Any]) -> bool:
    """Whether the server has hung up, or said something, while nobody listened."""
    if connection.closed:
        return True
    look = select.poll()
    look.register(connection.fileno(), select.POLLIN)
    return bool(look.poll(0))
