"""What all connections of one server share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from hansard.agents.hub import Hub
from hansard.errors import UnknownSession
from hansard.server.captures import CapturedSessions
from hansard.server.commands import Bucket, Commands
from hansard.server.feed import Feeds
from hansard.server.folds import Folds
from hansard.server.presence import Presence
from hansard.server.protocol import Limits
from hansard.server.session_list import SessionIndex
from hansard.server.tokens import Token, Tokens

T = TypeVar("T")
EXPORTS = 2
"""The exports that are made at the same time: the other threads are there for shorter work."""


class ServerContext:
    """A hub, and everything that looks at it."""

    def __init__(self, hub: Hub, tokens: Tokens, limits: Limits) -> None:
        self.hub = hub
        self.store = hub.store
        self.tokens = tokens
        self.limits = limits
        self.folds = Folds(hub.store)
        self.feeds = Feeds(hub.store, self.folds, limits.frame)
        self.lists = SessionIndex(hub)
        self.presence = Presence()
        self.captures = CapturedSessions(hub.store)
        self.commands = Commands(hub, limits)
        self.since = time.monotonic()
        self.connections = 0
        """Sockets and streams that are open."""
        self.exports = asyncio.Semaphore(EXPORTS)
        self._buckets: dict[str, Bucket] = {}

    def bucket(self, who: Token) -> Bucket:
        """How many commands the holder of a token may still give over HTTP."""
        return self._buckets.setdefault(who.secret, Bucket(self.limits.burst, self.limits.commands))

    async def by_any_name(self, name: str, work: Callable[[str], Awaitable[T]]) -> T:
        """Does something with a session, which may also be named by the agent's own id, or by the beginning of an id.

        A session that was only captured so far is read first.
        """
        try:
            return await work(name)
        except UnknownSession:
            found = await asyncio.to_thread(self.store.find, name)
            if found is None or not (await self.captures.read(found) or found != name):
                raise
            return await work(found)

    async def close(self) -> None:
        """Nobody is served any more."""
        await self.commands.close()
        await self.captures.close()
        self.lists.close()
        self.feeds.close()
