"""A cable between a client and a server, to be cut in every way that there is."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress
from typing import Literal, Self

Cut = Literal["reset", "close", "silence"]
Trouble = Literal["reset", "close", "silence", "suspend"]
"""The same, and a client that stops reading for a while."""
TROUBLES: tuple[Trouble, ...] = ("reset", "close", "silence", "suspend")


class Cable:
    """Connections to `port` reach the server until they are cut. One that fell silent stays open at both ends."""

    def __init__(self, to: int) -> None:
        self.to = to
        self._ways: set[_Way] = set()
        self._silent: set[_Way] = set()
        self._passing: set[asyncio.Task[None]] = set()
        self.down = False
        """Whether nothing comes through for those either who come now."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._pass, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Leave nothing open: what is collected later is blamed on another test."""
        self._server.close()
        for task in self._passing:
            task.cancel()
        await asyncio.gather(*self._passing, return_exceptions=True)
        for way in list(self._ways | self._silent):
            way.end("reset")
        for _turn in range(3):  # until the loop has closed what was aborted
            await asyncio.sleep(0)

    @property
    def open(self) -> int:
        """How many connections go through."""
        return len(self._ways)

    def cut(self, how: Cut) -> None:
        """Cut what goes through now; whoever comes after that gets through, unless it is `down`."""
        for way in list(self._ways):
            self._ways.discard(way)
            if how == "silence":
                self._silent.add(way)
                way.freeze()
            else:
                way.end(how)

    def drop(self) -> None:
        """End what fell silent, as when the machine at the other end hears again and knows nothing of it."""
        while self._silent:
            self._silent.pop().end("reset")

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._passing.add(task)
        task.add_done_callback(self._passing.discard)
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self.to)
        except (OSError, asyncio.CancelledError):  # nobody listens there now, or the cable is taken away
            writer.transport.abort()
            return
        way = _Way((reader, back), (there, writer))
        if self.down:
            self._silent.add(way)
            way.freeze()
            return
        self._ways.add(way)
        await way.through()
        self._ways.discard(way)


class _Way:
    """One connection, in both directions."""

    def __init__(self, *directions: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
        self._sides = [writer for _, writer in directions]
        self._pumps = [asyncio.create_task(_pump(*direction)) for direction in directions]
        self._frozen = False

    async def through(self) -> None:
        """Until one side ends it, or it is cut."""
        await asyncio.wait(self._pumps, return_when=asyncio.FIRST_COMPLETED)
        if not self._frozen:
            self.end("close")

    def freeze(self) -> None:
        """Nothing is taken from either side any more, and nothing is said to it."""
        self._frozen = True
        for pump in self._pumps:
            pump.cancel()
        for side in self._sides:
            side.transport.pause_reading()  # type: ignore[attr-defined]

    def end(self, how: Cut) -> None:
        """For both sides."""
        for pump in self._pumps:
            pump.cancel()
        for side in self._sides:
            if how == "reset":
                with suppress(OSError):  # the other end was faster
                    side.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                side.transport.abort()
            else:
                side.close()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(64 * 1024):
            sink.write(data)
            await sink.drain()
    except OSError:
        pass
