"""Connections that are cut: reset, closed, fallen silent; clients that are suspended. Each client gets the log, once and in order."""

from __future__ import annotations

import asyncio
import random
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from hansard.server import socket as socket_module
from hansard.server.protocol import Limits
from hansard.store import JsonlStore
from tests.proof import SEED, Figures, amount, proves
from tests.server.cable import TROUBLES, Cable
from tests.server.readers import Apart, Reader, StreamReader, log_hash
from tests.server.served import eventually, process, served, words

pytestmark = pytest.mark.anyio

CLIENTS, CUTS, RATE = 20, 10, 200
SECONDS = amount(3, 60)
ROOM = ("--limit", "per_session=500", "--limit", "connections=500")


@pytest.mark.slow
@proves("L-01", "Z6")
async def test_twenty_clients_each_cut_off_ten_times(tmp_path: Path, figure: Figures):
    chance = random.Random(SEED)
    with process(tmp_path, *ROOM) as server, JsonlStore(tmp_path) as store:
        head = store.create("cut")
        suspended = Apart(server, {"cut": head.log_id})
        done, written = asyncio.Event(), asyncio.get_running_loop().create_future()
        try:
            async with AsyncExitStack() as stack:
                cables = [await stack.enter_async_context(Cable(server.port)) for _ in range(CLIENTS - 1)]
                readers = [
                    _reader(number, cable)(server, "cut", head.log_id, port=cable.port, silence=0.7) for number, cable in enumerate(cables)
                ]
                reading = [asyncio.create_task(reader.read(written)) for reader in readers]
                writing = asyncio.create_task(_write(store, done))
                pairs = zip(readers, cables, strict=True)
                cuts = await asyncio.gather(_suspend(suspended, chance), *(_cut(reader, cable, chance) for reader, cable in pairs))
                done.set()
                await writing
                written.set_result(store["cut"].head().seq)
                async with asyncio.timeout(120):
                    apart = await suspended.end({"cut": written.result()})
                    await asyncio.gather(*reading)
        finally:
            suspended.close()
        assert {reader.hash.hexdigest() for reader in readers} | set(apart["hashes"]["cut"]) == {log_hash(store, "cut")}
        assert sum(cuts) == CLIENTS * CUTS
        assert all(reader.connected > 1 for reader in readers)
    figure("clients", CLIENTS)
    figure("cuts", sum(cuts))
    figure("events", written.result())


def _reader(number: int, cable: Cable) -> type[Reader]:
    return StreamReader if number % 5 == 4 else Reader


async def _write(store: JsonlStore, done: asyncio.Event) -> None:
    """So many events a second, for so long, and until every client was cut off as often as it shall be."""
    loop, number = asyncio.get_running_loop(), 0
    began = loop.time()
    while loop.time() - began < SECONDS or not done.is_set():
        await asyncio.sleep(0.02)
        due = int((loop.time() - began) * RATE)
        store["cut"].append(words(due - number, number))
        number = due


async def _cut(reader: Reader, cable: Cable, chance: random.Random) -> int:
    """Each time it is connected and has got something; some of the time it is only suspended, and goes on with the same connection."""
    for _ in range(CUTS):
        before, seq = reader.connected, reader.seq
        await asyncio.sleep(chance.random() * SECONDS / CUTS)
        await eventually(lambda seq=seq: cable.open > 0 and reader.seq > seq)
        how = chance.choice(TROUBLES)
        if how == "suspend":
            reader.going.clear()
            await asyncio.sleep(chance.random())
            reader.going.set()
        else:
            cable.cut(how)
            await eventually(lambda before=before: reader.connected > before)
    if reader.connected == 1:  # it was only ever suspended
        cable.cut("reset")
    return CUTS


async def _suspend(apart: Apart, chance: random.Random) -> int:
    """A whole process, by signal."""
    for _ in range(CUTS):
        apart.process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(chance.random() * SECONDS / CUTS)
        apart.process.send_signal(signal.SIGCONT)
        await asyncio.sleep(chance.random() * SECONDS / CUTS)
    return CUTS


@proves("L-07")
async def test_a_place_is_free_again_when_the_cable_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figure: Figures):
    """No FIN, no RST: the server finds out by itself, for one that is quiet and for one that is being sent something."""
    monkeypatch.setattr(socket_module, "HEARTBEAT", amount(1, 15))
    monkeypatch.setattr(socket_module, "SILENCE", amount(1, 20))
    limits = Limits(idle_seconds=amount(1, 60), connections=2)
    async with served(tmp_path, limits) as here, Cable(here.port) as cable:
        quiet, busy = here.session(3), here.session(3)
        through = {"host": "127.0.0.1", "port": cable.port}
        for session in (quiet, busy):
            socket = await here.connected(**through)
            await socket.send(f'{{"type":"subscribe","id":"a","session":"{session}"}}')
            while b'"live"' not in await socket.recv(decode=False):
                pass
        loop = asyncio.get_running_loop()
        cable.cut("silence")
        began = loop.time()
        here.store[busy].append(words(50_000))  # more than the kernel takes
        free = 0
        async with asyncio.timeout(120):
            while free < 2:
                await asyncio.sleep(0.1)
                free = await _free(here)
        figure("seconds until both places were free", round(loop.time() - began, 1))


async def _free(here) -> int:
    """How many more may come."""
    async with AsyncExitStack() as stack:
        for count in range(3):
            try:
                socket = await here.connected(open_timeout=30)
            except Exception:
                return count
            stack.push_async_callback(socket.close)
        return 3
