"""Blobs in the database: bytes beside a log, named by their SHA-256."""

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
