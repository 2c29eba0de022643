"""Removing a session from the database, unless somebody is writing it."""

from __future__ import annotations

from hansard.errors import UnknownSession
from hansard.store.postgres.lease import Lease
from hansard.store.postgres.pool import Pool
from hansard.store.postgres.taking import take

# The row of the session goes in the same statement as what belongs to it: to everybody else all of it is gone at once.
_REMOVE = """
WITH gone AS (DELETE FROM session WHERE id = %(id)s AND holder = %(holder)s AND epoch = %(epoch)s RETURNING id),
     events AS (DELETE FROM event USING gone WHERE session_id = %(id)s),
     notes AS (DELETE FROM note USING gone WHERE session_id = %(id)s),
     commands AS (DELETE FROM command USING gone WHERE session_id = %(id)s),
     scraps AS (DELETE FROM damaged USING gone WHERE session_id = %(id)s)
DELETE FROM blob USING gone WHERE session_id = %(id)s
"""


def remove(pool: Pool, lease: Lease, session_id: str) -> None:
    """Take the session, then remove it."""
    taken = take(pool, lease, session_id, copying=True)  # nobody is to close what is about to go
    if taken is None:
        raise UnknownSession(session_id)
    with pool.connection() as connection:
        connection.execute(_REMOVE, {"id": session_id, "holder": lease.id, "epoch": taken.epoch})
    lease.wrote(session_id)
