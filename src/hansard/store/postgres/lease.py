"""Who may write a session: every process renews its lease every two seconds, and a session has one holder.

The thread that renews the lease also notifies followers; appends never wait for it. Followers poll once a second, so a lost notification
costs at most a second. Of two processes that try to acquire a session at the same time, one gets it.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import deque
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import psycopg
from msgspec import Struct
from psycopg import Connection

from hansard.errors import LogLocked, StoreError
from hansard.store.postgres.connection import Pool
from hansard.store.postgres.follow import group_by_channel
from hansard.store.postgres.rows import LogEnd, decode_state

RENEW_SECONDS = 2.0
LEASE_SECONDS = 8.0
"""Seconds after which a writer that said nothing is taken for dead, by the database's clock; see ``lives`` in the schema."""
INCOMPLETE = UUID(int=0)
"""The holder of a session whose writer let go of it without having said everything."""
_NOTIFY_INTERVAL_SECONDS = 0.004
_ERRORS = (StoreError, psycopg.Error)
# Neither waits for the disk: a word that a crash swallows costs a second, a beat that it swallows was two seconds old at the most.
_NOTIFY = """
SELECT set_config('synchronous_commit', 'off', true), pg_notify(one.channel, one.words)
FROM unnest(%s::text[], %s::text[]) AS one (channel, words)
"""
_RENEW = """
WITH hurry AS (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO writer (id, host, pid, until, listens) SELECT %s, %s, %s, clock_timestamp() + make_interval(secs => %s), %s FROM hurry
ON CONFLICT (id) DO UPDATE SET until = excluded.until, listens = excluded.listens
"""


class Lease:
    """This process, as a writer."""

    def __init__(self, pool: Pool) -> None:
        self.id = uuid4()
        self.listens = False
        """Whether this process does what others ask of the sessions it writes."""
        self._pool = pool
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None
        self._wakeup = threading.Event()
        self._stopped = False
        self._changed: deque[str] = deque()
        self._releases: dict[str, tuple[int, UUID | None]] = {}

    def start(self) -> None:
        """Be known as a writer, from now on until `stop`."""
        with self._guard:
            if self._thread is None:
                self._renew()
                self._stopped = False
                self._thread = threading.Thread(target=self._run, name="hansard-lease", daemon=True)
                self._thread.start()

    def accept_messages(self) -> None:
        """Say that this process does what others ask of it."""
        self.listens = True
        self.start()
        self._renew()

    def notify(self, session_id: str) -> None:
        """Tell the followers, soon."""
        self._changed.append(session_id)
        self._wakeup.set()

    def release(self, session_id: str, epoch: int, to: UUID | None = None) -> None:
        """Give a session up; later, if the database is away now."""
        self._releases[session_id] = epoch, to
        with suppress(*_ERRORS):
            self._send_releases()

    def stop(self) -> None:
        """Say what is still to be said, and that we write no more."""
        with self._guard:
            thread, self._thread = self._thread, None
        if thread is None:
            return
        self._stopped = True
        self._wakeup.set()
        thread.join()
        with suppress(*_ERRORS):
            self._send_releases()
            self._send_notifications()
            self._pool.query(lambda connection: connection.execute("DELETE FROM writer WHERE id = %s", [self.id]))

    def _run(self) -> None:
        due = time.monotonic() + RENEW_SECONDS
        while not self._stopped:
            self._wakeup.wait(max(0.0, due - time.monotonic()))
            self._wakeup.clear()
            try:
                if time.monotonic() >= due:
                    self._renew()
                    self._send_releases()
                    due = time.monotonic() + RENEW_SECONDS
                self._send_notifications()
                time.sleep(_NOTIFY_INTERVAL_SECONDS)
            except _ERRORS:
                due = min(due, time.monotonic())
                time.sleep(0.25)

    def _renew(self) -> None:
        values = [self.id, socket.gethostname(), os.getpid(), LEASE_SECONDS, self.listens]
        self._pool.query(lambda connection: connection.execute(_RENEW, values))  # twice is as good as once

    def _send_notifications(self) -> None:
        changed = {self._changed.popleft() for _ in range(len(self._changed))}
        if not changed:
            return
        with self._pool.connection() as connection:
            payloads = list(group_by_channel(self._pool.address.schema, changed))
            connection.execute(
                _NOTIFY, [[channel for channel, _ in payloads], [words for _, words in payloads]]
            )  # at once: it wakes all who listen

    def _send_releases(self) -> None:
        while self._releases:
            session_id, (epoch, to) = next(iter(self._releases.items()))
            values = [to, session_id, self.id, epoch]
            self._pool.query(partial(_release_session, values=values))
            if self._releases.get(session_id) == (epoch, to):
                self._releases.pop(session_id, None)
            self.notify(session_id)


