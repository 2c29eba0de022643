"""The socket: one client, any number of sessions. What it is sent is read from the logs at the pace at which it takes it."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import msgspec
from starlette.types import Receive, Scope, Send

from hansard._version import __version__
from hansard.agents.commands import command_id_of
from hansard.agents.session import Session
from hansard.errors import HansardError, LogReset
from hansard.events import Event
from hansard.projections.output import encode
from hansard.server.auth import refuse_upgrade, token_of
from hansard.server.commands import Bucket
from hansard.server.feed import MARGIN, Feed, FeedPosition, Filter
from hansard.server.protocol import (
    CLOSE_EXPIRED,
    CLOSE_FLOOD,
    CLOSE_PROTOCOL,
    CLOSE_STUCK,
    VERSION,
    AnyHeard,
    Commanded,
    Done,
    Hello,
    Listed,
    Live,
    Person,
    Ping,
    Pong,
    Present,
    Refusal,
    ServerMessage,
    ServerPing,
    ServerPong,
    Sessions,
    Subscribe,
    Subscribed,
    Trouble,
    Unsubscribe,
    Unsubscribed,
    Watch,
)
from hansard.server.responses import HttpError, explained, failure
from hansard.server.services import ServerContext
from hansard.store import Cursor
from hansard.store.ids import check_session_id

HEARTBEAT = 15.0
SILENCE = 20.0
"""Seconds after a ping in which something must be heard."""
SLOW_CLIENT_SHARE = 0.9
"""Of the idle time: then who takes nothing is let go, so that its place is free when the time is over; a goodbye takes seconds."""
OUTBOX = 4096
"""So many answers may wait for a client that does not take them; then it is told nothing more."""
TURN = 8
"""After so many rounds of frames the others have their turn."""
PASSED = 1000
"""After so many events that a filter left out the client hears how far it has got."""
CLOSE = "hansard.close"
"""The extension by which a connection is closed at once, though its client takes nothing: see uvicorn_protocols.py."""
SEND = "hansard.send"
"""The extension by which a message goes out as the bytes that it is, and is not copied on its way: see uvicorn_protocols.py."""

Frame = tuple[bytes, ...]
"""A message, in pieces: the long one is the same for all who are at that place, and need not be copied for each of them more than once."""

_heard: msgspec.json.Decoder[AnyHeard] = msgspec.json.Decoder(AnyHeard)


class Subscription:
    """A place in a log, and how to go on from it."""

    def __init__(self, name: str, feed: Feed, place: FeedPosition, head: int, wanted: Filter, *, state: bool) -> None:
        self.feed = feed
        self._head = head
        """What was in the log when it was asked for: before that is read nobody is told that it is live."""
        self._begin = b'{"type":"events","id":%s,"events":' % encode(name)
        self._id = name
        self._place = place
        self._wanted = wanted
        self._live = False
        self._passed = 0
        self._begin_state = b'{"type":"state","id":%s,' % encode(name)
        self._wants_state = state
        self._state_seq = 0
        """The event up to which the client has the state."""
        self._state_parts: deque[bytes] = deque()

    @property
    def goes_on(self) -> bool:
        """Whether there is something to say at once."""
        return self.feed.goes_on(self._place) or (self._has_news if self._live else self._place.seq >= self._head)

    @property
    def _has_news(self) -> bool:
        """Whether the state is to be sent: it changed, and it is not ahead of the events that the client has."""
        state = self.feed.state if self._wants_state else None
        return bool(self._state_parts) or (state is not None and self._state_seq < state.changed_at and state.seq <= self._place.seq)

    async def next(self) -> Frame | None:
        """The next frame; None if there is nothing to say yet, and nothing if there was only what is not wanted."""
        found = await self.feed.after(self._place, self._wanted)
        if found is None:
            return self._caught_up()
        self._place = found.to
        self._passed += found.passed
        if not found.count and self._passed < PASSED:
            return ()
        self._passed = 0
        return self._begin, found.data, b',"to":%d}' % found.to.seq

    def _caught_up(self) -> Frame | None:
        if self._live:
            return self._next_state()
        if self._place.seq < self._head:
            return None
        self._live = True
        return (encode(Live(self._id, self._place.seq)),)

    def _next_state(self) -> Frame | None:
        state = self.feed.state
        if state is None or not self._has_news:
            return None
        if not self._state_parts:
            self._state_parts.extend(state.since(self._state_seq))
            self._state_seq = state.seq
        return self._begin_state, self._state_parts.popleft()


class Connection:
    """One client."""

    def __init__(self, serving: ServerContext, scope: Scope, receive: Receive, send: Send) -> None:
        self._serving = serving
        self._scope = scope
        self._receive = receive
        self._send = send
        self._send_bytes: Callable[[Frame], Awaitable[None]] = scope.get("extensions", {}).get(SEND) or self._send_text
        self._who = token_of(scope)
        self._limits = serving.limits
        self._subscriptions: dict[str, Subscription] = {}
        self._outbox: deque[bytes] = deque()
        self._wake = asyncio.Event()
        self._commands = Bucket(self._limits.burst, self._limits.commands)
        self._messages = Bucket(self._limits.messages, self._limits.messages / 5)
        self._doing: set[asyncio.Task[None]] = set()
        self._heard_at = self._said_at = time.monotonic()
        self._sending_since: float | None = None
        self._watching = False
        self._closing: tuple[int, str] | None = None

    async def run(self) -> None:
        """From the upgrade to the end."""
        await self._receive()
        await self._send({"type": "websocket.accept"})
        self.say(Hello(VERSION, __version__, self._who.role, int(HEARTBEAT * 1000), self._limits))
        tasks = [asyncio.create_task(work) for work in (self._receive_loop(), self._send_loop(), self._pulse())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            self._leave()
        if self._closing is not None:
            await self._close(*self._closing)
        for problem in ended:
            if isinstance(problem, Exception) and not isinstance(problem, OSError):
                raise problem

    def say(self, message: ServerMessage) -> None:
        """Put an answer where the next frame is taken from."""
        self._outbox.append(encode(message))
        if len(self._outbox) > OUTBOX:
            self._end(CLOSE_STUCK, "answers are not taken")
        self._wake.set()

    # ---- the ways it ends

    def _end(self, code: int, reason: str) -> None:
        self._closing = self._closing or (code, reason)
        self._wake.set()

    async def _close(self, code: int, reason: str) -> None:
        at_once: Callable[[int, str], None] | None = self._scope.get("extensions", {}).get(CLOSE)
        if at_once is not None:
            at_once(code, reason)
            return
        async with asyncio.timeout(5):
            await self._send({"type": "websocket.close", "code": code, "reason": reason})

    def _leave(self) -> None:
        for name in list(self._subscriptions):
            self._unsubscribe(name)
        if self._watching:
            self._serving.lists.leave(self)

    # ---- speaking

    async def _send_loop(self) -> None:
        turn = 0
        while self._closing is None:
            self._wake.clear()
            await self._answer()
            goes_on = False
            for name, subscription in list(self._subscriptions.items()):
                frame = await self._next(name, subscription)
                if frame and self._subscriptions.get(name) is subscription:
                    await self._put(frame)
                    if self._outbox:
                        await self._answer()
                goes_on = goes_on or (frame is not None and subscription.goes_on)
            turn += 1
            if not goes_on:
                await self._wake.wait()
            elif turn % TURN == 0:
                await asyncio.sleep(0)

    async def _answer(self) -> None:
        while self._outbox:
            await self._put((self._outbox.popleft(),))

    async def _next(self, name: str, subscription: Subscription) -> Frame | None:
        try:
            return await subscription.next()
        except LogReset as problem:
            self._trouble(name, HttpError(409, "unknown_cursor", str(problem)))
        except (HansardError, OSError) as problem:
            self._trouble(name, problem)
        return None

    def _trouble(self, name: str | None, problem: Exception) -> None:
        told = explained(problem, self._serving.tokens.secrets)[1]
        if name is not None:
            self._unsubscribe(name)
        self.say(Trouble(told.code, told.message, name))

    async def _put(self, frame: Frame) -> None:
        self._sending_since = time.monotonic()
        await self._send_bytes(frame)
        self._said_at, self._sending_since = time.monotonic(), None

    async def _send_text(self, frame: Frame) -> None:
        await self._send({"type": "websocket.send", "text": b"".join(frame).decode()})

    # ---- listening

    async def _receive_loop(self) -> None:
        while True:
            message = await self._receive()
            if message["type"] != "websocket.receive":
                return
            self._heard_at = time.monotonic()
            if not self._messages.take():
                self._end(CLOSE_FLOOD, "too many messages")
                return
            data = message.get("text")
            if data is None:
                self._end(CLOSE_PROTOCOL, "only text")
                return
            await self._understand(data)

    async def _understand(self, data: str) -> None:
        try:
            match _heard.decode(data):
                case Subscribe() as wanted:
                    await self._subscribe(wanted)
                case Unsubscribe(id=name):
                    self._unsubscribe(name)
                    self.say(Unsubscribed(name))
                case Watch():
                    await self._watch()
                case Commanded() as wanted:
                    self._command(wanted)
                case Ping():
                    self.say(ServerPong())
                case Pong():
                    pass
        except (msgspec.DecodeError, UnicodeError, RecursionError) as problem:
            self.say(
                Trouble("bad_message", explained(HttpError(400, "bad_message", str(problem)), self._serving.tokens.secrets)[1].message)
            )

    async def _subscribe(self, wanted: Subscribe) -> None:
        try:
            if wanted.id in self._subscriptions:
                raise HttpError(400, "bad_message", f"there is a subscription {wanted.id!r} already")
            if len(self._subscriptions) >= self._limits.subscriptions:
                raise HttpError(429, "too_many", f"a socket may have {self._limits.subscriptions} subscriptions")
            feeds, name = self._serving.feeds, check_session_id(wanted.session)
            if not self._who.allows(name):
                raise HttpError(404, "unknown_session", "this link is for another session")
            feed, at = await self._serving.by_any_name(name, partial(feeds.subscribe, listener=self._wake.set, state=wanted.state))
            session = feed.head.session_id
        except (HansardError, OSError) as problem:
            self._refuse(wanted.id, problem)
            return
        try:
            if self._serving.feeds.readers(session) > self._limits.per_session:
                raise HttpError(429, "too_many", f"a session may have {self._limits.per_session} subscribers")
            place, head = feed.place(None if wanted.after is None else Cursor(wanted.after.log_id, wanted.after.seq), at), at.seq
        except HansardError as problem:
            self._leave_feed(feed)
            self._refuse(wanted.id, problem)
            return
        types = None if wanted.types is None else frozenset(wanted.types)
        self.say(Subscribed(wanted.id, session, feed.head.log_id, head))
        tell = partial(self._present, wanted.id) if wanted.presence else None
        self._serving.presence.enter(session, self, wanted.id, self._who, tell)
        filtered = Filter(types, wanted.originals, self._limits.frame)
        self._subscriptions[wanted.id] = Subscription(wanted.id, feed, place, head, filtered, state=wanted.state)

    def _refuse(self, name: str, problem: Exception) -> None:
        told = explained(problem, self._serving.tokens.secrets)[1]
        self.say(Trouble(told.code, told.message, name))

    def _unsubscribe(self, name: str) -> None:
        gone = self._subscriptions.pop(name, None)
        if gone is not None:
            self._serving.presence.leave(gone.feed.head.session_id, self, name)
            self._leave_feed(gone.feed)

    def _present(self, name: str, people: list[Person]) -> None:
        self.say(Present(name, people))

    def _leave_feed(self, feed: Feed) -> None:
        if not any(other.feed is feed for other in self._subscriptions.values()):
            self._serving.feeds.unsubscribe(feed, self._wake.set)

    async def _watch(self) -> None:
        self._watching = True
        known, trouble = await self._serving.lists.watch(self, self._news, self._away)
        self._list(known, all=True)
        if trouble is not None:
            self._away(trouble)

    def _news(self, changed: list[Listed], removed: list[str]) -> None:
        if self._who.session is None or any(map(self._who.allows, [*(one.id for one in changed), *removed])):
            self._list(changed, removed)

    def _away(self, problem: Exception | None) -> None:
        """The store cannot be read, or can again: then there is news of the list, if only that there is none."""
        if problem is None:
            self._list([])
        else:
            self._trouble(None, problem)

    def _list(self, changed: list[Listed], removed: Sequence[str] = (), *, all: bool = False) -> None:
        """Say it in as many messages as it takes: the first says that it is all of them, the others what there is besides."""
        changed, removed = [one for one in changed if self._who.allows(one.id)], [name for name in removed if self._who.allows(name)]
        part, size = Sessions([], all=all, removed=removed), MARGIN + sum(map(len, removed))
        for one in changed:
            size += len(encode(one)) + 1
            if size > self._limits.frame and part.changed:
                self.say(part)
                part, size = Sessions([]), MARGIN + len(encode(one))
            part.changed.append(one)
        self.say(part)

    # ---- commands

    def _command(self, wanted: Commanded) -> None:
        try:
            if not self._commands.take():
                raise HttpError(429, "too_many", f"at most {self._limits.commands} commands a second")
            session, command = check_session_id(wanted.session), Session.commands.read(wanted.event)
        except HansardError as problem:
            self._refused(command_id_of(wanted.event), problem)
            return
        task = asyncio.create_task(self._do(session, command, command.command_id or ""))
        self._doing.add(task)
        task.add_done_callback(self._doing.discard)

    async def _do(self, session: str, command: Event, command_id: str) -> None:
        try:
            seq = await self._serving.by_any_name(session, partial(self._serving.commands.do, command=command, who=self._who))
        except (HansardError, OSError) as problem:
            self._refused(command_id, problem)
        else:
            self.say(Done(command_id, seq))

    def _refused(self, name: str, problem: Exception) -> None:
        told = explained(problem, self._serving.tokens.secrets)[1]
        self.say(Refusal(name, told.code, told.message))

    # ---- is anybody there?

    async def _pulse(self) -> None:
        """Ask when nothing was heard or said for a while; end what does not answer, or takes nothing."""
        asked: float | None = None
        while self._closing is None:
            await asyncio.sleep(min(1.0, self._limits.idle_seconds / 4))
            now = time.monotonic()
            if self._who.has_expired:
                self._end(CLOSE_EXPIRED, "this link has expired")
                return
            if self._sending_since is not None and now - self._sending_since > SLOW_CLIENT_SHARE * self._limits.idle_seconds:
                self._end(CLOSE_STUCK, "no progress; come back with the cursor")
                return
            if asked is not None and self._heard_at >= asked:
                asked = None
            if self._sending_since is not None:
                continue  # who takes what it is sent is there
            if asked is not None and now - asked > SILENCE:
                self._end(CLOSE_STUCK, "no answer")
                return
            if asked is None and now - min(self._heard_at, self._said_at) > HEARTBEAT:
                asked = now
                self.say(ServerPing())


async def serve_socket(serving: ServerContext, scope: Scope, receive: Receive, send: Send) -> None:
    """One client, if there is room for it."""
    if serving.connections >= serving.limits.connections:
        full = HttpError(503, "too_many", f"{serving.connections} connections are open already")
        await refuse_upgrade(failure(full), scope, receive, send)
        return
    serving.connections += 1
    try:
        await Connection(serving, scope, receive, send).run()
    finally:
        serving.connections -= 1
