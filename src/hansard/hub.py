"""All sessions of one store that run here. Each is open once; what another hansard left open when it was killed is closed at the start."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from hansard.agents.agent import Options
from hansard.errors import LogLocked, UsageError
from hansard.events import SessionLifecycle
from hansard.session import Session
from hansard.session.past import LAUNCHED
from hansard.store import SessionInfo, Store
from hansard.talk import Talks


class Hub:
    """Use it as a context: at its end every agent is stopped."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._open: dict[str, Session] = {}
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
