"""Agents that do what a test says: a puppet on a string, and any small Python program. Both speak Claude's wire, and neither is greeted."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, Self

from hansard.agents import agents
from hansard.agents.agent import Agent, Capabilities, Options

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
    can = Capabilities(steer=True)

    def find(self, options: Options, path: str | None = None) -> str:
        return sys.executable

    def argv(self, options: Options) -> list[str]:
        return ["-c"]


def child(source: str, *arguments: str) -> tuple[str, Options]:
    """What to create a session with whose agent is this program."""
    agents()[Child.name] = Child()
    return Child.name, Options(arguments=[source, *arguments])


class Puppet:
    """Holds the string. Use it as a context: inside, sessions can be created whose agent says what the puppet `says`."""

    def __init__(self, folder: Path) -> None:
        self._place = folder / "string"
        self._writers: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
        self.heard: list[dict[str, Any]] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(self._pulled, self._place, limit=2**24)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    def agent(self) -> tuple[str, Options]:
        """What to create a session with."""
        return child(_RELAY, str(self._place))

    async def _pulled(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.put_nowait(writer)
        while line := await reader.readline():
            self.heard.append(json.loads(line))
        writer.close()

    async def begins(self) -> None:
        """Wait until the newest process holds the other end."""
        self._writer = await self._writers.get()

    async def says(self, **frame: Any) -> None:
        """Say a frame."""
        self._writer.write(json.dumps(frame).encode() + b"\n")
        await self._writer.drain()

    def exits(self, code: int) -> None:
        """End the process."""
        self._writer.write(b"exit %d\n" % code)
