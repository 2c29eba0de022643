"""The tables of `catalog_rows` in SQLite. Sessions have keys there, which are shorter than ids."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

import msgspec

from hansard.events.usage_totals import SettledTurn
from hansard.store.catalog_rows import ROW_KEYS, ROW_TABLES, TABLE_OF, USAGE_COLUMNS, Row, row_columns, usage_values


def _create(table: str) -> str:
    columns = ", ".join(map(" ".join, row_columns(table).items()))
    return f"CREATE TABLE {table} (owner INTEGER NOT NULL, {columns}, PRIMARY KEY ({ROW_KEYS[table]})) WITHOUT ROWID;\n"


ROW_SCHEMA = "".join(map(_create, ROW_TABLES))


def write_rows(connection: sqlite3.Connection, owner: int, rows: Iterable[Row], settled: Iterable[SettledTurn] = ()) -> None:
    """Writes rows in the place of those with the same key, and what turns used. The owner is the key of their session."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for row in rows:
        found.setdefault(TABLE_OF[type(row)], []).append((owner, *map(storable, msgspec.structs.astuple(row))))
    for table, values in found.items():
        connection.executemany(_UPSERTS[table], values)
    for turn in settled:
        if turn.spent.turn_id is not None:
            connection.execute(_SET_USAGE, usage_values(turn) | {"owner": owner, "turn_id": turn.spent.turn_id})


def forget_rows(connection: sqlite3.Connection, owner: int) -> None:
    """Removes the rows of a session."""
    for table in ROW_TABLES:
        connection.execute(f"DELETE FROM {table} WHERE owner = ?", (owner,))  # noqa: S608  # nosec B608


def storable(value: Any) -> Any:
    """Returns a value that SQLite can store: half an emoji, which has no bytes, is escaped, and some integers are too large."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    return value if not isinstance(value, int) or abs(value) < 2**63 else None


def _upsert(table: str) -> str:
    columns = [column for column in row_columns(table) if table != "turns" or column not in USAGE_COLUMNS]
    changes = ", ".join(f"{column} = excluded.{column}" for column in columns)
    named, marks = ", ".join(["owner", *columns]), ", ".join("?" * (len(columns) + 1))
    return f"INSERT INTO {table} ({named}) VALUES ({marks}) ON CONFLICT ({ROW_KEYS[table]}) DO UPDATE SET {changes}"  # noqa: S608  # nosec B608


_UPSERTS = {table: _upsert(table) for table in ROW_TABLES}
_SET_USAGE = f"UPDATE turns SET {', '.join(f'{name} = :{name}' for name in USAGE_COLUMNS)} WHERE owner = :owner AND turn_id = :turn_id"  # noqa: S608  # nosec B608
