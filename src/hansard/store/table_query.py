"""Questions in SQL to all sessions of a store: the tables of the catalog, in an SQLite database that only reads.

`sessions`, `usage` and `events` are filled when a question names them; the others are those of the catalog, without what a fork has copied.
A store without such tables is read for them.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from hansard.errors import HansardError, UsageError
from hansard.events import Event
from hansard.events.usage_totals import SettledTurn
from hansard.store.catalog_rows import FOLD_TYPES, ROW_TABLES, Folds, Row, row_columns
from hansard.store.interface import Store
from hansard.store.records import SessionInfo
from hansard.store.row_tables import ROW_SCHEMA, storable, write_rows
from hansard.store.tables import COLUMNS, ArrowTable, event_row

SESSION_COLUMNS: Mapping[str, tuple[str, Callable[[SessionInfo], Any]]] = {
    "session": ("TEXT", lambda info: info.id),
    "title": ("TEXT", lambda info: info.title),
    "agent": ("TEXT", lambda info: info.agent),
    "format": ("TEXT", lambda info: info.format),
    "status": ("TEXT", lambda info: info.status),
    "live": ("INTEGER", lambda info: info.live),
    "archived": ("INTEGER", lambda info: info.archived),
    "created": ("INTEGER", lambda info: info.created),
    "updated": ("INTEGER", lambda info: info.updated),
    "recorded": ("INTEGER", lambda info: info.recorded),
    "project": ("TEXT", lambda info: info.project),
    "cwd": ("TEXT", lambda info: info.cwd),
    "repository": ("TEXT", lambda info: info.repository),
    "remote": ("TEXT", lambda info: info.remote),
    "branch": ("TEXT", lambda info: info.branch),
    "first_commit": ("TEXT", lambda info: info.commit),
    "last_commit": ("TEXT", lambda info: info.last_commit),
    "person": ("TEXT", lambda info: info.person),
    "machine": ("TEXT", lambda info: info.machine),
    "entry_point": ("TEXT", lambda info: info.entry_point),
    "models": ("TEXT", lambda info: ", ".join(info.models)),
    "agent_sessions": ("TEXT", lambda info: ", ".join(f"{one.family}:{one.id}" for one in info.agent_sessions)),
    "parent": ("TEXT", lambda info: info.parent_session_id),
    "parent_kind": ("TEXT", lambda info: None if info.lineage is None else info.lineage.kind),
    "events": ("INTEGER", lambda info: info.events),
    "bytes": ("INTEGER", lambda info: info.bytes),
    "input_tokens": ("INTEGER", lambda info: None if info.usage is None else info.usage.input_tokens),
    "output_tokens": ("INTEGER", lambda info: None if info.usage is None else info.usage.output_tokens),
    "cost_usd": ("REAL", lambda info: None if info.usage is None else info.usage.cost_usd),
    "problem": ("TEXT", lambda info: info.problem),
}
USAGE_COLUMNS = {
    "session": "TEXT", "turn_id": "TEXT", "key": "TEXT", "time": "INTEGER", "agent": "TEXT", "model": "TEXT", "is_response": "INTEGER",
    "by_subagent": "INTEGER", "input_tokens": "INTEGER", "output_tokens": "INTEGER", "cache_read_tokens": "INTEGER",
    "cache_write_tokens": "INTEGER", "reasoning_tokens": "INTEGER", "cost_usd": "REAL", "cost_source": "TEXT",
}  # fmt: skip
TIME_COLUMNS = {"created", "updated", "recorded", "started", "time"}
"""The columns that are times: milliseconds since 1970, in UTC."""
BOOLEAN_COLUMNS = {"live", "archived", "is_response", "by_subagent", "closed"}
_ARROW_TYPES = {"INTEGER": "int64", "REAL": "double", "TEXT": "string"}
FILE_COLUMNS = {"path": "TEXT", "session": "TEXT", "mark": "TEXT", "outcome": "TEXT", "closed": "INTEGER"}
_EVENT_TYPES = {"string": "TEXT", "int64": "INTEGER", "timestamp": "INTEGER", "bool": "INTEGER", "double": "REAL"}
TABLES: dict[str, dict[str, str]] = {
    "sessions": {name: kind for name, (kind, _) in SESSION_COLUMNS.items()},
    **{table: {"session": "TEXT", **row_columns(table)} for table in ROW_TABLES},
    "usage": USAGE_COLUMNS,
    "files": FILE_COLUMNS,
    "events": {name: _EVENT_TYPES[kind] for name, kind in COLUMNS.items()},
}
"""The tables, with the SQL types of their columns."""
STEPS = 100_000
"""The number of steps of SQLite between two looks at whether the question was interrupted."""
_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}


class Rows(ArrowTable):
    """The answer to a question: `columns`, and the rows as tuples. `dicts` gives them by name."""

    def __init__(self, columns: Sequence[str], rows: Iterable[Sequence[Any]], types: Sequence[str | None]) -> None:
        self._columns = columns
        self._rows = rows
        self._types = types

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._columns)

    @property
    def arrow_types(self) -> dict[str, str | None]:
        """The Arrow type of each column; None if it is that of the values."""
        return dict(zip(self._columns, self._types, strict=True))

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """The rows."""
        return map(tuple, self._rows)

    def dicts(self) -> Iterator[dict[str, Any]]:
        """The rows by the names of their columns."""
        return (dict(zip(self._columns, row, strict=True)) for row in self._rows)

    def __len__(self) -> int:
        """How many rows there are."""
        return len(list(self._rows))


def query(store: Store, question: str, parameters: Sequence[Any] | Mapping[str, Any] = (), events: Iterable[Event] | None = None) -> Rows:
    """Answers a question in SQL. ``events`` are the rows of the table `events`: by default those of all sessions."""
    database = open_tables(store, question, events)
    try:
        found = database.execute(question, parameters)
        rows = found.fetchall()
    except (sqlite3.Error, sqlite3.Warning) as problem:
        raise UsageError(_explain(problem, question)) from problem
    finally:
        database.close()
    columns = [column[0] for column in found.description or ()]
    return Rows(columns, rows, [None] * len(columns))


def table_rows(store: Store, table: str, sessions: Sequence[str] = ()) -> Rows:
    """Returns a whole table, or the rows of some sessions."""
    if table not in TABLES:
        raise UsageError(f"unknown table {table!r}; the tables are {', '.join(TABLES)}")
    named = f" WHERE session IN ({', '.join('?' * len(sessions))})" if sessions else ""
    found = query(store, f"SELECT * FROM {table}{named}", sessions)  # noqa: S608  # nosec B608
    places = [place for place, column in enumerate(found.columns) if column in BOOLEAN_COLUMNS]
    rows = [[bool(cell) if place in places else cell for place, cell in enumerate(row)] for row in found] if places else list(found)
    return Rows(found.columns, rows, [_arrow_type(column, TABLES[table][column]) for column in found.columns])


def _arrow_type(column: str, kind: str) -> str:
    return "timestamp" if column in TIME_COLUMNS else "bool" if column in BOOLEAN_COLUMNS else _ARROW_TYPES[kind]


def open_tables(store: Store, question: str, events: Iterable[Event] | None = None) -> sqlite3.Connection:
    """Opens a database that has the tables which a question names, and that can only be read."""
    named = _named_tables(question)
    database = store.connect_tables() or _read_tables(store, named)
    infos = store.sessions()
    _write_copies(database, infos)
    for table in ROW_TABLES:
        columns = ", ".join(["listed.id AS session", *(f"row.{column}" for column in row_columns(table))])
        source = f"main.{table} AS row JOIN main.sessions AS listed ON listed.key = row.owner"
        database.execute(f"CREATE TEMP VIEW {table} AS SELECT {columns} FROM {source} WHERE {_NOT_COPIED}")  # noqa: S608  # nosec B608
    _fill(database, "sessions", [[read(info) for _, read in SESSION_COLUMNS.values()] for info in infos])
    if "usage" in named:
        _fill(database, "usage", _usage_rows(store))
    if "files" in named:
        seen = () if store.files is None else (file for files in store.files.seen().values() for file in files)
        _fill(database, "files", ((file.path, file.session, file.mark, file.outcome, file.closed) for file in seen))
    if "events" in named:
        _fill(database, "events", map(event_row, _all_events(store) if events is None else events))
    database.commit()
    database.execute("PRAGMA query_only = 1")
    database.set_authorizer(_authorize)
    database.set_progress_handler(_go_on, STEPS)  # lets Ctrl-C end a long question
    return database


_NOT_COPIED = "NOT EXISTS (SELECT 1 FROM temp.copies AS copy WHERE copy.session = listed.id AND row.seq BETWEEN copy.first AND copy.last)"


def _named_tables(question: str) -> list[str]:
    words = set(re.findall(r"\w+", question.casefold()))
    return [table for table in TABLES if table in words]


def _authorize(action: int, *_: Any) -> int:
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


def _go_on() -> int:
    return 0


def _explain(problem: Exception, question: str) -> str:
    text = str(problem)
    if any(word in text for word in ("not authorized", "authorization denied", "prohibited", "cannot modify")):
        return "the record can only be read: begin the question with SELECT or WITH"
    if text.startswith("no such table"):
        return f"{text}; there are {', '.join(TABLES)}"
    if text.startswith("no such column"):
        return text + "".join(f"; {table} has {', '.join(TABLES[table])}" for table in _named_tables(question))
    if "one statement at a time" in text:
        return "ask one question at a time"
    return text


# --------------------------------------------------------------------------------------------------------------------
# Filling tables


def _fill(database: sqlite3.Connection, table: str, rows: Iterable[Sequence[Any]]) -> None:
    columns = TABLES[table]
    database.execute(f"CREATE TEMP TABLE {table} ({', '.join(f'{name} {kind}' for name, kind in columns.items())})")
    marks = ", ".join("?" * len(columns))
    database.executemany(f"INSERT INTO temp.{table} VALUES ({marks})", (list(map(storable, row)) for row in rows))  # noqa: S608  # nosec B608


def _write_copies(database: sqlite3.Connection, infos: list[SessionInfo]) -> None:
    """The events of forks that count for their parents."""
    logs = {info.id: info.log_id for info in infos}
    copies = [(info.id, first, last) for info in infos if (lineage := info.copies_of(logs)) is not None for first, last in lineage.copied]
    database.execute("CREATE TEMP TABLE copies (session TEXT, first INTEGER, last INTEGER)")
    database.execute("CREATE INDEX temp.copies_of_session ON copies (session)")
    database.executemany("INSERT INTO copies VALUES (?, ?, ?)", copies)


def _usage_rows(store: Store) -> Iterator[Sequence[Any]]:
    from hansard.store.usage import load_prices, read_ledger  # it knows stores

    for row in read_ledger(store, load_prices(getattr(store, "root", None))).rows():
        yield (
            row.session_id, row.turn_id, row.key, row.time, row.agent, row.model, row.is_response, row.by_subagent, row.input_tokens,
            row.output_tokens, row.cache_read_input_tokens, row.cache_creation_input_tokens, row.reasoning_tokens, row.cost_usd,
            row.cost_source,
        )  # fmt: skip


def _all_events(store: Store) -> Iterator[Event]:
    from hansard.store.tables import read_store

    return read_store(store)


def _read_tables(store: Store, named: Iterable[str]) -> sqlite3.Connection:
    """The rows of a store that does not keep them, read from its logs."""
    database = sqlite3.connect(":memory:")
    database.executescript("CREATE TABLE sessions (key INTEGER PRIMARY KEY, id TEXT NOT NULL);" + ROW_SCHEMA)
    if ROW_TABLES.keys() & named:
        for key, info in enumerate(store.sessions()):
            database.execute("INSERT INTO sessions VALUES (?, ?)", (key, info.id))
            with suppress(HansardError, OSError):
                write_rows(database, key, *_fold(store[info.id].read(types=FOLD_TYPES)))
    return database


def _fold(events: Iterable[Event]) -> tuple[list[Row], list[SettledTurn]]:
    """Returns the rows of a session, and what its turns used."""
    folds, rows = Folds(), dict[tuple[str, int, int], Row]()
    for event in events:
        rows |= folds.apply(event)
    return list(rows.values()), folds.tally.finish().settled
