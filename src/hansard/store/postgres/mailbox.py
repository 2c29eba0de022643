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

from hansard.errors import StoreAway, StoreError, UnknownSession
from hansard.store.interface import Asked
from hansard.store.postgres.channels import door
from hansard.store.postgres.lease import LEASE, Lease
from hansard.store.postgres.listening import Listening
from hansard.store.postgres.pool import Pool
from hansard.store.postgres.taking import held

LOOK = 1.0
"""Seconds between two looks, if nobody knocks."""
PATIENCE = LEASE + 4.0
"""Seconds in which a writer that lives must have begun with what it is asked."""
KEPT = 600
"""Seconds for which answers are known."""
_SWEEP = 60.0

_ASK = """
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
_TAKE = """
UPDATE command c SET taken = %(me)s
WHERE c.session_id = ANY(%(held)s) AND c.answer IS NULL AND c.wanted > clock_timestamp() - make_interval(secs => %(lately)s)
AND EXISTS (SELECT 1 FROM session s WHERE s.id = c.session_id AND s.holder = %(me)s)
AND (c.taken IS NULL OR c.taken = %(me)s OR NOT EXISTS (SELECT 1 FROM writer w WHERE w.id = c.taken AND lives(w.until)))
RETURNING session_id, name, words
"""
_ANSWER = "UPDATE command SET answer = %b WHERE session_id = %s AND name = %b AND taken = %s AND answer IS NULL RETURNING sender"
_GIVE_BACK = "UPDATE command SET taken = NULL WHERE session_id = %s AND name = %b AND taken = %s AND answer IS NULL"


class Mailbox:
    """What this process asks of others, and what they ask of it."""

    def __init__(self, pool: Pool, lease: Lease, held_here: Callable[[], list[str]]) -> None:
        self._pool = pool
        self._lease = lease
        self._held_here = held_here
        self._doing: set[tuple[str, str]] = set()
        self._swept = time.monotonic()

    async def ask(self, listening: Listening, question: Asked) -> bytes | None:
        """The answer of whoever writes the session; None if nobody does, or we."""
        begun, patience = time.monotonic(), PATIENCE
        with listening.door() as knocked:
            while True:
                knocked.clear()
                holder, host, pid, lives, listens, answer = await asyncio.to_thread(self._put, question)
                if answer is not None:
                    return answer
                if not lives or holder == self._lease.id:
                    await asyncio.to_thread(self._withdraw, question)  # it is done by us instead
                    return None
                if not listens:
                    raise held(question.session_id, host, pid)
                if time.monotonic() - begun > patience:
                    if await asyncio.to_thread(self._withdraw, question):
                        raise held(question.session_id, host, pid)
                    patience = float("inf")  # it has begun, and is waited for as long as it lives
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK):
                        await knocked.wait()

    async def asked(self, listening: Listening) -> AsyncIterator[Asked]:
        """What others want, as it comes."""
        self._lease.listens = True
        announced = False
        with listening.door() as knocked:
            while True:
                knocked.clear()
                found: list[Asked] = []
                with suppress(StoreError):  # the database is away: what is asked there can wait
                    if not announced:
                        await asyncio.to_thread(self._lease.listen)
                        announced = True
                    found = await asyncio.to_thread(self._take)
                for one in found:
                    yield one
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK):
                        await knocked.wait()

    def answer(self, asked: Asked, words: bytes | None) -> None:
        """Answer it, or give it back."""
        name = _spelled(asked.name)

        def put(connection: Connection[Any]) -> None:
            if words is None:
                connection.execute(_GIVE_BACK, [asked.session_id, name, self._lease.id])
                return
            found = connection.execute(_ANSWER, [words, asked.session_id, name, self._lease.id]).fetchone()
            if found is not None:
                self._knock(connection, found[0])

        try:
            self._pool.ask(put)  # twice is as good as once
        finally:
            self._doing.discard((asked.session_id, asked.name))  # what could not be answered is asked again

    # ---- within

    def _put(self, question: Asked) -> tuple[Any, ...]:
        values = {"id": question.session_id, "name": _spelled(question.name), "words": question.words, "me": self._lease.id}

        def put(connection: Connection[Any]) -> tuple[Any, ...]:
            found = connection.cursor(binary=True).execute(_ASK, values).fetchone()
            if found is None:
                raise UnknownSession(question.session_id)
            *told, is_new = found
            if is_new:
                self._knock(connection, told[0])
            return tuple(told)

        return self._pool.ask(put)  # twice is as good as once

    def _withdraw(self, question: Asked) -> bool:
        values = [question.session_id, _spelled(question.name)]
        with suppress(StoreAway):
            return self._pool.ask(lambda connection: connection.execute(_WITHDRAW, values).fetchone()) is not None
        return False

    def _take(self) -> list[Asked]:
        if time.monotonic() - self._swept > _SWEEP:
            self._swept = time.monotonic()
            text = "DELETE FROM command WHERE wanted < clock_timestamp() - make_interval(secs => %s)"
            self._pool.ask(lambda connection: connection.execute(text, [KEPT]))
        sessions = self._held_here()
        if not sessions:
            return []
        values = {"me": self._lease.id, "held": sessions, "lately": 5 * LOOK}
        rows = self._pool.ask(lambda connection: connection.cursor(binary=True).execute(_TAKE, values).fetchall())
        found = [Asked(session_id, name.decode("utf-8", "surrogatepass"), words) for session_id, name, words in rows]
        fresh = [one for one in found if (one.session_id, one.name) not in self._doing]
        self._doing |= {(one.session_id, one.name) for one in fresh}
        return fresh

    def _knock(self, connection: Connection[Any], at: Any) -> None:
        connection.execute("SELECT pg_notify(%s, %s)", [door(self._pool.address.schema, at), ""])


def _spelled(name: str) -> bytes:
    """A client may call it anything; text in a database may not hold everything."""
    return name.encode("utf-8", "surrogatepass")
