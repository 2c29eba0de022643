"""The database goes and comes back: the server lives, says so, keeps what its agents said, and goes on by itself."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from hansard.errors import LogLocked
from hansard.events import AssistantChunk, TurnEnd
from hansard.server.client import connect
from hansard.store import open_store
from tests.fleet.servers import command, fleet
from tests.postgres import Database
from tests.proof import Figures, proves
from tests.server.served import Peer, demo

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
FAR = 150
WHOLE = "".join(f"{number} " for number in range(1, FAR + 1))


@proves("F-05")
async def test_what_an_agent_says_while_the_database_is_away_is_kept(
    database: Database, tmp_path: Path, figure: Figures, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DEMO_AGENT_PACE", "0.02")
    with fleet(tmp_path, database.address, 1) as servers:
        async with servers[0].http() as http, servers[0].socket() as peer, servers[0].socket() as late:
            await peer.say(type="watch")
            await peer.until("sessions")
            session = await demo(http, tmp_path, f"count {FAR}")
            await peer.subscribe(session)
            await _chunks(peer, 20)
            await asyncio.to_thread(database.server.kill)
            told = await peer.until("error")
            assert told["code"] == "away" and "id" not in told  # it still follows
            await late.say(type="subscribe", id="late", session=session)
            assert (await late.until("error", id="late"))["code"] == "away"
            for _ in range(10):
                assert (await http.get("/api")).status_code == 200
            assert (await http.get("/api/sessions")).json()["error"]["code"] == "away"
            waits = asyncio.create_task(command(servers[0], session, "user_message", "later", text="say later"))
            await asyncio.sleep(1)
            await asyncio.to_thread(database.server.start)  # on a busy machine it takes longer than a client may be silent
            await peer.until("sessions")  # it is back
            while [event["type"] for event in peer.events_of()].count("turn_end") < 1:
                await peer.hear()
            answer = await waits
            if answer.status_code != 200:  # it was refused, and can be given again
                assert answer.json()["error"]["code"] in ("away", "store")
                assert (await command(servers[0], session, "user_message", "later", text="say later")).status_code == 200
            while [event["type"] for event in peer.events_of()].count("turn_end") < 2:
                await peer.hear()
        with open_store(database.address) as store:
            events = list(store[session].read())
            first = next(event for event in events if isinstance(event, TurnEnd))
            words = [event.payload.text for event in events if isinstance(event, AssistantChunk) and event.seq < first.seq]
            assert ("".join(words), first.payload.status) == (WHOLE, "completed")
            assert [event["seq"] for event in peer.events_of()] == list(range(1, len(events) + 1))
            assert [event.command_id for event in events if event.command_id].count("later") == 1
            assert store[session].verify() == []
    figure("events over a database that was killed", len(events))


@proves("F-05")
async def test_a_database_that_hangs_holds_up_only_who_needs_it(
    database: Database, tmp_path: Path, figure: Figures, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DEMO_AGENT_PACE", "0.02")
    with fleet(tmp_path, database.address, 1) as servers:
        async with servers[0].http() as http, servers[0].socket() as peer:
            session = await demo(http, tmp_path, f"count {FAR}")
            await peer.subscribe(session)
            await _chunks(peer, 20)
            hung = _processes(database.server.pid)
            try:
                _signal(hung, signal.SIGSTOP)
                for _ in range(20):
                    assert (await http.get("/api")).status_code == 200
                    await asyncio.sleep(0.05)
                await peer.say(type="ping")
                await peer.until("pong")
            finally:
                _signal(hung, signal.SIGCONT)
            while "turn_end" not in [event["type"] for event in peer.events_of()]:
                await peer.hear()
            words = "".join(event["payload"]["text"] for event in peer.events_of() if event["type"] == "assistant_chunk")
            assert words == WHOLE
    figure("answers while it hung", 21)


@proves("F-05")
async def test_a_client_comes_back_to_a_store_that_was_away(database: Database, tmp_path: Path):
    with fleet(tmp_path, database.address, 1) as servers:
        async with servers[0].http() as http:
            session = await demo(http, tmp_path, "say hello")
        async with connect(servers[0].address, servers[0].token) as server:
            await asyncio.to_thread(database.server.kill)
            following = server.follow(session)
            first = asyncio.ensure_future(anext(following))
            await asyncio.sleep(1)
            assert not first.done()
            await asyncio.to_thread(database.server.start)  # on a busy machine it takes longer than a client may be silent
            assert (await first).seq == 1
            await following.aclose()


@proves("F-05")
async def test_nobody_is_taken_for_dead_because_the_database_was_away(database: Database):
    with open_store(database.address) as mine, open_store(database.address) as other:
        mine.create("s")
        assert other.abandoned() == []
        database.execute("UPDATE writer SET until = clock_timestamp()")  # as if it had been away for long
        database.server.kill()
        database.server.start()
        assert other.abandoned() == []
        with pytest.raises(LogLocked):
            other["s"].append([])
        left = list[str]()
        while not left:  # again, if the lease was renewed in between
            database.execute("UPDATE writer SET until = 'epoch'")
            left = other.abandoned()
        assert left == ["s"]


async def _chunks(peer: Peer, count: int) -> None:
    while [event["type"] for event in peer.events_of()].count("assistant_chunk") < count:
        await peer.hear()


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):  # the process of a connection that has just ended
            os.kill(pid, number)


def _processes(pid: int) -> list[int]:
    """The server and those that come from it."""
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout.split()
    return [pid, *map(int, children)]
