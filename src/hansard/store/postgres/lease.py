"""Who writes: each process says every two seconds that it lives, and tells the followers what it wrote. One thread does both.

Nothing that is written waits for this thread. A follower looks by itself every second, so a word that is lost costs a second.
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
from psycopg import Connection

from hansard.errors import StoreError
from hansard.store.postgres.channels import by_channel
from hansard.store.postgres.pool import Pool

BEAT = 2.0
LEASE = 8.0
"""Seconds after which a writer that said nothing is taken for dead, by the database's clock; see ``lives`` in the schema."""
NOBODY = UUID(int=0)
"""The holder of a session whose writer let go of it without having said everything."""
_PACE = 0.004
_ERRORS = (StoreError, psycopg.Error)
# Neither waits for the disk: a word that a crash swallows costs a second, a beat that it swallows was two seconds old at the most.
_TELL = """
SELECT set_config('synchronous_commit', 'off', true), pg_notify(one.channel, one.words)
FROM unnest(%s::text[], %s::text[]) AS one (channel, words)
"""
_BEAT = """
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
        self._stirred = threading.Event()
        self._stopped = False
        self._news: deque[str] = deque()
        self._left: dict[str, tuple[int, UUID | None]] = {}

    def begin(self) -> None:
        """Be known as a writer, from now on until `stop`."""
        with self._guard:
            if self._thread is None:
                self._beat()
                self._stopped = False
                self._thread = threading.Thread(target=self._run, name="hansard-lease", daemon=True)
                self._thread.start()

    def listen(self) -> None:
        """Say that this process does what others ask of it."""
        self.listens = True
        self.begin()
        self._beat()

    def wrote(self, session_id: str) -> None:
        """Tell the followers, soon."""
        self._news.append(session_id)
        self._stirred.set()

    def let_go(self, session_id: str, epoch: int, to: UUID | None = None) -> None:
        """Give a session up; later, if the database is away now."""
        self._left[session_id] = epoch, to
        with suppress(*_ERRORS):
            self._release()

    def stop(self) -> None:
        """Say what is still to be said, and that we write no more."""
        with self._guard:
            thread, self._thread = self._thread, None
        if thread is None:
            return
        self._stopped = True
        self._stirred.set()
        thread.join()
        with suppress(*_ERRORS):
            self._release()
            self._tell()
            self._pool.ask(lambda connection: connection.execute("DELETE FROM writer WHERE id = %s", [self.id]))

    def _run(self) -> None:
        due = time.monotonic() + BEAT
        while not self._stopped:
            self._stirred.wait(max(0.0, due - time.monotonic()))
            self._stirred.clear()
            try:
                if time.monotonic() >= due:
                    self._beat()
                    self._release()
                    due = time.monotonic() + BEAT
                self._tell()
                time.sleep(_PACE)
            except _ERRORS:
                due = min(due, time.monotonic())
                time.sleep(0.25)

    def _beat(self) -> None:
        values = [self.id, socket.gethostname(), os.getpid(), LEASE, self.listens]
        self._pool.ask(lambda connection: connection.execute(_BEAT, values))  # twice is as good as once

    def _tell(self) -> None:
        news = {self._news.popleft() for _ in range(len(self._news))}
        if not news:
            return
        with self._pool.connection() as connection:
            said = list(by_channel(self._pool.address.schema, news))
            connection.execute(_TELL, [[channel for channel, _ in said], [words for _, words in said]])  # at once: it wakes all who listen

    def _release(self) -> None:
        while self._left:
            session_id, (epoch, to) = next(iter(self._left.items()))
            values = [to, session_id, self.id, epoch]
            self._pool.ask(partial(_give_up, values=values))
            if self._left.get(session_id) == (epoch, to):
                self._left.pop(session_id, None)
            self.wrote(session_id)


def _give_up(connection: Connection[Any], values: list[Any]) -> None:
    connection.execute("UPDATE session SET holder = %s, copying = false WHERE id = %s AND holder = %s AND epoch = %s", values)
