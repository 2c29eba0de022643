"""Searching in the database: what an event says is a column, in small letters, with an index of its three-letter pieces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from psycopg import sql

from hansard.store.postgres.pool import Pool
from hansard.store.postgres.rows import clean


def saying(pool: Pool, words: Sequence[str], types: Iterable[str]) -> frozenset[str]:
    """The sessions in which an event of these types says all the words."""
    text = sql.SQL("SELECT DISTINCT session_id FROM event WHERE type = ANY(%(types)s) AND {says}").format(says=says(words))
    values = {"types": list(types), **patterns(words)}
    return frozenset(name for (name,) in pool.ask(lambda connection: connection.execute(text, values).fetchall()))


def says(words: Sequence[str]) -> sql.Composed:
    """The condition that all the words are said. One for each, because the index answers no other form."""
    return sql.SQL(" AND ").join([sql.SQL("said LIKE {}").format(sql.Placeholder(name)) for name in patterns(words)])


def patterns(words: Sequence[str]) -> dict[str, str]:
    """The values of that condition."""
    escapes = str.maketrans({"\\": "\\\\", "%": "\\%", "_": "\\_"})
    return {f"word{number}": f"%{clean(word).translate(escapes)}%" for number, word in enumerate(words)}
