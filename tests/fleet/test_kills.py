"""Three servers, one database, all of them killed again and again while agents speak and clients look and command."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from hansard.events import AssistantChunk, TurnEnd, UserMessage
from hansard.store import Store, open_store
from tests.fleet.servers import Fleet, StreamWanderer, Talker, Wanderer, command, fleet
from tests.postgres import Database, Server
from tests.proof import SEED, Figures, amount, proves
from tests.server.readers import log_hash
from tests.server.served import demo

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

SECONDS = amount(10, 300)
SESSIONS, CLIENTS, WORDS = amount(9, 20), amount(24, 60), 30


class Kills:
    """What is killed, and how often."""

    def __init__(self, fleet: Fleet, server: Server) -> None:
        self.fleet, self.server, self.chance = fleet, server, random.Random(SEED)
        self.servers = self.databases = 0

    async def go_on(self) -> None:
        """For as long as it shall last. Each comes back before the next goes, or does not."""
        loop = asyncio.get_running_loop()
        end = loop.time() + SECONDS
        while loop.time() < end or self.servers < 3:  # on a machine that is busy, too
            await asyncio.sleep(self.chance.uniform(0.5, 3.0))
            await (self.kill_database() if self.chance.random() < 0.3 else self.kill_server())
        if not self.databases:
            await self.kill_database()

    async def kill_server(self) -> None:
        number = self.chance.randrange(len(self.fleet.servers))
        await asyncio.to_thread(self.fleet.kill, number)
        await asyncio.sleep(self.chance.uniform(0, 1))
        await asyncio.to_thread(self.fleet.start, number)
        self.servers += 1

    async def kill_database(self) -> None:
        await asyncio.to_thread(self.server.kill)
        await asyncio.sleep(self.chance.uniform(0, 2))
        await asyncio.to_thread(self.server.start)
        self.databases += 1


@proves("F-01")
async def test_servers_and_database_are_killed_and_nothing_is_lost(tmp_path: Path, figure: Figures, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DEMO_AGENT_PACE", "0.03")
    loop = asyncio.get_running_loop()
    with Server() as server, fleet(tmp_path, (database := Database(server)).address) as servers, open_store(database.address) as store:
        chance, over = random.Random(SEED + 1), asyncio.Event()
        sessions: list[str] = []
        for number in range(SESSIONS):
            async with servers[number % 3].http() as http:
                sessions.append(await demo(http, tmp_path))
        logs = {session: store[session].head().log_id for session in sessions}
        written = {session: loop.create_future() for session in sessions}
        readers = [
            (StreamWanderer if number % 4 == 3 else Wanderer)(servers, session, logs[session], chance)
            for number in range(CLIENTS)
            for session in [sessions[number % SESSIONS]]
        ]
        reading = [asyncio.create_task(reader.read(written[reader.session])) for reader in readers]
        talkers = [Talker(servers, session, chance, f"count {WORDS}") for session in sessions]
        talking = [asyncio.create_task(talker.talk(over)) for talker in talkers]
        kills = Kills(servers, server)
        await kills.go_on()
        await asyncio.sleep(3)  # whoever still waits for an answer may have it
        over.set()
        _, unanswered = await asyncio.wait(talking, timeout=300)
        silent = [talker for talker, task in zip(talkers, talking, strict=True) if task in unanswered]
        assert not silent, [(talker.session, talker.attempts, talker.refused[-3:]) for talker in silent]
        await asyncio.gather(*talking)
        for number, session in enumerate(sessions):
            await _stopped(servers, session, number)
        await _quiet(store)
        for session in sessions:
            written[session].set_result(store[session].head().seq)
        async with asyncio.timeout(180):
            await asyncio.gather(*reading)
        for reader in readers:
            assert reader.problem is None, reader.problem
            assert store[reader.session].head().seq == written[reader.session].result(), "something was written after all was quiet"
            assert reader.hash.hexdigest() == log_hash(store, reader.session)
        ends = [end for session in sessions for end in _turns(store, session)]
        for talker in talkers:
            _acknowledged_is_there_once(store, talker)
        for session in sessions:
            assert store[session].verify() == []
        figure("events", sum(store[session].head().seq for session in sessions))
    assert len(ends) >= SESSIONS
    figure("servers killed", kills.servers)
    figure("databases killed", kills.databases)
    figure("commands acknowledged", sum(len(talker.acknowledged) for talker in talkers))
    figure("commands given again", sum(talker.attempts - len(talker.acknowledged) for talker in talkers))
    figure("connections of clients", sum(reader.connected for reader in readers))
    figure("turns completed", ends.count("completed"))
    figure("turns ended with a reason", len(ends) - ends.count("completed"))
    figure("seconds", float(SECONDS))


async def _stopped(servers: Fleet, session: str, number: int) -> None:
    """Any server stops it, whichever writes it."""
    async with asyncio.timeout(180):
        while True:
            with suppress(httpx.TransportError):  # as any client does
                stopped = await command(servers[number % 3], session, "session_lifecycle", f"end-{session}", subtype="closed")
                if stopped.status_code == 200:
                    return
            await asyncio.sleep(0.2)


async def _quiet(store: Store) -> None:
    """Until nobody writes any more, and nothing is left open."""
    async with asyncio.timeout(180):
        while any(info.live for info in store.sessions()) or store.abandoned():
            await asyncio.sleep(0.2)


def _acknowledged_is_there_once(store: Store, talker: Talker) -> None:
    found: dict[str, list[int]] = {}
    for event in store[talker.session].read():
        if event.command_id is not None:
            found.setdefault(event.command_id, []).append(event.seq)
    for name, seq in talker.acknowledged.items():
        assert found.get(name) == [seq], (name, seq, found.get(name))
    assert all(len(seqs) == 1 for seqs in found.values())


def _turns(store: Store, session: str) -> list[str]:
    """How each turn ended. Each did, once; and who counted to the end left nothing out."""
    said: dict[str | None, str] = {}
    ends: dict[str | None, str] = {}
    for event in store[session].read(types=["user_message", "assistant_chunk", "turn_end"]):
        match event:
            case UserMessage():
                said[event.turn_id] = ""
            case AssistantChunk() if event.turn_id in said:
                assert event.turn_id not in ends
                said[event.turn_id] += event.payload.text
            case TurnEnd():
                assert event.turn_id not in ends
                ends[event.turn_id] = event.payload.status
            case _:
                pass
    whole = "".join(f"{number} " for number in range(1, WORDS + 1))
    for turn, words in said.items():
        assert whole.startswith(words) and turn in ends, (
            turn,
            [(event.type, event.turn_id, event.payload) for event in store[session].tail(12)],
        )
        assert words == whole or ends[turn] != "completed", (words, ends[turn])
    return list(ends.values())
