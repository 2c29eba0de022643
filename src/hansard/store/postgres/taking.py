"""Taking a session, to be the only one who writes it: the holder must be gone, and whoever comes second at the same moment gets nothing."""

from __future__ import annotations

import os
import socket
from typing import Any

from msgspec import Struct
from psycopg import Connection

from hansard.errors import LogLocked
from hansard.store.postgres.lease import Lease
from hansard.store.postgres.pool import Pool
from hansard.store.postgres.rows import End, summary_of

_SEE = """
SELECT s.epoch, s.holder, w.host, w.pid, lives(w.until), s.copying
FROM session s LEFT JOIN writer w ON w.id = s.holder
WHERE s.id = %s
"""
_TAKE = """
UPDATE session SET holder = %s, epoch = epoch + 1, copying = %s WHERE id = %s AND epoch = %s
RETURNING epoch, log_id, seq, bytes, damaged, state,
          (SELECT count(*) FROM damaged d WHERE d.session_id = session.id AND d.after = session.seq AND session.damaged > 0)
"""


class Taken(Struct):
    """A session that is ours, and where its log ends."""

    epoch: int
    end: End


def take(pool: Pool, lease: Lease, session_id: str, copying: bool = False) -> Taken | None:
    """Be its writer; None if there is no such session, `LogLocked` if somebody lives who is."""
    lease.begin()

    def attempt(connection: Connection[Any]) -> Taken | None:
        while (seen := connection.execute(_SEE, [session_id]).fetchone()) is not None:
            epoch, holder, host, pid, lives, brings = seen
            # Who copies takes over from who copied: it brings the same lines. So a killed copy goes on at once, not after the lease.
            if lives and holder != lease.id and not (copying and brings):
                raise held(session_id, host, pid)
            got = connection.execute(_TAKE, [lease.id, copying, session_id, epoch]).fetchone()
            if got is not None:
                epoch, log_id, seq, size, damaged, state, behind = got
                return Taken(epoch, End(log_id, seq, size, damaged, behind, summary_of(state)))
        return None

    return pool.ask(attempt)  # asked again it takes what it has: the epoch is one more, and that is all


def held(session_id: str, host: str | None, pid: int | None) -> LogLocked:
    """The error for who comes second."""
    return LogLocked(f"{session_id!r} is being written by {_name(host, pid)}", None, pid)


def held_here(session_id: str) -> LogLocked:
    """The same, if it is we ourselves."""
    return held(session_id, socket.gethostname(), os.getpid())


def held_by(pool: Pool, session_id: str) -> str:
    """Who holds it now."""
    seen = pool.ask(lambda connection: connection.execute(_SEE, [session_id]).fetchone())
    return _name(seen[2], seen[3]) if seen else "nobody"


def is_held(pool: Pool, session_id: str) -> bool:
    """Whether somebody lives who writes it."""
    seen = pool.ask(lambda connection: connection.execute(_SEE, [session_id]).fetchone())
    return seen is not None and bool(seen[4])


def _name(host: str | None, pid: int | None) -> str:
    return "another process" if pid is None else f"process {pid} on {host}"
