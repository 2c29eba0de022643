"""What the database keeps beside a log: blobs, named by their SHA-256, and notes, which can be rebuilt from the log. Also deletes it."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from psycopg import Connection

from hansard.errors import BlobDamaged, Fenced, LogReset, UnknownSession
from hansard.store.blobs import check_name
from hansard.store.postgres.connection import Pool
from hansard.store.postgres.lease import Lease, acquire, describe_holder
from hansard.store.records import Cursor


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

    pool.query(put)  # twice is as good as once
    return name


def get_blob(pool: Pool, session_id: str, name: str) -> bytes:
    """The bytes of that name; `BlobDamaged` when they are gone or are others."""
    check_name(name)
    text = "SELECT data FROM blob WHERE session_id = %s AND sha256 = %s"
    found = pool.query(lambda connection: connection.cursor(binary=True).execute(text, [session_id, name]).fetchone())
    if found is None:
        raise BlobDamaged(f"blob {name} is missing")
    if sha256(found[0]).hexdigest() != name:
        raise BlobDamaged(f"the bytes of blob {name} are not the ones that were stored")
    return found[0]


def put_note(pool: Pool, session_id: str, name: str, data: bytes) -> None:
    """Keep a note beside the log."""
    text = "INSERT INTO note VALUES (%s, %s, %b) ON CONFLICT (session_id, name) DO UPDATE SET data = excluded.data"
    pool.query(lambda connection: connection.execute(text, [session_id, name, data]))


def get_note(pool: Pool, session_id: str, name: str) -> bytes | None:
    """The note of that name, if there is one."""
    text = "SELECT data FROM note WHERE session_id = %s AND name = %s"
    found = pool.query(lambda connection: connection.cursor(binary=True).execute(text, [session_id, name]).fetchone())
    return found[0] if found else None


# The row of the session goes in the same statement as what belongs to it: to everybody else all of it is gone at once.
_DELETE = """
WITH gone AS (DELETE FROM session WHERE id = %(id)s AND holder = %(holder)s AND epoch = %(epoch)s RETURNING id),
     events AS (DELETE FROM event USING gone WHERE session_id = %(id)s),
     notes AS (DELETE FROM note USING gone WHERE session_id = %(id)s),
     commands AS (DELETE FROM command USING gone WHERE session_id = %(id)s),
     scraps AS (DELETE FROM damaged USING gone WHERE session_id = %(id)s),
     blobs AS (DELETE FROM blob USING gone WHERE session_id = %(id)s),
     noted AS (INSERT INTO deleted (session_id, at) SELECT id, clock_timestamp() FROM gone)
SELECT id FROM gone
"""


def delete_session(pool: Pool, lease: Lease, session_id: str, at: Cursor | None) -> None:
    """Take the session, then remove it, if it has gone no further than ``at``."""
    taken = acquire(pool, lease, session_id, copying=True)  # nobody is to close what is about to go
    if taken is None:
        raise UnknownSession(session_id)
    if at is not None and (taken.end.log_id, taken.end.seq) != at:
        lease.release(session_id, taken.epoch)
        raise LogReset(f"session {session_id!r} has gone on since; it is not deleted")
    with pool.connection() as connection:
        gone = connection.execute(_DELETE, {"id": session_id, "holder": lease.id, "epoch": taken.epoch}).fetchone()
    if gone is None:
        raise Fenced(f"session {session_id!r} was taken over by {describe_holder(pool, session_id)}; it is not deleted")
    lease.notify(session_id)
