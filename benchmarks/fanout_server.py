"""Two servers that do nothing but hand on lines, to stand beside ours: the least that uvicorn can do, and what most people write.

``python -m benchmarks.fanout_server cursor`` keeps the lines, and every client has a place in them; what stands after it goes out together,
every 33 ms, and is joined once for all who stand there. ``… queue`` has an `asyncio.Queue` for every client. Lines come from standard
input; the port is the first thing that is said.
"""

from __future__ import annotations

import asyncio
import os
import sys
from abc import ABC, abstractmethod

import uvicorn
from starlette.types import Receive, Scope, Send

TICK = 0.033
MOST = 256
"""Events in a frame."""
ROOM = 256
"""Events that a queue holds; who is slower holds up all."""


class Server(ABC):
    """Lines for all who are connected."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One client."""
        await receive()
        await send({"type": "websocket.accept"})
        await self.serve(send)

    @abstractmethod
    async def take(self, lines: list[str]) -> None:
        """Some more lines."""

    @abstractmethod
    async def serve(self, send: Send) -> None:
        """Hand them on, for ever."""


class Cursors(Server):
    """A place for every client."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._shown = 0
        self._waiting: list[asyncio.Future[None]] = []
        self._joined: dict[int, tuple[int, str]] = {}
        self._due: asyncio.TimerHandle | None = None
        self._published = 0.0

    async def take(self, lines: list[str]) -> None:
        self._lines += lines
        if self._due is None:
            loop = asyncio.get_running_loop()
            self._due = loop.call_at(max(loop.time(), self._published + TICK), self._publish)

    def _publish(self) -> None:
        self._due, self._published, self._shown = None, asyncio.get_running_loop().time(), len(self._lines)
        self._joined.clear()
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            one.set_result(None)

    async def serve(self, send: Send) -> None:
        place, loop = 0, asyncio.get_running_loop()
        while True:
            if place == self._shown:
                future = loop.create_future()
                self._waiting.append(future)
                await future
                continue
            made = self._joined.get(place)
            if made is None:
                end = min(place + MOST, self._shown)
                made = self._joined[place] = end, f"[{','.join(self._lines[place:end])}]"
            place, text = made
            await send({"type": "websocket.send", "text": text})


class Queues(Server):
    """A queue for every client."""

    def __init__(self) -> None:
        self._queues: list[asyncio.Queue[str]] = []

    async def take(self, lines: list[str]) -> None:
        for line in lines:
            for queue in self._queues:
                await queue.put(line)

    async def serve(self, send: Send) -> None:
        queue: asyncio.Queue[str] = asyncio.Queue(ROOM)
        self._queues.append(queue)
        while True:
            await send({"type": "websocket.send", "text": await queue.get()})


async def run(server: Server) -> None:
    """Take lines until there are no more."""
    config = uvicorn.Config(
        server, port=0, ws="websockets-sansio", ws_per_message_deflate=False, ws_ping_interval=None, lifespan="off", log_level="warning"
    )
    listening = uvicorn.Server(config)
    serving = asyncio.create_task(listening.serve())  # a name, so that it is not collected
    while not listening.started and not serving.done():
        await asyncio.sleep(0.01)
    print(listening.servers[0].sockets[0].getsockname()[1], flush=True)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    rest = b""
    while data := await reader.read(256 * 1024):
        *lines, rest = (rest + data).split(b"\n")
        await server.take([line.decode() for line in lines])
    os._exit(0)  # clients that are still there are nobody's concern


if __name__ == "__main__":
    asyncio.run(run({"cursor": Cursors, "queue": Queues}[sys.argv[1]]()))
