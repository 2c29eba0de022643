"""All sessions of one store that run here. Each is open once; what another hansard left open when it was killed is closed at the start."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from hansard.agents.agent import Options
from hansard.errors import LogLocked, UsageError
from hansard.events import Event, SessionLifecycle
from hansard.session import Session
from hansard.session.past import LAUNCHED
from hansard.store import SessionInfo, Store
from hansard.talk import Talks


class Hub:
    """Use it as a context: at its end every agent is stopped."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._open: dict[str, Session] = {}
        self._taking: dict[str, asyncio.Lock] = {}
        self.talks = Talks(self)

    async def __aenter__(self) -> Self:
        self.recover()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        await self.close()

    def create(self, agent: str, options: Options, session_id: str | None = None, title: str | None = None) -> Session:
        """A new session for an agent."""
        made = Session.create(self.store, agent, options, session_id, title)
        self._open[made.id] = made
        self.talks.join(made)
        return made

    def open(self, session_id: str, env: dict[str, str] | None = None) -> Session:
        """A session of the store; the same object as long as it is open."""
        found = self._open.get(session_id)
        if found is None:
            found = self._open[session_id] = Session.open(self.store, session_id, env)
            self.talks.join(found)
        return found

    async def take(self, session_id: str) -> Session:
        """Like `open`; a long log is read on another thread, so that nobody else has to wait for it."""
        async with self._taking.setdefault(session_id, asyncio.Lock()):
            found = self._open.get(session_id)
            if found is None:
                found = self._open[session_id] = await asyncio.to_thread(Session.open, self.store, session_id)
                self.talks.join(found)
            return found

    async def note(self, session_id: str, event: Event) -> Event:
        """Put something on the record of a session that is about the session itself; it is not opened for this."""
        async with self._taking.setdefault(session_id, asyncio.Lock()):
            found = self._open.get(session_id)
            if found is not None:
                return found.note(event)
            return await asyncio.to_thread(self._noted, session_id, event)

    def _noted(self, session_id: str, event: Event) -> Event:
        self.store.head(session_id)  # it is there
        try:
            return self.store.append(session_id, [event])[0]
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

    def recover(self) -> list[str]:
        """Close what killed writers left open in the sessions they drove, and say in which. Nothing is read of all others."""
        return [session for session in self.store.abandoned() if session not in self._open and self._close_left(session)]

    def _close_left(self, session_id: str) -> bool:
        before = self.store.head(session_id).seq
        try:
            if any(_is_launch(event) for event in self.store.read(session_id, types=["session_lifecycle"])):
                Session.open(self.store, session_id)
            self.store.append(session_id, [])  # the lock is taken, and let go of as it should have been
        except LogLocked:
            return False
        self.store.release(session_id)
        return self.store.head(session_id).seq > before


def _is_launch(event: object) -> bool:
    return isinstance(event, SessionLifecycle) and event.payload.subtype == LAUNCHED
