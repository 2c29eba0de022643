"""Arrays that we make ourselves arrive as they were."""

import psycopg
import pytest

from hansard.store.postgres import rows
from tests.postgres import Database


@pytest.mark.parametrize(
    ("made", "kind", "values"),
    [
        (rows.int_array, "int8", [0, -1, 2**63 - 1, -(2**63)]),
        (rows.text_array, "text", ["", "plain", "grüße \U0001f600", None, '{"a",NULL}']),
        (rows.text_array, "text", [None, None]),
        (rows.bytes_array, "bytea", [b"", b"\0\xff\n", b"x" * 100_000]),
        (rows.int_array, "int8", []),
        (rows.text_array, "text", []),
        (rows.bytes_array, "bytea", []),
    ],
)
def test_an_array_arrives_as_it_was(database: Database, made, kind, values) -> None:
    with psycopg.connect(database.server.address()) as connection:
        text = f"SELECT %b::{kind}[], coalesce(array_length(%b::{kind}[], 1), 0)".encode()
        got = connection.cursor(binary=True).execute(text, [made(values), made(values)]).fetchone()
    assert got == (values, len(values))


def test_the_state_of_a_row_of_version_0_1_is_read() -> None:
    first = b'{"log_id":"l","format":"f","created":1,"first_said":"hi","introduced":true,"agent_id":"claude","status":"running"}'
    later = b'{"log_id":"l","renamed":"A name","first_said":"hi","archived":true,"said":7,"checkpoint":5,"last_id":"x"}'
    checkpoint, last_id, summary = rows.decode_state(first)
    assert (checkpoint, last_id, summary.title, summary.agent, summary.status) == (0, "", "hi", "claude", "running")
    checkpoint, last_id, summary = rows.decode_state(later)
    assert (checkpoint, last_id, summary.title, summary.archived, summary.updated) == (5, "x", "A name", True, 7)
    assert rows.decode_state(rows.encode_state(rows.LogEnd(checkpoint=5, last_id="x", summary=summary))) == (5, "x", summary)
