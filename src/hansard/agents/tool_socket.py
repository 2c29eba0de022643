"""The way from an agent's tools to its hub: a socket in a private folder. A call is a connection, with one line of JSON each way.

Who calls is known by a token. It is in a file that only this user can read; of that file, agents and logs see only the name.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from hansard.errors import HansardError, UsageError
from hansard.events.structs import prepare

LONGEST = 16 * 1024 * 1024
"""The most bytes that a call or an answer may have."""


class ToolGrant(Struct):
    """What is in the file."""

    socket: str
    token: str


class Call(Struct):
    """What is asked."""

    token: str
    tool: str
    given: dict[str, Any] = field(default_factory=dict[str, Any])


class Reply(Struct, omit_defaults=True):
    """What comes back."""

    result: Any = None
    error: str | None = None


Use = Callable[[str, str, dict[str, Any]], Awaitable[Any]]
"""Does what a session asks for: its id, the tool, what the tool is given."""


class ToolSocket:
    """The hub's end. The folder and the socket are made with the first ticket."""

    def __init__(self, use: Use) -> None:
        self._use = use
        self._folder: Path | None = None
        self._server: asyncio.Server | None = None
        self._opening = asyncio.Lock()
        self._holders: dict[str, str] = {}
        self._calls: set[asyncio.Task[None]] = set()

    async def ticket(self, session_id: str) -> Path:
        """A new ticket for a session; an earlier one is void."""
        async with self._opening:
            folder = self._folder or await self._open()
        self.revoke(session_id)
        token = secrets.token_urlsafe(32)
        self._holders[token] = session_id
        place = folder / session_id
        with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(msgspec.json.encode(ToolGrant(str(folder / ".socket"), token)))
        return place

    def revoke(self, session_id: str) -> None:
        """Its ticket is good for nothing any more."""
        self._holders = {token: holder for token, holder in self._holders.items() if holder != session_id}
        if self._folder is not None:
            (self._folder / session_id).unlink(missing_ok=True)

    async def close(self) -> None:
        """Nobody can call any more, and whoever does is not answered."""
        if self._server is not None and self._folder is not None:
            self._server.close()
            for call in self._calls:
                call.cancel()
            await asyncio.gather(*self._calls, return_exceptions=True)
            shutil.rmtree(self._folder, ignore_errors=True)
            self._server = self._folder = None
            self._holders = {}

    async def _open(self) -> Path:
        folder = self._folder = Path(tempfile.mkdtemp(prefix="hansard-"))  # of mode 0700
        self._server = await asyncio.start_unix_server(self._connected, folder / ".socket", limit=LONGEST)
        return folder

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        call = asyncio.create_task(self._take(reader, writer))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            reply = await self._answer(await reader.readline(), reader)
            if reply is not None:
                writer.write(msgspec.json.encode(reply) + b"\n")
                await writer.drain()
        except (OSError, ValueError):  # whoever called is gone, or does not end
            pass
        finally:
            writer.close()

    async def _answer(self, line: bytes, reader: asyncio.StreamReader) -> Reply | None:
        """The answer to a call; None if whoever called does not wait for it."""
        try:
            call = msgspec.json.decode(line, type=Call)
        except msgspec.DecodeError as problem:
            return Reply(error=f"this is no call: {problem}")
        holder = self._holders.get(call.token)
        if holder is None:
            return Reply(error="this ticket is void")
        work = asyncio.ensure_future(self._use(holder, call.tool, call.given))
        gone = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait([work, gone], return_when=asyncio.FIRST_COMPLETED)
            return Reply(result=work.result()) if work.done() else None
        except (HansardError, msgspec.ValidationError) as problem:
            return Reply(error=str(problem))
        finally:
            work.cancel()
            gone.cancel()


async def call(ticket: Path, tool: str, given: dict[str, Any]) -> Any:
    """The tools' end: have something done by the hub. What it does not do is raised."""
    try:
        known = msgspec.json.decode(ticket.read_bytes(), type=ToolGrant)
        reader, writer = await asyncio.open_unix_connection(known.socket, limit=LONGEST)
    except (OSError, msgspec.DecodeError) as problem:
        raise UsageError(f"the hansard that this agent belongs to cannot be reached: {problem}") from problem
    try:
        writer.write(msgspec.json.encode(Call(known.token, tool, given)) + b"\n")
        await writer.drain()
        line = await reader.readline()
    finally:
        writer.close()
    if not line:
        raise UsageError("the hansard that this agent belongs to has ended")
    reply = msgspec.json.decode(line, type=Reply)
    if reply.error is not None:
        raise UsageError(reply.error)
    return reply.result


prepare(globals())
