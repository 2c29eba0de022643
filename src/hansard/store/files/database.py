"""The file of the catalog: an SQLite database in the folder of the store. Everything in it can be read from the logs again.

It is created when it is missing, damaged, or of another version. If the folder is read-only, or SQLite cannot lock files there, the
catalog is in memory.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from hansard._version import __version__
from hansard.store.records import SessionInfo
from hansard.store.row_tables import ROW_SCHEMA

T = TypeVar("T")

NAME = "catalog.sqlite"
REVISION = 2
"""Counts up when what the tables say of a log changes."""
WAIT_SECONDS = 2.0
"""How long another process that writes the catalog is waited for."""
SCHEMA = """
CREATE TABLE sessions (key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, mark TEXT NOT NULL, info BLOB NOT NULL);
CREATE TABLE scans (
  session TEXT PRIMARY KEY, mark TEXT NOT NULL, end INTEGER NOT NULL, in_order INTEGER NOT NULL, position BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE folds (session TEXT PRIMARY KEY, tally BLOB NOT NULL, used BLOB NOT NULL, rows BLOB NOT NULL);
CREATE TABLE blocks (id INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL);
CREATE INDEX blocks_of_session ON blocks (session, start);
CREATE VIRTUAL TABLE text USING fts5 (terms, content='', columnsize=0, detail=none, tokenize='ascii');
CREATE TABLE terms (term TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE files (path TEXT NOT NULL, session TEXT NOT NULL, mark TEXT NOT NULL, outcome TEXT NOT NULL, closed INTEGER NOT NULL);
CREATE UNIQUE INDEX file_of_session ON files (path, session);
CREATE INDEX files_of_session ON files (session);
"""
VERSION = zlib.crc32(repr((SCHEMA, ROW_SCHEMA, SessionInfo.__struct_fields__, REVISION, __version__)).encode()) & 0x7FFFFFFF

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_CONSTRAINT}


class CatalogBusy(Exception):
    """Another process is writing the catalog. The next reader writes what is missing."""


class CatalogDatabase:
    """The connection of one store to its catalog. Threads take turns."""

    def __init__(self, root: Path) -> None:
        self.path = root / NAME
        self.in_memory = False
        """Whether the catalog is in memory, and other processes have nothing of it."""
        self.generation = 0
        """Counts up when the catalog is opened. What was read in another generation may be gone."""
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self._lock = threading.RLock()

    @property
    def exists(self) -> bool:
        """Whether there is a file."""
        return not self.in_memory and os.path.lexists(self.path)

    def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Calls a function with the connection; once more if the database was damaged and has been replaced. Raises `CatalogBusy`."""
        with self._lock:
            try:
                return self._try(work)
            except _Damaged:
                self._discard()
            try:
                return self._try(work)
            except _Damaged:
                self._use_memory()
            return self._try(work)

    def drop(self) -> None:
        """Removes the catalog; the next one who needs it begins with an empty one."""
        with self._lock:
            self._discard()

    def close(self) -> None:
        """Closes the connection."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _try(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return work(self._open())
        except sqlite3.Error as problem:
            self._roll_back()
            match _code(problem):
                case code if code in _BUSY:
                    raise CatalogBusy from problem
                case sqlite3.SQLITE_FULL:
                    raise CatalogBusy from problem
                case code if code in _DAMAGED or self.in_memory:
                    raise _Damaged from problem
                case _:  # read-only, or a file system on which SQLite cannot work
                    self._use_memory()
        except (ValueError, msgspec.MsgspecError, zlib.error) as problem:  # a row that is none
            raise _Damaged from problem
        return work(self._open())

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None and not self._is_current():
            self.close()
        if self._connection is None:
            self._connection = self._connect()
            self.generation += 1
        return self._connection

    def _is_current(self) -> bool:
        """Whether the file is still the one that was opened: another process may have replaced it."""
        if self.in_memory:
            return True
        try:
            return os.stat(self.path).st_ino == self._inode
        except OSError:
            return self._inode == 0 and not self.path.parent.is_dir()

    def _connect(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = None
        try:
            self._inode, place = 0, ":memory:"
            if not self.in_memory and self.path.parent.is_dir():  # until there is a folder, there is nothing to remember
                self._inode = _make_file(self.path)
                place = str(self.path)
            connection = sqlite3.connect(place, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            _prepare(connection)
        except (OSError, sqlite3.Error) as problem:
            if connection is not None:
                connection.close()
            if self.in_memory or (isinstance(problem, sqlite3.Error) and _code(problem) in _BUSY | _DAMAGED):
                raise
            self._use_memory()
            return self._connect()
        return connection

    def _use_memory(self) -> None:
        self.close()
        self.in_memory = True

    def _roll_back(self) -> None:
        if self._connection is not None and self._connection.in_transaction:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")

    def _discard(self) -> None:
        """Removes the file, unless another process has done so. SQLite itself leaves a file alone that has lost its name."""
        current = self._is_current()
        self.close()
        if current and not self.in_memory:
            for suffix in ("-wal", "-shm", ""):
                with suppress(OSError):
                    os.unlink(f"{self.path}{suffix}")


class _Damaged(Exception):
    """The database is not what it should be."""


@contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[None]:
    """Everything within is written, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _make_file(path: Path) -> int:
    """The inode of the file, which only we can read if this makes it. Nothing but a regular file is ever opened."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    found = os.stat(path, follow_symlinks=False)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(f"{path} is not a regular file")
    return found.st_ino


def _prepare(connection: sqlite3.Connection) -> None:
    """Makes the tables, unless they are there. Those of another version are dropped."""
    if _version(connection) == VERSION:
        return
    with transaction(connection):
        if _version(connection) == VERSION:  # another process was first
            return
        virtual_first = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY sql NOT LIKE 'CREATE VIRTUAL%'"
        for (name,) in connection.execute(virtual_first).fetchall():
            if not name.startswith("sqlite_"):
                connection.execute(f'DROP TABLE IF EXISTS "{name}"')
        for statement in (SCHEMA + ROW_SCHEMA).split(";\n"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")


def _version(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA user_version").fetchone()[0]


def _code(problem: sqlite3.Error) -> int:
    return getattr(problem, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
