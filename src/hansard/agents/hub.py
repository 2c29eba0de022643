"""The hub: all sessions of one store that run in this process, each opened once.

It closes what another process left open when it was killed, and passes on the commands of other processes for the sessions that run here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Self

from hansard.agents.base import Options
from hansard.agents.inbox import Messaging
from hansard.agents.recorder import RESTARTED, Recorder, off_loop, take_over
from hansard.agents.session import Session
from hansard.errors import HansardError, LogLocked, StoreError, UsageError
from hansard.events import Event, SessionLifecycle
from hansard.events.summary import is_launch
from hansard.store import Log, Mailbox, MailboxMessage, Store

ABANDONED_POLL_SECONDS = 2.0
"""Seconds between two searches for what killed processes left open."""
POLL_BACKOFF = 100
"""The pause after a search that took long, as a multiple of its duration."""
GONE = "the server that ran it is gone"

RemoteCommandHandler = Callable[[str, bytes], Awaitable[bytes]]
"""Does the command of another process for a session, and returns the reply."""


class Hub:
    """Use it as an async context manager: at its end every agent is stopped."""

    def __init__(self, store: Store, rest_after: float = 0, entry_point: str = "python") -> None:
        self.store = store
        self.entry_point = entry_point
        """How its agents are run: run, server, or python."""
        self.rest_after = rest_after
        """Seconds after which an idle agent that can resume is stopped until it is needed; 0 for never."""
        self._open: dict[str, Session] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        """One for each session: it is opened or closed by one task at a time."""
        self._obey: RemoteCommandHandler | None = None
        self._entered = False
        self._attending: set[asyncio.Task[None]] = set()
        self.talks = Messaging(self)

    async def __aenter__(self) -> Self:
        await self.recover()
        self._entered = True
        self._begin(self._watch_over())
        self._attend()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        await self.close()

    async def create(self, agent: str, options: Options, session_id: str | None = None, title: str | None = None) -> Session:
        """Creates a session for an agent."""
        return await self._join(await Session.create(self.store, agent, options, session_id, title))

    async def open(self, session_id: str, env: dict[str, str] | None = None) -> Session:
        """Opens a session of the store. Returns the same object as long as it is open."""
        async with self._lock(session_id):
            return self._open.get(session_id) or await self._join(await Session.open(self.store, session_id, env))

    def _lock(self, session_id: str) -> asyncio.Lock:
        return self._locks.setdefault(session_id, asyncio.Lock())

    async def _join(self, session: Session) -> Session:
        self._open[session.id] = session
        session.entry_point = self.entry_point
        for calls in (session.on_close, session.recorder.on_lost):
            calls.append(partial(self._forget, session))
        await self.talks.add(session)
        return session

    def _forget(self, session: Session) -> None:
        """The session is being closed, another process writes it now, or it is gone."""
        if self._open.get(session.id) is session:
            del self._open[session.id]
            self.talks.remove(session)

    async def do(self, session_id: str, command: Event) -> Event | None:
        """Does a command as `Session.do`. One that needs only the log, or an open session, does not open the session."""
        needs = Session.commands.find(command).needs
        if needs in ("agent", "session"):
            return await (await self.open(session_id)).do(command)
        async with self._lock(session_id):
            session = self._open.get(session_id)
            if session is not None:
                return await session.do(command)
            log = self.store[session_id]
            if needs == "open session" and command.command_id is None:
                await off_loop(log.head)  # raises if there is no such session
                return None
            recorder = await Recorder.open_for(log, command)
            try:
                if needs == "open session":
                    return recorder.state.commands.get(command.command_id or "")
                return await Session(recorder).do(command)
            finally:
                await recorder.close()

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

    async def close(self, session_id: str | None = None) -> None:
        """Stop the agent of one session, or of all, and let others write there."""
        leaving = self.sessions if session_id is None else [self.get(session_id)]
        await asyncio.gather(*(session.close() for session in leaving))
        if session_id is None:
            await self.talks.close()
            for task in self._attending:
                task.cancel()

    # ---- other servers of the same store

    def has(self, session_id: str) -> bool:
        """Whether a session is open here."""
        return session_id in self._open

    def serve_commands(self, obey: RemoteCommandHandler) -> None:
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

    async def _listen(self, obey: RemoteCommandHandler) -> None:
        if self.store.mailbox is None:  # no other process can send anything
            return
        async for message in self.store.mailbox.receive():
            self._begin(self._do(self.store.mailbox, obey, message))

    async def _do(self, mailbox: Mailbox, obey: RemoteCommandHandler, message: MailboxMessage) -> None:
        try:
            answer = await obey(message.session_id, message.data)
        except LogLocked:
            answer = None  # whoever writes it now is asked instead
        with suppress(StoreError):  # it is asked again, and has been done
            await off_loop(mailbox.reply, message, answer)

    async def _watch_over(self) -> None:
        """Close what others left open, as soon as it is known that they are gone."""
        pause = ABANDONED_POLL_SECONDS
        while True:
            await asyncio.sleep(min(pause, self.rest_after or pause))
            await self._let_rest()
            began = time.monotonic()
            with suppress(HansardError, OSError):  # the store is away; the next look may see more
                await self.recover(GONE)
            pause = max(ABANDONED_POLL_SECONDS, POLL_BACKOFF * (time.monotonic() - began))

    async def _let_rest(self) -> None:
        for session in self.sessions if self.rest_after else []:
            with suppress(HansardError, OSError):  # what cannot be put on the record is not done
                await session.suspend_if_idle(self.rest_after)

    async def recover(self, reason: str = RESTARTED) -> list[str]:
        """Closes what killed writers left open in the sessions they drove, and returns those sessions. No other session is read."""
        recovered: list[str] = []
        for session_id in await off_loop(self.store.abandoned):
            async with self._lock(session_id):
                if session_id not in self._open and await off_loop(_close_left_open, self.store[session_id], reason):
                    recovered.append(session_id)
        return recovered


def _close_left_open(log: Log, reason: str) -> bool:
    """Closes what the killed writer of a log left open; returns whether something was written."""
    before = log.head().seq
    try:
        if any(_is_launch(event) for event in log.read(types=["session_lifecycle"])):
            take_over(log, reason)
        log.append([])  # takes the lock of a session that was not driven, so that it is released properly
    except LogLocked:
        return False
    log.release()
    return log.head().seq > before


def _is_launch(event: Event) -> bool:
    return isinstance(event, SessionLifecycle) and is_launch(event)
