"""Connections to the database: the address, a pool of connections, and errors that say what to do.

A database that is unavailable is not contacted again for a second, so that not every caller, and no event loop, waits for a timeout.
The password is never shown.
"""

from __future__ import annotations

import re
import select
import threading
import time
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg
from msgspec import Struct
from psycopg import Connection, IsolationLevel, errors, sql
from psycopg.conninfo import conninfo_to_dict

from hansard.errors import StoreError, StoreUnavailable, UsageError
from hansard.store.postgres import schema

SCHEMA = "hansard"
CONNECT_SECONDS = 4

# A server that hangs or is gone is noticed within seconds, and no one waits forever for a lock that a stopped process holds.
_TIMEOUTS = {
    "connect_timeout": CONNECT_SECONDS,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}


class Address(Struct, frozen=True):
    """The location of a store in a database."""

    conninfo: dict[str, str | int]
    schema: str
    display: str


def parse_address(text: str) -> Address:
    """Parses ``postgresql://user:password@host:port/database?schema=…``."""
    parts = urlsplit(text)
    options = parse_qsl(parts.query, keep_blank_values=True)
    schema = dict(options).get("schema", SCHEMA)
    if re.fullmatch(r"[a-z_][a-z0-9_]{0,39}", schema) is None:
        raise UsageError(f"not the name of a schema: {schema!r}; use small letters, digits and '_'")
    rest = urlencode([(name, value) for name, value in options if name != "schema"])
    try:
        found = conninfo_to_dict(urlunsplit(parts._replace(query=rest)))
    except psycopg.ProgrammingError as problem:
        hidden = str(problem).strip().split("\n")[0].replace(parts.password or text, "…")
        raise UsageError(f"not the address of a database: {hidden}") from None
    conninfo: dict[str, str | int] = {name: value for name, value in found.items() if value is not None}
    return Address({"application_name": "hansard", **_TIMEOUTS, **conninfo}, schema, _display(conninfo, schema))


def _display(conninfo: dict[str, str | int], schema: str) -> str:
    user = f"{conninfo['user']}@" if "user" in conninfo else ""
    port = f":{conninfo['port']}" if "port" in conninfo else ""
    host = str(conninfo.get("host", "")).replace("/", "%2F")
    return f"postgresql://{user}{host}{port}/{conninfo.get('dbname', '')}" + (f"?schema={schema}" if schema != SCHEMA else "")


_AWAY = (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow, errors.IdleInTransactionSessionTimeout)
_HINTS = {
    "password authentication failed": "check the user and the password in the address, or give PGPASSWORD",
    "no password supplied": "give one in the address, in PGPASSWORD or in ~/.pgpass",
    "no pg_hba.conf entry": "the server does not let this user in from here; see its pg_hba.conf",
    "does not exist": "check the name of the database and of the user in the address",
    "could not translate host name": "check the host in the address",
    "failed to resolve host": "check the host in the address",
    "Connection refused": "check host and port in the address, and whether the server runs",
    "No such file or directory": "check the host in the address, and whether the server runs",
    "timeout": "check the host in the address, and whether a firewall stands between",
    "permission denied": "the user of the address lacks a right; docs/deployment.md lists those it needs",
}


def store_error(problem: psycopg.Error, address: Address) -> StoreError:
    """Returns the error for a problem of the database, with a hint what to do."""
    text = _message(problem, address)
    hint = next((hint for words, hint in _HINTS.items() if words in text), None)
    message = f"the store {address.display}: {text}" + (f"; {hint}" if hint else "")
    return StoreUnavailable(message) if is_away(problem) else StoreError(message)


def is_away(problem: psycopg.Error) -> bool:
    """Whether the database cannot be reached, or is starting or stopping."""
    return isinstance(problem, _AWAY) or (isinstance(problem, psycopg.OperationalError) and problem.sqlstate is None)


