"""Words for whoever writes a session: a row for each, a knock at the door of who is to read it, and a look every second besides.

A row belongs to the session, not to a writer. Only who holds the session takes it, so it is done by one at a time; when that one dies, by
the next. A row that nobody waits for any more is not done. What was answered is kept for a while, for whoever asks the same again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

from psycopg import Connection

from hansard.errors import StoreError, StoreUnavailable, UnknownSession
from hansard.store.ids import check_session_id
from hansard.store.postgres.connection import Pool
from hansard.store.postgres.follow import Listener, writer_channel
from hansard.store.postgres.lease import LEASE_SECONDS, Lease, locked_error
from hansard.store.records import MailboxMessage

POLL_SECONDS = 1.0
"""Seconds between two looks, if nobody knocks."""
START_TIMEOUT_SECONDS = LEASE_SECONDS + 4.0
"""Seconds in which a writer that lives must have begun with what it is asked."""
KEEP_SECONDS = 600
"""Seconds for which answers are known."""
_SWEEP_SECONDS = 60.0

_SEND = """
WITH holder AS (
    SELECT s.holder, w.host, w.pid, lives(w.until) AS lives, coalesce(w.listens, false) AS listens
    FROM session s LEFT JOIN writer w ON w.id = s.holder WHERE s.id = %(id)s
), made AS (
    INSERT INTO command (session_id, name, words, sender, wanted)
    SELECT %(id)s, %(name)b, %(words)b, %(me)s, clock_timestamp() FROM holder WHERE lives AND listens AND holder <> %(me)s
    ON CONFLICT (session_id, name) DO UPDATE SET wanted = excluded.wanted
    RETURNING answer, xmax = 0 AS is_new
)
SELECT h.holder, h.host, h.pid, h.lives, h.listens, coalesce(m.answer, c.answer), m.is_new
FROM holder h LEFT JOIN made m ON true LEFT JOIN command c ON c.session_id = %(id)s AND c.name = %(name)b
"""
_WITHDRAW = "DELETE FROM command WHERE session_id = %s AND name = %b AND answer IS NULL AND taken IS NULL RETURNING 1"
_RECEIVE = """
UPDATE command c SET taken = %(me)s
WHERE c.session_id = ANY(%(held)s) AND c.answer IS NULL AND c.wanted > clock_timestamp() - make_interval(secs => %(lately)s)
AND EXISTS (SELECT 1 FROM session s WHERE s.id = c.session_id AND s.holder = %(me)s)
AND (c.taken IS NULL OR c.taken = %(me)s OR NOT EXISTS (SELECT 1 FROM writer w WHERE w.id = c.taken AND lives(w.until)))
RETURNING session_id, name, words
"""
_REPLY = "UPDATE command SET answer = %b WHERE session_id = %s AND name = %b AND taken = %s AND answer IS NULL RETURNING sender"
_RETURN = "UPDATE command SET taken = NULL WHERE session_id = %s AND name = %b AND taken = %s AND answer IS NULL"


class PostgresMailbox:
    """Messages to the writers of sessions, and to this process."""

    def __init__(self, pool: Pool, lease: Lease, listener: Callable[[], Listener], own_sessions: Callable[[], list[str]]) -> None:
        self._pool = pool
        self._lease = lease
        self._listener = listener
        self._own_sessions = own_sessions
        self._doing: set[tuple[str, str]] = set()
        self._swept = time.monotonic()

    async def send(self, session_id: str, name: str, data: bytes) -> bytes | None:
        """Sends a message to the process that writes the session, and returns its reply; None if no process writes it, or this one."""
        question = MailboxMessage(check_session_id(session_id), name, data)
        begun, patience = time.monotonic(), START_TIMEOUT_SECONDS
        with self._listener().watch_messages() as knocked:
            while True:
                knocked.clear()
                holder, host, pid, lives, listens, answer = await asyncio.to_thread(self._put, question)
                if answer is not None:
                    return answer
                if not lives or holder == self._lease.id:
                    await asyncio.to_thread(self._withdraw, question)  # it is done by us instead
                    return None
                if not listens:
                    raise locked_error(question.session_id, host, pid)
                if time.monotonic() - begun > patience:
                    if await asyncio.to_thread(self._withdraw, question):
                        raise locked_error(question.session_id, host, pid)
                    patience = float("inf")  # it has begun, and is waited for as long as it lives
                with suppress(TimeoutError):
                    async with asyncio.timeout(POLL_SECONDS):
                        await knocked.wait()

    async def receive(self) -> AsyncIterator[MailboxMessage]:
        """Yields the messages for the sessions that this store writes; each needs a reply. It does not end."""
        self._lease.listens = True
        announced = False
        with self._listener().watch_messages() as knocked:
            while True:
                knocked.clear()
                found: list[MailboxMessage] = []
                with suppress(StoreError):  # the database is away: what is asked there can wait
                    if not announced:
                        await asyncio.to_thread(self._lease.accept_messages)
                        announced = True
                    found = await asyncio.to_thread(self._take)
                for one in found:
                    yield one
                with suppress(TimeoutError):
                    async with asyncio.timeout(POLL_SECONDS):
                        await knocked.wait()

    def reply(self, message: MailboxMessage, data: bytes | None) -> None:
        """Replies to a message. None returns it, for the process that writes the session by now."""
        name = _encode_name(message.name)

        def put(connection: Connection[Any]) -> None:
            if data is None:
                connection.execute(_RETURN, [message.session_id, name, self._lease.id])
                return
            found = connection.execute(_REPLY, [data, message.session_id, name, self._lease.id]).fetchone()
            if found is not None:
                self._knock(connection, found[0])

        try:
            self._pool.query(put)  # twice is as good as once
        finally:
            self._doing.discard((message.session_id, message.name))  # what could not be answered is asked again

    # ---- within

    def _put(self, question: MailboxMessage) -> tuple[Any, ...]:
        values = {"id": question.session_id, "name": _encode_name(question.name), "words": question.data, "me": self._lease.id}

        def put(connection: Connection[Any]) -> tuple[Any, ...]:
            found = connection.cursor(binary=True).execute(_SEND, values).fetchone()
            if found is None:
                raise UnknownSession(question.session_id)
            *row, is_new = found
            if is_new:
                self._knock(connection, row[0])
            return tuple(row)

        return self._pool.query(put)  # twice is as good as once

    def _withdraw(self, question: MailboxMessage) -> bool:
        values = [question.session_id, _encode_name(question.name)]
        with suppress(StoreUnavailable):
            return self._pool.query(lambda connection: connection.execute(_WITHDRAW, values).fetchone()) is not None
        return False

    def _take(self) -> list[MailboxMessage]:
        if time.monotonic() - self._swept > _SWEEP_SECONDS:
            self._swept = time.monotonic()
            text = "DELETE FROM command WHERE wanted < clock_timestamp() - make_interval(secs => %s)"
            self._pool.query(lambda connection: connection.execute(text, [KEEP_SECONDS]))
        sessions = self._own_sessions()
        if not sessions:
            return []
        values = {"me": self._lease.id, "held": sessions, "lately": 5 * POLL_SECONDS}
        rows = self._pool.query(lambda connection: connection.cursor(binary=True).execute(_RECEIVE, values).fetchall())
        found = [MailboxMessage(session_id, name.decode("utf-8", "surrogatepass"), words) for session_id, name, words in rows]
        fresh = [one for one in found if (one.session_id, one.name) not in self._doing]
        self._doing |= {(one.session_id, one.name) for one in fresh}
        return fresh

    def _knock(self, connection: Connection[Any], at: Any) -> None:
        connection.execute("SELECT pg_notify(%s, %s)", [writer_channel(self._pool.address.schema, at), ""])


def _encode_name(name: str) -> bytes:
    """A client may call it anything; text in a database may not hold everything."""
    return name.encode("utf-8", "surrogatepass")
