"""Many clients at once: fast, slow, cut off and come back, and some that never read. Each gets the log, once, in order."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
from websockets.exceptions import ConnectionClosed

from hansard.codec import decode
from hansard.projections.state import State
from hansard.server.feed import shown
from hansard.server.protocol import AnySaid, Events, PingSaid
from hansard.store import JsonlStore
from tests.proof import amount
from tests.server.served import Process, eventually, process, words
from tests.server.test_limits import raw_socket, send_frame

pytestmark = pytest.mark.anyio

EVENTS = amount(20_000, 100_000)
COMING = amount(1000, 20_000)
ROOM = ("--limit", "per_session=200", "--limit", "connections=200")
said: msgspec.json.Decoder[AnySaid] = msgspec.json.Decoder(AnySaid)


class Reader:
    """A client that keeps a hash of what it got, and where it is."""

    def __init__(self, server: Process, session: str, log_id: str, pause: float = 0) -> None:
        self.server, self.session, self.log_id, self.pause = server, session, log_id, pause
        self.seq = 0
        self.hash = sha256()
        self.cuts = 0
        self._socket = None

    async def read(self, written: asyncio.Future[int]) -> None:
        """Until it has everything that was written, however often it is cut off."""
        while not self._has_all(written):
            self._socket = socket = await self.server.connected(max_queue=1)
            subscribe = {"type": "subscribe", "id": "r", "session": self.session, "after": {"logId": self.log_id, "seq": self.seq}}
            with suppress(ConnectionClosed, OSError):
                await socket.send(msgspec.json.encode(subscribe), text=True)
                while not self._has_all(written):
                    with suppress(TimeoutError):
                        async with asyncio.timeout(0.5):
                            data = await socket.recv(decode=False)
                        await self._take(said.decode(data))
            await socket.close()

    def _has_all(self, written: asyncio.Future[int]) -> bool:
        return written.done() and self.seq >= written.result()

    async def _take(self, message: AnySaid) -> None:
        if isinstance(message, PingSaid) and self._socket is not None:
            await self._socket.send(b'{"type":"pong"}', text=True)
        if isinstance(message, Events):
            for line in message.events:
                self.hash.update(bytes(line) + b"\n")
            self.seq = message.to
            if self.pause:
                await asyncio.sleep(self.pause)

    def cut(self) -> None:
        """Without a word, as when a cable is pulled."""
        if self._socket is not None:
            self.cuts += 1
            self._socket.transport.abort()


@pytest.mark.slow
async def test_fifty_clients_of_which_ten_are_slow_and_ten_are_cut_off(tmp_path: Path):
    chance = random.Random(1)
    with process(tmp_path, *ROOM) as server, JsonlStore(tmp_path) as store:
        head = store.create("many")
        fast = [Reader(server, "many", head.log_id) for _ in range(30)]
        slow = [Reader(server, "many", head.log_id, 0.02) for _ in range(10)]
        broken = [Reader(server, "many", head.log_id) for _ in range(10)]
        written = asyncio.get_running_loop().create_future()
        reading = [asyncio.create_task(reader.read(written)) for reader in (*fast, *slow, *broken)]
        for number in range(0, EVENTS, 200):
            store.append("many", words(200, number))
            chance.choice(broken).cut()
            await asyncio.sleep(0.02)
        written.set_result(store.head("many").seq)
        async with asyncio.timeout(300):
            await asyncio.gather(*reading)
        log = sha256(b"".join(shown(record.line, False, 2**20) + b"\n" for record in store.records("many")))
        assert {reader.hash.digest() for reader in (*fast, *slow, *broken)} == {log.digest()}
        assert sum(reader.cuts for reader in broken) > 20


async def test_the_state_of_a_client_is_that_of_the_log(tmp_path: Path):
    with process(tmp_path) as server, JsonlStore(tmp_path) as store:
        session = store.create().session_id
        async with server.socket() as peer:
            await peer.subscribe(session)
            for number in range(0, 3000, 100):
                store.append(session, words(100, number))
            await peer.events(store.head(session).seq)
            theirs, ours = State(), State()
            for event in peer.events_of():
                theirs.apply(decode(msgspec.json.encode(event)))
            for event in store.read(session):
                ours.apply(event)
            assert theirs.snapshot() == ours.snapshot()


async def test_clients_that_never_read_cost_little_memory(tmp_path: Path):
    """Fifty of them, and a log that is much larger than what they may cost together."""
    with process(tmp_path, *ROOM) as server, JsonlStore(tmp_path) as store:
        session = store.create().session_id
        await eventually(lambda: server.descriptors() > 0)
        async with server.socket() as peer:
            await peer.subscribe(session)
            await peer.until("live")
            before = server.memory()
            stuck = [await raw_socket(server.port, server.token) for _ in range(50)]
            for raw in stuck:
                send_frame(raw, {"type": "subscribe", "id": "a", "session": session})
            for number in range(0, 20_000, 1000):  # 80 MB if each had its own copy
                store.append(session, words(1000, number))
            await peer.events(store.head(session).seq)  # who reads has it all
            assert server.memory() - before < 50_000_000
        for raw in stuck:
            raw.close()


@pytest.mark.slow
async def test_a_thousand_connections_leave_nothing_behind(tmp_path: Path):
    with process(tmp_path) as server, JsonlStore(tmp_path) as store:
        session = store.create().session_id
        store.append(session, words(100))
        await come_and_go(server, session, 50)
        await settled(server)
        descriptors, memory = server.descriptors(), server.memory()
        await come_and_go(server, session, COMING)
        await settled(server)
        assert server.descriptors() <= descriptors
        assert server.memory() - memory < 20_000_000


async def come_and_go(server: Process, session: str, times: int) -> None:
    """Some say goodbye, some do not; some have asked for something, some have not."""
    for number in range(times):
        socket = await server.connected(open_timeout=30)
        if number % 3:
            await socket.send(msgspec.json.encode({"type": "subscribe", "id": "a", "session": session}), text=True)
        if number % 5 == 0:
            await socket.send(b'{"type":"watch"}', text=True)
        if number % 2:
            await socket.recv()
            await socket.close()
        else:
            socket.transport.abort()


async def settled(server: Process) -> None:
    """Wait until its descriptors do not change any more."""
    counts = [-1]
    while len(counts) < 5 or len(set(counts[-4:])) > 1:
        await asyncio.sleep(0.5)
        counts.append(server.descriptors())
