"""Arrays that we make ourselves arrive as they were."""

import psycopg
import pytest

from hansard.store.postgres import arrays
from tests.postgres import Database


@pytest.mark.parametrize(
    ("made", "kind", "values"),
    [
        (arrays.numbers, "int8", [0, -1, 2**63 - 1, -(2**63)]),
        (arrays.texts, "text", ["", "plain", "grüße \U0001f600", None, '{"a",NULL}']),
        (arrays.texts, "text", [None, None]),
        (arrays.lines, "bytea", [b"", b"\0\xff\n", b"x" * 100_000]),
        (arrays.numbers, "int8", []),
        (arrays.texts, "text", []),
        (arrays.lines, "bytea", []),
    ],
)
def test_an_array_arrives_as_it_was(database: Database, made, kind, values) -> None:
    with psycopg.connect(database.server.address()) as connection:
        text = f"SELECT %b::{kind}[], coalesce(array_length(%b::{kind}[], 1), 0)".encode()
        got = connection.cursor(binary=True).execute(text, [made(values), made(values)]).fetchone()
    assert got == (values, len(values))
