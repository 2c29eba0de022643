"""Agents' databases, read and never written: no lock is held, no file appears beside them."""

from __future__ import annotations

import os
import shutil
import sqlite3
from base64 import b64encode
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from hansard.adapters.layout import Database, Row
from hansard.errors import HansardError

MAGIC = b"SQLite format 3\0"
BUSY_TIMEOUT_SECONDS = 2.0
"""So many seconds we wait for somebody who writes."""


class Unreadable(HansardError):
    """The database cannot be read, or is none."""


class SessionTree(Struct, frozen=True):
    """A session and the sessions that came of it. ``rows`` and ``latest`` change when one of them does."""

    ids: tuple[str, ...]
    rows: int
    latest: int
    """When a row was written last, in ms since the epoch; 0 if no row says."""
    share: float
    """How much of the database it is."""


def session_trees(path: Path, database: Database) -> list[SessionTree]:
    """The sessions of a database, each with its sub-agents. Looked up again only when the file has changed."""
    return _read_trees(str(path), database, _state(path))


@lru_cache(maxsize=8)
def _read_trees(path: str, database: Database, state: tuple[int, ...]) -> list[SessionTree]:
    with open_database(Path(path)) as connection:
        columns = ("id", "parent_id") if "parent_id" in _columns(connection, database.sessions) else ("id", "NULL")
        parents = dict(connection.execute(f"SELECT {', '.join(columns)} FROM {_name(database.sessions)}").fetchall())  # noqa: S608  # nosec B608
        counts: dict[str, tuple[int, int]] = {}
        for table, column in [(database.sessions, "id"), *_tables(connection, database)]:
            for session, rows, latest in connection.execute(_count(connection, table, column)):
                before = counts.get(session, (0, 0))
                counts[session] = before[0] + rows, max(before[1], latest or 0)
    members: dict[str, list[str]] = {}
    for session in parents:
        members.setdefault(_root(session, parents), []).append(session)
    all_rows = sum(rows for rows, _ in counts.values())
    return [_tree(root, ids, counts, all_rows) for root, ids in members.items()]


def _tree(root: str, ids: list[str], counts: dict[str, tuple[int, int]], all_rows: int) -> SessionTree:
    found = [counts[id] for id in ids]
    rows = sum(rows for rows, _ in found)
    return SessionTree((root, *(id for id in ids if id != root)), rows, max(latest for _, latest in found), rows / all_rows)


def _root(session: str, parents: dict[str, str | None]) -> str:
    seen = {session}
    while (parent := parents[session]) in parents and parent not in seen:
        seen.add(session := str(parent))
    return session


def read_rows(path: Path, database: Database, ids: tuple[str, ...]) -> list[tuple[str, Row]]:
    """Every row of these sessions, as one moment has them, each with the name of its table."""
    with open_database(path) as connection:
        tables = [(database.sessions, "id"), *_tables(connection, database)]
        return [(table, row) for table, column in tables for row in _rows(connection, table, column, ids)]


@contextmanager
def open_database(path: Path) -> Generator[sqlite3.Connection]:
    """A database opened for one look at it. Whatever is wrong with it is `Unreadable`."""
    try:
        before = _state(path)
        with (
            _database_uri(path) as name,
            closing(sqlite3.connect(name, timeout=BUSY_TIMEOUT_SECONDS, uri=True, isolation_level=None)) as connection,
        ):
            connection.text_factory = _text
            connection.execute("BEGIN")
            yield connection
            alone = "immutable" in name
        if alone and _state(path) != before:
            raise Unreadable(f"{path}: it was written to while it was read; import it again")
    except sqlite3.Error as problem:
        raise Unreadable(f"{path}: {problem}") from problem


@contextmanager
def _database_uri(path: Path) -> Generator[str]:
    """The address to open it by. Beside a database that nobody has open SQLite would make files: so it is told that nobody writes, or,
    where a writer left changes behind, given a copy."""
    name = quote(str(path))
    log, index, journal = (Path(f"{path}-{word}") for word in ("wal", "shm", "journal"))
    if not log.exists() and not journal.exists():
        yield f"file:{name}?mode=ro&immutable=1"
    elif log.exists() and not index.exists():
        with TemporaryDirectory(prefix="hansard-") as folder:
            for file in (path, log):
                shutil.copyfile(file, Path(folder, file.name))
            yield f"file:{quote(str(Path(folder, path.name)))}?mode=ro"
    else:
        yield f"file:{name}?mode=ro"


def _state(path: Path) -> tuple[int, ...]:
    """What changes when the database does."""
    found: list[int] = []
    for file in (path, Path(f"{path}-wal")):
        try:
            now = os.stat(file)
        except OSError:
            found += [-1, -1]
        else:
            found += [now.st_size, now.st_mtime_ns]
    return tuple(found)


def _tables(connection: sqlite3.Connection, database: Database) -> list[tuple[str, str]]:
    """The tables whose rows belong to a session, each with the column that says to which."""
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    found: list[tuple[str, str]] = []
    for name in names:
        column = next((column for column in database.columns if column in _columns(connection, name)), None)
        if column is not None and name not in (database.sessions, *database.without):
            found.append((name, column))
    return found


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [column[1] for column in connection.execute(f"PRAGMA table_info({_name(table)})")]


def _count(connection: sqlite3.Connection, table: str, column: str) -> str:
    latest = "MAX(time_updated)" if "time_updated" in _columns(connection, table) else "NULL"
    return f"SELECT {_name(column)}, COUNT(*), {latest} FROM {_name(table)} GROUP BY {_name(column)}"  # noqa: S608  # nosec B608


def _rows(connection: sqlite3.Connection, table: str, column: str, ids: tuple[str, ...]) -> Iterator[Row]:
    for id in ids:
        cursor = connection.execute(f"SELECT * FROM {_name(table)} WHERE {_name(column)} = ?", (id,))  # noqa: S608  # nosec B608
        names = [column[0] for column in cursor.description]
        for values in cursor:
            yield dict(zip(names, map(_value, values), strict=True))


def _name(word: str) -> str:
    """A name in SQL, where it cannot be a parameter."""
    return '"' + word.replace('"', '""') + '"'


def _text(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _value(value: Any) -> Any:
    """A value as JSON has it; bytes that are no text in the form that originals have."""
    return {"base64": b64encode(value).decode()} if isinstance(value, bytes) else value
