"""The list: what it knows of each session, and what it costs to know it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from hansard.events import Event, Usage, turn_end, turn_start, usage
from hansard.server import session_list
from hansard.store import FolderLog, JsonlStore
from tests.server.served import demo, eventually, process, served, words

pytestmark = pytest.mark.anyio


def spent(cost: float, turn: str = "t1") -> list:
    events = [
        turn_start(trigger="user"),
        usage(scope="turn", usage=Usage(input_tokens=10, output_tokens=5, total_tokens=15), cost_usd=cost),
        turn_end(status="completed"),
    ]
    for event in events:
        event.turn_id = turn
    return events


async def test_what_a_session_cost_is_in_the_list_and_goes_on(tmp_path: Path):
    async with served(tmp_path) as here, here.http() as http:
        session, other = here.session(), here.session(10)
        here.store[session].append(spent(0.5))
        found = {one["id"]: one for one in (await http.get("/api/sessions")).json()["sessions"]}
        assert (found[session]["costUsd"], found[session]["totalTokens"]) == (0.5, 15)
        assert "costUsd" not in found[other]
        here.store[session].append(spent(0.25, "t2"))
        assert (await http.get(f"/api/sessions/{session}")).json()["costUsd"] == 0.75
        here.store.delete(session)
        again = here.session(name=session)
        assert "costUsd" not in (await http.get(f"/api/sessions/{again}")).json()


async def test_a_fork_is_listed_with_its_parent_and_counts_its_own(tmp_path: Path):
    async with served(tmp_path) as here, here.http() as http:
        session = here.session()
        here.store[session].append(spent(0.5))
        here.store[session].release()
        child = (await http.post(f"/api/sessions/{session}/fork", json={})).json()
        here.store[child["id"]].append(spent(0.25, "t2"))
        assert (child["parentSessionId"], child["lineage"], child["copiedEvents"]) == (session, "fork", child["parentSeq"] - 2)
        found = {one["id"]: one for one in (await http.get("/api/sessions")).json()["sessions"]}
        assert (found[session]["costUsd"], found[child["id"]]["costUsd"]) == (0.5, 0.25)
        assert "lineage" not in found[session]


async def test_a_turn_whose_end_was_read_is_over_in_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    append = FolderLog.append

    def append_slowly(log: FolderLog, events: Iterable[Event]) -> list[Event]:
        stamped = append(log, events)
        time.sleep(0.3)  # the events can be read, and are not yet in the state of the session
        return stamped

    async with served(tmp_path) as here, here.http() as http:
        recorder = here.hub.get(session := await demo(http, tmp_path)).recorder
        await recorder.put(spent(0.5)[:1])
        assert (await http.get(f"/api/sessions/{session}")).json()["phase"] == "running"
        monkeypatch.setattr(FolderLog, "append", append_slowly)
        ending = asyncio.create_task(recorder.put(spent(0.5)[2:]))
        await eventually(lambda: any(recorder.log.read(types=["turn_end"])))
        assert (await http.get(f"/api/sessions/{session}")).json()["phase"] == "idle"
        await ending


async def test_who_comes_later_gets_the_list_as_it_is_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(session_list, "PACE", 3600)
    async with served(tmp_path) as here, here.socket() as first, here.socket() as second:
        await first.say(type="watch")
        assert (await first.until("sessions"))["changed"] == []
        session = here.session()
        await second.say(type="watch")
        for peer in (second, first):
            assert [one["id"] for one in (await peer.until("sessions"))["changed"]] == [session]


def test_what_was_found_out_is_forgotten_when_a_log_changes(tmp_path: Path):
    with JsonlStore(tmp_path) as store, JsonlStore(tmp_path) as other:
        session = store.create(title="one").session_id
        assert [(info.events, info.live) for info in other.sessions()] == [(1, True)]
        store[session].append(words(5))
        assert [(info.events, info.live) for info in other.sessions()] == [(6, True)]
        store[session].release()  # which takes a checkpoint
        assert [(info.events, info.live) for info in other.sessions()] == [(7, False)]
        store[session].append([])
        assert [(info.events, info.live) for info in other.sessions()] == [(7, True)]
        store.delete(session)
        assert other.sessions() == []


WRITER = """
import sys, time
from hansard.store import JsonlStore
store = JsonlStore(sys.argv[1])
store.create("x")
print(flush=True)
time.sleep(60)
"""


def test_the_log_of_a_writer_that_was_killed_is_not_live(tmp_path: Path):
    with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        with JsonlStore(tmp_path) as store:
            assert [info.live for info in store.sessions()] == [True]
            writer.kill()
            writer.wait()
            assert [info.live for info in store.sessions()] == [False]


@pytest.mark.slow
async def test_a_thousand_sessions_are_listed_quickly_and_watched_cheaply(tmp_path: Path):
    with JsonlStore(tmp_path) as store:
        store.create("s0000")
        store["s0000"].append(words(20))
    log = (tmp_path / "s0000/events.jsonl").read_bytes()
    for number in range(1, 1000):
        folder = tmp_path / f"s{number:04}"
        folder.mkdir()
        (folder / "events.jsonl").write_bytes(log.replace(b"s0000", folder.name.encode()))
    with process(tmp_path) as server:
        async with server.http() as http, server.socket() as peer:
            await peer.say(type="watch")
            assert len((await peer.until("sessions"))["changed"]) == 1000
            before = cpu(server.pid)  # not the time that passes: others use the machine, too
            for _ in range(5):
                assert len((await http.get("/api/sessions?limit=1000")).json()["sessions"]) == 1000
            assert cpu(server.pid) - before < 5 * 0.4
            await peer.socket.ping()
            before = cpu(server.pid)
            time.sleep(4)
            assert cpu(server.pid) - before < 4 * 0.15


def cpu(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100