def _message(problem: psycopg.Error, address: Address) -> str:
    text = problem.diag.message_primary or str(problem)
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    several = len(lines) > 1 and lines[0].startswith("Multiple connection attempts")
    text = lines[several].removeprefix("- ") if lines else type(problem).__name__
    password = address.conninfo.get("password")
    return text.replace(str(password), "…") if password else text


T = TypeVar("T")

MAX_IDLE_CONNECTIONS = 8
RETRY_PAUSE_SECONDS = 1.0
"""How long a database that could not be reached is not contacted again."""
_LOCK_MS = 5_000
_IDLE_MS = 10_000


class Pool:
    """Lends connections and keeps idle ones; a broken connection is closed."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._guard = threading.Lock()
        self._idle: list[Connection[Any]] = []
        weakref.finalize(self, _close_all, self._idle)  # a store that only reads need not be closed
        self._prepared = False
        self._away: tuple[float, StoreError] | None = None
        self._reached_at = 0.0

    @contextmanager
    def connection(self) -> Generator[Connection[Any]]:
        """Lends a connection in autocommit mode. Errors become `StoreError`, or `StoreUnavailable` if the database is gone."""
        connection = self._take()
        try:
            yield connection
        except psycopg.Error as problem:
            raise self.store_error(problem) from problem
        finally:
            self._give_back(connection)

    def query(self, query: Callable[[Connection[Any]], T]) -> T:
        """Runs an idempotent query, and runs it again if the connection broke."""
        try:
            with self.connection() as connection:
                return query(connection)
        except StoreUnavailable:
            self._check_pause()
        with self.connection() as connection:
            return query(connection)

    def store_error(self, problem: psycopg.Error) -> StoreError:
        """Returns the error for a problem of this database."""
        return store_error(problem, self.address)

    def connect(self) -> Connection[Any]:
        """Opens a connection that is not in the pool, and sets up the tables of an empty database."""
        self._check_pause()
        began = time.monotonic()
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
            error = self.store_error(problem)
            if self._reached_at < began:  # else another thread has reached it meanwhile: it was away, and is back
                self._away = time.monotonic() + RETRY_PAUSE_SECONDS, error
            raise error from problem
        self._away, self._reached_at = None, time.monotonic()
        return connection

    def close(self) -> None:
        """Closes the idle connections."""
        _close_all(self._idle)

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
            if not _is_stale(connection):
                return connection
            connection.close()

    def _give_back(self, connection: Connection[Any]) -> None:
        if not connection.closed and connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
            with self._guard:
                if len(self._idle) < MAX_IDLE_CONNECTIONS:
                    self._idle.append(connection)
                    return
        connection.close()


def _close_all(connections: list[Connection[Any]]) -> None:
    while connections:
        connections.pop().close()


def connect(address: Address) -> Connection[Any]:
    """Opens a connection without a look at the tables: for migrations."""
    try:
        return _connect(address)
    except psycopg.Error as problem:
        raise store_error(problem, address) from problem


def session_settings(address: Address) -> sql.Composed:
    """The settings of every connection."""
    text = "SET search_path TO {}, public; SET lock_timeout = {}; SET idle_in_transaction_session_timeout = {}; SET timezone = 'UTC'"
    return sql.SQL(text).format(sql.Identifier(address.schema), sql.Literal(_LOCK_MS), sql.Literal(_IDLE_MS))


def _connect(address: Address) -> Connection[Any]:
    connection = Connection.connect(autocommit=True, **address.conninfo)  # pyright: ignore[reportArgumentType]
    try:
        connection.isolation_level = IsolationLevel.READ_COMMITTED
        connection.execute(session_settings(address))
    except BaseException:
        connection.close()
        raise
    return connection


def _is_stale(connection: Connection[Any]) -> bool:
    """Whether the server closed the connection, or sent something, while it was idle."""
    if connection.closed:
        return True
    look = select.poll()
    look.register(connection.fileno(), select.POLLIN)
    return bool(look.poll(0))
