"""Commands of clients, done by the hub's sessions. The same one twice is done once: the sessions remember by its name.

A session that another server writes is commanded through the store: the command goes there as it is, and its answer comes back.
"""

from __future__ import annotations

import asyncio
import base64
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any
from uuid import NAMESPACE_URL, uuid4, uuid5

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hansard.agents import agent_for
from hansard.agents.base import Options
from hansard.agents.hub import Hub
from hansard.agents.session import Session
from hansard.errors import AppendFailed, HansardError, LogLocked, Refused, SessionExists, StoreUnavailable, UsageError
from hansard.events import Event, session_lifecycle
from hansard.events.content import AnyBlock, AudioBlock, DocumentBlock, FileBlock, ImageBlock, ResourceBlock
from hansard.server.protocol import (
    Answer,
    AnyCommand,
    Archive,
    Cancel,
    Decide,
    Edit,
    Interrupt,
    Limits,
    NewSession,
    Rename,
    Say,
    SessionOptions,
    Set,
    Stop,
    Switch,
)
from hansard.server.responses import HttpError, explained
from hansard.server.tokens import Token

ARCHIVED, UNARCHIVED, RENAMED = "archived", "unarchived", "renamed"
"""Lifecycle events that are about a session's place in the list."""
KNOWN = 1000
"""So many commands are known by their names, with what came of them."""
TRIES = 3
"""So often a session is looked for that goes from hand to hand."""
RETRYABLE_CODES = {"too_many", "closed", "locked", "away", "store"}
"""Refusals of a moment: the same command may be done the next time."""
AGAIN = 0.5
"""Seconds until a first message is said again that could not be written down."""


