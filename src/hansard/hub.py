"""All sessions of one store that run here. Each is open once. What another hansard left open when it was killed is closed, and what
another one wants of a session that is open here is done, if somebody said how.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from hansard.agents.agent import Options
from hansard.errors import HansardError, LogLocked, StoreError, UsageError
from hansard.events import Event, SessionLifecycle
from hansard.session import Session
from hansard.session.past import LAUNCHED
from hansard.store import Asked, SessionInfo, Store
from hansard.talk import Talks

WATCH = 2.0
"""Seconds between two looks for what others left open when they were killed."""
EASE = 100
"""A look that takes long is followed by a pause of so many times as long."""
TAIL = 1000
"""So far back a command about a session that is not open is looked for, before it is done."""
GONE = "the server that ran it is gone"

Obey = Callable[[str, bytes], Awaitable[bytes]]
"""Does with a session what words of another process say, and answers."""


class Hub:
    """Use it as a context: at its end every agent is stopped."""

    def __init__(self, store: Store, rest_after: float = 0) -> None:
        self.store = store
        self.rest_after = rest_after
        """Seconds in which nothing happens, and an agent that can go on later is stopped until it is needed; 0: never."""
        self._open: dict[str, Session] = {}
        self._taking: dict[str, asyncio.Lock] = {}
        self._obey: Obey | None = None
        self._entered = False
        self._attending: set[asyncio.Task[None]] = set()
        self.talks = Talks(self)

    async def __aenter__(self) -> Self:
        self.recover()
        self._entered = True
        self._begin(self._watch_over())
        self._attend()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        await self.close()

    def create(self, agent: str, options: Options, session_id: str | None = None, title: str | None = None) -> Session:
        """A new session for an agent."""
        return self._join(Session.create(self.store, agent, options, session_id, title))

    async def make(self, agent: str, options: Options, session_id: str | None = None, title: str | None = None) -> Session:
        """Like `create`, on another thread, so that nobody else has to wait for the store."""
        return self._join(await asyncio.to_thread(Session.create, self.store, agent, options, session_id, title))

    def open(self, session_id: str, env: dict[str, str] | None = None) -> Session:
        """A session of the store; the same object as long as it is open."""
        found = self._open.get(session_id)
        if found is None:
            found = self._join(Session.open(self.store, session_id, env))
        return found

    async def take(self, session_id: str) -> Session:
        """Like `open`; a long log is read on another thread, so that nobody else has to wait for it."""
        async with self._taking.setdefault(session_id, asyncio.Lock()):
            found = self._open.get(session_id)
            if found is None:
                found = self._join(await asyncio.to_thread(Session.open, self.store, session_id))
            return found

    def _join(self, session: Session) -> Session:
        self._open[session.id] = session
        session.lost = self._forget
        self.talks.join(session)
        return session

    def _forget(self, session: Any) -> None:
        """Somebody else writes it now."""
        if self._open.get(session.id) is session:
            del self._open[session.id]
            self.talks.leave(session)

    async def note(self, session_id: str, event: Event) -> Event:
        """Put something on the record of a session that is about the session itself, once; it is not opened for this."""
        async with self._taking.setdefault(session_id, asyncio.Lock()):
            found = self._open.get(session_id)
            if found is not None:
                return found.past.commands.get(event.command_id or "") or found.note(event)
            return await asyncio.to_thread(self._noted, session_id, event)

    def _noted(self, session_id: str, event: Event) -> Event:
        self.store.head(session_id)  # it is there
        try:
            self.store.append(session_id, [])  # from here on nobody else writes it
            done = self.store.tail(session_id, TAIL) if event.command_id else ()
            same = next((other for other in done if other.command_id == event.command_id), None)
            return same or self.store.append(session_id, [event])[0]
        finally:
            self.store.release(session_id)

    async def leave(self, session_id: str) -> None:
        """Stop the agent of a session, if it is open, and let others write there."""
        async with self._taking.setdefault(session_id, asyncio.Lock()):
            if session_id in self._open:
                await self.close(session_id)

    def get(self, session_id: str) -> Session:
        """A session that is open here."""
        found = self._open.get(session_id)
        if found is None:
            raise UsageError(f"session {session_id!r} is not open here")
        return found

    @property
    def sessions(self) -> list[Session]:
        """Those that are open here, in the order they were opened."""
        return list(self._open.values())

    def list(self) -> list[SessionInfo]:
        """Every session of the store, open or not, the one that changed last first."""
        return self.store.sessions()

    async def close(self, session_id: str | None = None) -> None:
        """Stop the agent of one session, or of all, and let others write there."""
        leaving = self.sessions if session_id is None else [self.get(session_id)]
        for session in leaving:
            del self._open[session.id]
            self.talks.leave(session)
        await asyncio.gather(*(session.close() for session in leaving))
        if session_id is None:
            await self.talks.close()
            for task in self._attending:
                task.cancel()

    # ---- other servers of the same store

    def has(self, session_id: str) -> bool:
        """Whether a session is open here."""
        return session_id in self._open

    def obey(self, obey: Obey) -> None:
        """From now on what other processes want of the sessions that are open here is done so."""
        self._obey = obey
        self._attend()

    def _attend(self) -> None:
        if self._entered and self._obey is not None:
            self._begin(self._listen(self._obey))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._attending.add(task)
        task.add_done_callback(self._attending.discard)

    async def _listen(self, obey: Obey) -> None:
        async for asked in self.store.asked():
            self._begin(self._do(obey, asked))

    async def _do(self, obey: Obey, asked: Asked) -> None:
        try:
            answer = await obey(asked.session_id, asked.words)
        except LogLocked:
            answer = None  # whoever writes it now is asked instead
        with suppress(StoreError):  # it is asked again, and has been done
            await asyncio.to_thread(self.store.answer, asked, answer)

    async def _watch_over(self) -> None:
        """Close what others left open, as soon as it is known that they are gone."""
        pause = WATCH
        while True:
            await asyncio.sleep(min(pause, self.rest_after or pause))
            await self._let_rest()
            began = time.monotonic()
            with suppress(HansardError, OSError):  # the store is away; the next look may see more
                for session_id in await asyncio.to_thread(self.store.abandoned):
                    async with self._taking.setdefault(session_id, asyncio.Lock()):
                        if session_id not in self._open:
                            await asyncio.to_thread(self._close_left, session_id, GONE)
            pause = max(WATCH, EASE * (time.monotonic() - began))

    async def _let_rest(self) -> None:
        for session in self.sessions if self.rest_after else []:
            with suppress(HansardError, OSError):  # what cannot be put on the record is not done
                await session.rest(self.rest_after)

    def recover(self) -> list[str]:
        """Close what killed writers left open in the sessions they drove, and say in which. Nothing is read of all others."""
        return [session for session in self.store.abandoned() if session not in self._open and self._close_left(session)]

    def _close_left(self, session_id: str, reason: str | None = None) -> bool:
        before = self.store.head(session_id).seq
        try:
            if any(_is_launch(event) for event in self.store.read(session_id, types=["session_lifecycle"])):
                Session.open(self.store, session_id, reason=reason)
            self.store.append(session_id, [])  # the lock is taken, and let go of as it should have been
        except LogLocked:
            return False
        self.store.release(session_id)
        return self.store.head(session_id).seq > before


def _is_launch(event: object) -> bool:
    return isinstance(event, SessionLifecycle) and event.payload.subtype == LAUNCHED
