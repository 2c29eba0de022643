"""The list of sessions in the database: columns that the writers keep."""

from __future__ import annotations

from hansard.store.interface import SessionInfo
from hansard.store.postgres.pool import Pool

_LIST = """
SELECT s.id, s.log_id, s.title, s.agent, s.format, s.parent_session_id, s.archived, s.seq, s.created, s.updated, s.bytes, s.status,
       lives(w.until)
FROM session s LEFT JOIN writer w ON w.id = s.holder
ORDER BY s.updated DESC, s.id
"""
_ABANDONED = """
SELECT s.id FROM session s LEFT JOIN writer w ON w.id = s.holder
WHERE s.holder IS NOT NULL AND NOT s.copying AND NOT lives(w.until)
ORDER BY s.id
"""


def sessions(pool: Pool) -> list[SessionInfo]:
    """Every session, the one that changed last first."""
    rows = pool.ask(lambda connection: connection.execute(_LIST).fetchall())
    return [
        SessionInfo(
            id=id,
            log_id=log_id,
            title=title,
            agent=agent,
            format=format,
            parent_session_id=parent,
            archived=archived,
            events=seq,
            created=created,
            updated=updated,
            bytes=size,
            status=status,
            live=live,
        )
        for id, log_id, title, agent, format, parent, archived, seq, created, updated, size, status, live in rows
    ]


def abandoned(pool: Pool) -> list[str]:
    """The sessions whose holder is gone and did not let go of them."""
    return [name for (name,) in pool.ask(lambda connection: connection.execute(_ABANDONED).fetchall())]
