"""Commands of clients, done by the hub's sessions. The same one twice is done once: the sessions remember by its name."""

from __future__ import annotations

import asyncio
import base64
import os
import time
from collections.abc import Coroutine
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import msgspec
from msgspec.structs import replace

from hansard.agents import agent_for
from hansard.agents.agent import Options
from hansard.content import AnyBlock, AudioBlock, DocumentBlock, FileBlock, ImageBlock, ResourceBlock
from hansard.errors import Refused, SessionExists, UsageError
from hansard.events import Event, session_lifecycle
from hansard.hub import Hub
from hansard.server.answers import Rejected
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
    Set,
    Stop,
    Switch,
    Wanted,
)
from hansard.server.tokens import Token
from hansard.session import Session

ARCHIVED, UNARCHIVED, RENAMED = "archived", "unarchived", "renamed"
"""Lifecycle events that are about a session's place in the list."""


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

    async def do(self, session_id: str, command: AnyCommand, who: Token) -> int | None:
        """Do it, and say at which seq it is in the log. It is done to its end, also when nobody waits for that any more."""
        if who.role == "observer":
            raise Refused("forbidden", "an observer may look and nothing else")
        return await asyncio.shield(self._begun(self._do(session_id, command, who)))

    async def create(self, wanted: NewSession, who: Token) -> str:
        """A new session; with a prompt its agent is started, and what comes of that is in the log."""
        options = _options(wanted.options)
        agent = agent_for(wanted.agent)
        agent.check(options)
        agent.find(options)
        if wanted.prompt is not None:
            self._room()
        name = None if wanted.command_id is None else str(uuid5(NAMESPACE_URL, f"hansard:{wanted.command_id}"))
        try:
            session = self._hub.create(wanted.agent, options, name, wanted.title)
        except SessionExists:
            return str(name)
        if wanted.prompt is not None:
            self._begun(self._quietly(session.say(wanted.prompt, command_id=wanted.command_id)))
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

    async def _quietly(self, work: Coroutine[Any, Any, Event]) -> None:
        try:
            await work
        except Exception:  # noqa: S110 (the session has put it on the record)  # nosec B110
            pass

    async def _do(self, session_id: str, command: AnyCommand, who: Token) -> int | None:
        name = command.command_id
        self._hub.store.head(session_id)  # it is there
        match command:
            case Rename():
                return await self._note(session_id, name, subtype=RENAMED, title=command.title)
            case Archive():
                return await self._note(session_id, name, subtype=ARCHIVED if command.archived else UNARCHIVED)
            case Stop():
                await self._hub.leave(session_id)
                return self._hub.store.head(session_id).seq
            case _:
                return await self._with(await self._hub.take(session_id), command, name, who)

    async def _with(self, session: Session, command: AnyCommand, name: str, who: Token) -> int | None:
        match command:
            case Say():
                self._room(session)
                content = None if command.content is None else [self._whole(session.id, block) for block in command.content]
                done = await session.say(command.text, content, steer=command.steer, command_id=name)
            case Interrupt():
                done = await session.interrupt(by=who.name, command_id=name)
            case Decide():
                done = await session.decide(
                    command.request_id,
                    command.decision,
                    option_id=command.option_id,
                    input_hash=command.input_hash,
                    updated_input=command.updated_input,
                    message=command.message,
                    by=who.name,
                    command_id=name,
                )
            case Answer():
                done = await session.answer(command.request_id, command.values, command.action, command_id=name)
            case Set():
                self._room(session)
                done = await self._set(session, command)
            case Edit():
                done = session.edit(command.item_id, command.text, command_id=name)
            case Cancel():
                done = session.cancel(command.item_id, command_id=name)
            case Switch():
                options = None if command.options is None else _options(command.options)
                await session.switch(command.agent, options, command_id=name)
                done = session.past.commands.get(name)
            case _:
                raise UsageError(f"{command} is not for a session")
        return None if done is None else done.seq

    async def _set(self, session: Session, wanted: Set) -> Event:
        given = {"model": wanted.model, "permission_mode": wanted.permission_mode, "mode_id": wanted.mode_id, "options": wanted.options}
        said = {name: value for name, value in given.items() if value is not None}
        if len(said) != 1:
            raise Refused("bad_request", "one setting at a time: model, permissionMode, modeId or options")
        subtype = {"model": "set_model", "permission_mode": "set_permission_mode", "mode_id": "set_mode", "options": "set_options"}
        return await session.set(subtype[next(iter(said))], **said, command_id=wanted.command_id)

    async def _note(self, session_id: str, command_id: str, **fields: Any) -> int:
        event = session_lifecycle(**fields)
        event.command_id = command_id or None
        return (await self._hub.note(session_id, event)).seq

    def _room(self, session: Session | None = None) -> None:
        running = sum(other.running for other in self._hub.sessions)
        if not (session is not None and session.running) and running >= self._limits.agents:
            raise Refused("too_many", f"{running} agents are running already; stop one of them first")

    def _whole(self, session_id: str, block: AnyBlock) -> AnyBlock:
        """A block that refers to an upload, with its bytes: the agent gets them with the message."""
        if not isinstance(block, ImageBlock | FileBlock | DocumentBlock | ResourceBlock | AudioBlock) or block.blob is None:
            return block
        data = base64.b64encode(self._hub.store.get_blob(session_id, block.blob)).decode()
        return replace(block, data=data, blob=None)


def _options(wanted: Wanted | None) -> Options:
    given = {} if wanted is None else {name: value for name, value in msgspec.structs.asdict(wanted).items() if value is not None}
    options = Options(**given)
    if not os.path.isdir(os.path.expanduser(options.cwd)):
        raise Rejected(400, "bad_request", f"there is no folder {options.cwd}")
    options.cwd = os.path.abspath(os.path.expanduser(options.cwd))
    return options


def read_command(data: bytes | str) -> AnyCommand:
    """The command of a message of the socket: all of it but what is about the message itself."""
    fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    for name in ("type", "session"):
        fields.pop(name, None)
    return msgspec.json.decode(msgspec.json.encode(fields), type=AnyCommand)