def _release_session(connection: Connection[Any], values: list[Any]) -> None:
    connection.execute(_RELEASE, values)


_RELEASE = """
UPDATE session SET holder = %s, copying = false, changed = date_trunc('second', clock_timestamp())
WHERE id = %s AND holder = %s AND epoch = %s
"""
_HOLDER = """
SELECT s.epoch, s.holder, w.host, w.pid, lives(w.until), s.copying
FROM session s LEFT JOIN writer w ON w.id = s.holder
WHERE s.id = %s
"""
_ACQUIRE = """
UPDATE session SET holder = %s, epoch = epoch + 1, copying = %s, changed = date_trunc('second', clock_timestamp())
WHERE id = %s AND epoch = %s
RETURNING epoch, log_id, seq, bytes, damaged, state,
          (SELECT count(*) FROM damaged d WHERE d.session_id = session.id AND d.after = session.seq AND session.damaged > 0)
"""


class Ownership(Struct):
    """A session that is ours, and where its log ends."""

    epoch: int
    end: LogEnd


def acquire(pool: Pool, lease: Lease, session_id: str, copying: bool = False) -> Ownership | None:
    """Be its writer; None if there is no such session, `LogLocked` if somebody lives who is."""
    lease.start()

    def attempt(connection: Connection[Any]) -> Ownership | None:
        while (seen := connection.execute(_HOLDER, [session_id]).fetchone()) is not None:
            epoch, holder, host, pid, lives, brings = seen
            # Who copies takes over from who copied: it brings the same lines. So a killed copy goes on at once, not after the lease.
            if lives and holder != lease.id and not (copying and brings):
                raise locked_error(session_id, host, pid)
            got = connection.execute(_ACQUIRE, [lease.id, copying, session_id, epoch]).fetchone()
            if got is not None:
                epoch, log_id, seq, size, damaged, state, behind = got
                return Ownership(epoch, LogEnd(log_id, seq, size, damaged, behind, *decode_state(state)))
        return None

    return pool.query(attempt)  # asked again it takes what it has: the epoch is one more, and that is all


def locked_error(session_id: str, host: str | None, pid: int | None) -> LogLocked:
    """The error for who comes second."""
    return LogLocked(f"{session_id!r} is being written by {_name(host, pid)}", None, pid)


def own_lock_error(session_id: str) -> LogLocked:
    """The same, if it is we ourselves."""
    return locked_error(session_id, socket.gethostname(), os.getpid())


def describe_holder(pool: Pool, session_id: str) -> str:
    """Who holds it now."""
    seen = pool.query(lambda connection: connection.execute(_HOLDER, [session_id]).fetchone())
    return _name(seen[2], seen[3]) if seen else "nobody"


def is_held(pool: Pool, session_id: str) -> bool:
    """Whether somebody lives who writes it."""
    seen = pool.query(lambda connection: connection.execute(_HOLDER, [session_id]).fetchone())
    return seen is not None and bool(seen[4])


def _name(host: str | None, pid: int | None) -> str:
    return "another process" if pid is None else f"process {pid} on {host}"
