"""The rows of a catalog, in a form that can be compared."""

from __future__ import annotations

from typing import Any
from zlib import decompress

import msgspec

from hansard.events.ledger import SessionTally
from hansard.store import JsonlStore
from hansard.store.catalog_rows import ROW_KEYS, RowFold

TABLES = {
    "sessions": "SELECT id, mark, info FROM sessions ORDER BY id",
    "scans": "SELECT session, mark, in_order, position FROM scans ORDER BY session",
    "folds": "SELECT session, tally, rows FROM folds ORDER BY session",
    "blocks": "SELECT session, start, end FROM blocks ORDER BY session, start",
    **{table: f"SELECT id, {table}.* FROM {table} JOIN sessions ON key = owner ORDER BY id, {key}" for table, key in ROW_KEYS.items()},
}
TERMS = """
SELECT session, start, term FROM blocks JOIN (SELECT doc, term FROM catalog_terms) ON doc = id ORDER BY session, start, term
"""


def rows(store: JsonlStore) -> dict[str, list[Any]]:
    """Returns every row, without the numbers that SQLite gives them; of the text index, the terms of each block."""

    def read(connection: Any) -> dict[str, list[Any]]:
        connection.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.catalog_terms USING fts5vocab(main, text, instance)")
        found = {name: connection.execute(query).fetchall() for name, query in TABLES.items()}
        found["folds"] = [
            (session, msgspec.json.decode(decompress(tally), type=SessionTally), msgspec.json.decode(decompress(rows), type=RowFold))
            for session, tally, rows in found["folds"]
        ]
        for table in ROW_KEYS:
            found[table] = [(id, *row) for id, _, *row in found[table]]  # the keys of sessions are in the order in which they came
        found["text"] = connection.execute(TERMS).fetchall()
        found["terms"] = connection.execute("SELECT DISTINCT term FROM terms WHERE term IN (SELECT term FROM catalog_terms)").fetchall()
        return found

    return store.catalog.database.run(read)
