"""Blobs and notes in the database: bytes beside a log. A blob is named by its SHA-256; a note can be made again from the log."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from psycopg import Connection

from hansard.errors import BlobDamaged
from hansard.store.blobs import check_name
from hansard.store.postgres.pool import Pool


def put_blob(pool: Pool, session_id: str, data: bytes) -> str:
    """Store the bytes and return their name; bytes that are there already are not sent again."""
    name = sha256(data).hexdigest()

    def put(connection: Connection[Any]) -> None:
        there = connection.execute(
            "SELECT octet_length(data) FROM blob WHERE session_id = %s AND sha256 = %s", [session_id, name]
        ).fetchone()
        if there != (len(data),):
            text = "INSERT INTO blob VALUES (%s, %s, %b) ON CONFLICT (session_id, sha256) DO UPDATE SET data = excluded.data"
            connection.execute(text, [session_id, name, data])

    pool.ask(put)  # twice is as good as once
    return name


def get_blob(pool: Pool, session_id: str, name: str) -> bytes:
    """The bytes of that name; `BlobDamaged` when they are gone or are others."""
    check_name(name)
    text = "SELECT data FROM blob WHERE session_id = %s AND sha256 = %s"
    found = pool.ask(lambda connection: connection.cursor(binary=True).execute(text, [session_id, name]).fetchone())
    if found is None:
        raise BlobDamaged(f"blob {name} is missing")
    if sha256(found[0]).hexdigest() != name:
        raise BlobDamaged(f"the bytes of blob {name} are not the ones that were stored")
    return found[0]


def put_note(pool: Pool, session_id: str, name: str, data: bytes) -> None:
    """Keep a note beside the log."""
    text = "INSERT INTO note VALUES (%s, %s, %b) ON CONFLICT (session_id, name) DO UPDATE SET data = excluded.data"
    pool.ask(lambda connection: connection.execute(text, [session_id, name, data]))


def get_note(pool: Pool, session_id: str, name: str) -> bytes | None:
    """The note of that name, if there is one."""
    text = "SELECT data FROM note WHERE session_id = %s AND name = %s"
    found = pool.ask(lambda connection: connection.cursor(binary=True).execute(text, [session_id, name]).fetchone())
    return found[0] if found else None
