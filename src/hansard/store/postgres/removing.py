"""Removing a session from the database, unless somebody is writing it."""

from __future__ import annotations

from hansard.errors import Fenced, LogReset, UnknownSession
from hansard.store.interface import Cursor
from hansard.store.postgres.lease import Lease
from hansard.store.postgres.pool import Pool
from hansard.store.postgres.taking import held_by, take

# The row of the session goes in the same statement as what belongs to it: to everybody else all of it is gone at once.
_REMOVE = """
WITH gone AS (DELETE FROM session WHERE id = %(id)s AND holder = %(holder)s AND epoch = %(epoch)s RETURNING id),
     events AS (DELETE FROM event USING gone WHERE session_id = %(id)s),
     notes AS (DELETE FROM note USING gone WHERE session_id = %(id)s),
     commands AS (DELETE FROM command USING gone WHERE session_id = %(id)s),
     scraps AS (DELETE FROM damaged USING gone WHERE session_id = %(id)s),
     blobs AS (DELETE FROM blob USING gone WHERE session_id = %(id)s)
SELECT id FROM gone
"""


def remove(pool: Pool, lease: Lease, session_id: str, at: Cursor | None) -> None:
    """Take the session, then remove it, if it has gone no further than ``at``."""
    taken = take(pool, lease, session_id, copying=True)  # nobody is to close what is about to go
    if taken is None:
        raise UnknownSession(session_id)
    if at is not None and (taken.end.log_id, taken.end.seq) != at:
        lease.let_go(session_id, taken.epoch)
        raise LogReset(f"session {session_id!r} has gone on since; it is not deleted")
    with pool.connection() as connection:
        gone = connection.execute(_REMOVE, {"id": session_id, "holder": lease.id, "epoch": taken.epoch}).fetchone()
    if gone is None:
        raise Fenced(f"session {session_id!r} was taken over by {held_by(pool, session_id)}; it is not deleted")
    lease.wrote(session_id)
