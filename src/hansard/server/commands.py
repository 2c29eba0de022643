"""Commands of clients, done by the hub's sessions.

If another server writes the session, the command goes to it through the store, and its answer comes back.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Callable, Coroutine
from typing import Any
from uuid import NAMESPACE_URL, uuid4, uuid5

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from hansard.agents import agent_for
from hansard.agents.commands import SessionOptions
from hansard.agents.hub import Hub
from hansard.agents.session import Session
from hansard.errors import AppendFailed, HansardError, LogLocked, Refused, SessionExists, StoreUnavailable
from hansard.events import Event, UserMessage
from hansard.events.codec import encode
from hansard.events.content import AnyBlock, AudioBlock, DocumentBlock, FileBlock, ImageBlock, ResourceBlock
from hansard.server.protocol import Limits, NewSession
from hansard.server.responses import HttpError, explained
from hansard.server.tokens import Token

TRIES = 3
"""So often a session is looked for that goes from hand to hand."""
AGAIN = 0.5
"""Seconds until a first message is said again that could not be written down."""


class Passed(Struct):
    """A command on its way to the server that writes the session."""

    event: Raw
    by: str


class Reply(Struct, omit_defaults=True):
    """What came of it: a seq, or a refusal."""

    seq: int | None = None
    status: int = 200
    code: str = ""
    message: str = ""


_passed = msgspec.json.Decoder(Passed)
_reply = msgspec.json.Decoder(Reply)


class Bucket:
    """So many at once, and so many in each second on the average."""

    def __init__(self, burst: float, rate: float) -> None:
        self._burst, self._rate = burst, rate
        self._left, self._since = burst, time.monotonic()

    def take(self) -> bool:
        """Whether one more is allowed now."""
        now = time.monotonic()
        self._left = min(self._burst, self._left + (now - self._since) * self._rate)
        self._since = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class Commands:
    """What clients may do with sessions."""

    def __init__(self, hub: Hub, limits: Limits) -> None:
        self._hub = hub
        self._limits = limits
        self._tasks: set[asyncio.Task[Any]] = set()
        hub.serve_commands(self._handle)

    async def do(self, session_id: str, command: Event, who: Token) -> int | None:
        """Does a command, and returns the seq of its event; None if there was nothing to do. It is done even if the client is gone."""
        if who.role == "observer":
            raise Refused("forbidden", "an observer may look and nothing else")
        return await asyncio.shield(self._begun(self._do(session_id, command, who.name)))

    async def create(self, wanted: NewSession, who: Token) -> str:
        """A new session; with a prompt its agent is started, and what comes of that is in the log."""
        options = (wanted.options or SessionOptions()).resolve()
        agent = await asyncio.to_thread(agent_for, wanted.agent)  # the first use imports the drivers
        agent.check(options)
        agent.find(options)
        if wanted.prompt is not None:
            self._room()
        name = None if wanted.command_id is None else str(uuid5(NAMESPACE_URL, f"hansard:{wanted.command_id}"))
        try:
            session = await self._hub.create(wanted.agent, options, name, wanted.title)
        except SessionExists:
            return str(name)
        if wanted.prompt is not None:
            prompt = wanted.prompt
            self._begun(self._quietly(lambda: session.send(prompt, command_id=wanted.command_id)))
        return session.id

    async def close(self) -> None:
        """Wait for what has begun."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)

    def _begun(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waited has it; perhaps nobody waited

    async def _quietly(self, work: Callable[[], Coroutine[Any, Any, Event]]) -> None:
        while True:
            try:
                await work()
            except (AppendFailed, StoreUnavailable):
                await asyncio.sleep(AGAIN)
            except Exception:  # the session has put it on the record
                return
            else:
                return

    async def _do(self, session_id: str, command: Event, by: str) -> int | None:
        """Does a command here, or has the server do it that writes the session. Which one that is may change meanwhile."""
        name, mailbox = command.command_id or str(uuid4()), self._hub.store.mailbox
        for left in reversed(range(TRIES)):
            if mailbox is not None and not self._hub.has(session_id):
                passed = Passed(Raw(encode(replace(command, command_id=name))), by)
                reply = await mailbox.send(session_id, name, msgspec.json.encode(passed))
                if reply is not None:
                    return _reply_seq(reply)
            try:
                return await self._here(session_id, command, by)
            except LogLocked:
                if not left:
                    raise
        return None

    async def _handle(self, session_id: str, data: bytes) -> bytes:
        """Does a command that a client gave to another server."""
        try:
            passed = _passed.decode(data)
            seq = await asyncio.shield(self._begun(self._here(session_id, Session.commands.read(passed.event), passed.by)))
        except LogLocked:
            raise
        except (HansardError, OSError, msgspec.DecodeError) as problem:
            status, told = explained(problem)
            return msgspec.json.encode(Reply(status=status, code=told.code, message=told.message))
        return msgspec.json.encode(Reply(seq))

    async def _here(self, session_id: str, command: Event, by: str) -> int | None:
        if Session.commands.find(command).needs == "agent":
            self._room(session_id)
        own = replace(command, payload=replace(command.payload))  # the client's may be passed on
        if hasattr(own.payload, "by"):
            own.payload.by = by
        if isinstance(own, UserMessage) and own.payload.content is not None:
            own.payload.content = [await self._whole(session_id, block) for block in own.payload.content]
        done = await self._hub.do(session_id, own)
        return None if done is None else done.seq

    def _room(self, session_id: str | None = None) -> None:
        """Refuses to start one more agent than may run."""
        running = [session.id for session in self._hub.sessions if session.running]
        if session_id not in running and len(running) >= self._limits.agents:
            raise Refused("too_many", f"{len(running)} agents are running already; stop one of them first")

    async def _whole(self, session_id: str, block: AnyBlock) -> AnyBlock:
        """Returns a block that refers to an upload with its bytes: the agent gets them with the message."""
        if not isinstance(block, ImageBlock | FileBlock | DocumentBlock | ResourceBlock | AudioBlock) or block.blob is None:
            return block
        blob = await asyncio.to_thread(self._hub.store[session_id].get_blob, block.blob)
        data = base64.b64encode(blob).decode()
        return replace(block, data=data, blob=None)


def _reply_seq(reply: bytes) -> int | None:
    """What the server that writes the session said."""
    told = _reply.decode(reply)
    if told.code:
        raise HttpError(told.status, told.code, told.message)
    return told.seq
