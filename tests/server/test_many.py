"""Many clients at once: fast, slow, cut off and come back, and some that never read. Each gets the log, once, in order."""

from __future__ import annotations

import asyncio
import os
import random
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import pytest

from hansard.events.codec import decode
from hansard.events.state import State
from hansard.server.protocol import Limits
from hansard.store import JsonlStore
from tests.proof import SEED, Figures, amount, proves
from tests.server.readers import Reader, log_hash, share
from tests.server.served import Client, Process, eventually, process, served, words

pytestmark = pytest.mark.anyio

EVENTS = amount(10_000, 100_000)
COMING = amount(1000, 20_000)
STANDING = amount(20_000, 100_000)
ROOM = ("--limit", "per_session=200", "--limit", "connections=200")


@pytest.mark.slow
async def test_fifty_clients_of_which_ten_are_slow_and_ten_are_cut_off(tmp_path: Path):
    chance = random.Random(SEED)
    with process(tmp_path, *ROOM) as server, JsonlStore(tmp_path) as store:
        head = store.create("many")
        fast = [Reader(server, "many", head.log_id) for _ in range(30)]
        slow = [Reader(server, "many", head.log_id, 0.02) for _ in range(10)]
        broken = [Reader(server, "many", head.log_id) for _ in range(10)]
        written = asyncio.get_running_loop().create_future()
        reading = [asyncio.create_task(reader.read(written)) for reader in (*fast, *slow, *broken)]
        number = 0
        while number < EVENTS or sum(reader.cuts for reader in broken) <= 10:  # on a busy machine they come late, and come back late
            store["many"].append(words(200, number))
            number += 200
            chance.choice(broken).cut()
            await asyncio.sleep(0.02)
        written.set_result(store["many"].head().seq)
        async with asyncio.timeout(300):
            await asyncio.gather(*reading)
        assert {reader.hash.hexdigest() for reader in (*fast, *slow, *broken)} == {log_hash(store, "many")}


async def test_the_state_of_a_client_is_that_of_the_log(tmp_path: Path):
    with process(tmp_path) as server, JsonlStore(tmp_path) as store:
        session = store.create().session_id
        async with server.socket() as peer:
            await peer.subscribe(session)
            for number in range(0, 3000, 100):
                store[session].append(words(100, number))
            await peer.events(store[session].head().seq)
            theirs, ours = State(), State()
            for event in peer.events_of():
                theirs.apply(decode(msgspec.json.encode(event)))
            for event in store[session].read():
                ours.apply(event)
            assert theirs.snapshot() == ours.snapshot()


@pytest.mark.slow
@proves("L-04", "B-05")
async def test_clients_that_stand_still_cost_little_memory_and_go_on_later(tmp_path: Path, figure: Figures):
    """Fifty of them, and a log that is much larger than what they may cost together. Five others read meanwhile."""
    with process(tmp_path, *ROOM) as server, JsonlStore(tmp_path) as store:
        head = store.create("still")
        still = [Reader(server, "still", head.log_id) for _ in range(50)]
        awake = [Reader(server, "still", head.log_id, timed=True) for _ in range(5)]
        written = asyncio.get_running_loop().create_future()
        reading = [asyncio.create_task(reader.read(written)) for reader in (*still, *awake)]
        await eventually(lambda: all(reader.connected and reader.seq for reader in (*still, *awake)))
        for reader in still:
            reader.going.clear()
        before = most = server.memory()
        for number in range(0, STANDING, 500):
            store["still"].append(words(500, number))
            await asyncio.sleep(0.01)
            most = max(most, server.memory())
        written.set_result(store["still"].head().seq)
        async with asyncio.timeout(120):
            await asyncio.gather(*reading[50:])
        most = max(most, server.memory())
        assert max(reader.seq for reader in still) < written.result()
        for reader in still:
            reader.going.set()
        async with asyncio.timeout(300):
            await asyncio.gather(*reading)
        assert {reader.hash.hexdigest() for reader in (*still, *awake)} == {log_hash(store, "still")}
        late = [ms for reader in awake for ms in reader.late]
        figure("events", written.result())
        figure("grown by MB", (most - before) / 1e6)
        figure("readers' p50 ms", share(late, 0.5))
        figure("readers' p99 ms", share(late, 0.99))


@pytest.mark.slow
@proves("L-02")
async def test_connections_that_come_and_go_leave_nothing_behind(tmp_path: Path, figure: Figures):
    with process(tmp_path) as server, JsonlStore(tmp_path) as store:
        session = store.create().session_id
        store[session].append(words(100))
        await come_and_go(server, session, 50)
        await settled(server)
        descriptors, memory = server.descriptors(), server.memory()
        await come_and_go(server, session, COMING)
        await eventually(lambda: server.descriptors() <= descriptors)
        grown = server.memory() - memory
    figure("connections", COMING)
    figure("grown by MB", grown / 1e6)


@proves("L-02")
async def test_no_task_and_no_subscription_outlives_its_connection(tmp_path: Path):
    async with served(tmp_path) as here:
        session, tasks = here.session(100), len(asyncio.all_tasks())
        await come_and_go(here, session, 10)
        await eventually(lambda: len(asyncio.all_tasks()) <= tasks)
        descriptors = len(os.listdir("/proc/self/fd"))
        await come_and_go(here, session, 60)
        await eventually(lambda: len(asyncio.all_tasks()) <= tasks and len(os.listdir("/proc/self/fd")) <= descriptors)
        async with AsyncExitStack() as stack:  # as many as may be, all at once: none of those before has a place
            for _ in range(Limits().per_session):
                peer = await stack.enter_async_context(here.socket())
                await peer.subscribe(session)


async def come_and_go(server: Client, session: str, times: int) -> None:
    """Some say goodbye, some do not; some have asked for something, some have not. Five at a time."""
    await asyncio.gather(*(_come_and_go(server, session, range(first, times, 5)) for first in range(5)))


async def _come_and_go(server: Client, session: str, numbers: range) -> None:
    for number in numbers:
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