class Passed(Struct):
    """A command on its way to the server that writes the session."""

    command: AnyCommand
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
        self._known: OrderedDict[tuple[str, str], asyncio.Task[Any]] = OrderedDict()
        hub.serve_commands(self._handle)

    async def do(self, session_id: str, command: AnyCommand, who: Token) -> int | None:
        """Do it, and say at which seq it is in the log. It is done to its end, also when nobody waits for that any more."""
        if who.role == "observer":
            raise Refused("forbidden", "an observer may look and nothing else")
        return await asyncio.shield(self._once(session_id, command.command_id, self._do, command, who))

    async def create(self, wanted: NewSession, who: Token) -> str:
        """A new session; with a prompt its agent is started, and what comes of that is in the log."""
        options = _options(wanted.options)
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

    def _once(self, session_id: str, name: str, work: Callable[..., Coroutine[Any, Any, Any]], *given: Any) -> asyncio.Task[Any]:
        """The same command, while it is being done and for a while after it was."""
        known = self._known.get((session_id, name)) if name else None
        if known is not None and not _may_be_tried_again(known):
            return known
        made = self._begun(work(session_id, *given))
        if name:
            self._known[session_id, name] = made
            while len(self._known) > KNOWN and next(iter(self._known.values())).done():
                self._known.popitem(last=False)
        return made

    async def _do(self, session_id: str, command: AnyCommand, who: Token) -> int | None:
        """Do it, or have it done by whoever writes the session. Who that is may change while one looks."""
        name = command.command_id or str(uuid4())
        words = msgspec.json.encode(Passed(replace(command, command_id=name), who.name))
        mailbox = self._hub.store.mailbox
        for left in reversed(range(TRIES)):
            if mailbox is not None and not self._hub.has(session_id):
                reply = await mailbox.send(session_id, name, words)
                if reply is not None:
                    return _reply_seq(reply)
            try:
                return await self._here(session_id, command, who.name)
            except LogLocked:
                if not left:
                    raise
        return None

    async def _handle(self, session_id: str, words: bytes) -> bytes:
        """Do what another server was told by one of its clients."""
        try:
            passed = _passed.decode(words)
            seq = await asyncio.shield(self._once(session_id, passed.command.command_id, self._here, passed.command, passed.by))
        except LogLocked:
            raise
        except (HansardError, OSError, msgspec.DecodeError) as problem:
            status, told = explained(problem)
            return msgspec.json.encode(Reply(status=status, code=told.code, message=told.message))
        return msgspec.json.encode(Reply(seq))

    async def _here(self, session_id: str, command: AnyCommand, by: str) -> int | None:
        name = command.command_id
        await asyncio.to_thread(self._hub.store[session_id].head)  # it is there
        match command:
            case Rename():
                return await self._note(session_id, name, subtype=RENAMED, title=command.title)
            case Archive():
                return await self._note(session_id, name, subtype=ARCHIVED if command.archived else UNARCHIVED)
            case Stop():
                await self._hub.release(session_id)
                return (await asyncio.to_thread(self._hub.store[session_id].head)).seq
            case _:
                return await self._with(await self._hub.open(session_id), command, name, by)

    async def _with(self, session: Session, command: AnyCommand, name: str, by: str) -> int | None:
        match command:
            case Say():
                self._room(session)
                content = None if command.content is None else [await self._whole(session.id, block) for block in command.content]
                done = await session.send(command.text, content, steer=command.steer, command_id=name)
            case Interrupt():
                done = await session.interrupt(by=by, command_id=name)
            case Decide():
                done = await session.decide(
                    command.request_id,
                    command.decision,
                    option_id=command.option_id,
                    input_hash=command.input_hash,
                    updated_input=command.updated_input,
                    message=command.message,
                    by=by,
                    command_id=name,
                )
            case Answer():
                done = await session.answer(command.request_id, command.values, command.action, command_id=name)
            case Set():
                self._room(session)
                done = await self._set(session, command)
            case Edit():
                done = await session.edit(command.item_id, command.text, command_id=name)
            case Cancel():
                done = await session.cancel(command.item_id, command_id=name)
            case Switch():
                options = None if command.options is None else _options(command.options)
                done = await session.switch(command.agent, options, command_id=name)
            case _:
                raise UsageError(f"{command} is not for a session")
        return None if done is None else done.seq

    async def _set(self, session: Session, wanted: Set) -> Event:
        given = {"model": wanted.model, "permission_mode": wanted.permission_mode, "mode_id": wanted.mode_id, "options": wanted.options}
        said = {name: value for name, value in given.items() if value is not None}
        if len(said) != 1:
            raise Refused("bad_request", "one setting at a time: model, permissionMode, modeId or options")
        subtype = {"model": "set_model", "permission_mode": "set_permission_mode", "mode_id": "set_mode", "options": "set_options"}
        return await session.configure(subtype[next(iter(said))], **said, command_id=wanted.command_id)

    async def _note(self, session_id: str, command_id: str, **fields: Any) -> int:
        event = session_lifecycle(**fields)
        event.command_id = command_id or None
        return (await self._hub.note(session_id, event)).seq

    def _room(self, session: Session | None = None) -> None:
        running = sum(other.running for other in self._hub.sessions)
        if not (session is not None and session.running) and running >= self._limits.agents:
            raise Refused("too_many", f"{running} agents are running already; stop one of them first")

    async def _whole(self, session_id: str, block: AnyBlock) -> AnyBlock:
        """Returns a block that refers to an upload with its bytes: the agent gets them with the message."""
        if not isinstance(block, ImageBlock | FileBlock | DocumentBlock | ResourceBlock | AudioBlock) or block.blob is None:
            return block
        blob = await asyncio.to_thread(self._hub.store[session_id].get_blob, block.blob)
        data = base64.b64encode(blob).decode()
        return replace(block, data=data, blob=None)


def _options(wanted: SessionOptions | None) -> Options:
    given = {} if wanted is None else {name: value for name, value in msgspec.structs.asdict(wanted).items() if value is not None}
    options = Options(**given)
    if not os.path.isdir(os.path.expanduser(options.cwd)):
        raise HttpError(400, "bad_request", f"there is no folder {options.cwd}")
    options.cwd = os.path.abspath(os.path.expanduser(options.cwd))
    return options


def _may_be_tried_again(done: asyncio.Task[Any]) -> bool:
    """Whether it came to nothing for a reason that may pass. What an agent refused is refused."""
    if not done.done() or (not done.cancelled() and done.exception() is None):
        return False
    problem = None if done.cancelled() else done.exception()
    return not isinstance(problem, Refused | HttpError) or problem.code in RETRYABLE_CODES


def _reply_seq(reply: bytes) -> int | None:
    """What the server that writes the session said."""
    told = _reply.decode(reply)
    if told.code:
        raise HttpError(told.status, told.code, told.message)
    return told.seq


def read_command(data: bytes | str) -> AnyCommand:
    """The command of a message of the socket: all of it but what is about the message itself."""
    fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    for name in ("type", "session"):
        fields.pop(name, None)
    return msgspec.json.decode(msgspec.json.encode(fields), type=AnyCommand)
