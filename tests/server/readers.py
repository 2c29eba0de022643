"""Clients that keep a hash of what they got, and where they are: over the socket and over server-sent events, cut off or standing still.

``python -m tests.server.readers`` is some of them in a process of their own, which can be stopped by a signal: see `Apart`.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from contextlib import suppress
from hashlib import sha256
from typing import Any

import httpx
import msgspec
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from hansard.server.feed import client_json
from hansard.server.protocol import AnySaid, Events, Problem, ServerPing, Trouble
from hansard.store import Store
from tests.server.served import Client

said: msgspec.json.Decoder[AnySaid] = msgspec.json.Decoder(AnySaid)
_LOST = (ConnectionClosed, InvalidHandshake, OSError, EOFError, TimeoutError, httpx.TransportError)


class _Stamp(msgspec.Struct):
    seq: int = 0
    timestamp: int = 0


_stamp = msgspec.json.Decoder(_Stamp)


class Reader:
    """A client of the socket, for one session, however often it is cut off. `silence`: seconds after which it takes the server for gone."""

    def __init__(
        self,
        server: Client,
        session: str,
        log_id: str,
        pause: float = 0,
        *,
        port: int | None = None,
        silence: float = 60,
        timed: bool = False,
    ) -> None:
        self.server, self.session, self.log_id, self.pause = server, session, log_id, pause
        self.port = port
        """Where the cable is that it comes through."""
        self.seq = 0
        self.hash = sha256()
        self.cuts = self.connected = 0
        self.late: list[float] = []
        """Milliseconds from the moment that is written on an event to its arrival."""
        self.going = asyncio.Event()
        """Cleared, it takes nothing more of what it is sent."""
        self.going.set()
        self.problem: str | None = None
        self._silence, self._timed = silence, timed
        self._socket: ClientConnection | None = None

    async def read(self, written: asyncio.Future[int]) -> None:
        """Until it has everything that was written."""
        while not self._has_all(written):
            with suppress(*_LOST):
                await self._read(written)
            await asyncio.sleep(0.02)

    async def _read(self, written: asyncio.Future[int]) -> None:
        through = {} if self.port is None else {"host": "127.0.0.1", "port": self.port}
        self._socket = socket = await self.server.connected(max_queue=1, close_timeout=0.2, **through)
        try:
            subscribe = {"type": "subscribe", "id": "r", "session": self.session, "after": {"logId": self.log_id, "seq": self.seq}}
            await socket.send(msgspec.json.encode(subscribe), text=True)
            self.connected += 1
            heard = time.monotonic()
            while not self._has_all(written) and time.monotonic() - heard < self._silence:
                await self.going.wait()
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.25):
                        data = await socket.recv(decode=False)
                    heard = time.monotonic()
                    await self._take(said.decode(data))
        finally:
            self._socket = None
            socket.transport.abort()

    def _has_all(self, written: asyncio.Future[int]) -> bool:
        return self.problem is not None or (written.done() and self.seq >= written.result())

    async def _take(self, message: AnySaid) -> None:
        if isinstance(message, ServerPing) and self._socket is not None:
            await self._socket.send(b'{"type":"pong"}', text=True)
        if isinstance(message, Trouble):
            self._fail(message)
        if isinstance(message, Events):
            now = time.time() * 1000 if self._timed else 0
            for line in message.events:
                self.hash.update(bytes(line) + b"\n")
                if self._timed:
                    self.late.append(now - _stamp.decode(line).timestamp)
            self.seq = message.to
            if self.pause:
                await asyncio.sleep(self.pause)

    def _fail(self, problem: Problem | Trouble) -> None:
        """The server says why it cannot go on: read no more."""
        self.problem = f"{problem.code}: {problem.message}"

    def cut(self) -> None:
        """Without a word, as when a process dies."""
        if self._socket is not None:
            self.cuts += 1
            self._socket.transport.abort()


class StreamReader(Reader):
    """The same over server-sent events."""

    async def _read(self, written: asyncio.Future[int]) -> None:
        headers = {"Host": f"127.0.0.1:{self.server.port}", "Last-Event-ID": f"{self.log_id}:{self.seq}"}
        address = f"http://127.0.0.1:{self.port or self.server.port}/api/sessions/{self.session}/stream"
        timeout = httpx.Timeout(30, read=self._silence)
        async with self.server.http() as http, http.stream("GET", address, headers=headers, timeout=timeout) as answer:
            if answer.status_code == 503:  # no room: a connection that fell silent has its place still
                return
            assert answer.status_code == 200, answer.status_code
            self.connected += 1
            cursor, data, is_error = 0, b"", False
            async for line in answer.aiter_lines():
                await self.going.wait()
                if line == "event: error":  # the last one: the stream cannot go on
                    is_error = True
                elif line.startswith("id: "):
                    cursor = int(line.rpartition(":")[2])
                elif line.startswith("data: "):
                    data = line[6:].encode()
                elif not line and data:  # now it is whole: a connection may be lost within an event
                    if is_error:
                        self._fail(msgspec.json.decode(data, type=Problem))
                        return
                    assert cursor == self.seq + 1, f"{cursor} after {self.seq}"
                    self.hash.update(data + b"\n")
                    self.seq, data = cursor, b""
                    if self._has_all(written):
                        return


class Apart:
    """Some readers in a process of their own, each of every session, as far as ``upto`` says."""

    def __init__(self, server: Client, sessions: dict[str, str], clients: int = 1) -> None:
        given = {"address": server.address, "port": server.port, "tokens": server.tokens, "sessions": sessions, "clients": clients}
        command = [sys.executable, "-m", "tests.server.readers", json.dumps(given)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    async def end(self, upto: dict[str, int]) -> dict[str, Any]:
        """Wait until they are there; what they got: ``hashes`` by session, ``count`` events, and how ``late`` they came."""
        out, _ = await asyncio.to_thread(self.process.communicate, json.dumps(upto) + "\n")
        return json.loads(out)

    def close(self) -> None:
        """Whatever happened, it is gone."""
        self.process.kill()
        self.process.wait()


async def _apart(address: str, port: int, tokens: dict[str, str], sessions: dict[str, str], clients: int) -> None:
    loop = asyncio.get_running_loop()
    written = {session: loop.create_future() for session in sessions}
    server = Client(address, port, tokens)
    readers = [Reader(server, session, log_id, timed=True) for session, log_id in sessions.items() for _ in range(clients)]
    reading = [asyncio.create_task(reader.read(written[reader.session])) for reader in readers]
    while not all(reader.connected for reader in readers):
        await asyncio.sleep(0.01)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    upto = json.loads(await asyncio.to_thread(sys.stdin.readline))
    for session, seq in upto.items():
        written[session].set_result(seq)
    await asyncio.gather(*reading)
    late = sorted(ms for reader in readers for ms in reader.late)
    hashes = {session: sorted({reader.hash.hexdigest() for reader in readers if reader.session == session}) for session in sessions}
    sys.stdout.write(json.dumps({"hashes": hashes, "count": len(late), "p50": share(late, 0.5), "p99": share(late, 0.99)}))


def share(values: list[float], part: float) -> float:
    """The value below which so large a part of them is."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] if ordered else 0.0


def log_hash(store: Store, session: str) -> str:
    """What a reader of the whole log must have."""
    found = sha256()
    for record in store[session].records():
        found.update(client_json(record.line, False, 2**20) + b"\n")
    return found.hexdigest()


if __name__ == "__main__":
    asyncio.run(_apart(**json.loads(sys.argv[1])))
