"""Agents that do what a test says: a puppet on a string, and any small Python program. They speak ACP, or Claude's wire ungreeted."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from hansard.agents import own
from hansard.agents.base import Agent, Capabilities, Options
from hansard.agents.drivers.acp import AcpAgent
from hansard.agents.session import Session

PATIENCE = 60

_RELAY = """
import os, socket, sys, threading
string = socket.socket(socket.AF_UNIX)
string.connect(sys.argv[1])
def hear():
    for line in sys.stdin.buffer:
        string.sendall(line)
threading.Thread(target=hear, daemon=True).start()
for line in string.makefile("rb"):
    if line.startswith(b"exit "):
        os._exit(int(line[5:]))
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
"""


class Child(Agent):
    """A Python program: its source is the first of ``arguments``."""

    name, title, format = "child", "A child", "claude-control"
    capabilities = Capabilities(edits=True, steer=True)

    def find(self, options: Options, path: str | None = None) -> str:
        return sys.executable

    def argv(self, options: Options) -> list[str]:
        return ["-c"]


class AcpChild(Child, AcpAgent):
    """The same, but it speaks ACP and is greeted."""

    name, title, format = "acp-child", "An ACP child", "acp"
    capabilities = AcpAgent.capabilities


def child(source: str, *arguments: str, kind: type[Child] = Child) -> tuple[str, Options]:
    """What to create a session with whose agent is this program."""
    own()[kind.name] = kind()
    return kind.name, Options(arguments=[source, *arguments])


class Puppet:
    """Holds the string. Use it as a context: inside, sessions can be created whose agent says what the puppet `says`."""

    def __init__(self, folder: Path, kind: type[Child] = Child) -> None:
        self._place = folder / "string"
        self._kind = kind
        self._asked = 0
        self._writers: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
        self._pulling: set[asyncio.Task[None]] = set()
        self.heard: list[dict[str, Any]] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(self._pulled, self._place, limit=2**24)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Leave no connection open: what is collected later is blamed on another test."""
        self._server.close()
        for task in self._pulling:
            task.cancel()
        await asyncio.gather(*self._pulling, return_exceptions=True)
        await asyncio.sleep(0)  # until the loop has closed them

    def agent(self) -> tuple[str, Options]:
        """What to create a session with."""
        return child(_RELAY, str(self._place), kind=self._kind)

    async def _pulled(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._pulling.add(task)
        task.add_done_callback(self._pulling.discard)
        self._writers.put_nowait(writer)
        try:
            with suppress(ConnectionError):  # the process was killed before it read everything
                while (line := await reader.readline()).endswith(b"\n"):  # or before it had said everything
                    self.heard.append(json.loads(line))
        finally:
            writer.transport.abort()

    async def begins(self) -> None:
        """Wait until the newest process holds the other end."""
        self._writer = await self._writers.get()

    async def says(self, **frame: Any) -> None:
        """Say a frame."""
        await self.says_line(json.dumps(frame))

    async def says_line(self, line: str) -> None:
        """Say a line that need not be a frame."""
        self._writer.write(line.encode() + b"\n")
        await self._writer.drain()

    def exits(self, code: int) -> None:
        """End the process."""
        self._writer.write(b"exit %d\n" % code)

    async def hears(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait for a frame, and take it."""
        async with asyncio.timeout(PATIENCE):
            while (frame := next(filter(wanted, self.heard), None)) is None:
                await asyncio.sleep(0.005)
        self.heard.remove(frame)
        return frame

    # ---- in JSON-RPC

    async def answers(self, method: str, **reply: Any) -> None:
        """Answer the next request for a method."""
        request = await self.hears(lambda frame: frame.get("method") == method)
        await self.says(jsonrpc="2.0", id=request["id"], **reply)

    async def asks(self, method: str, params: Any = None) -> dict[str, Any]:
        """Ask for something; its answer."""
        self._asked += 1
        name = f"asked-{self._asked}"
        await self.says(jsonrpc="2.0", id=name, method=method, params=params)
        return await self.hears(lambda frame: frame.get("id") == name)

    async def is_greeted(self, session: Session, **can: Any) -> None:
        """Start as an ACP agent that can do this."""
        starting = asyncio.create_task(session.start())
        await self.begins()
        await self.answers("initialize", result={"protocolVersion": 1, "agentCapabilities": can})
        await self.answers("session/new", result={"sessionId": "puppet"})
        await starting
